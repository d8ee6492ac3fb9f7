package nstorm.wire;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.google.gson.JsonArray;
import com.google.gson.JsonElement;
import com.google.gson.JsonObject;
import com.google.gson.JsonParser;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import nstorm.wire.json.WireException;
import org.junit.jupiter.api.DynamicTest;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.TestFactory;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

class PlanTest {

    @Test
    void readsTheGoldenPlan() throws Exception {
        Plan plan = Plan.parse(Golden.bytes("plan.json"));
        Entry entry = plan.entries().get(0);
        assertEquals(3, plan.epoch());
        assertEquals(17, plan.version());
        assertEquals("wc-1-1700000000", plan.topology());
        assertEquals(new ExecutorId(7, 7), entry.executor());
        assertEquals(Phase.SWITCH, entry.phase());
        assertEquals(6700, entry.from().port());
        assertEquals(
                "7c0a3fd2-1b8e-4f5b-8a52-9b1d4a5c2e77-127.0.0.3:6701",
                entry.to().toString());
        assertEquals(entry.from(), entry.baseSlot());
        assertEquals(1700000000L, entry.baseStartSecs());
        assertNull(entry.voidReason());
    }

    @Test
    void readsAVoidEntryAndAnEmptyPlan() throws Exception {
        Entry voided = Plan.parse(Golden.bytes("plan_void.json")).entries().stream()
                .filter(entry -> entry.voidReason() != null)
                .findFirst()
                .orElseThrow();
        assertTrue(!voided.counts(new Assigned(voided.baseSlot(), voided.baseStartSecs())));
        assertEquals(List.of(), Plan.parse(Golden.bytes("plan_empty.json")).entries());
    }

    @Test
    void readsALocalPlan() throws Exception {
        LocalPlan local = LocalPlan.parse(Golden.bytes("local_plan.json"));
        assertEquals(17, local.of("wc-1-1700000000").version());
        assertNull(local.of("another"));
    }

    @ParameterizedTest
    @ValueSource(strings = {"plan.json", "plan_void.json", "plan_empty.json"})
    void readsThePlansOfTheLastVersion(String name) throws Exception {
        assertEquals(Plan.parse(Golden.bytes(name)), Plan.parse(Golden.bytes("v1/" + name)));
        assertEquals(
                LocalPlan.parse(Golden.bytes("local_plan.json")), LocalPlan.parse(Golden.bytes("v1/local_plan.json")));
    }

    @TestFactory
    List<DynamicTest> refusesWhatPythonRefuses() throws Exception {
        String text = new String(Golden.bytes("refused.json"), StandardCharsets.UTF_8);
        List<DynamicTest> tests = new ArrayList<>();
        JsonArray vectors = JsonParser.parseString(text).getAsJsonArray();
        for (int i = 0; i < vectors.size(); i++) {
            JsonObject vector = vectors.get(i).getAsJsonObject();
            String format = vector.get("format").getAsString();
            if (format.equals("Plan") || format.equals("LocalPlan")) {
                tests.add(DynamicTest.dynamicTest(i + " " + vector.get("field").getAsString(), () -> refuses(vector)));
            }
        }
        assertTrue(tests.size() > 10, "the vectors are there");
        return tests;
    }

    @Test
    void readsWhatPythonReads() throws Exception {
        String text = new String(Golden.bytes("read.json"), StandardCharsets.UTF_8);
        for (JsonElement element : JsonParser.parseString(text).getAsJsonArray()) {
            byte[] bytes = element.getAsJsonObject().get("text").getAsString().getBytes(StandardCharsets.UTF_8);
            assertEquals(element.getAsJsonObject().get("means").getAsString(), Verdicts.canonical(Plan.parse(bytes)));
        }
    }

    private static void refuses(JsonObject vector) {
        JsonElement times = vector.get("times");
        byte[] bytes = vector.get("text")
                .getAsString()
                .repeat(times == null ? 1 : times.getAsInt())
                .getBytes(StandardCharsets.UTF_8);
        String format = vector.get("format").getAsString();
        WireException refused = assertThrows(WireException.class, () -> {
            if (format.equals("Plan")) {
                Plan.parse(bytes);
            } else {
                LocalPlan.parse(bytes);
            }
        });
        String field = vector.get("field").getAsString();
        String inner =
                field.contains(".") ? field.substring(field.indexOf('.') + 1).split("[.\\[]")[0] : "";
        assertTrue(refused.getMessage().startsWith(inner), field + " is named: " + refused.getMessage());
    }
}

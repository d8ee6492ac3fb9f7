package nstorm.wire;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertThrows;

import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.List;
import nstorm.wire.json.Packing;
import nstorm.wire.json.WireException;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** What a plan of another version of the protocol is read as, and what is refused in any version. */
class AgeingTest {

    private static final String ENTRY =
            "{\"id\":\"m\",\"executor\":[7,8],\"from\":\"a:1\",\"to\":\"b:2\",\"phase\":\"SWITCH\","
                    + "\"base\":[\"a:1\",100],\"void\":null}";
    private static final String PLAN =
            "{\"cluster\":\"c\",\"epoch\":3,\"version\":17,\"topology\":\"t\",\"entries\":[" + ENTRY + "]}";

    private static byte[] bytes(String text) {
        return text.getBytes(StandardCharsets.UTF_8);
    }

    private static Plan read(String text) throws WireException {
        return Plan.parse(bytes(text));
    }

    private static String refusal(String text) {
        String message =
                assertThrows(WireException.class, () -> read(text), text).getMessage();
        assertEquals(1, message.lines().count(), message);
        return message;
    }

    @ParameterizedTest
    @ValueSource(
            strings = {
                "1",
                "-1.5e-9",
                "1e999999999",
                "null",
                "true",
                "\"\\ud83c\\udf29 x\"",
                "[]",
                "[1,[{}],\"\"]",
                "{}",
                "{\"entries\":[{}],\"a\":{\"a\":[null]}}"
            })
    void keysThatAreNotKnownArePassedOver(String value) throws Exception {
        String late = "\"later\":" + value;
        assertEquals(
                read(PLAN),
                read(PLAN.replace("}", ",LATE}").replace("{\"", "{LATE,\"").replace("LATE", late)));
        assertEquals(
                read(PLAN), read(PLAN.replace("[7,8]", "[7,8," + value + "]").replace(",100]", ",100," + value + "]")));
    }

    @Test
    void whatMayBeMissing() throws Exception {
        assertEquals(read(PLAN), read(PLAN.replace(",\"void\":null", "")));
        assertEquals(
                List.of(),
                read(PLAN.replace(",\"entries\":[" + ENTRY + "]", "")).entries());
        assertEquals(List.of(), LocalPlan.parse(bytes("{\"cluster\":\"c\"}")).plans());
        for (String key :
                List.of("cluster", "epoch", "version", "topology", "id", "executor", "from", "to", "phase", "base")) {
            String within = PLAN.indexOf("\"" + key + "\"") < PLAN.indexOf("entries") ? "" : "entries[0].";
            assertEquals(within + key + " is missing", refusal(PLAN.replace("\"" + key + "\":", "\"later\":")));
        }
        assertEquals("entries is not a list", refusal(PLAN.replace("[" + ENTRY + "]", "null")));
    }

    @Test
    void ofAKeyThatStandsTwiceTheLastCountsAndAllHaveToBeRight() throws Exception {
        assertEquals(
                18,
                read(PLAN.replace("\"version\":17", "\"version\":17,\"version\":18"))
                        .version());
        assertEquals(
                "version is not a whole number",
                refusal(PLAN.replace("\"version\":17", "\"version\":[],\"version\":18")));
        assertEquals(List.of(), read(PLAN.replace("}]}", "}],\"entries\":[]}")).entries());
    }

    @Test
    void numbers() throws Exception {
        assertEquals(
                Long.MAX_VALUE,
                read(PLAN.replace(":3,", ":9223372036854775807,")).epoch());
        assertEquals(0, read(PLAN.replace(":3,", ":-0,")).epoch());
        for (String number :
                List.of("9223372036854775808", "-1", "1.0", "1e3", "\"3\"", "null", "true", "NaN", "03", "+3", "")) {
            refusal(PLAN.replace(":3,", ":" + number + ","));
        }
        for (String executor : List.of("[7]", "[]", "[8,7]", "[-2,7]", "[7,2147483648]", "[7,null]", "7")) {
            refusal(PLAN.replace("[7,8]", executor));
        }
        assertEquals(
                Integer.MAX_VALUE,
                read(PLAN.replace("[7,8]", "[7,2147483647]"))
                        .entries()
                        .get(0)
                        .executor()
                        .end());
    }

    @Test
    void texts() throws Exception {
        assertEquals("-t", read(PLAN.replace("\"t\"", "\"-t\"")).topology());
        refusal(PLAN.replace("\"t\"", "\"\""));
        refusal(PLAN.replace("\"m\"", "\"\""));
        refusal(PLAN.replace("\"m\"", "\"\\ud800\""));
        refusal(PLAN.replace("\"m\"", "\"\\ud800\",\"later\":\"\\udc00\""));
        refusal(PLAN.replace("\"m\"", "\"a\nb\""));
        refusal(PLAN.replace("\"m\"", "\"m\",\"later\":\"a\nb\""));
        assertEquals(
                "entries[0].from is not a slot <supervisor-id>:<port>: 'a:65536'",
                refusal(PLAN.replace("a:1", "a:65536")));
    }

    @ParameterizedTest
    @ValueSource(
            strings = {"", "x", "[]", "null", "{}", "\ufeff{}", "{}{}", "{'a':1}", "{\"a\":1,}", "{\"a\" 1}", "// x\n{}"
            })
    void whatIsNoPlan(String text) {
        refusal(text);
        refusal(PLAN + text + " 1");
    }

    @Test
    void bytesThatAreNoText() {
        for (String text : List.of(PLAN, PLAN.replace("\"m\"", "\"x\",\"later\":\"m\""))) {
            byte[] bytes = bytes(text);
            bytes[text.indexOf("\"m\"") + 1] = (byte) 0xFF;
            assertEquals(
                    "not UTF-8",
                    assertThrows(WireException.class, () -> Plan.parse(bytes)).getMessage());
        }
    }

    @Test
    void whatIsTooDeepOrTooLong() throws Exception {
        String deep = "[".repeat(250) + "]".repeat(250);
        assertEquals(read(PLAN), read(PLAN.replace("{\"cluster\"", "{\"later\":" + deep + ",\"cluster\"")));
        refusal("[".repeat(100_000));
        refusal("{\"a\":".repeat(1_000_000));
        refusal(PLAN.replace("{\"cluster\"", "{\"later\":" + "[".repeat(300) + "]".repeat(300) + ",\"cluster\""));
        assertEquals("longer than 16777216 bytes", refusal(PLAN + " ".repeat(16 << 20)));
        byte[] bomb = Packing.pack(new byte[100 << 20]);
        assertEquals(
                "longer than 16777216 bytes",
                assertThrows(WireException.class, () -> Plan.parse(bomb)).getMessage());
    }

    @Test
    void whatIsCompressed() throws Exception {
        byte[] plain = bytes(PLAN + " ".repeat(4_000));
        byte[] packed = Packing.pack(plain);
        assertSame(packed.length < 1_000, true);
        assertEquals(read(PLAN), Plan.parse(packed));
        for (int end = 0; end < packed.length; end++) {
            byte[] cut = Arrays.copyOf(packed, end);
            assertThrows(WireException.class, () -> Plan.parse(cut));
        }
        byte[] small = bytes(PLAN);
        assertSame(small, Packing.pack(small), "what is short stays readable");
    }

    private static Plan with(long version, String... idsAndPhases) throws WireException {
        StringBuilder entries = new StringBuilder();
        for (int i = 0; i < idsAndPhases.length; i += 2) {
            entries.append(i == 0 ? "" : ",")
                    .append(ENTRY.replace("\"m\"", "\"" + idsAndPhases[i] + "\"")
                            .replace("[7,8]", "[" + (i + 1) + "," + (i + 1) + "]")
                            .replace("SWITCH", idsAndPhases[i + 1]));
        }
        return read(PLAN.replace(ENTRY, entries).replace(":17", ":" + version));
    }

    private static String phases(Plan plan) {
        StringBuilder phases = new StringBuilder(plan.version() + ":");
        plan.entries()
                .forEach(entry ->
                        phases.append(' ').append(entry.id()).append('=').append(entry.phase()));
        plan.notUnderstood().forEach(entry -> phases.append(" ?").append(entry.id()));
        return phases.toString();
    }

    @Test
    void anEntryInAPhaseOfALaterVersionStaysAsItWasLastUnderstood() throws Exception {
        Plan first = with(1, "a", "SWITCH", "b", "PREPARE").understood(null);
        assertEquals("1: a=SWITCH b=PREPARE", phases(first));
        Plan second = with(2, "a", "LEAP", "b", "SWITCH").understood(first);
        assertEquals("2: a=SWITCH b=SWITCH ?a", phases(second));
        Plan third = with(3, "a", "LEAP", "b", "UNKNOWN").understood(second);
        assertEquals("3: a=SWITCH b=SWITCH ?a ?b", phases(third));
        Plan fourth = with(4, "a", "UNDO", "b", "LAND").understood(third);
        assertEquals("4: a=UNDO b=SWITCH ?b", phases(fourth));
        assertEquals("5:", phases(with(5).understood(fourth)));
    }

    @Test
    void aWayOfALaterVersionIsLikeAPhaseOfOne() throws Exception {
        Plan first = with(1, "a", "SWITCH").understood(null);
        String later = PLAN.replace(":17", ":2").replace("\"m\"", "\"a\"").replace("[7,8]", "[1,1]");
        Plan unknown = read(later.replace("\"void\":null", "\"void\":null,\"way\":\"leap\""));
        assertEquals("2: a=SWITCH ?a", phases(unknown.understood(first)));
        assertEquals("2: ?a", phases(unknown.understood(null)));
        Plan known = read(later.replace("\"void\":null", "\"void\":null,\"way\":\"spout\""));
        assertEquals(Way.SPOUT, known.understood(null).entries().get(0).way());
        assertEquals(Way.LIVE, first.entries().get(0).way());
        assertEquals("entries[0].way is not a text", refusal(PLAN.replace("\"void\":null", "\"way\":null")));
    }

    @Test
    void oneThatWasNeverUnderstoodIsAbsent() throws Exception {
        assertEquals(
                "1: b=SWITCH ?a", phases(with(1, "a", "LEAP", "b", "SWITCH").understood(null)));
        Plan other = with(1, "a", "SWITCH");
        Plan adopted = new Plan("another", 3, 1, "t", other.entries());
        assertEquals("2: ?a", phases(with(2, "a", "LEAP").understood(adopted)), "of another cluster");
        assertEquals(
                "2: b=SWITCH ?a", phases(with(2, "b", "SWITCH", "a", "LEAP").understood(other)), "of another executor");
        assertNull(with(1, "a", "LEAP").entries().get(0).voidReason());
    }
}

package nstorm.supervisor;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicReference;
import java.util.function.BooleanSupplier;
import nstorm.wire.LocalPlan;
import nstorm.wire.Plan;
import org.apache.storm.generated.LocalAssignment;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class SupervisorReportTest {

    private static LocalPlan local(long version) {
        return new LocalPlan("c", List.of(new Plan("c", 3, version, "t", List.of())));
    }

    @Test
    void tellsWhatIsPersistedAndOnlyChanges() throws Exception {
        AtomicReference<LocalPlan> plans = new AtomicReference<>(new LocalPlan("", List.of()));
        AtomicReference<String> off = new AtomicReference<>();
        Map<Long, LocalAssignment> persisted = new HashMap<>();
        persisted.put(6701L, Assignments.of("t", "user", 9, 8));
        persisted.put(6700L, Assignments.of("t", "user", -1, 7));
        SupervisorReport report =
                new SupervisorReport("s1", plans::get, off::get, () -> persisted, Path.of("unused"), false, () -> {});
        assertTrue(new String(report.due(), StandardCharsets.UTF_8).contains("\"cluster\":\"\",\"plans\":[],"));
        plans.set(local(17));
        long lastNanos = System.nanoTime();
        String first = new String(report.due(), StandardCharsets.UTF_8);
        String tail =
                "\"cluster\":\"c\",\"plans\":[[\"t\",3,17]],\"slots\":[{\"port\":6700,\"topology\":\"t\",\"executors\":[[7,7]]},"
                        + "{\"port\":6701,\"topology\":\"t\",\"executors\":[[8,8],[9,9]]}],\"storm\":null,\"error\":null}";
        assertEquals(tail, first.substring(first.indexOf("\"cluster\"")));
        assertQuiet(report, lastNanos, "nothing new");
        persisted.remove(6700L);
        assertNotNull(report.due(), "another set");
        plans.set(local(18));
        lastNanos = System.nanoTime();
        assertNotNull(report.due(), "another plan");
        assertQuiet(report, lastNanos, "nothing new again");
        plans.set(new LocalPlan("c", List.of(), local(18).plans()));
        assertTrue(new String(report.due(), StandardCharsets.UTF_8).contains("\"plans\":[],"), "the agent names none");
        plans.set(local(19));
        off.set("a fault");
        String inert = new String(report.due(), StandardCharsets.UTF_8);
        assertTrue(inert.contains("\"cluster\":\"c\",\"plans\":[],\"slots\":[{\"port\":6701"), inert);
        assertTrue(inert.endsWith("\"error\":\"the hooks are off: a fault\"}"), inert);
        off.set(null);
        assertTrue(new String(report.due(), StandardCharsets.UTF_8).contains("[\"t\",3,19]"), "on again");
        Thread.sleep(2100);
        assertNotNull(report.due(), "a sign of life");
    }

    @Test
    void namesTheUserOfAWorkerWhereItHasOneOfItsOwn() {
        Map<Long, LocalAssignment> persisted = Map.of(6700L, Assignments.of("t", "ada", 7));
        SupervisorReport report = new SupervisorReport(
                "s1", () -> local(1), () -> null, () -> persisted, Path.of("unused"), true, () -> {});
        String said = new String(report.due(), StandardCharsets.UTF_8);
        assertTrue(said.contains("\"executors\":[[7,7]],\"user\":\"ada\"}]"), said);
    }

    @Test
    void goesOnWhereItsStoreCannotBeOpenedYet(@TempDir Path store) throws Exception {
        Path blocked = Files.write(store.resolve("s"), new byte[1]);
        AtomicInteger looks = new AtomicInteger();
        SupervisorReport report =
                new SupervisorReport("s1", () -> local(1), () -> null, Map::of, store, false, looks::incrementAndGet);
        Thread thread = new Thread(report);
        thread.start();
        try {
            Path own = blocked.resolve(Long.toString(ProcessHandle.current().pid()));
            await(() -> looks.get() > 3, "what else is due is done");
            assertFalse(Files.exists(own));
            Files.delete(blocked);
            await(() -> Files.exists(own.resolve("data.mdb")) || Files.exists(own.resolve("ack.bin")), "it reports");
        } finally {
            thread.interrupt();
            thread.join(10_000);
        }
        assertFalse(thread.isAlive());
    }

    private static void await(BooleanSupplier there, String what) throws InterruptedException {
        long untilNanos = System.nanoTime() + TimeUnit.SECONDS.toNanos(30);
        while (!there.getAsBoolean()) {
            assertTrue(System.nanoTime() < untilNanos, what);
            Thread.sleep(20);
        }
    }

    /** On a machine that is slow enough the sign of life may be due already. */
    private static void assertQuiet(SupervisorReport report, long sinceNanos, String why) {
        byte[] told = report.due();
        assertTrue(told == null || System.nanoTime() - sinceNanos > TimeUnit.SECONDS.toNanos(2), why);
    }
}

package nstorm.wire.report;

import static org.junit.jupiter.api.Assertions.assertEquals;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import nstorm.wire.ExecutorId;
import nstorm.wire.Golden;
import nstorm.wire.Plan;
import nstorm.wire.Slot;
import nstorm.wire.Way;
import nstorm.wire.report.NimbusReport.Published;
import nstorm.wire.report.Nodes.Node;
import nstorm.wire.report.Publication.Component;
import nstorm.wire.report.Publication.Edge;
import nstorm.wire.report.Publication.Placed;
import nstorm.wire.report.WorkerAck.Counters;
import nstorm.wire.report.WorkerAck.ExecutorWay;
import nstorm.wire.report.WorkerAck.Messaging;
import nstorm.wire.report.WorkerAck.Pinned;
import org.junit.jupiter.api.Test;

class ReportTest {

    private static final List<ExecutorId> ONE = List.of(new ExecutorId(8, 8));
    private static final String CLUSTER = "6f1c2c1e-5a0e-4d6c-9a57-0b9a2f6f3c11";
    private static final String TOPOLOGY = "wc-1-1700000000";
    private static final String HERE = "0e9d9bd5-93a5-4f08-8c3e-7d1c8a6c9a10-127.0.0.2";
    private static final Slot SOURCE = new Slot(HERE, 6700);
    private static final Slot TARGET = new Slot("7c0a3fd2-1b8e-4f5b-8a52-9b1d4a5c2e77-127.0.0.3", 6701);
    private static final ExecutorId SYSTEM = new ExecutorId(-1, -1);
    private static final ExecutorId SPOUT = new ExecutorId(1, 1);
    private static final ExecutorId SPLIT = new ExecutorId(7, 7);

    private static void assertGolden(String name, byte[] written) throws IOException {
        String golden = new String(Golden.bytes(name), StandardCharsets.UTF_8);
        assertEquals(golden, new String(written, StandardCharsets.UTF_8));
    }

    @Test
    void workerAck() throws Exception {
        assertGolden(
                "worker_ack.json",
                new WorkerAck(
                                TOPOLOGY,
                                SOURCE,
                                4711,
                                "4711-1700000000000",
                                "0.2.0",
                                1700000012345L,
                                CLUSTER,
                                3,
                                17,
                                List.of(
                                        new EntryAck("m12", EntryState.ROUTED, SOURCE, false),
                                        new EntryAck("m9", EntryState.NONE, null, true)),
                                List.of(SYSTEM, SPOUT, SPLIT),
                                List.of(new Pinned(SYSTEM, "system"), new Pinned(SPOUT, "spout")),
                                List.of(new ExecutorWay(SPOUT, Way.SPOUT)),
                                new Counters(12, 3, 0, 1, 2),
                                "prepare of split[7,7]",
                                null,
                                "2.8.3",
                                null,
                                null)
                        .toJson());
    }

    @Test
    void workerAckOfAWorkerThatIsOff() throws Exception {
        assertGolden(
                "worker_ack_off.json",
                ackWithoutPlan(ONE, null, "2.8.3", "a fault (operator ada)", null)
                        .toJson());
    }

    @Test
    void workerAckOfAWorkerThatSaysWhatGuardsItsConnections() throws Exception {
        Map<String, Object> topology = Map.of("storm.messaging.netty.authentication", true);
        Map<String, Object> node =
                Map.of("storm.messaging.netty.authentication", true, "storm.messaging.netty.tls.enable", true);
        assertGolden(
                "worker_ack_guarded.json",
                ackWithoutPlan(ONE, null, "2.8.3", null, Messaging.of(topology, node))
                        .toJson());
    }

    private static WorkerAck ackWithoutPlan(
            List<ExecutorId> executors, String error, String storm, String off, Messaging messaging) {
        return new WorkerAck(
                TOPOLOGY,
                TARGET,
                4800,
                "4800-1700000000001",
                "0.2.0",
                1700000012346L,
                "",
                0,
                -1,
                List.of(),
                executors,
                List.of(),
                List.of(),
                new Counters(0, 0, 0, 0, 0),
                null,
                error,
                storm,
                off,
                messaging);
    }

    @Test
    void workerAckWithOddText() throws Exception {
        String odd = "a \"b\" \\ c/d \b\f\n\r\t\u0001\u001f\u007f ü 漢 \ud83c\udf29 \u2028";
        assertGolden(
                "worker_ack_fresh.json",
                ackWithoutPlan(List.of(), odd, null, null, null).toJson());
    }

    @Test
    void workerLoad() throws Exception {
        assertGolden(
                "worker_load.json",
                new WorkerLoad(
                                TOPOLOGY,
                                SOURCE,
                                "4711-1700000000000",
                                1700000012345L,
                                9_876_543_210L,
                                List.of(
                                        new ExecutorLoad(SPOUT, "spout", 1_234_567_890L, 0, "spout"),
                                        new ExecutorLoad(SPLIT, "split", 2_345_678_901L, 17, null)),
                                List.of(new long[] {1, 7, 123456}, new long[] {7, Integer.MAX_VALUE, Long.MAX_VALUE}),
                                List.of(new FoldedTraffic(7, "count", 4711)),
                                Map.of(),
                                List.of(),
                                List.of(),
                                Map.of())
                        .toJson());
    }

    @Test
    void workerLoadWithMetersOfExecutors() throws Exception {
        assertGolden(
                "worker_load_executors.json",
                new WorkerLoad(
                                TOPOLOGY,
                                SOURCE,
                                "4711-1700000000000",
                                1700000012345L,
                                9_876_543_210L,
                                List.of(
                                        new ExecutorLoad(SPOUT, "spout", 1_234_567_890L, 0, "spout"),
                                        new ExecutorLoad(SPLIT, "split", 2_345_678_901L, 17, null)),
                                List.of(),
                                List.of(),
                                Map.of(),
                                List.of(),
                                List.of(),
                                Map.of("allocated_bytes", new long[] {-1, Long.MAX_VALUE}))
                        .toJson());
    }

    @Test
    void workerLoadWithMeters() throws Exception {
        Map<String, Long> meters = new LinkedHashMap<>();
        meters.put("heap_live_bytes", 104_857_600L);
        meters.put("heap_max_bytes", 805_306_368L);
        meters.put("gc_ms", 0L);
        meters.put("transfer_queue_tuples", 17L);
        assertGolden("worker_load_meters.json", idle(meters, List.of(), List.of()));
    }

    @Test
    void workerLoadWithSizes() throws Exception {
        assertGolden(
                "worker_load_sizes.json",
                idle(
                        Map.of(),
                        List.of(
                                new TupleSize("split", "count", 4711, 123_456),
                                new TupleSize("split", "__acker", 4711, Long.MAX_VALUE)),
                        List.of()));
    }

    @Test
    void workerLoadWithLatency() throws Exception {
        assertGolden(
                "worker_load_latency.json",
                idle(
                        Map.of("acked_tuples", 9_100L),
                        List.of(),
                        List.of(new long[] {0, 12}, new long[] {22, 444}, new long[] {73, 1})));
    }

    /** The report of a worker without executors. */
    private static byte[] idle(Map<String, Long> meters, List<TupleSize> sizes, List<long[]> latency) {
        return new WorkerLoad(
                        TOPOLOGY,
                        SOURCE,
                        "4711-1700000000000",
                        1700000012345L,
                        9_876_543_210L,
                        List.of(),
                        List.of(),
                        List.of(),
                        meters,
                        sizes,
                        latency,
                        Map.of())
                .toJson();
    }

    @Test
    void supervisorAck() throws Exception {
        assertGolden(
                "supervisor_ack.json",
                new SupervisorAck(
                                HERE,
                                4000,
                                "0.2.0",
                                1700000012000L,
                                CLUSTER,
                                List.of(new SupervisorAck.PlanSeen(TOPOLOGY, 3, 17)),
                                List.of(new SupervisorAck.SlotSet(6700, TOPOLOGY, List.of(SPOUT, SPLIT), null)),
                                "2.8.3",
                                "Storm 2.8.3 has code that these hooks do not know: Slot.handleRunning")
                        .toJson());
    }

    @Test
    void supervisorAckWhereWorkersHaveUsersOfTheirOwn() throws Exception {
        assertGolden(
                "supervisor_ack_users.json",
                new SupervisorAck(
                                HERE,
                                4000,
                                "0.2.0",
                                1700000012000L,
                                CLUSTER,
                                List.of(new SupervisorAck.PlanSeen(TOPOLOGY, 3, 17)),
                                List.of(new SupervisorAck.SlotSet(6700, TOPOLOGY, List.of(SPOUT), "ada")),
                                "2.8.3",
                                null)
                        .toJson());
    }

    @Test
    void publication() throws Exception {
        assertGolden(
                "publication.json",
                new Publication(
                                TOPOLOGY,
                                "wc",
                                "ACTIVE",
                                10,
                                List.of(
                                        new Component("spout", "spout", 2, null),
                                        new Component("split", "bolt", 6, 128.5)),
                                List.of(new Edge("spout", "split", "default", "shuffle")),
                                List.of(
                                        new Placed(SPLIT, "split", SOURCE, 1700000000L),
                                        new Placed(new ExecutorId(8, 8), "split", null, null)),
                                "approve",
                                120,
                                45)
                        .toJson());
    }

    @Test
    void nodes() throws Exception {
        assertGolden(
                "nodes.json",
                new Nodes(List.of(
                                new Node(HERE, "127.0.0.2", 200.0, List.of(6700, 6701), 2, null, 800.0),
                                new Node(TARGET.supervisor(), "n3", 87.5, List.of(6700, 6701), 1, "bad", null)))
                        .toJson());
    }

    @Test
    void nimbus() throws Exception {
        Plan plan = new Plan("c", 3, 17, TOPOLOGY, List.of());
        assertGolden(
                "nimbus.json",
                new NimbusReport(
                                1700000010000L,
                                "0.2.0",
                                "org.apache.storm.scheduler.DefaultScheduler",
                                List.of(
                                        new Published(TOPOLOGY, plan, null, null),
                                        new Published("new-2-1700000009", null, null, "isolated"),
                                        new Published("vast-3-1700000001", null, "it needs 300,000 bytes", null)),
                                "2.8.3",
                                null)
                        .toJson());
    }
}

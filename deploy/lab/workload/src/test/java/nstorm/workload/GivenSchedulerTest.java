package nstorm.workload;

import static org.junit.jupiter.api.Assertions.assertEquals;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.storm.daemon.nimbus.Nimbus;
import org.apache.storm.metric.StormMetricsRegistry;
import org.apache.storm.scheduler.Cluster;
import org.apache.storm.scheduler.ExecutorDetails;
import org.apache.storm.scheduler.SupervisorDetails;
import org.apache.storm.scheduler.Topologies;
import org.apache.storm.scheduler.TopologyDetails;
import org.apache.storm.scheduler.WorkerSlot;
import org.apache.storm.scheduler.resource.normalization.ResourceMetrics;
import org.apache.storm.testing.TestWordSpout;
import org.apache.storm.topology.TopologyBuilder;
import org.apache.storm.utils.Utils;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

final class GivenSchedulerTest {
    private static final WorkerSlot FIRST = new WorkerSlot("s1", 6700);
    private static final WorkerSlot SECOND = new WorkerSlot("s1", 6701);
    private static final ExecutorDetails ONE = new ExecutorDetails(1, 1);
    private static final ExecutorDetails TWO = new ExecutorDetails(2, 2);

    @TempDir
    Path lab;

    private Topologies topologies;
    private Cluster cluster;

    @BeforeEach
    void aTopologyOfTwoExecutorsAndTwoSlots() {
        System.setProperty("nstorm.lab", lab.toString());
        Map<String, Object> conf = new HashMap<>(Utils.readDefaultConfig());
        conf.put("topology.name", "wc");
        TopologyBuilder builder = new TopologyBuilder();
        builder.setSpout("words", new TestWordSpout(), 2);
        topologies = new Topologies(new TopologyDetails(
                "wc-1", conf, builder.createTopology(), 2, Map.of(ONE, "words", TWO, "words"), 1, "user"));
        SupervisorDetails supervisor = new SupervisorDetails(
                "s1",
                "127.0.0.2",
                null,
                List.of(6700, 6701),
                Map.of(
                        "cpu.pcore.percent",
                        400.0,
                        "onheap.memory.mb",
                        1e6,
                        "offheap.memory.mb",
                        1e6,
                        "memory.mb",
                        1e6));
        cluster = new Cluster(
                new Nimbus.StandaloneINimbus(),
                new ResourceMetrics(new StormMetricsRegistry()),
                Map.of("s1", supervisor),
                new HashMap<>(),
                topologies,
                conf);
    }

    @AfterEach
    void noLab() {
        System.clearProperty("nstorm.lab");
    }

    @Test
    void withoutAWordFromTheLabItIsStorms() {
        schedule();
        assertEquals(Map.of(ONE, FIRST, TWO, SECOND), placed());
    }

    @Test
    void whatIsNotPlacedYetGoesWhereTheLabSays() throws IOException {
        give("{\"slot_of\":{\"1-1\":\"s1:6701\",\"2-2\":\"s1:6700\"},\"running\":false}");
        schedule();
        assertEquals(Map.of(ONE, SECOND, TWO, FIRST), placed());
    }

    @Test
    void whatRunsStaysUnlessTheLabSaysSo() throws IOException {
        cluster.assign(FIRST, "wc-1", List.of(ONE));
        cluster.assign(SECOND, "wc-1", List.of(TWO));
        give("{\"slot_of\":{\"1-1\":\"s1:6701\",\"2-2\":\"s1:6700\"},\"running\":false}");
        schedule();
        assertEquals(Map.of(ONE, FIRST, TWO, SECOND), placed());
        give("{\"slot_of\":{\"1-1\":\"s1:6701\",\"2-2\":\"s1:6700\"},\"running\":true}");
        schedule();
        assertEquals(Map.of(ONE, SECOND, TWO, FIRST), placed());
    }

    @Test
    void aPlacementThatLeavesOneOutAndGarbageAreIgnored() throws IOException {
        for (String given : List.of("{\"slot_of\":{\"1-1\":\"s1:6701\"},\"running\":true}", "garbage")) {
            give(given);
            schedule();
            assertEquals(2, cluster.getAssignmentById("wc-1").getSlots().size());
        }
    }

    private void give(String placement) throws IOException {
        Files.writeString(Files.createDirectories(lab.resolve("placements")).resolve("wc.json"), placement);
    }

    private void schedule() {
        new GivenScheduler().schedule(topologies, cluster);
    }

    private Map<ExecutorDetails, WorkerSlot> placed() {
        return cluster.getAssignmentById("wc-1").getExecutorToSlot();
    }
}

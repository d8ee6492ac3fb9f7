package nstorm.nimbus;

import static nstorm.nimbus.SmallCluster.move;
import static nstorm.nimbus.SmallCluster.shown;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertInstanceOf;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.lang.reflect.Field;
import java.lang.reflect.Method;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import nstorm.hook.HookStatus;
import nstorm.wire.Phase;
import org.apache.storm.daemon.nimbus.Nimbus;
import org.apache.storm.generated.Assignment;
import org.apache.storm.generated.NodeInfo;
import org.apache.storm.metric.StormMetricsRegistry;
import org.apache.storm.scheduler.Cluster;
import org.apache.storm.scheduler.DefaultScheduler;
import org.apache.storm.scheduler.blacklist.BlacklistScheduler;
import org.apache.storm.utils.Utils;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/** Nimbus' own classes, woven by the packaged jar. */
class NimbusHooksIT {

    private final SmallCluster small = new SmallCluster()
            .topology("t", 4, 2)
            .place("t", "s1:6700", 1, 2)
            .place("t", "s2:6700", 3, 4)
            .plan("t", move(1, "s1:6700", "s2:6700", Phase.STOP));
    private final Map<String, Assignment> existing = small.existing();

    @BeforeEach
    void woven() {
        assertTrue(HookStatus.active());
    }

    @AfterEach
    void endRound() {
        NimbusCalls.roundEnded();
    }

    private BlacklistScheduler scheduler() {
        BlacklistScheduler scheduler = new BlacklistScheduler(new DefaultScheduler());
        scheduler.prepare(Utils.readDefaultConfig(), new StormMetricsRegistry());
        return scheduler;
    }

    /** What Nimbus makes of a cluster's answer: slot by executor. */
    private static Map<List<Long>, List<Object>> nodePorts(Cluster cluster) {
        Map<List<Long>, List<Object>> ports = new HashMap<>();
        cluster.getAssignmentById("t")
                .getExecutorToSlot()
                .forEach((executor, slot) -> ports.put(
                        List.of((long) executor.getStartTask(), (long) executor.getEndTask()),
                        List.of(slot.getNodeId(), (long) slot.getPort())));
        return ports;
    }

    @SuppressWarnings("unchecked")
    private static List<List<Long>> changedExecutors(
            Map<List<Long>, NodeInfo> before, Map<List<Long>, List<Object>> after) throws Exception {
        Method method = Nimbus.class.getDeclaredMethod("changedExecutors", Map.class, Map.class);
        method.setAccessible(true);
        return new ArrayList<>((List<List<Long>>) method.invoke(null, before, after));
    }

    @Test
    void theUsersSchedulerIsWrapped() throws Exception {
        Field field = BlacklistScheduler.class.getDeclaredField("underlyingScheduler");
        field.setAccessible(true);
        assertInstanceOf(PlanAwareScheduler.class, field.get(scheduler()));
    }

    @Test
    void absorbsAndKeepsTheStartTimes() throws Exception {
        NimbusCalls.begin(new SchedulingRound(existing, small.plans()));
        Cluster cluster = small.cluster();
        scheduler().schedule(small.topologies(), cluster);
        assertEquals("s1:6700=2 s2:6700=1,3,4", shown(cluster, "t"));
        assertEquals(List.of(), changedExecutors(existing.get("t").get_executor_node_port(), nodePorts(cluster)));
    }

    @Test
    void otherChangesGetNewStartTimes() throws Exception {
        Cluster cluster = small.cluster();
        NimbusCalls.begin(new SchedulingRound(existing, small.plans()));
        scheduler().schedule(small.topologies(), cluster);
        Map<List<Long>, List<Object>> ports = nodePorts(cluster);
        ports.put(List.of(2L, 2L), List.of("s1", 6701L));
        List<List<Long>> changed = changedExecutors(existing.get("t").get_executor_node_port(), ports);
        assertEquals(List.of(List.of(2L, 2L)), changed, "2 went elsewhere, by no plan");
    }

    @Test
    void withoutARoundItIsStock() throws Exception {
        Cluster cluster = small.cluster();
        scheduler().schedule(small.topologies(), cluster);
        assertEquals("s1:6700=1,2 s2:6700=3,4", shown(cluster, "t"));
        Map<List<Long>, List<Object>> ports = nodePorts(cluster);
        ports.put(List.of(1L, 1L), List.of("s2", 6700L));
        assertEquals(
                4,
                changedExecutors(existing.get("t").get_executor_node_port(), ports)
                        .size());
    }
}

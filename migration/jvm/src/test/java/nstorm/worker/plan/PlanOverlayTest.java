package nstorm.worker.plan;

import static nstorm.worker.plan.Moves.BYSTANDER;
import static nstorm.worker.plan.Moves.EXECUTOR;
import static nstorm.worker.plan.Moves.FROM;
import static nstorm.worker.plan.Moves.TO;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.file.Path;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.atomic.AtomicBoolean;
import nstorm.store.PlanStore;
import nstorm.store.PlanWriting;
import nstorm.wire.Assigned;
import nstorm.wire.ExecutorId;
import nstorm.wire.Phase;
import org.apache.storm.generated.Assignment;
import org.apache.storm.generated.NodeInfo;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class PlanOverlayTest {

    private static String plan(String cluster, long version) {
        return "{\"cluster\":\"" + cluster + "\",\"epoch\":1,\"version\":" + version
                + ",\"topology\":\"t\",\"entries\":[]}";
    }

    private static void write(Path dir, String cluster, String plans) throws Exception {
        PlanWriting.write(dir, "{\"cluster\":\"" + cluster + "\",\"plans\":[" + plans + "]}");
    }

    private static Assignment assignment(Map<String, String> hosts) {
        Assignment assignment = new Assignment("dir");
        assignment.set_node_host(hosts);
        assignment.set_executor_node_port(new HashMap<>(Map.of(EXECUTOR.toStorm(), new NodeInfo("s1", Set.of(6700L)))));
        assignment.set_executor_start_time_secs(Map.of(EXECUTOR.toStorm(), 100L));
        return assignment;
    }

    private static String move(Phase phase) {
        return plan("c", phase.ordinal())
                .replace(
                        "[]",
                        "[{\"id\":\"m\",\"executor\":[7,7],\"from\":\"s1:6700\",\"to\":\"s2:6701\"," + "\"phase\":\""
                                + phase + "\",\"base\":[\"s1:6700\",100]}]");
    }

    @Test
    void laysOnlyWhatHasAnotherOwner(@TempDir Path dir) throws Exception {
        write(dir, "c", move(Phase.PREPARE));
        PlanOverlay overlay = new PlanOverlay("t", new PlanStore(dir, topology -> true));
        assertEquals(Map.of(), overlay.laid(), "before Storm's assignment is read");
        Assignment both = assignment(Map.of("s1", "host1", "s2", "host2"));
        overlay.remember(both);
        Map<ExecutorId, Assigned> assigned = overlay.assigned();
        assertEquals(Map.of(), overlay.laid());
        write(dir, "c", move(Phase.SWITCH));
        assertTrue(overlay.poll());
        assertEquals(Map.of(EXECUTOR, TO), overlay.laid());
        NodeInfo laid = overlay.over(both.deepCopy()).get_executor_node_port().get(EXECUTOR.toStorm());
        assertEquals(TO, PlanOverlay.slot(laid));
        overlay.remember(both.deepCopy());
        assertSame(assigned, overlay.assigned(), "it says the same");
    }

    @Test
    void laysNoRouteToAHostThatStormDoesNotName(@TempDir Path dir) throws Exception {
        write(dir, "c", move(Phase.SWITCH));
        PlanOverlay overlay = new PlanOverlay("t", new PlanStore(dir, topology -> true));
        Assignment one = assignment(Map.of("s1", "host1"));
        overlay.remember(one);
        assertFalse(overlay.reaches(overlay.plan().entries().get(0)));
        assertEquals(Map.of(), overlay.laid());
        assertEquals(one, overlay.over(one.deepCopy()));
        overlay.remember(assignment(Map.of("s1", "host1", "s2", "host2")));
        assertEquals(Map.of(EXECUTOR, TO), overlay.laid());
    }

    @Test
    void laysARouteToAnEndOnceAConnectionStandsAndThenKeepsIt(@TempDir Path dir) throws Exception {
        write(dir, "c", move(Phase.PREPARE));
        PlanOverlay overlay = new PlanOverlay("t", new PlanStore(dir, topology -> true));
        AtomicBoolean connected = new AtomicBoolean();
        overlay.attach(BYSTANDER, slot -> connected.get());
        Assignment both = assignment(Map.of("s1", "host1", "s2", "host2"));
        overlay.remember(both);
        assertEquals(Set.of(FROM, TO), overlay.ends());
        write(dir, "c", move(Phase.SWITCH));
        assertTrue(overlay.poll());
        assertEquals(Map.of(), overlay.laid());
        assertFalse(overlay.reaches(overlay.plan().entries().get(0)));
        connected.set(true);
        assertEquals(Map.of(EXECUTOR, TO), overlay.laid());
        assertTrue(overlay.reaches(overlay.plan().entries().get(0)));
        connected.set(false);
        assertEquals(Map.of(EXECUTOR, TO), overlay.laid(), "a connection that breaks is Storm's to mend");
        write(dir, "c", plan("c", 9));
        assertTrue(overlay.poll());
        assertEquals(Set.of(), overlay.ends());
        write(dir, "c", move(Phase.SWITCH).replace("\"version\":" + Phase.SWITCH.ordinal(), "\"version\":10"));
        assertTrue(overlay.poll());
        assertEquals(Map.of(), overlay.laid(), "another move");
    }

    @Test
    void connectsAheadToTheOtherWorkersWhoseHostStormNames(@TempDir Path dir) throws Exception {
        write(dir, "c", move(Phase.PREPARE));
        PlanOverlay overlay = new PlanOverlay("t", new PlanStore(dir, topology -> true));
        Assignment one = assignment(Map.of("s1", "host1"));
        overlay.remember(one);
        assertEquals(one, overlay.over(one.deepCopy()), "a worker that starts takes no tuple before it is connected");
        overlay.attach(FROM, slot -> false);
        assertEquals(one, overlay.over(one.deepCopy()), "the target's host is not named");
        Assignment both = assignment(Map.of("s1", "host1", "s2", "host2"));
        overlay.remember(both);
        Map<List<Long>, NodeInfo> laid = overlay.over(both.deepCopy()).get_executor_node_port();
        assertEquals(Set.of(EXECUTOR.toStorm(), List.of(-1000L, -1000L)), laid.keySet());
        assertEquals(TO, PlanOverlay.slot(laid.get(List.of(-1000L, -1000L))));
    }

    @Test
    void onlyTheWorkerOfAnOpenedSlotIsWithoutAnAssignmentAtItsSupervisor(@TempDir Path dir) throws Exception {
        write(dir, "c", move(Phase.DRAIN).replace(",100]", ",100],\"opens\":\"host2\""));
        PlanOverlay overlay = new PlanOverlay("t", new PlanStore(dir, topology -> true));
        assertFalse(overlay.opensHere(), "not known yet which slot this is");
        overlay.attach(FROM, slot -> true);
        assertFalse(overlay.opensHere());
        overlay.attach(TO, slot -> true);
        assertTrue(overlay.opensHere());
        write(dir, "c", move(Phase.DRAIN).replace("\"version\":", "\"version\":1"));
        assertTrue(overlay.poll());
        assertFalse(overlay.opensHere(), "a move to a worker of Storm's");
    }

    @Test
    void thePlanNamesTheHostOfASlotThatItOpens(@TempDir Path dir) throws Exception {
        write(dir, "c", move(Phase.OPEN).replace(",100]", ",100],\"opens\":\"host2\""));
        PlanOverlay overlay = new PlanOverlay("t", new PlanStore(dir, topology -> true));
        Assignment one = assignment(new HashMap<>(Map.of("s1", "host1")));
        overlay.remember(one);
        overlay.attach(BYSTANDER, slot -> true);
        assertEquals(Set.of(), overlay.ends(), "no copy is there yet");
        assertEquals(
                Map.of(EXECUTOR.toStorm(), new NodeInfo("s1", Set.of(6700L))),
                overlay.over(one.deepCopy()).get_executor_node_port());
        write(dir, "c", move(Phase.SWITCH).replace(",100]", ",100],\"opens\":\"host2\""));
        assertTrue(overlay.poll());
        assertEquals(Set.of(FROM, TO), overlay.ends());
        Assignment laid = overlay.over(one.deepCopy());
        assertEquals(Map.of("s1", "host1", "s2", "host2"), laid.get_node_host());
        assertEquals(TO, PlanOverlay.slot(laid.get_executor_node_port().get(EXECUTOR.toStorm())));
        assertEquals(Map.of("s1", "host1"), one.get_node_host(), "Storm's own stays as it is");
    }

    @Test
    void followsTheNodeIntoAnotherCluster(@TempDir Path dir) throws Exception {
        write(dir, "old", plan("old", 7));
        PlanOverlay overlay = new PlanOverlay("t", new PlanStore(dir, topology -> true));
        assertEquals(7, overlay.plan().version());
        write(dir, "old", "");
        assertFalse(overlay.poll(), "within a cluster a plan that is missing stays");
        write(dir, "new", "");
        assertTrue(overlay.poll());
        assertNull(overlay.plan(), "the new cluster has none for this topology");
        write(dir, "new", plan("new", 0));
        assertTrue(overlay.poll());
        assertEquals("new", overlay.plan().cluster());
    }
}

package nstorm.supervisor;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.file.Path;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import nstorm.store.PlanStore;
import nstorm.store.PlanWriting;
import nstorm.wire.Entry;
import nstorm.wire.ExecutorId;
import nstorm.wire.Phase;
import nstorm.wire.Plan;
import nstorm.wire.Slot;
import org.apache.storm.generated.LocalAssignment;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class AcceptedAssignmentsTest {

    private static final LocalAssignment BOTH = Assignments.of("t", "user", 7, 8);
    private static final LocalAssignment ONE = Assignments.of("t", "user", 8);

    private final Map<String, Plan> plans = new HashMap<>();
    private final AcceptedAssignments accepted = new AcceptedAssignments("s1", plans::get);

    @BeforeEach
    void movingSeven() {
        Slot from = new Slot("s1", 6700);
        plans.put(
                "t",
                new Plan(
                        "c",
                        1,
                        1,
                        "t",
                        List.of(new Entry(
                                "m1", new ExecutorId(7, 7), from, new Slot("s2", 6700), Phase.STOP, from, 100, null))));
    }

    @Test
    void adoptsAMovedSetThoughItsResourcesDiffer() {
        assertTrue(accepted.accepts(ONE, BOTH));
        assertTrue(accepted.hasAccepted("t"));
    }

    @Test
    void adoptsAMovedSetThoughThePhaseIsOfALaterVersion() {
        Plan last = plans.get("t");
        Plan later = new Plan("c", 1, 2, "t", List.of(inPhase(last.entries().get(0), Phase.UNKNOWN, null)));
        for (Plan before : new Plan[] {last, null}) {
            plans.put("t", later.understood(before));
            assertTrue(accepted.accepts(new LocalAssignment(ONE), BOTH));
            assertTrue(accepted.accepts(new LocalAssignment(BOTH), ONE));
        }
        Entry voided = inPhase(last.entries().get(0), Phase.UNKNOWN, "rebalance");
        plans.put("t", new Plan("c", 1, 3, "t", List.of(voided)).understood(null));
        assertFalse(accepted.accepts(new LocalAssignment(ONE), BOTH), "Storm wins");
    }

    private static Entry inPhase(Entry entry, Phase phase, String voidReason) {
        return new Entry(
                entry.id(),
                entry.executor(),
                entry.from(),
                entry.to(),
                phase,
                entry.baseSlot(),
                entry.baseStartSecs(),
                voidReason);
    }

    @Test
    void keepsItsWordWithinAStep() {
        assertTrue(accepted.accepts(ONE, BOTH));
        plans.clear();
        assertTrue(accepted.accepts(ONE, BOTH), "the same two again");
        assertFalse(accepted.accepts(new LocalAssignment(ONE), BOTH), "read anew");
    }

    @Test
    void followsTheNodeIntoAnotherCluster(@TempDir Path dir) throws Exception {
        NodePlans stored = new NodePlans(new PlanStore(dir, topology -> true));
        AcceptedAssignments following = new AcceptedAssignments("s1", stored::of);
        PlanWriting.write(dir, local("old", 3, 17, 8));
        assertFalse(following.accepts(ONE, BOTH), "7 is not on the move");
        PlanWriting.write(dir, local("new", 1, 2, 7));
        assertTrue(following.accepts(ONE, BOTH), "of a lower version, but of the cluster that the node has adopted");
        assertEquals("new", stored.newest().cluster());
        PlanWriting.write(dir, "{\"cluster\":\"newer\",\"plans\":[]}");
        assertFalse(following.accepts(new LocalAssignment(ONE), BOTH), "what was in flight is void");
    }

    private static String local(String cluster, long epoch, long version, int task) {
        return "{'cluster':'%1$s','plans':[{'cluster':'%1$s','epoch':%2$d,'version':%3$d,'topology':'t','entries':["
                .concat("{'id':'m1','executor':[%4$d,%4$d],'from':'s1:6700','to':'s2:6701','phase':'STOP',")
                .concat("'base':['s1:6700',100],'void':null}]}]}")
                .replace('\'', '"')
                .formatted(cluster, epoch, version, task);
    }

    @Test
    void anotherThreadWasToldNothing() throws Exception {
        assertTrue(accepted.accepts(ONE, BOTH));
        plans.clear();
        boolean[] answer = {true};
        Thread other = new Thread(() -> answer[0] = accepted.accepts(ONE, BOTH));
        other.start();
        other.join();
        assertFalse(answer[0]);
    }

    @Test
    void anotherTopologyOwnerOrAnEmptySlotIsStormsOwn() {
        assertFalse(accepted.accepts(Assignments.of("u", "user", 8), BOTH));
        assertFalse(accepted.accepts(Assignments.of("t", "other", 8), BOTH));
        assertFalse(accepted.accepts(Assignments.of("t", null, 8), BOTH));
        assertFalse(accepted.accepts(null, BOTH));
        assertFalse(accepted.accepts(ONE, null));
        assertFalse(accepted.accepts(null, null));
        assertFalse(accepted.hasAccepted("t"));
    }
}

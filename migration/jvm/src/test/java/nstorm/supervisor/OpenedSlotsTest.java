package nstorm.supervisor;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertSame;

import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicReference;
import nstorm.wire.Entry;
import nstorm.wire.ExecutorId;
import nstorm.wire.LocalPlan;
import nstorm.wire.Phase;
import nstorm.wire.Plan;
import nstorm.wire.Slot;
import nstorm.wire.Way;
import org.apache.storm.generated.Assignment;
import org.apache.storm.generated.ExecutorInfo;
import org.apache.storm.generated.LocalAssignment;
import org.apache.storm.generated.NodeInfo;
import org.apache.storm.generated.WorkerResources;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

class OpenedSlotsTest {

    private final AtomicReference<LocalPlan> plans = new AtomicReference<>(new LocalPlan("", List.of()));
    private final Map<String, Assignment> stored = new HashMap<>(Map.of("t", assignment(128, 640)));
    private final Map<Integer, LocalAssignment> running = new HashMap<>();
    private final AtomicInteger reads = new AtomicInteger();
    private boolean isAway;
    private final OpenedSlots opened =
            new OpenedSlots("s2", plans::get, this::inZooKeeper, this.running::get, reads::incrementAndGet);

    private Assignment inZooKeeper(String topology) {
        if (isAway) {
            throw new IllegalStateException("connection loss");
        }
        return stored.get(topology);
    }

    private static Assignment assignment(double... heapsMb) {
        Assignment assignment = new Assignment("dir");
        assignment.set_owner("user");
        assignment.set_worker_resources(new HashMap<>());
        for (double heapMb : heapsMb) {
            WorkerResources resources = new WorkerResources();
            resources.set_mem_on_heap(heapMb);
            assignment.get_worker_resources().put(new NodeInfo("s1", Set.of((long) heapMb)), resources);
        }
        return assignment;
    }

    private static Entry entry(int task, String to, Phase phase, String voidReason, String opens) {
        Slot from = new Slot("s1", 6700);
        return new Entry(
                "m" + task,
                new ExecutorId(task, task),
                from,
                Slot.parse(to),
                phase,
                from,
                100,
                voidReason,
                Way.LIVE,
                opens,
                true);
    }

    private void plan(String topology, Entry... entries) {
        plans.set(new LocalPlan("c", List.of(new Plan("c", 1, 1, topology, List.of(entries)))));
    }

    private Map<Integer, LocalAssignment> ports() {
        Map<Integer, LocalAssignment> ports = new HashMap<>();
        opened.addTo(ports, Map.of());
        return ports;
    }

    @ParameterizedTest
    @EnumSource(Phase.class)
    void aWorkerIsKeptAsLongAsThePlanHasTheEntry(Phase phase) {
        plan("t", entry(7, "s2:6701", phase, null, "host2"), entry(8, "s2:6701", phase, null, "host2"));
        Map<Integer, LocalAssignment> ports = ports();
        assertEquals(Set.of(6701), ports.keySet());
        LocalAssignment there = ports.get(6701);
        assertEquals("t", there.get_topology_id());
        assertEquals("user", there.get_owner());
        assertEquals(List.of(new ExecutorInfo(-1, -1)), there.get_executors());
        assertEquals(640, there.get_resources().get_mem_on_heap(), "that of the largest worker");
        plan("t");
        assertEquals(Map.of(), ports());
    }

    @Test
    void onlyThisNodesSlotsOfEntriesThatOpenAndAreNotVoid() {
        plan(
                "t",
                entry(7, "s1:6701", Phase.OPEN, null, "host1"),
                entry(8, "s2:6702", Phase.OPEN, "Storm wins", "host2"),
                entry(9, "s2:6703", Phase.PREPARE, null, null));
        assertEquals(Map.of(), ports());
        plan("killed", entry(7, "s2:6701", Phase.OPEN, null, "host2"));
        assertEquals(Map.of(), ports(), "Storm has no assignment of it any more");
    }

    @Test
    void whatStormAssignsStays() {
        plan("t", entry(7, "s2:6701", Phase.STOP, null, "host2"));
        LocalAssignment storms = Assignments.of("u", "user", 1);
        Map<Integer, LocalAssignment> ports = new HashMap<>(Map.of(6701, storms));
        opened.addTo(ports, Map.of());
        assertSame(storms, ports.get(6701));
    }

    @Test
    void whatRunsOutlivesAnAbsenceOfZooKeeper() {
        plan(
                "t",
                entry(7, "s2:6701", Phase.DRAIN, null, "host2"),
                entry(8, "s2:6702", Phase.OPEN, null, "host2"),
                entry(9, "s2:6703", Phase.OPEN, null, "host2"));
        LocalAssignment runs = ports().get(6701);
        running.put(6701, runs);
        running.put(6703, Assignments.of("other", "user", 1));
        isAway = true;
        assertEquals(Map.of(6701, runs), ports(), "the others are not open yet");
    }

    @Test
    void theWorkerStaysWhenTheLargestWorkerOfItsTopologyChanges() {
        Set<ExecutorId> nothing = Set.of(OpenedSlots.NOTHING_YET);
        assertEquals(true, Acceptance.accepts(nothing, nothing, List.of(), "s2"), "only their resources differ");
        Set<ExecutorId> seven = Set.of(new ExecutorId(7, 7));
        assertFalse(Acceptance.accepts(seven, seven, List.of(), "s2"), "Storm's own answer stands");
    }

    @Test
    void stormLooksAtOnceOnlyAfterItHasLookedByItself() {
        plan("t", entry(7, "s2:6701", Phase.OPEN, null, "host2"));
        opened.look();
        assertEquals(
                0,
                reads.get(),
                "a supervisor that has just started may not know its assignments yet: it would end all workers");
        plan("t");
        ports();
        plan("t", entry(7, "s2:6701", Phase.OPEN, null, "host2"));
        opened.look();
        opened.look();
        assertEquals(1, reads.get(), "once a change");
        plan("t");
        opened.look();
        assertEquals(2, reads.get(), "closed");
    }

    @Test
    void theWorkerGoesOnWithWhatStormAssignsThereAtLast() {
        Set<ExecutorId> nothing = Set.of(OpenedSlots.NOTHING_YET);
        Set<ExecutorId> seven = Set.of(new ExecutorId(7, 7));
        List<Entry> moving = List.of(entry(7, "s2:6701", Phase.STOP, null, "host2"));
        assertEquals(true, Acceptance.accepts(nothing, seven, moving, "s2"));
        assertFalse(Acceptance.accepts(nothing, Set.of(new ExecutorId(8, 8)), moving, "s2"), "8 is not on the move");
    }
}

package nstorm.nimbus;

import java.util.ArrayList;
import java.util.Collection;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import java.util.TreeMap;
import nstorm.wire.Assigned;
import nstorm.wire.Entry;
import nstorm.wire.ExecutorId;
import nstorm.wire.Phase;
import nstorm.wire.Plan;
import nstorm.wire.Slot;
import org.apache.storm.DaemonConfig;
import org.apache.storm.generated.Assignment;
import org.apache.storm.generated.NodeInfo;
import org.apache.storm.scheduler.Cluster;
import org.apache.storm.scheduler.EvenScheduler;
import org.apache.storm.scheduler.ExecutorDetails;
import org.apache.storm.scheduler.SchedulerAssignment;
import org.apache.storm.scheduler.SupervisorDetails;
import org.apache.storm.scheduler.TopologyDetails;
import org.apache.storm.scheduler.WorkerSlot;

/** Where the executors of one topology go in one round: what lives stays, then the plan, then the dead. */
final class Placement {

    /** An executor that this round moves in Storm's assignment because the plan has moved it in fact. */
    record Move(ExecutorId executor, Slot from, Slot to) {}

    private final Cluster cluster;
    private final TopologyDetails topology;
    private final Assignment existing;
    private final Map<ExecutorDetails, WorkerSlot> slots = new HashMap<>();
    private final List<Move> moves = new ArrayList<>();

    /**
     * Begins with the executors that Nimbus believes alive, each where it is.
     *
     * @param cluster  the round's cluster, where dead executors have no slot
     * @param existing Storm's assignment before the round, where they still have one
     */
    Placement(Cluster cluster, TopologyDetails topology, Assignment existing) {
        this.cluster = cluster;
        this.topology = topology;
        this.existing = existing;
        slots.putAll(placed(cluster, topology));
    }

    private static Map<ExecutorDetails, WorkerSlot> placed(Cluster cluster, TopologyDetails topology) {
        // A topology whose executors are all dead has no assignment in the cluster.
        SchedulerAssignment assignment = cluster.getAssignmentById(topology.getId());
        Map<ExecutorDetails, WorkerSlot> placed =
                assignment == null ? new HashMap<>() : new HashMap<>(assignment.getExecutorToSlot());
        placed.values().removeIf(Objects::isNull);
        return placed;
    }

    /**
     * Puts what the plan has moved (STOP, SETTLE) to its target, if Storm's assignment is still the plan's base.
     *
     * <p>Storm ends a worker to which it assigns nothing. In STOP the source may still hand tuples on, so the last
     * executors of a slot stay there until SETTLE. So does what only then is open at the target.
     */
    void absorb(Plan plan) {
        Map<Slot, WorkerSlot> running = new HashMap<>();
        slots.values().forEach(slot -> running.put(slot(slot), slot));
        List<Move> mayWait = new ArrayList<>();
        for (Entry entry : plan.entries()) {
            Assigned now = assigned(existing, entry.executor());
            ExecutorDetails executor = new ExecutorDetails(
                    entry.executor().start(), entry.executor().end());
            boolean due = entry.absorbable() && entry.counts(now) && !now.slot().equals(entry.to());
            WorkerSlot target = running.getOrDefault(entry.to(), opened(entry));
            if (due && target != null && topology.getExecutors().contains(executor)) {
                slots.put(executor, target);
                Move move = new Move(entry.executor(), now.slot(), entry.to());
                moves.add(move);
                if (entry.phase() == Phase.STOP && running.containsKey(now.slot())) {
                    mayWait.add(move);
                }
            }
        }
        // One that goes back may have been all that came to its target.
        boolean changed = true;
        while (changed) {
            changed = mayWait.removeIf(move -> !isUsed(move.from()) && takeBack(move, running.get(move.from())));
        }
    }

    /** The slot that a move has opened outside of Storm's assignment, if no topology has it; else null. */
    private WorkerSlot opened(Entry entry) {
        SupervisorDetails supervisor = cluster.getSupervisorById(entry.to().supervisor());
        WorkerSlot slot = new WorkerSlot(entry.to().supervisor(), entry.to().port());
        boolean offered = supervisor != null
                && supervisor.getAllPorts().contains(entry.to().port());
        return entry.opens() != null && offered && !cluster.isSlotOccupied(slot) ? slot : null;
    }

    private boolean isUsed(Slot slot) {
        return slots.values().stream().anyMatch(used -> slot(used).equals(slot));
    }

    private boolean takeBack(Move move, WorkerSlot slot) {
        slots.put(new ExecutorDetails(move.executor().start(), move.executor().end()), slot);
        return moves.remove(move);
    }

    /**
     * Puts the dead executors of each former slot together into one free slot. If there are too few free slots, or
     * an executor never had one, they stay without: Storm's scheduler then has to find them a place.
     */
    void reassignDead() {
        Map<ExecutorDetails, WorkerSlot> reassigned = new HashMap<>();
        Collection<List<ExecutorDetails>> groups = dead().values();
        Set<String> isolated = groups.isEmpty() ? Set.of() : isolatedHosts();
        for (List<ExecutorDetails> group : groups) {
            WorkerSlot free = freeSlot(assigned(existing, id(group.get(0))), reassigned.values(), isolated);
            if (free == null) {
                return;
            }
            group.forEach(executor -> reassigned.put(executor, free));
        }
        slots.putAll(reassigned);
    }

    /** The dead executors by their former slot, always in the same order; those without one under "". */
    private Map<String, List<ExecutorDetails>> dead() {
        Map<String, List<ExecutorDetails>> groups = new TreeMap<>();
        for (ExecutorDetails executor : topology.getExecutors()) {
            if (!slots.containsKey(executor)) {
                Assigned former = assigned(existing, id(executor));
                String key = former == null ? "" : former.slot().toString();
                groups.computeIfAbsent(key, slot -> new ArrayList<>()).add(executor);
            }
        }
        return groups;
    }

    private WorkerSlot freeSlot(Assigned former, Collection<WorkerSlot> taken, Set<String> isolated) {
        List<WorkerSlot> free = new ArrayList<>(cluster.getAvailableSlots());
        free.removeAll(taken);
        free.removeAll(slots.values());
        if (former == null) {
            return null;
        }
        String host = existing.get_node_host().get(former.slot().supervisor());
        free.removeIf(slot -> isolated.contains(cluster.getHost(slot.getNodeId())));
        if (free.isEmpty()) {
            return null;
        }
        List<WorkerSlot> sorted = EvenScheduler.sortSlots(free);
        return sorted.stream()
                .filter(slot -> host != null && host.equals(cluster.getHost(slot.getNodeId())))
                .findFirst()
                .orElse(sorted.get(0));
    }

    /** The hosts that Storm's isolation scheduler has given to other topologies alone: it looks at the cluster only after this round. */
    private Set<String> isolatedHosts() {
        Set<String> hosts = new HashSet<>();
        if (cluster.getConf().get(DaemonConfig.ISOLATION_SCHEDULER_MACHINES) instanceof Map<?, ?> machines) {
            cluster.getAssignments().forEach((id, assignment) -> {
                TopologyDetails other = cluster.getTopologies().getById(id);
                if (other != null && !id.equals(topology.getId()) && machines.containsKey(other.getName())) {
                    assignment.getSlots().forEach(slot -> hosts.add(cluster.getHost(slot.getNodeId())));
                }
            });
        }
        return hosts;
    }

    /** Writes it into a cluster, if that differs. */
    void applyTo(Cluster target) {
        if (placed(target, topology).equals(slots)) {
            return;
        }
        Map<WorkerSlot, Collection<ExecutorDetails>> bySlot = new HashMap<>();
        slots.forEach((executor, slot) ->
                bySlot.computeIfAbsent(slot, key -> new ArrayList<>()).add(executor));
        target.unassign(topology.getId());
        bySlot.forEach((slot, executors) -> target.assign(slot, topology.getId(), executors));
    }

    /** The topology asking for no more workers than it uses: Storm's schedulers leave it alone then. */
    TopologyDetails asking() {
        Set<Object> used = new HashSet<>(slots.values());
        if (!isWhole()) {
            used.clear();
            existing.get_executor_node_port().values().forEach(node -> used.add(slot(node)));
        }
        return new TopologyDetails(
                topology.getId(),
                topology.getConf(),
                topology.getTopology(),
                used.size(),
                topology.getExecutorToComponent(),
                topology.getLaunchTime(),
                topology.getTopologySubmitter());
    }

    /** True if each executor has a slot. */
    boolean isWhole() {
        return slots.size() >= topology.getExecutors().size();
    }

    List<Move> moves() {
        return moves;
    }

    /** An executor in Storm's assignment; null if it is not there. */
    static Assigned assigned(Assignment assignment, ExecutorId executor) {
        NodeInfo node = assignment.get_executor_node_port().get(executor.toStorm());
        Long start = assignment.get_executor_start_time_secs().get(executor.toStorm());
        return node == null || start == null ? null : new Assigned(slot(node), start);
    }

    static Slot slot(NodeInfo node) {
        return new Slot(node.get_node(), node.get_port_iterator().next().intValue());
    }

    private static Slot slot(WorkerSlot slot) {
        return new Slot(slot.getNodeId(), slot.getPort());
    }

    private static ExecutorId id(ExecutorDetails executor) {
        return new ExecutorId(executor.getStartTask(), executor.getEndTask());
    }
}

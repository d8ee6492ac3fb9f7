package nstorm.worker.plan;

import java.util.Collections;
import java.util.HashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.function.Predicate;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import nstorm.hook.HookStatus;
import nstorm.store.PlanStore;
import nstorm.wire.Assigned;
import nstorm.wire.Entry;
import nstorm.wire.ExecutorId;
import nstorm.wire.LocalPlan;
import nstorm.wire.Phase;
import nstorm.wire.Plan;
import nstorm.wire.Slot;
import org.apache.storm.generated.Assignment;
import org.apache.storm.generated.NodeInfo;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Lays the plan over Storm's assignment, and remembers the assignment as Storm had it.
 *
 * <p>Read by several of Storm's threads. The reconciler alone polls the plan, but for once in the worker's constructor, so that a restarted
 * worker comes up with what it owns.
 */
public final class PlanOverlay {
    private static final Logger LOG = LoggerFactory.getLogger(PlanOverlay.class);
    /** Pseudo tasks, down to the last: a route of one leads nowhere, but Storm keeps the connection to its worker. */
    public static final int FIRST_END = -1000;

    public static final int LAST_END = -1099;

    private final String topology;
    private final PlanStore store;
    private volatile Plan plan;
    private volatile Assignment stock;
    private volatile Map<ExecutorId, Assigned> assigned = Map.of();
    /** Ids of entries to whose target this worker has once had a connection: an unsteady one changes no route. */
    private final Set<String> reached = ConcurrentHashMap.newKeySet();

    private volatile Slot me;
    /** While the worker starts every route is laid: it takes no tuple before all its connections stand. */
    private volatile Predicate<Slot> connected = slot -> true;

    public PlanOverlay(String topology, PlanStore store) {
        this.topology = topology;
        this.store = store;
        poll();
    }

    /** The worker has been built: from now on it connects to ends of moves ahead, and routes only to where it is connected. */
    public void attach(Slot me, Predicate<Slot> connected) {
        this.me = me;
        this.connected = connected;
    }

    /** Takes the newest plan over; true if it is another one than before. */
    public boolean poll() {
        LocalPlan local = HookStatus.watching() == null ? store.poll() : null;
        Plan next = local == null ? null : local.of(topology);
        if (Objects.equals(next, plan)) {
            return false;
        }
        plan = next;
        reached.retainAll(entries().stream().map(Entry::id).collect(Collectors.toSet()));
        return true;
    }

    /** Why this worker takes part in no move until it is switched on; else null. */
    public String inert() {
        return store.inert();
    }

    /** The plan of this topology, or null. */
    public Plan plan() {
        return plan;
    }

    /** Why this worker does not follow the newest plan, or null. */
    public String error() {
        String watching = HookStatus.watching();
        return watching != null ? watching : store.lastError();
    }

    /** Storm's own assignment, as last read from the supervisor; the same object as long as it is equal. */
    public Map<ExecutorId, Assigned> assigned() {
        return assigned;
    }

    /** Whether a plan has opened this worker's slot: its supervisor has no assignment of it to give. */
    public boolean opensHere() {
        Slot known = me;
        return known != null
                && entries().stream()
                        .anyMatch(entry -> entry.opens() != null
                                && entry.voidReason() == null
                                && entry.to().equals(known));
    }

    /** A copy of Storm's own assignment, for a change of routes that must not wait for the supervisor. */
    public Assignment stockCopy() {
        Assignment known = stock;
        return known == null ? null : known.deepCopy();
    }

    /** Remembers an assignment that was just read from Storm; no thread changes it afterwards. */
    public void remember(Assignment fromStorm) {
        Map<ExecutorId, Assigned> next = new HashMap<>();
        Map<List<Long>, Long> starts = fromStorm.get_executor_start_time_secs();
        fromStorm
                .get_executor_node_port()
                .forEach((executor, node) ->
                        next.put(ExecutorId.of(executor), new Assigned(slot(node), starts.getOrDefault(executor, 0L))));
        stock = fromStorm;
        if (!next.equals(assigned)) {
            assigned = next;
        }
    }

    private List<Entry> entries() {
        Plan now = plan;
        return now == null ? List.of() : now.entries();
    }

    /**
     * Works on a copy of Storm's assignment. Replaces the slots of executors whose owner is another one by the plan. Adds a pseudo executor
     * for each end of a move, so that Storm connects to its worker. Storm names no host of a node where the topology has no worker yet: the
     * plan does.
     */
    public Assignment over(Assignment copy) {
        Map<List<Long>, NodeInfo> nodePort = copy.get_executor_node_port();
        entries().stream()
                .filter(entry -> entry.opens() != null)
                .forEach(entry -> copy.get_node_host().putIfAbsent(entry.to().supervisor(), entry.opens()));
        entries().stream()
                .filter(entry -> !reaches(entry) && !isNamed(entry.owner()))
                .forEach(entry -> LOG.warn(
                        "plan_ignored executor={} entry={} reason=\"Storm's assignment names no host for its owner\"",
                        entry.executor(),
                        entry.id()));
        laid().forEach((executor, owner) -> nodePort.put(executor.toStorm(), nodeInfo(owner)));
        int task = FIRST_END;
        for (Slot end : ends()) {
            if (task >= LAST_END) {
                nodePort.put(new ExecutorId(task, task).toStorm(), nodeInfo(end));
            }
            task--;
        }
        return copy;
    }

    /**
     * The other workers that this one connects to ahead: those at an end of a move whose host is known. Before a slot is
     * open there is nothing to connect to.
     */
    public Set<Slot> ends() {
        Slot known = me;
        return known == null
                ? Set.of()
                : entries().stream()
                        .filter(entry -> entry.phase() != Phase.OPEN)
                        .flatMap(entry -> Stream.of(entry.from(), entry.to()))
                        .filter(end -> !end.equals(known) && isNamed(end))
                        .collect(Collectors.toCollection(LinkedHashSet::new));
    }

    /**
     * The executors whose owner is by the plan another slot than by Storm's assignment, and that slot. Left out are those that have gone to
     * a slot to which this worker has no connection yet: Storm would drop what is sent there.
     */
    public Map<ExecutorId, Slot> laid() {
        Map<ExecutorId, Slot> laid = new HashMap<>();
        for (Entry entry : entries()) {
            Assigned at = assigned.get(entry.executor());
            if (at != null && !Desired.owner(entry, at).equals(at.slot())) {
                if (entry.owner().equals(entry.to()) && connected.test(entry.to())) {
                    reached.add(entry.id());
                }
                if (reaches(entry)) {
                    laid.put(entry.executor(), entry.owner());
                }
            }
        }
        return laid;
    }

    /** False while no route of this worker leads to the entry's owner. */
    public boolean reaches(Entry entry) {
        Assigned at = assigned.get(entry.executor());
        return at == null
                || Desired.owner(entry, at).equals(at.slot())
                || isNamed(entry.owner()) && (entry.owner().equals(entry.from()) || reached.contains(entry.id()));
    }

    private boolean isNamed(Slot slot) {
        Assignment known = stock;
        return known != null
                && (known.get_node_host().containsKey(slot.supervisor())
                        || entries().stream()
                                .anyMatch(entry ->
                                        entry.opens() != null && entry.to().equals(slot)));
    }

    private static NodeInfo nodeInfo(Slot slot) {
        return new NodeInfo(slot.supervisor(), Collections.singleton((long) slot.port()));
    }

    public static Slot slot(NodeInfo node) {
        return new Slot(node.get_node(), node.get_port().iterator().next().intValue());
    }
}

package nstorm.worker;

import java.util.Collections;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import nstorm.store.PlanStore;
import nstorm.wire.Assigned;
import nstorm.wire.Entry;
import nstorm.wire.ExecutorId;
import nstorm.wire.LocalPlan;
import nstorm.wire.Plan;
import nstorm.wire.Slot;
import org.apache.storm.generated.Assignment;
import org.apache.storm.generated.NodeInfo;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Lays the plan over Storm's assignment, and remembers the assignment as Storm had it.
 *
 * <p>Read by several of Storm's threads; the plan is polled by the reconciler alone (and once in the
 * worker's constructor, so that a restarted worker comes up with what it owns).
 */
final class PlanOverlay {
    private static final Logger LOG = LoggerFactory.getLogger(PlanOverlay.class);

    private final String topology;
    private final PlanStore store;
    private volatile Plan plan;
    private volatile Assignment stock;
    private volatile Map<ExecutorId, Assigned> assigned = Map.of();

    PlanOverlay(String topology, PlanStore store) {
        this.topology = topology;
        this.store = store;
        poll();
    }

    /** Takes the newest plan over; true if it is another one than before. */
    boolean poll() {
        LocalPlan local = store.poll();
        Plan next = local == null ? null : local.of(topology);
        if (Objects.equals(next, plan)) {
            return false;
        }
        plan = next;
        return true;
    }

    /** The plan of this topology, or null. */
    Plan plan() {
        return plan;
    }

    /** Why the newest stored plan was not taken, or null. */
    String storeError() {
        return store.lastError();
    }

    /** Storm's own assignment, as last read from the supervisor; the same object as long as it says the same. */
    Map<ExecutorId, Assigned> assigned() {
        return assigned;
    }

    /** A copy of Storm's own assignment, for a change of routes that must not wait for the supervisor. */
    Assignment stockCopy() {
        Assignment known = stock;
        return known == null ? null : known.deepCopy();
    }

    /** Remembers an assignment that was just read from Storm; no thread changes it afterwards. */
    void remember(Assignment fromStorm) {
        Map<ExecutorId, Assigned> next = new HashMap<>();
        Map<List<Long>, Long> starts = fromStorm.get_executor_start_time_secs();
        fromStorm.get_executor_node_port().forEach((executor, node) -> next.put(ExecutorId.of(executor),
                new Assigned(slot(node), starts.getOrDefault(executor, 0L))));
        stock = fromStorm;
        if (!next.equals(assigned)) {
            assigned = next;
        }
    }

    /** Replaces, in a copy of Storm's assignment, the slots of executors whose owner is another one by the plan. */
    Assignment over(Assignment copy) {
        Plan now = plan;
        List<Entry> entries = now == null ? List.of() : now.entries();
        entries.stream().filter(entry -> !reaches(entry)).forEach(entry -> LOG.warn(
                "plan_ignored executor={} entry={} reason=\"Storm's assignment names no host for its owner\"",
                entry.executor(), entry.id()));
        laid().forEach((executor, owner) -> copy.get_executor_node_port().put(executor.toStorm(),
                new NodeInfo(owner.supervisor(), Collections.singleton((long) owner.port()))));
        return copy;
    }

    /** The executors whose owner is by the plan another slot than by Storm's assignment, and that slot. */
    Map<ExecutorId, Slot> laid() {
        Plan now = plan;
        if (now == null || now.entries().isEmpty()) {
            return Map.of();
        }
        Map<ExecutorId, Slot> laid = new HashMap<>();
        for (Entry entry : now.entries()) {
            Assigned at = assigned.get(entry.executor());
            if (at != null && !Desired.owner(entry, at).equals(at.slot()) && reaches(entry)) {
                laid.put(entry.executor(), Desired.owner(entry, at));
            }
        }
        return laid;
    }

    /** False if Storm's assignment names no host for the entry's owner: no route can lead there. */
    boolean reaches(Entry entry) {
        Slot owner = Desired.owner(entry, assigned.get(entry.executor()));
        Assignment known = stock;
        return owner == null || known != null && known.get_node_host().containsKey(owner.supervisor());
    }

    static Slot slot(NodeInfo node) {
        return new Slot(node.get_node(), node.get_port().iterator().next().intValue());
    }
}

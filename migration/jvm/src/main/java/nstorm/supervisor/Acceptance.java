package nstorm.supervisor;

import java.util.HashSet;
import java.util.List;
import java.util.Set;
import nstorm.wire.Entry;
import nstorm.wire.ExecutorId;
import nstorm.wire.Slot;
import org.apache.storm.ServerConstants;

/** When a supervisor may adopt another set of executors without restarting the worker. */
final class Acceptance {

    private Acceptance() {}

    /**
     * Whether every difference between two sets is an executor that is on the move.
     *
     * <p>All combinations are taken, with and without each executor: Nimbus, the agent and the supervisors learn of a
     * phase at different times. Equal sets are left to Storm, but for an opened slot. Nothing runs there yet, and its
     * resources are sent again whenever the topology's largest worker changes. What stands for it is no executor.
     *
     * @param entries      the entries of the topology's plan
     * @param supervisorId this supervisor; with NUMA, Storm gives each of its zones an id of its own
     */
    static boolean accepts(Set<ExecutorId> current, Set<ExecutorId> next, List<Entry> entries, String supervisorId) {
        if (current.equals(next)) {
            return current.equals(Set.of(OpenedSlots.NOTHING_YET));
        }
        Set<ExecutorId> moving = new HashSet<>();
        for (Entry entry : entries) {
            if ((isHere(entry.from(), supervisorId) || isHere(entry.to(), supervisorId))
                    && entry.voidReason() == null) {
                moving.add(entry.executor());
            }
        }
        return moving.containsAll(difference(current, next));
    }

    static boolean isHere(Slot slot, String supervisorId) {
        return slot.supervisor().equals(supervisorId)
                || slot.supervisor().startsWith(supervisorId + ServerConstants.NUMA_ID_SEPARATOR);
    }

    private static Set<ExecutorId> difference(Set<ExecutorId> one, Set<ExecutorId> other) {
        Set<ExecutorId> difference = new HashSet<>(one);
        difference.removeAll(other);
        Set<ExecutorId> added = new HashSet<>(other);
        added.removeAll(one);
        difference.addAll(added);
        difference.remove(OpenedSlots.NOTHING_YET);
        return difference;
    }
}

package nstorm.worker.plan;

import java.util.HashMap;
import java.util.HashSet;
import java.util.Map;
import java.util.Set;
import nstorm.wire.Assigned;
import nstorm.wire.Entry;
import nstorm.wire.ExecutorId;
import nstorm.wire.Plan;
import nstorm.wire.Slot;

/**
 * Whose executor each one was when this worker last looked.
 *
 * <p>Kept for all executors, not only for those in the plan. A worker may miss a whole phase, or see an entry gone
 * before it has read Storm's new assignment. The change of owner then shows without any entry.
 */
public final class Owners {
    private final Map<ExecutorId, Slot> last = new HashMap<>();

    /**
     * The executors that have another owner than at the last call. One that is seen for the first time in an entry is
     * taken as having been at the move's source.
     */
    public Set<ExecutorId> changed(Plan planOrNull, Map<ExecutorId, Assigned> assigned) {
        Map<ExecutorId, Slot> now = new HashMap<>();
        assigned.forEach((executor, at) -> now.put(executor, at.slot()));
        if (planOrNull != null) {
            for (Entry entry : planOrNull.entries()) {
                now.put(entry.executor(), Desired.owner(entry, assigned.get(entry.executor())));
                last.putIfAbsent(entry.executor(), entry.from());
            }
        }
        // Unassigned for a while: its last owner stays known until it has one again.
        now.values().removeIf(owner -> owner == null);
        Set<ExecutorId> changed = new HashSet<>();
        now.forEach((executor, owner) -> {
            Slot before = last.put(executor, owner);
            if (before != null && !before.equals(owner)) {
                changed.add(executor);
            }
        });
        return changed;
    }
}

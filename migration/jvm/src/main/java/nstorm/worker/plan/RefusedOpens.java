package nstorm.worker.plan;

import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.function.Predicate;
import nstorm.hook.Faults;
import nstorm.wire.Assigned;
import nstorm.wire.Entry;
import nstorm.wire.ExecutorId;
import nstorm.wire.Phase;
import nstorm.worker.plan.Desired.Action;
import nstorm.worker.plan.Desired.Part;

/**
 * Moves whose copy this worker does not open: it could not, and the source is to open another. A refusal is final for its
 * move, or both ends would hold what only one may hold.
 */
public final class RefusedOpens {
    private final Set<String> moves = new HashSet<>();

    /** Adds the moves whose copy cannot be opened here, and forgets those that have gone on. */
    public void follow(List<Part> parts, Map<ExecutorId, Assigned> assigned, Predicate<ExecutorId> cannotOpen) {
        Set<String> opening = new HashSet<>();
        for (Part part : parts) {
            if (mayGoBack(part, assigned.get(part.executor()))) {
                String move = part.entry().id();
                opening.add(move);
                if (cannotOpen.test(part.executor()) && moves.add(move)) {
                    Faults.report(
                            "opening executor " + part.executor() + " in move " + move,
                            new IllegalStateException(
                                    "it failed twice, or has not returned for 30 s: the move goes back"));
                }
            }
        }
        moves.retainAll(opening);
    }

    /** Once Nimbus has absorbed it, Storm has no other place for it. */
    private static boolean mayGoBack(Part part, Assigned nowOrNull) {
        Entry entry = part.entry();
        return entry != null
                && part.action() == Action.RUN
                && entry.phase() == Phase.STOP
                && entry.opensLate()
                && nowOrNull != null
                && nowOrNull.slot().equals(entry.baseSlot());
    }

    public boolean contains(Part part) {
        return part.entry() != null && moves.contains(part.entry().id());
    }
}

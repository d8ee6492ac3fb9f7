package nstorm.worker.plan;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import nstorm.wire.Assigned;
import nstorm.wire.Entry;
import nstorm.wire.ExecutorId;
import nstorm.wire.Phase;
import nstorm.wire.Plan;
import nstorm.wire.Slot;
import nstorm.wire.Way;

/**
 * What this worker should do about each moving executor. A pure function of Storm's own assignment, the plan laid over it and the worker's
 * slot.
 */
public final class Desired {
    /** What to do with the copy of one executor, and with its route. */
    public enum Action {
        /** Build the copy, do not route to it yet. */
        PREPARE,
        /** Have a copy and deliver to it here. */
        RUN,
        /** Have the copy finish what it has pending or keeps, close it and end it; tuples for it are delivered here until then. */
        FINISH,
        /** Keep the copy, send new tuples to the owner, report when it is empty. */
        DRAIN,
        /** As DRAIN, but the copy holds still: what its bolt keeps goes to the owner. */
        CARRY,
        /** Send new tuples to the owner and end the copy between two tuples. */
        STOP,
        /** First drain, then stop: the copy was for a move that is undone or void. */
        RETIRE,
        /** No copy belongs here: only the route matters. */
        WATCH
    }

    /** One executor's part; entry is null for what is left over from an entry that has gone. */
    public record Part(Entry entry, ExecutorId executor, Action action) {}

    private Desired() {}

    /**
     * The parts of this worker.
     *
     * @param assignment Storm's own assignment, before the plan is laid over it
     * @param planOrNull the plan of this topology
     * @param me this worker's slot
     * @param unsettled executors that a plan has moved from or to here
     */
    public static List<Part> of(
            Map<ExecutorId, Assigned> assignment, Plan planOrNull, Slot me, Iterable<ExecutorId> unsettled) {
        List<Part> parts = new ArrayList<>();
        List<ExecutorId> seen = new ArrayList<>();
        if (planOrNull != null) {
            for (Entry entry : planOrNull.entries()) {
                seen.add(entry.executor());
                parts.add(new Part(entry, entry.executor(), action(entry, assignment.get(entry.executor()), me)));
            }
        }
        for (ExecutorId executor : unsettled) {
            if (!seen.contains(executor)) {
                parts.add(new Part(null, executor, without(assignment.get(executor), me)));
            }
        }
        return parts;
    }

    /** Where tuples of the executor go: the plan's owner while its entry counts, else Storm's slot. */
    public static Slot owner(Entry entry, Assigned nowOrNull) {
        if (entry.counts(nowOrNull)) {
            return entry.owner();
        }
        return nowOrNull == null ? null : nowOrNull.slot();
    }

    /** The task where no entry counts: Storm's own assignment does. */
    private static Action without(Assigned nowOrNull, Slot me) {
        return nowOrNull != null && nowOrNull.slot().equals(me) ? Action.RUN : Action.RETIRE;
    }

    /**
     * Whether the copy of a part holds still between two tuples. At the target this is until it has begun with the source's state. At the
     * source it is while its state travels, so that a recall finds it as it was.
     */
    public static boolean holdsStill(Part part, Assigned nowOrNull, Slot me) {
        Entry entry = part.entry();
        if (entry == null || entry.way() != Way.CARRY || !entry.counts(nowOrNull) || !entry.touches(me)) {
            return false;
        }
        return switch (entry.phase()) {
            case CARRY, RECALL -> true;
            case PREPARE, SWITCH, DRAIN -> me.equals(entry.to());
            default -> false;
        };
    }

    private static Action action(Entry entry, Assigned nowOrNull, Slot me) {
        if (!entry.counts(nowOrNull)) {
            return without(nowOrNull, me);
        }
        Phase phase = entry.phase();
        if (me.equals(entry.to())) {
            return switch (phase) {
                case OPEN -> Action.WATCH;
                case PREPARE, QUIET -> Action.PREPARE;
                case UNDO -> Action.RETIRE;
                default -> Action.RUN;
            };
        }
        if (me.equals(entry.from())) {
            return switch (phase) {
                case OPEN, PREPARE, UNDO -> Action.RUN;
                case QUIET -> Action.FINISH;
                case SWITCH, DRAIN -> Action.DRAIN;
                case CARRY, RECALL -> Action.CARRY;
                case STOP, SETTLE -> Action.STOP;
                case UNKNOWN -> throw new IllegalStateException("never counts: " + entry);
            };
        }
        return Action.WATCH;
    }
}

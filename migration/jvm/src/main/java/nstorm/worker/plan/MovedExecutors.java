package nstorm.worker.plan;

import java.util.EnumSet;
import java.util.HashSet;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.function.Predicate;
import nstorm.wire.ExecutorId;
import nstorm.wire.Phase;
import nstorm.wire.Plan;
import nstorm.wire.Slot;

/**
 * The executors that a plan moves from or to this worker, each until what runs here is again what Storm itself
 * assigns here. Changed by the reconciler's thread, read by Storm's refresh thread too.
 */
public final class MovedExecutors {
    private static final Set<Phase> PAUSES = EnumSet.of(Phase.QUIET, Phase.CARRY, Phase.RECALL);

    private final Slot me;
    private final Set<ExecutorId> unsettled = ConcurrentHashMap.newKeySet();

    public MovedExecutors(Slot me) {
        this.me = me;
    }

    /**
     * Adds the executors of the plan's entries and forgets those that have left it and are settled.
     *
     * @param settled whether an executor runs here exactly if Storm assigns it here
     */
    public void follow(Plan planOrNull, Predicate<ExecutorId> settled) {
        Set<ExecutorId> touching = touching(planOrNull);
        unsettled.addAll(touching);
        unsettled.removeIf(executor -> !touching.contains(executor) && settled.test(executor));
    }

    private Set<ExecutorId> touching(Plan planOrNull) {
        Set<ExecutorId> touching = new HashSet<>();
        if (planOrNull != null) {
            planOrNull.entries().stream().filter(e -> e.touches(me)).forEach(e -> touching.add(e.executor()));
        }
        return touching;
    }

    public boolean contains(ExecutorId executor) {
        return unsettled.contains(executor);
    }

    public Iterable<ExecutorId> unsettled() {
        return unsettled;
    }

    /** True while something is under way that should be looked at often. */
    public boolean busy(Plan planOrNull) {
        return planOrNull != null && !planOrNull.entries().isEmpty() || !unsettled.isEmpty();
    }

    /** True while an executor works nowhere and waits for this worker: each of its turns lengthens that. */
    public boolean pausing(Plan planOrNull) {
        return planOrNull != null
                && planOrNull.entries().stream().anyMatch(e -> PAUSES.contains(e.phase()) && e.touches(me));
    }

    /** True while a phase, or an executor that is not settled, waits for this worker to read Storm's assignment again. */
    public boolean settling(Plan planOrNull) {
        return !unsettled.isEmpty()
                || planOrNull != null
                        && planOrNull.entries().stream()
                                .anyMatch(e -> e.phase() == Phase.SETTLE || e.phase() == Phase.STOP);
    }

    /** True if each executor is one that a plan moves to or from here: then no difference is a reason to die. */
    public boolean explains(Plan planOrNull, Set<ExecutorId> difference) {
        Set<ExecutorId> known = new HashSet<>(unsettled);
        known.addAll(touching(planOrNull));
        return known.containsAll(difference);
    }
}

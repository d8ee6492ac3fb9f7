package nstorm.worker.plan;

import java.util.List;
import java.util.Map;
import nstorm.wire.Assigned;
import nstorm.wire.Entry;
import nstorm.wire.ExecutorId;
import nstorm.wire.Phase;
import nstorm.wire.Plan;
import nstorm.wire.Slot;

/** One executor that moves from one slot to another, for the tests of this package. */
public final class Moves {
    public static final ExecutorId EXECUTOR = new ExecutorId(7, 7);
    public static final Slot FROM = new Slot("s1", 6700);
    public static final Slot TO = new Slot("s2", 6701);
    public static final Slot BYSTANDER = new Slot("s2", 6700);
    public static final Plan NO_ENTRY = new Plan("c", 1, 9, "t", List.of());

    private Moves() {}

    public static Plan plan(Phase phase) {
        return new Plan(
                "c", 1, phase.ordinal(), "t", List.of(new Entry("m1", EXECUTOR, FROM, TO, phase, FROM, 100, null)));
    }

    public static Map<ExecutorId, Assigned> assigned(Slot slot) {
        return Map.of(EXECUTOR, new Assigned(slot, 100));
    }
}

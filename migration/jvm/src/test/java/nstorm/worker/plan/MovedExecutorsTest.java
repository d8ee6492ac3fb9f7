package nstorm.worker.plan;

import static nstorm.worker.plan.Moves.BYSTANDER;
import static nstorm.worker.plan.Moves.EXECUTOR;
import static nstorm.worker.plan.Moves.FROM;
import static nstorm.worker.plan.Moves.NO_ENTRY;
import static nstorm.worker.plan.Moves.TO;
import static nstorm.worker.plan.Moves.plan;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.Set;
import nstorm.wire.ExecutorId;
import nstorm.wire.Phase;
import nstorm.wire.Slot;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

class MovedExecutorsTest {
    private static MovedExecutors at(Slot me, Phase phase, boolean settled) {
        MovedExecutors moved = new MovedExecutors(me);
        moved.follow(plan(phase), executor -> settled);
        return moved;
    }

    @ParameterizedTest
    @EnumSource(Phase.class)
    void bothEndsRememberTheExecutorUntilItIsSettled(Phase phase) {
        for (Slot end : new Slot[] {FROM, TO}) {
            MovedExecutors moved = at(end, phase, true);
            assertTrue(moved.contains(EXECUTOR));
            moved.follow(NO_ENTRY, executor -> false);
            assertTrue(moved.contains(EXECUTOR));
            assertTrue(moved.busy(NO_ENTRY));
            assertTrue(moved.explains(NO_ENTRY, Set.of(EXECUTOR)));
            assertFalse(moved.explains(NO_ENTRY, Set.of(EXECUTOR, new ExecutorId(8, 8))));
            moved.follow(NO_ENTRY, executor -> true);
            assertFalse(moved.busy(NO_ENTRY));
            assertFalse(moved.explains(NO_ENTRY, Set.of(EXECUTOR)));
        }
    }

    @ParameterizedTest
    @EnumSource(Phase.class)
    void aBystanderAsksOftenOnlyWhileStormAbsorbs(Phase phase) {
        MovedExecutors moved = at(BYSTANDER, phase, true);
        assertEquals(phase.absorbed(), moved.settling(plan(phase)));
        assertTrue(moved.busy(plan(phase)));
        moved.follow(NO_ENTRY, executor -> true);
        assertFalse(moved.busy(NO_ENTRY));
    }

    @Test
    void anEndAsksOftenUntilItIsSettledThoughTheEntryHasGone() {
        MovedExecutors moved = at(FROM, Phase.UNDO, false);
        moved.follow(null, executor -> false);
        assertTrue(moved.settling(null), "else it routes by an assignment of up to 10 s ago");
        moved.follow(null, executor -> true);
        assertFalse(moved.settling(null));
    }
}

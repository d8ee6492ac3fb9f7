package nstorm.worker.plan;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNull;

import java.util.List;
import java.util.Map;
import nstorm.wire.Assigned;
import nstorm.wire.Entry;
import nstorm.wire.ExecutorId;
import nstorm.wire.Phase;
import nstorm.wire.Plan;
import nstorm.wire.Slot;
import nstorm.wire.Way;
import nstorm.worker.plan.Desired.Action;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

class DesiredTest {
    private static final ExecutorId EXECUTOR = new ExecutorId(7, 7);
    private static final Slot FROM = new Slot("s1", 6700);
    private static final Slot TO = new Slot("s2", 6701);
    private static final Slot OTHER = new Slot("s2", 6700);

    private static Entry entry(Phase phase, String voidReason) {
        return new Entry("m1", EXECUTOR, FROM, TO, phase, FROM, 100, voidReason);
    }

    private static Action action(Entry entry, Slot me, Assigned now) {
        Map<ExecutorId, Assigned> assignment = now == null ? Map.of() : Map.of(EXECUTOR, now);
        List<Desired.Part> parts = Desired.of(assignment, new Plan("c", 1, 2, "t", List.of(entry)), me, List.of());
        return parts.get(0).action();
    }

    @ParameterizedTest
    @CsvSource({
        "OPEN, RUN, WATCH, WATCH, s1:6700",
        "PREPARE, RUN, PREPARE, WATCH, s1:6700",
        "QUIET, FINISH, PREPARE, WATCH, s1:6700",
        "SWITCH, DRAIN, RUN, WATCH, s2:6701",
        "DRAIN, DRAIN, RUN, WATCH, s2:6701",
        "CARRY, CARRY, RUN, WATCH, s2:6701",
        "RECALL, CARRY, RUN, WATCH, s2:6701",
        "STOP, STOP, RUN, WATCH, s2:6701",
        "SETTLE, STOP, RUN, WATCH, s2:6701",
        "UNDO, RUN, RETIRE, WATCH, s1:6700"
    })
    void eachPhaseHasOneOwnerAndAtMostOneCopyToEnd(
            Phase phase, Action source, Action target, Action bystander, String owner) {
        Assigned base = new Assigned(FROM, 100);
        assertEquals(owner, Desired.owner(entry(phase, null), base).toString());
        assertEquals(source, action(entry(phase, null), FROM, base));
        assertEquals(target, action(entry(phase, null), TO, base));
        assertEquals(bystander, action(entry(phase, null), OTHER, base));
    }

    @ParameterizedTest
    @CsvSource({"STOP", "SETTLE"})
    void onceAbsorbedTheTargetStillRunsIt(Phase phase) {
        Assigned absorbed = new Assigned(TO, 555);
        assertEquals(Action.RUN, action(entry(phase, null), TO, absorbed));
        assertEquals(Action.STOP, action(entry(phase, null), FROM, absorbed));
    }

    @ParameterizedTest
    @CsvSource({"OPEN", "PREPARE", "SWITCH", "DRAIN", "UNDO"})
    void beforeStopAnyOtherAssignmentVoidsTheEntry(Phase phase) {
        Assigned restarted = new Assigned(FROM, 101);
        assertEquals(Action.RUN, action(entry(phase, null), FROM, restarted));
        assertEquals(Action.RETIRE, action(entry(phase, null), TO, restarted));
        assertEquals(FROM, Desired.owner(entry(phase, null), restarted));
    }

    @Test
    void aVoidEntryLeavesTheExecutorWhereStormHasIt() {
        Assigned base = new Assigned(FROM, 100);
        assertEquals(Action.RUN, action(entry(Phase.DRAIN, "user rebalanced"), FROM, base));
        assertEquals(Action.RETIRE, action(entry(Phase.DRAIN, "user rebalanced"), TO, base));
        assertEquals(FROM, Desired.owner(entry(Phase.DRAIN, "user rebalanced"), base));
    }

    @Test
    void anUnassignedExecutorHasNoOwner() {
        assertNull(Desired.owner(entry(Phase.SWITCH, null), null));
        assertEquals(Action.RETIRE, action(entry(Phase.SWITCH, null), TO, null));
    }

    @Test
    void whatIsLeftOfAnEntryThatHasGoneIsAsStormAssignsIt() {
        Map<ExecutorId, Assigned> elsewhere = Map.of(EXECUTOR, new Assigned(FROM, 100));
        Map<ExecutorId, Assigned> here = Map.of(EXECUTOR, new Assigned(TO, 100));
        List<ExecutorId> unsettled = List.of(EXECUTOR);
        assertEquals(
                List.of(new Desired.Part(null, EXECUTOR, Action.RETIRE)), Desired.of(elsewhere, null, TO, unsettled));
        assertEquals(
                List.of(new Desired.Part(null, EXECUTOR, Action.RETIRE)), Desired.of(Map.of(), null, TO, unsettled));
        assertEquals(List.of(new Desired.Part(null, EXECUTOR, Action.RUN)), Desired.of(here, null, TO, unsettled));
        assertEquals(List.of(), Desired.of(here, null, TO, List.of()));
    }

    @ParameterizedTest
    @CsvSource({
        "OPEN, false, false",
        "PREPARE, false, true",
        "SWITCH, false, true",
        "DRAIN, false, true",
        "CARRY, true, true",
        "RECALL, true, true",
        "STOP, false, false",
        "SETTLE, false, false",
        "UNDO, false, false"
    })
    void whileAStateMayYetGoBackItsTargetHoldsStill(Phase phase, boolean source, boolean target) {
        Assigned base = new Assigned(FROM, 100);
        assertEquals(source, holdsStill(phase, Way.CARRY, null, FROM, base));
        assertEquals(target, holdsStill(phase, Way.CARRY, null, TO, base));
        assertFalse(holdsStill(phase, Way.CARRY, null, OTHER, base));
        assertFalse(holdsStill(phase, Way.LIVE, null, TO, base));
        assertFalse(holdsStill(phase, Way.CARRY, "Storm wins", TO, base));
        assertFalse(holdsStill(phase, Way.CARRY, null, FROM, new Assigned(FROM, 101)));
    }

    private static boolean holdsStill(Phase phase, Way way, String voidReason, Slot me, Assigned now) {
        Entry entry = new Entry("m1", EXECUTOR, FROM, TO, phase, FROM, 100, voidReason, way, null, true);
        return Desired.holdsStill(new Desired.Part(entry, EXECUTOR, Action.RUN), now, me);
    }
}

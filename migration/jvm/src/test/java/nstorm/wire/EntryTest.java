package nstorm.wire;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.EnumSet;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import org.junit.jupiter.params.provider.ValueSource;

class EntryTest {

    private static final Slot FROM = new Slot("a", 6700);
    private static final Slot TO = new Slot("b", 6701);
    private static final Assigned BASE = new Assigned(FROM, 100);

    private static Entry entry(Phase phase, String voidReason) {
        return new Entry("m1", new ExecutorId(7, 7), FROM, TO, phase, FROM, 100, voidReason);
    }

    @ParameterizedTest
    @EnumSource(value = Phase.class, mode = EnumSource.Mode.EXCLUDE, names = "UNKNOWN")
    void countsAsInBase(Phase phase) {
        assertTrue(entry(phase, null).counts(BASE));
        assertFalse(entry(phase, "voided").counts(BASE));
        assertFalse(entry(phase, null).counts(null));
        assertFalse(entry(phase, null).counts(new Assigned(FROM, 101)), "restarted by Storm");
        assertFalse(entry(phase, null).counts(new Assigned(new Slot("c", 1), 100)));
    }

    @ParameterizedTest
    @EnumSource(Phase.class)
    void countsAtTheTargetOnceAbsorbed(Phase phase) {
        boolean absorbed = EnumSet.of(Phase.STOP, Phase.SETTLE).contains(phase);
        assertEquals(absorbed, entry(phase, null).counts(new Assigned(TO, 555)));
    }

    @Test
    void aPhaseOfALaterVersionNeverCounts() {
        assertFalse(entry(Phase.UNKNOWN, null).counts(BASE));
        assertFalse(entry(Phase.UNKNOWN, null).counts(new Assigned(TO, 555)));
    }

    @Test
    void aWayOfALaterVersionNeverCounts() {
        Entry late =
                new Entry("m1", new ExecutorId(7, 7), FROM, TO, Phase.STOP, FROM, 100, null, Way.UNKNOWN, null, true);
        assertFalse(late.counts(BASE));
        assertFalse(late.counts(new Assigned(TO, 555)));
    }

    @ParameterizedTest
    @EnumSource(value = Phase.class, mode = EnumSource.Mode.EXCLUDE, names = "UNKNOWN")
    void ownerFollowsTheTable(Phase phase) {
        Slot owner =
                EnumSet.of(Phase.OPEN, Phase.PREPARE, Phase.QUIET, Phase.UNDO).contains(phase) ? FROM : TO;
        assertEquals(owner, entry(phase, null).owner());
    }

    @Test
    void touchesItsEnds() {
        assertTrue(entry(Phase.STOP, null).touches(FROM));
        assertTrue(entry(Phase.STOP, null).touches(TO));
        assertFalse(entry(Phase.STOP, null).touches(new Slot("a", 6701)));
    }

    @ParameterizedTest
    @ValueSource(strings = {"", "a", ":1", "a:", "a:0", "a:65536", "a:-1", "a:+1", "a:x", "a:1 "})
    void refusesWhatIsNoSlot(String text) {
        assertThrows(IllegalArgumentException.class, () -> Slot.parse(text));
    }

    @Test
    void slotIsSplitAtTheLastColon() {
        assertEquals(new Slot("fe80::1", 6700), Slot.parse("fe80::1:6700"));
    }

    @Test
    void newerIsByEpochThenVersion() {
        Plan plan = new Plan("c", 3, 5, "t", java.util.List.of());
        assertTrue(plan.newerThan(3, 4));
        assertTrue(plan.newerThan(2, 9));
        assertFalse(plan.newerThan(3, 5));
        assertFalse(plan.newerThan(4, 0));
    }
}

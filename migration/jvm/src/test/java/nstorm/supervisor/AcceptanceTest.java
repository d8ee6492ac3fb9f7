package nstorm.supervisor;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.HashSet;
import java.util.List;
import java.util.Set;
import nstorm.wire.Entry;
import nstorm.wire.ExecutorId;
import nstorm.wire.Phase;
import nstorm.wire.Slot;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

class AcceptanceTest {

    private static final ExecutorId E7 = new ExecutorId(7, 7);
    private static final ExecutorId E8 = new ExecutorId(8, 8);
    private static final ExecutorId E9 = new ExecutorId(9, 9);

    private static Entry entry(ExecutorId executor, String from, String to, Phase phase, String voidReason) {
        Slot source = new Slot(from, 6700);
        return new Entry("m" + executor, executor, source, new Slot(to, 6701), phase, source, 100, voidReason);
    }

    private static boolean accepts(Set<ExecutorId> current, Set<ExecutorId> next, Entry... entries) {
        return Acceptance.accepts(current, next, List.of(entries), "s1");
    }

    @ParameterizedTest
    @EnumSource(Phase.class)
    void withAndWithoutInEveryPhaseOnBothEnds(Phase phase) {
        for (Entry entry : List.of(entry(E7, "s1", "s2", phase, null), entry(E7, "s2", "s1", phase, null))) {
            assertTrue(accepts(Set.of(E7, E8), Set.of(E8), entry));
            assertTrue(accepts(Set.of(E8), Set.of(E7, E8), entry));
        }
    }

    @Test
    void everyCombinationOfSeveralMoves() {
        Entry[] entries = {entry(E7, "s1", "s2", Phase.STOP, null), entry(E9, "s2", "s1", Phase.PREPARE, null)};
        List<Set<ExecutorId>> sets = List.of(Set.of(E8), Set.of(E7, E8), Set.of(E8, E9), Set.of(E7, E8, E9));
        for (Set<ExecutorId> current : sets) {
            for (Set<ExecutorId> next : sets) {
                assertEquals(!current.equals(next), accepts(current, next, entries));
            }
        }
    }

    @Test
    void anythingElseIsStormsOwn() {
        Entry entry = entry(E7, "s1", "s2", Phase.STOP, null);
        assertFalse(accepts(Set.of(E7, E8), Set.of(E7)), "no plan");
        assertFalse(accepts(Set.of(E7, E8), Set.of(E7), entry), "8 is not on the move");
        assertFalse(accepts(Set.of(E7, E8), Set.of(E9), entry), "8 and 9 are not");
        assertFalse(accepts(Set.of(E7, E8), Set.of(E7, E8), entry), "only the resources differ");
        assertFalse(accepts(Set.of(E7, E8), Set.of(E8), entry(E7, "s1", "s2", Phase.STOP, "rebalance")), "void");
        assertFalse(accepts(Set.of(E7, E8), Set.of(E8), entry(E7, "s2", "s3", Phase.STOP, null)), "other nodes");
        Set<ExecutorId> wider = new HashSet<>(Set.of(new ExecutorId(7, 8)));
        assertFalse(accepts(Set.of(E8), wider, entry), "another executor of the same task");
    }

    @Test
    void anotherSupervisorWhoseIdBeginsAlikeIsNotThisOne() {
        assertFalse(accepts(Set.of(E7, E8), Set.of(E8), entry(E7, "s10", "s2", Phase.STOP, null)));
        assertFalse(accepts(Set.of(E8), Set.of(E7, E8), entry(E7, "s2", "s1-numa", Phase.STOP, null)));
    }

    @Test
    void numaPartsBelongToTheSupervisor() {
        assertTrue(accepts(Set.of(E7, E8), Set.of(E8), entry(E7, "s1-numa-0", "s2", Phase.STOP, null)));
    }
}

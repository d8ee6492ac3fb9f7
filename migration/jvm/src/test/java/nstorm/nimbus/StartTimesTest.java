package nstorm.nimbus;

import static org.junit.jupiter.api.Assertions.assertEquals;

import java.util.List;
import java.util.Map;
import java.util.Set;
import nstorm.nimbus.Placement.Move;
import nstorm.wire.ExecutorId;
import nstorm.wire.Slot;
import org.junit.jupiter.api.Test;

class StartTimesTest {

    private static final ExecutorId E1 = new ExecutorId(1, 1);
    private static final ExecutorId E2 = new ExecutorId(2, 2);
    private static final ExecutorId E3 = new ExecutorId(3, 3);
    private static final Slot A = new Slot("s1", 6700);
    private static final Slot B = new Slot("s2", 6700);
    private static final Slot C = new Slot("s3", 6700);
    private static final Map<ExecutorId, Slot> BEFORE = Map.of(E1, A, E2, A, E3, B);
    private static final List<Move> E1_TO_B = List.of(new Move(E1, A, B));

    @Test
    void bothEndsOfAMoveKeepThem() {
        assertEquals(Set.of(E1, E2, E3), StartTimes.kept(BEFORE, Map.of(E1, B, E2, A, E3, B), E1_TO_B));
    }

    @Test
    void anyOtherDifferenceOfASlotRenewsThem() {
        assertEquals(Set.of(E1, E3), StartTimes.kept(BEFORE, Map.of(E1, B, E2, C, E3, B), E1_TO_B), "2 was revived");
        assertEquals(Set.of(E2), StartTimes.kept(BEFORE, Map.of(E1, C, E2, A, E3, B), E1_TO_B), "1 went elsewhere");
    }

    @Test
    void aSwapIsTwoMoves() {
        assertEquals(
                Set.of(E1, E2, E3),
                StartTimes.kept(BEFORE, Map.of(E1, B, E2, A, E3, A), List.of(new Move(E1, A, B), new Move(E3, B, A))));
    }
}

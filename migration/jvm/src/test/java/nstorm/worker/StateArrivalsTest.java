package nstorm.worker;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;

import java.io.IOException;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Random;
import java.util.Set;
import org.junit.jupiter.api.Test;

class StateArrivalsTest {
    private final StateArrivals arrivals = new StateArrivals();

    private static byte[] state(int length, int seed) {
        byte[] state = new byte[length];
        new Random(seed).nextBytes(state);
        return state;
    }

    private void take(List<byte[]> pieces) throws IOException {
        for (byte[] piece : pieces) {
            arrivals.take(piece);
        }
    }

    @Test
    void piecesInAnyOrderAndTwiceMakeTheState() throws IOException {
        for (int length : new int[] {0, 1, StateArrivals.PIECE_BYTES, 3 * StateArrivals.PIECE_BYTES + 5}) {
            arrivals.await(Set.of("m1"));
            byte[] state = state(length, 1);
            List<byte[]> pieces = new ArrayList<>(StateArrivals.cut("m1", state));
            pieces.add(pieces.get(0));
            Collections.shuffle(pieces, new Random(2));
            take(pieces);
            assertArrayEquals(state, arrivals.whole("m1"));
            assertNull(arrivals.whole("m1"));
        }
    }

    @Test
    void aMissingPieceIsWaitedFor() throws IOException {
        arrivals.await(Set.of("m1"));
        List<byte[]> pieces = StateArrivals.cut("m1", state(2 * StateArrivals.PIECE_BYTES, 1));
        assertEquals(2, pieces.size());
        arrivals.take(pieces.get(1));
        assertNull(arrivals.whole("m1"));
        arrivals.take(pieces.get(0));
        assertEquals(2 * StateArrivals.PIECE_BYTES, arrivals.whole("m1").length);
    }

    @Test
    void aWrongByteIsNoState() throws IOException {
        arrivals.await(Set.of("m1"));
        List<byte[]> pieces = StateArrivals.cut("m1", state(100, 1));
        pieces.get(0)[60]++;
        take(pieces);
        assertNull(arrivals.whole("m1"));
        take(StateArrivals.cut("m1", state(100, 1)));
        assertEquals(100, arrivals.whole("m1").length);
    }

    @Test
    void anotherStateOfTheMoveBeginsAnew() throws IOException {
        arrivals.await(Set.of("m1"));
        arrivals.take(StateArrivals.cut("m1", state(2 * StateArrivals.PIECE_BYTES, 1)).get(0));
        byte[] newer = state(2 * StateArrivals.PIECE_BYTES, 2);
        take(StateArrivals.cut("m1", newer));
        assertArrayEquals(newer, arrivals.whole("m1"));
    }

    @Test
    void whatIsNotAwaitedIsDropped() throws IOException {
        take(StateArrivals.cut("m1", state(10, 1)));
        arrivals.await(Set.of("m1"));
        assertNull(arrivals.whole("m1"));
        take(StateArrivals.cut("m1", state(10, 1)));
        arrivals.await(Set.of());
        assertNull(arrivals.whole("m1"));
    }
}

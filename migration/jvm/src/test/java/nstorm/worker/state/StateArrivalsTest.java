package nstorm.worker.state;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.security.GeneralSecurityException;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.concurrent.atomic.AtomicInteger;
import javax.crypto.Mac;
import javax.crypto.spec.SecretKeySpec;
import nstorm.state.BoltState;
import nstorm.state.StateBytes;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

public class StateArrivalsTest {
    private static final byte[] KEY = {1, 2, 3};
    private static final Map<String, byte[]> M1 = Map.of("m1", KEY);

    private final AtomicInteger rooms = new AtomicInteger();
    private final StateArrivals arrivals = new StateArrivals(
            length -> {
                rooms.incrementAndGet();
                return new byte[length];
            },
            BoltState.SIZE_MAX_BYTES);

    @BeforeEach
    void awaitOne() {
        arrivals.await(M1);
    }

    private static byte[] state(int length, int seed) {
        byte[] state = new byte[length];
        new Random(seed).nextBytes(state);
        return state;
    }

    public static List<byte[]> cut(String move, byte[] key, StateBytes state) {
        List<byte[]> pieces = new ArrayList<>();
        for (int i = 0; i < state.pieces(); i++) {
            pieces.add(StateArrivals.piece(move, key, state, state.crc(), i));
        }
        return pieces;
    }

    private static List<byte[]> cut(String move, byte[] key, byte[] state) {
        StateBytes bytes = new StateBytes();
        bytes.write(state, 0, state.length / 3);
        bytes.write(state, state.length / 3, state.length - state.length / 3);
        return cut(move, key, bytes);
    }

    private static List<byte[]> cut(byte[] state) {
        return cut("m1", KEY, state);
    }

    private void take(List<byte[]> pieces) throws IOException {
        for (byte[] piece : pieces) {
            arrivals.take(piece);
        }
    }

    @Test
    void piecesInAnyOrderAndTwiceMakeTheState() throws IOException {
        for (int length : new int[] {0, 1, StateBytes.PIECE_BYTES, 3 * StateBytes.PIECE_BYTES + 5}) {
            arrivals.await(Map.of());
            arrivals.await(M1);
            byte[] state = state(length, 1);
            List<byte[]> pieces = cut(state);
            pieces.add(pieces.get(0));
            Collections.shuffle(pieces, new Random(2));
            take(pieces);
            assertArrayEquals(state, arrivals.whole("m1"));
            assertNull(arrivals.whole("m1"));
        }
    }

    @Test
    void aMissingPieceIsWaitedFor() throws IOException {
        List<byte[]> pieces = cut(state(2 * StateBytes.PIECE_BYTES, 1));
        assertEquals(2, pieces.size());
        arrivals.take(pieces.get(1));
        assertNull(arrivals.whole("m1"));
        arrivals.take(pieces.get(0));
        assertEquals(2 * StateBytes.PIECE_BYTES, arrivals.whole("m1").length);
    }

    /** The source goes on sending until the plan goes on, and the target has the state by then. */
    @Test
    void whatComesAgainAfterTheStateWasTakenIsNotKept() throws IOException {
        take(cut(state(2 * StateBytes.PIECE_BYTES, 1)));
        assertEquals(2 * StateBytes.PIECE_BYTES, arrivals.whole("m1").length);
        take(cut(state(2 * StateBytes.PIECE_BYTES, 1)));
        assertNull(arrivals.whole("m1"));
        assertEquals(1, rooms.get());
    }

    @Test
    void aStateThatTheHeapHasNoRoomForIsSaidToBeTooLarge() throws IOException {
        StateArrivals full = new StateArrivals(
                length -> {
                    throw new OutOfMemoryError("Java heap space");
                },
                BoltState.SIZE_MAX_BYTES);
        full.await(M1);
        assertNull(full.refusal("m1"));
        for (byte[] piece : cut(state(2 * StateBytes.PIECE_BYTES, 1))) {
            full.take(piece);
        }
        assertEquals("no room for it", full.refusal("m1"));
        assertNull(full.tooLarge("m1"));
        assertNull(full.whole("m1"));
    }

    /** The heap of the source is larger, and so is what it may send. */
    @Test
    void aStateThatIsLargerThanItsTargetTakesIsRefusedAtItsFirstPiece() throws IOException {
        StateArrivals small = new StateArrivals(byte[]::new, 3 << 20);
        small.await(M1);
        List<byte[]> pieces = cut(state((3 << 20) + 1, 1));
        small.take(pieces.get(5));
        assertEquals("is of 4 MB, and the heap of its target takes 3 MB", small.refusal("m1"));
        assertEquals(small.refusal("m1"), small.tooLarge("m1"));
        for (byte[] piece : pieces) {
            small.take(piece);
        }
        assertNull(small.whole("m1"));
        small.await(Map.of());
        small.await(M1);
        for (byte[] piece : cut(state(3 << 20, 1))) {
            small.take(piece);
        }
        assertEquals(3 << 20, small.whole("m1").length);
    }

    /** The same piece of a state of so many bytes, as a source with a larger heap sends it. */
    public static byte[] ofLarger(byte[] piece, byte[] key, int bytes) throws GeneralSecurityException {
        ByteBuffer larger = ByteBuffer.wrap(piece.clone());
        larger.putInt(Integer.BYTES + larger.getInt(0), bytes);
        Mac mac = Mac.getInstance("HmacSHA256");
        mac.init(new SecretKeySpec(key, "HmacSHA256"));
        mac.update(larger.array(), 0, piece.length - mac.getMacLength());
        return larger.put(piece.length - mac.getMacLength(), mac.doFinal()).array();
    }

    /** Whoever reaches the port has not read the plan. */
    @Test
    void aPieceOfWhoHasNotTheKeyIsRefused() throws IOException {
        byte[] state = state(100, 1);
        byte[] forged = cut("m1", new byte[] {1, 2, 4}, state).get(0);
        for (byte[] piece : List.of(forged, new byte[0], new byte[] {-1, -1, -1, -1})) {
            assertThrows(IOException.class, () -> arrivals.take(piece));
        }
        for (int at : new int[] {6, 10, 14, 22, 60, cut(state).get(0).length - 1}) {
            byte[] wrong = cut(state).get(0);
            wrong[at]++;
            assertThrows(IOException.class, () -> arrivals.take(wrong));
        }
        assertNull(arrivals.whole("m1"));
        take(cut(state));
        assertEquals(100, arrivals.whole("m1").length);
    }

    /** The same number and other bytes, another sum, or another length: somebody else has the key. */
    @Test
    void aPieceThatContradictsOneThatIsThereRefusesTheMove() throws IOException {
        byte[] state = state(2 * StateBytes.PIECE_BYTES, 1);
        StateBytes other = new StateBytes();
        other.write(state(2 * StateBytes.PIECE_BYTES, 2), 0, 2 * StateBytes.PIECE_BYTES);
        byte[] sameSum = StateArrivals.piece("m1", KEY, other, crc(state), 0);
        for (byte[] piece : List.of(
                sameSum,
                cut("m1", KEY, other).get(0),
                cut("m1", KEY, other).get(1),
                cut(state(1, 1)).get(0))) {
            for (int before = 1; before < 4; before++) {
                arrivals.await(Map.of());
                arrivals.await(M1);
                take(cut(state).subList(0, Math.min(before, 2)));
                if (before == 3) {
                    assertArrayEquals(state, arrivals.whole("m1"));
                }
                assertNull(arrivals.refusal("m1"));
                assertThrows(IOException.class, () -> arrivals.take(piece));
                assertEquals("came in pieces that contradict one another", arrivals.refusal("m1"));
                take(cut(state));
                assertNull(arrivals.whole("m1"));
            }
        }
    }

    private static long crc(byte[] state) {
        StateBytes bytes = new StateBytes();
        bytes.write(state, 0, state.length);
        return bytes.crc();
    }

    /** A target that starts anew draws another key, and takes its source's answer to that. */
    @Test
    void underAnotherKeyAStateBeginsAnew() throws IOException {
        byte[] other = {4, 5, 6};
        arrivals.take(cut(state(2 * StateBytes.PIECE_BYTES, 1)).get(0));
        arrivals.await(Map.of("m1", other));
        take(cut("m1", other, state(10, 2)));
        assertArrayEquals(state(10, 2), arrivals.whole("m1"));
    }

    @Test
    void whatIsNotAwaitedIsDropped() throws IOException {
        arrivals.await(Map.of());
        take(cut(state(10, 1)));
        arrivals.await(M1);
        assertNull(arrivals.whole("m1"));
        take(cut(state(10, 1)));
        arrivals.await(Map.of());
        assertNull(arrivals.whole("m1"));
    }
}

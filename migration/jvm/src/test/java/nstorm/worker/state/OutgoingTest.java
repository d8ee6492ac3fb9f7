package nstorm.worker.state;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.concurrent.TimeUnit;
import nstorm.state.StateBytes;
import org.junit.jupiter.api.Test;

class OutgoingTest {
    private static final long AGAIN_NANOS = TimeUnit.SECONDS.toNanos(3);
    private static final long MS = TimeUnit.MILLISECONDS.toNanos(1);

    private static Outgoing ofTwoPieces() {
        return Outgoing.of("m", new byte[StateBytes.PIECE_BYTES + 1], StateBytes.PIECE_BYTES + 1, AGAIN_NANOS, 0);
    }

    /** Sends all pieces that are due, each in a millisecond; the time after the last. */
    private static long send(Outgoing out, long nowNanos) {
        long now = nowNanos;
        for (int piece = 0; piece < 2; piece++) {
            assertEquals(piece, out.nextPiece(now));
            now += MS;
            assertEquals(piece == 0, out.wentOut(now));
        }
        return now;
    }

    @Test
    void itGoesAgainLaterAndLater() {
        Outgoing out = ofTwoPieces();
        assertFalse(out.sent());
        long sentNanos = send(out, 0);
        assertTrue(out.sent());
        assertFalse(out.repeats());
        for (long pauseNanos = AGAIN_NANOS; pauseNanos < 5 * AGAIN_NANOS; pauseNanos *= 2) {
            assertEquals(-1, out.nextPiece(sentNanos + pauseNanos));
            sentNanos = send(out, sentNanos + pauseNanos + 1);
            assertTrue(out.repeats());
            assertTrue(out.sent());
        }
    }

    @Test
    void whatTakesLongToSendWaitsAsLongAgain() {
        Outgoing out = ofTwoPieces();
        assertEquals(0, out.nextPiece(0));
        out.wentOut(AGAIN_NANOS);
        out.wentOut(2 * AGAIN_NANOS);
        assertEquals(-1, out.nextPiece(6 * AGAIN_NANOS));
        assertEquals(0, out.nextPiece(6 * AGAIN_NANOS + 1));
    }

    /** As to a target that has started once more, and has another key. */
    @Test
    void itCanBeginAtItsFirstPieceAtOnce() {
        Outgoing out = ofTwoPieces();
        out.nextPiece(0);
        out.wentOut(MS);
        out.again();
        assertFalse(out.sent());
        long sentNanos = send(out, 2 * MS);
        out.again();
        assertEquals(0, out.nextPiece(sentNanos));
        assertTrue(out.sent());
    }
}

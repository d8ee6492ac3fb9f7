package nstorm.worker.state;

import java.util.concurrent.TimeUnit;
import nstorm.state.StateBytes;

/** Bytes on their way from here: the next piece of them, and when the first and the last one was sent. */
final class Outgoing {
    /** Each time twice as long as before: while no controller goes on with the plan this has no end. */
    static final long AGAIN_NANOS = TimeUnit.SECONDS.toNanos(3);
    /** Shorter: the target may not have read of the move yet, and then keeps nothing of it. */
    static final long AHEAD_AGAIN_NANOS = TimeUnit.MILLISECONDS.toNanos(100);

    private static final int DOUBLED_MAX = 6;

    final String name;
    final StateBytes bytes;
    final long crc;
    final long sinceNanos;
    private final long againNanos;
    private int next;
    private int times;
    private long begunNanos;
    private long sentNanos;

    Outgoing(String name, StateBytes bytes, long againNanos, long sinceNanos) {
        this.name = name;
        this.bytes = bytes;
        this.againNanos = againNanos;
        this.sinceNanos = sinceNanos;
        crc = bytes.crc();
    }

    /** A few bytes of an array. */
    static Outgoing of(String name, byte[] all, int length, long againNanos, long sinceNanos) {
        StateBytes bytes = new StateBytes();
        bytes.write(all, 0, length);
        return new Outgoing(name, bytes, againNanos, sinceNanos);
    }

    boolean sent() {
        return times > 0 || next == bytes.pieces();
    }

    /** Whether all of it has been sent, and it was time to begin once more. */
    boolean repeats() {
        return times > 0;
    }

    /** Its target has started once more, and knows nothing of it. */
    void again() {
        times = sent() ? times + 1 : 0;
        next = 0;
    }

    /** The next piece to send, from the first one on once it is time to send all of it again; −1 while there is none. */
    int nextPiece(long nowNanos) {
        if (next == bytes.pieces()) {
            if (!due(nowNanos)) {
                return -1;
            }
            next = 0;
            times++;
        }
        begunNanos = next == 0 ? nowNanos : begunNanos;
        return next;
    }

    /** Large bytes take a while to arrive and to be read. */
    private boolean due(long nowNanos) {
        long pauseNanos = Math.max(againNanos, 2 * (sentNanos - begunNanos));
        return nowNanos - sentNanos > pauseNanos << Math.min(times, DOUBLED_MAX);
    }

    /** That the next piece has gone; whether there are more. */
    boolean wentOut(long nowNanos) {
        next++;
        sentNanos = nowNanos;
        return next < bytes.pieces();
    }
}

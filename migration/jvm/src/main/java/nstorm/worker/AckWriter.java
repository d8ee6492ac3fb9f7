package nstorm.worker;

import java.util.concurrent.TimeUnit;
import nstorm.wire.report.WorkerAck;

/**
 * Decides when an ack is written. Where something in it has changed it is at once, where only its counters have, twice
 * a second, else every 2 s. Passes come up to 500 times a second and most change nothing: they compare, and encode
 * nothing.
 */
final class AckWriter {
    static final long SIGN_OF_LIFE_NANOS = TimeUnit.SECONDS.toNanos(2);
    static final long COUNTERS_NANOS = TimeUnit.MILLISECONDS.toNanos(500);

    private WorkerAck last;
    private long lastNanos;

    /** Whether to write it now; its time is not looked at. */
    boolean due(WorkerAck timeless, long nowNanos) {
        long age = nowNanos - lastNanos;
        boolean due = last == null
                || age >= SIGN_OF_LIFE_NANOS
                || !timeless.equals(last)
                        && (age >= COUNTERS_NANOS
                                || !timeless.with(last.counters()).equals(last));
        if (due) {
            last = timeless;
            lastNanos = nowNanos;
        }
        return due;
    }
}

package nstorm.hook;

import java.util.concurrent.TimeUnit;

/** Which failures of what is tried every few seconds get a line in the log: another one at once, the same once a minute. */
public final class Failures {
    private static final long AGAIN_NANOS = TimeUnit.MINUTES.toNanos(1);

    /** What of a failure is logged. */
    public enum Line {
        TRACE,
        SENTENCE,
        NONE
    }

    private String last;
    private long loggedNanos;

    public synchronized Line of(Throwable failure, long nowNanos) {
        boolean again = failure.toString().equals(last);
        if (again && nowNanos - loggedNanos < AGAIN_NANOS) {
            return Line.NONE;
        }
        last = failure.toString();
        loggedNanos = nowNanos;
        return again ? Line.SENTENCE : Line.TRACE;
    }

    /** A try came to its end. */
    public synchronized void over() {
        last = null;
    }
}

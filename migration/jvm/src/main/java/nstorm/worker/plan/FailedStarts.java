package nstorm.worker.plan;

import java.util.HashMap;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import nstorm.wire.ExecutorId;

/** Executors whose queue, constructor or prepare() threw here: each is tried again after 1 s, then 2, 4 … 30 s. */
public final class FailedStarts {
    private static final long FIRST_PAUSE_NANOS = TimeUnit.SECONDS.toNanos(1);
    private static final long LONGEST_PAUSE_NANOS = TimeUnit.SECONDS.toNanos(30);

    private record Failed(int times, long pauseNanos, long untilNanos) {}

    private final Map<ExecutorId, Failed> failed = new HashMap<>();

    public void add(ExecutorId executor, long nowNanos) {
        Failed before = failed.get(executor);
        long pauseNanos = before == null ? FIRST_PAUSE_NANOS : Math.min(2 * before.pauseNanos(), LONGEST_PAUSE_NANOS);
        failed.put(executor, new Failed(times(executor) + 1, pauseNanos, nowNanos + pauseNanos));
    }

    /** How often it has failed since it last ran. */
    public int times(ExecutorId executor) {
        Failed last = failed.get(executor);
        return last == null ? 0 : last.times();
    }

    public boolean mustWait(ExecutorId executor, long nowNanos) {
        Failed last = failed.get(executor);
        return last != null && nowNanos - last.untilNanos() < 0;
    }

    /** The executor runs or is not wanted here any more. */
    public void forget(ExecutorId executor) {
        failed.remove(executor);
    }
}

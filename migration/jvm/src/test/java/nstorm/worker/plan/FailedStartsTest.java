package nstorm.worker.plan;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;

import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;
import nstorm.wire.ExecutorId;
import org.junit.jupiter.api.Test;

class FailedStartsTest {
    private static final ExecutorId EXECUTOR = new ExecutorId(7, 7);
    private static final ExecutorId OTHER = new ExecutorId(8, 8);

    private final FailedStarts failed = new FailedStarts();
    /** Near the end of what a long holds: the clock's zero is anywhere. */
    private long nowNanos = Long.MAX_VALUE - 5;

    private long pauseSecs() {
        failed.add(EXECUTOR, nowNanos);
        long secs = 0;
        while (failed.mustWait(EXECUTOR, nowNanos)) {
            nowNanos += TimeUnit.SECONDS.toNanos(1);
            secs++;
        }
        return secs;
    }

    @Test
    void thePauseGrowsToABound() {
        List<Long> pauses = new ArrayList<>();
        for (int i = 0; i < 8; i++) {
            pauses.add(pauseSecs());
        }
        assertEquals(List.of(1L, 2L, 4L, 8L, 16L, 30L, 30L, 30L), pauses);
    }

    @Test
    void oneThatRanBeginsAnewAndOthersNeverWait() {
        pauseSecs();
        pauseSecs();
        assertFalse(failed.mustWait(OTHER, nowNanos));
        failed.forget(EXECUTOR);
        assertFalse(failed.mustWait(EXECUTOR, nowNanos));
        assertEquals(1, pauseSecs());
    }
}

package nstorm.worker.storm;

import static org.junit.jupiter.api.Assertions.assertEquals;

import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.List;
import java.util.Queue;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;
import org.apache.storm.StormTimer;
import org.junit.jupiter.api.Test;

class CancellableTicksTest {
    /** Runs what it is given as the test says. */
    private static final class Timer extends StormTimer {
        final List<Integer> delays = new ArrayList<>();
        final Queue<Runnable> due = new ArrayDeque<>();

        Timer() {
            super("user-timer", (thread, thrown) -> {});
        }

        @Override
        public void schedule(int delaySecs, Runnable run, boolean checkActive, int jitterMs) {
            delays.add(delaySecs);
            due.add(run);
        }
    }

    /** Where its queue is full Storm's tick waits for room, and all ticks of the worker with it. */
    @Test
    void aTickWaitsWhileItsExecutorTakesNothing() throws Exception {
        AtomicInteger ticks = new AtomicInteger();
        AtomicBoolean still = new AtomicBoolean();
        try (Timer timer = new Timer()) {
            CancellableTicks.schedule(timer, 7, 7, ticks::incrementAndGet);
            CancellableTicks.waitWhile(still::get);
            timer.due.remove().run();
            still.set(true);
            timer.due.remove().run();
            timer.due.remove().run();
            assertEquals(1, ticks.get());
            still.set(false);
            timer.due.remove().run();
            assertEquals(2, ticks.get(), "it is late, and not lost");
            assertEquals(List.of(7, 7, 1, 1, 7), timer.delays);
            CancellableTicks.cancel(Thread.currentThread());
            timer.due.remove().run();
            assertEquals(2, ticks.get());
            assertEquals(0, timer.due.size());
        }
    }
}

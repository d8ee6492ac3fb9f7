package nstorm.worker.storm;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.function.BooleanSupplier;
import org.apache.storm.StormTimer;

/**
 * Recurring tick and metrics tuples of an executor, made cancellable.
 *
 * <p>Storm's {@code StormTimer.scheduleRecurring} has no cancel. After an executor has gone, its runnable would go on
 * to fill a queue that no thread reads. It would then block the worker's only user timer for ever. So would one of an executor that takes
 * nothing, for as long.
 */
public final class CancellableTicks {
    /** How long a tick waits until it looks again whether its executor takes it. */
    private static final int LATE_SECS = 1;

    private static final Map<Thread, List<Tick>> BY_THREAD = new ConcurrentHashMap<>();

    private CancellableTicks() {}

    /** Schedules {@code body} as Storm would, bound to the executor thread that asked for it. */
    public static void schedule(StormTimer timer, int delaySecs, int recurSecs, Runnable body) {
        Tick tick = new Tick(timer, recurSecs, body);
        BY_THREAD
                .computeIfAbsent(Thread.currentThread(), t -> new ArrayList<>())
                .add(tick);
        timer.schedule(delaySecs, tick);
    }

    /** From now on the ticks of the calling executor's thread wait while it takes nothing. */
    public static void waitWhile(BooleanSupplier takesNothing) {
        List<Tick> ticks = BY_THREAD.get(Thread.currentThread());
        if (ticks != null) {
            ticks.forEach(tick -> tick.takesNothing = takesNothing);
        }
    }

    /** Cancels all ticks of an executor thread; the timer keeps an empty shell until its next turn. */
    public static void cancel(Thread executorThread) {
        List<Tick> ticks = BY_THREAD.remove(executorThread);
        if (ticks != null) {
            ticks.forEach(Tick::cancel);
        }
    }

    private static final class Tick implements Runnable {
        private final StormTimer timer;
        private final int recurSecs;
        private volatile Runnable body;
        private volatile BooleanSupplier takesNothing = () -> false;

        Tick(StormTimer timer, int recurSecs, Runnable body) {
            this.timer = timer;
            this.recurSecs = recurSecs;
            this.body = body;
        }

        void cancel() {
            body = null;
            takesNothing = () -> false;
        }

        @Override
        public void run() {
            Runnable now = body;
            if (now != null && takesNothing.getAsBoolean()) {
                timer.schedule(LATE_SECS, this, false, 0);
            } else if (now != null) {
                now.run();
                timer.schedule(recurSecs, this, false, 0);
            }
        }
    }
}

package nstorm.worker.exit;

import java.util.List;
import java.util.Queue;
import java.util.concurrent.Callable;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.function.BooleanSupplier;
import nstorm.worker.routes.HandOver;
import nstorm.worker.storm.StormFields;
import org.apache.storm.Config;
import org.apache.storm.daemon.Task;
import org.apache.storm.executor.Executor;
import org.apache.storm.spout.ISpout;
import org.apache.storm.tuple.AddressedTuple;
import org.apache.storm.utils.ObjectReader;
import org.apache.storm.utils.RotatingMap;

/**
 * Lets one spout finish what is pending, closes it and ends its loop, all on its own thread. Another copy may only open once this one is
 * closed. Else two would read the same partition.
 *
 * <p>Until then it serves acks in a loop of its own: Storm's loop sleeps 100 ms a turn while its spout is inactive.
 */
final class SpoutExit {
    private enum Wish {
        RUN,
        FINISH,
        CLOSE
    }

    /** In windows tuples wait for those that come later, and these for the spout: better soon undone than late. */
    private static final long STALLED_NANOS = TimeUnit.SECONDS.toNanos(10);
    /** A little less than a move waits for what is pending. */
    private static final long IN_TIME_NANOS = TimeUnit.SECONDS.toNanos(35);

    private final Executor executor;
    private volatile Wish wish = Wish.RUN;
    private volatile HandOver handOver;
    /** When it went beyond the way back; 0 before. */
    private volatile long closingNanos;
    /** When it looked first at what is pending, or something of it finished after that; 0 until it has looked. */
    private volatile long progressNanos;

    private volatile BooleanSupplier mayClose;
    /** Whether it stays open for what it remembers; null until that was looked at. */
    private volatile Boolean remembers;

    private int leftPending;
    private long sinceNanos;

    SpoutExit(Executor executor) {
        this.executor = executor;
    }

    /**
     * Emits no more and closes once nothing is pending, at the latest after the time in which a message times out.
     *
     * @param mayClose asked once, when nothing is pending any more: what the spout then remembers its next copy will not
     */
    void finish(HandOver to, BooleanSupplier mayClose) {
        this.mayClose = mayClose;
        ask(Wish.FINISH, to);
    }

    /** Emits no more and closes at once. */
    void close(HandOver to) {
        ask(Wish.CLOSE, to);
    }

    /** Emits again, if it is not too late. */
    void keep() {
        ask(Wish.RUN, null);
    }

    private synchronized void ask(Wish next, HandOver to) {
        if (closingNanos == 0 && wish != next) {
            handOver = to;
            progressNanos = 0;
            remembers = null;
            wish = next;
        }
    }

    private synchronized boolean noWayBack(Wish asked) {
        if (wish == asked && closingNanos == 0) {
            closingNanos = System.nanoTime();
        }
        return wish == asked;
    }

    /** Whether nothing of what is pending has finished for long, and it will not time out while a move waits. */
    boolean stalls() {
        long since = progressNanos;
        return wish == Wish.FINISH
                && since != 0
                && closingNanos == 0
                && timeoutNanos() > IN_TIME_NANOS
                && System.nanoTime() - since > STALLED_NANOS;
    }

    /** Whether it has not closed, for it remembers what its source does not give again. */
    boolean remembers() {
        return Boolean.TRUE.equals(remembers);
    }

    /** Since when there is no way back, for the spout is being closed or is; 0 while there is one. */
    long closingNanos() {
        return closingNanos;
    }

    /** One turn of the executor's loop; null ends it. */
    Long turn(Callable<Long> stockLoop) throws Exception {
        Wish asked = wish;
        if (asked == Wish.RUN) {
            sinceNanos = 0;
            return stockLoop.call();
        }
        if (sinceNanos == 0) {
            sinceNanos = System.nanoTime();
            deactivate();
        }
        int taken = executor.getReceiveQueue().consume(executor);
        boolean sent = sentPendingEmits(executor);
        boolean finished = nothingPending() && sent;
        if (asked == Wish.FINISH && !finished) {
            return taken > 0 ? 0L : 1L;
        }
        if (asked == Wish.FINISH && remembers == null) {
            remembers = !mayClose.getAsBoolean();
        }
        if (asked == Wish.FINISH && remembers) {
            return 1L;
        } else if (!noWayBack(asked)) {
            return 0L;
        }
        if (!handOver.takePendingEmits(executor)) {
            return 1L;
        }
        close(Integer.MAX_VALUE);
        handOver.flushBatchesOf(executor);
        return null;
    }

    /** Of a spout that is not wanted any more when its open() has ended. */
    void closeUnused() {
        close(Integer.MAX_VALUE);
    }

    /** Of an executor in which one open() has failed, or none was called: Storm notes each right before that call. */
    void closeOpened() {
        List<?> called = StormFields.get(StormFields.SPOUT_COLLECTORS, executor);
        close(called == null ? 0 : Math.max(0, called.size() - 1));
    }

    private void close(int opened) {
        UsersEnd.of(executor, "close of spout", opened, spout -> ((ISpout) spout).close());
    }

    /** As Storm does when the topology is deactivated; its loop activates the spout again if this one is kept. */
    private void deactivate() {
        if (StormFields.<AtomicBoolean>get(StormFields.SPOUT_ACTIVE, executor).getAndSet(false)) {
            for (Task task : UsersEnd.tasks(executor)) {
                UsersEnd.call(executor, "deactivate of spout", ((ISpout) task.getTaskObject())::deactivate);
            }
        }
    }

    /** Sends what back-pressure has held back; whether that was all. */
    static boolean sentPendingEmits(Executor executor) {
        Queue<AddressedTuple> pending = executor.getPendingEmits();
        while (!pending.isEmpty() && executor.getExecutorTransfer().tryTransfer(pending.peek(), null)) {
            pending.poll();
        }
        return pending.isEmpty();
    }

    private boolean nothingPending() {
        RotatingMap<Long, ?> pending = StormFields.get(StormFields.SPOUT_PENDING, executor);
        if (pending.size() > 0 && System.nanoTime() - sinceNanos > timeoutNanos()) {
            // By Storm's own time-out, which fails each to the spout: all are older than a message may be.
            pending.rotate();
            pending.rotate();
            // What a spout then emits again gets as long.
            sinceNanos = System.nanoTime();
        }
        int left = pending.size();
        if (left < leftPending || progressNanos == 0) {
            leftPending = left;
            progressNanos = System.nanoTime();
        }
        return left == 0;
    }

    private long timeoutNanos() {
        Object timeouts = executor.getTopoConf().get(Config.TOPOLOGY_ENABLE_MESSAGE_TIMEOUTS);
        int secs = ObjectReader.getInt(executor.getTopoConf().get(Config.TOPOLOGY_MESSAGE_TIMEOUT_SECS), 30);
        return ObjectReader.getBoolean(timeouts, true) ? TimeUnit.SECONDS.toNanos(secs) : Long.MAX_VALUE;
    }
}

package nstorm.worker.exit;

import java.util.ArrayDeque;
import java.util.Queue;
import java.util.concurrent.TimeUnit;
import java.util.function.BooleanSupplier;
import nstorm.memory.Reviewed;
import nstorm.worker.routes.HandOver;
import nstorm.worker.storm.StormFields;
import org.apache.storm.Config;
import org.apache.storm.Constants;
import org.apache.storm.daemon.Task;
import org.apache.storm.executor.Executor;
import org.apache.storm.task.IBolt;
import org.apache.storm.tuple.AddressedTuple;
import org.apache.storm.tuple.TupleImpl;
import org.apache.storm.tuple.Values;
import org.apache.storm.utils.ObjectReader;

/**
 * Lets the bolts of one executor ack what they keep, cleans them up and ends their loop, all on its own thread. Another
 * copy may only be prepared once this one is cleaned up. Else both would hold what only one may hold.
 *
 * <p>Until then it takes no tuple but ticks of its own, so its queue fills, and holds the senders back.
 */
final class BoltExit {
    /** All that waits for it would time out soon: better undone. */
    private static final long PATIENCE_NANOS = TimeUnit.SECONDS.toNanos(15);

    private final Executor executor;
    /** What it had taken out of its queue when it was asked; of its own thread, which must not take a later one before. */
    private final Queue<AddressedTuple> held = new ArrayDeque<>();

    private volatile BooleanSupplier keepsNothing;
    private volatile BooleanSupplier mayClose;
    /** Whether it is not cleaned up for what it remembers; null until that was looked at. */
    private volatile Boolean remembers;

    private volatile HandOver handOver;
    private volatile boolean holding;
    private volatile boolean keeps;
    private volatile long askedNanos;
    private volatile long closingNanos;
    private volatile boolean cleanedUp;
    private long tickedFor;
    private long tickedNanos;
    private boolean working;

    BoltExit(Executor executor) {
        this.executor = executor;
    }

    /**
     * Takes no tuple from now on, and is cleaned up once its bolts keep none.
     *
     * @param mayCleanUp asked once, when they keep none: what they then remember their next copy will not
     */
    synchronized void finish(HandOver to, BooleanSupplier keepsNone, BooleanSupplier mayCleanUp) {
        if (keepsNothing == null) {
            handOver = to;
            mayClose = mayCleanUp;
            remembers = null;
            keeps = false;
            askedNanos = System.nanoTime();
            keepsNothing = keepsNone;
        }
    }

    /** Takes tuples again, if it is not too late; whether anything has changed by that. */
    synchronized boolean keep() {
        boolean changes = keepsNothing != null && closingNanos == 0;
        if (changes) {
            keepsNothing = null;
        }
        return changes;
    }

    boolean asked() {
        return keepsNothing != null;
    }

    /** Whether its executor may not just take its next tuple. */
    synchronized boolean attends() {
        return asked() || holding;
    }

    /** Whether it has had so long to send and ack what its bolts keep that the move is to be undone. */
    boolean late() {
        return asked() && closingNanos == 0 && System.nanoTime() - askedNanos > PATIENCE_NANOS;
    }

    /** Whether they kept something when that was looked at last; what cannot be sent, as a receiver is busy, is no fault of theirs. */
    boolean keeps() {
        return keeps;
    }

    /** Whether it has not been cleaned up, for its bolts remember what is in no field with tuples. */
    boolean remembers() {
        return asked() && Boolean.TRUE.equals(remembers);
    }

    /** Since when there is no way back; 0 while there is one. */
    long closingNanos() {
        return closingNanos;
    }

    boolean cleanedUp() {
        return cleanedUp;
    }

    /** Whether the executor must not take this tuple now, which then comes first once it goes on. On its thread. */
    synchronized boolean holdsBack(AddressedTuple tuple) {
        if (working || !asked() && held.isEmpty()) {
            return false;
        }
        held.add(tuple);
        holding = true;
        return true;
    }

    /** Whether it was asked to finish, and is to go on, with what it has held back. */
    boolean holdsSomething() {
        return holding && !asked();
    }

    /**
     * Has the executor take what was held back, as far as what it emits can go out; whether that was all.
     *
     * @param handsOn whether it hands on what it gets, and so emits nothing
     */
    boolean goOn(boolean handsOn) {
        working = true;
        try {
            while (!held.isEmpty()) {
                if (!handsOn && !SpoutExit.sentPendingEmits(executor)) {
                    return false;
                }
                executor.accept(held.poll());
            }
        } finally {
            working = false;
        }
        holding = false;
        return true;
    }

    /** One turn in place of Storm's loop; whether the bolts are cleaned up, and the loop is to end. */
    boolean closed() throws InterruptedException {
        BooleanSupplier asked = keepsNothing;
        if (asked == null) {
            return false;
        } else if (cleanedUp) {
            return handedOn();
        }
        tickIfDue();
        executor.getExecutorTransfer().flush();
        keeps = !asked.getAsBoolean();
        if (keeps || !SpoutExit.sentPendingEmits(executor)) {
            return false;
        } else if (remembers == null) {
            remembers = !mayClose.getAsBoolean();
        }
        if (remembers || !noWayBack(asked)) {
            return false;
        }
        cleanUp();
        return handedOn();
    }

    /** Once it is cleaned up, in as many turns as that takes: more than there is room for would be dropped. */
    private boolean handedOn() throws InterruptedException {
        if (!handOver.takeAll(held) || !handOver.takePendingEmits(executor)) {
            return false;
        }
        handOver.flushBatchesOf(executor);
        return true;
    }

    private synchronized boolean noWayBack(BooleanSupplier asked) {
        if (keepsNothing == asked) {
            closingNanos = System.nanoTime();
        }
        return keepsNothing == asked;
    }

    void cleanUp() {
        cleanUp(Integer.MAX_VALUE);
    }

    /**
     * Of an executor in which one prepare() has failed, or none was called. Storm notes a task right before that call, and after
     * setCredentials(). Where setCredentials() fails, the task before it thus stays open: it looks like one whose prepare() has failed.
     */
    void cleanUpPrepared() {
        Object called = StormFields.get(StormFields.BOLT_COLLECTOR, executor);
        cleanUp(
                called == null
                        ? 0
                        : UsersEnd.tasks(executor).indexOf(StormFields.<Task>get(StormFields.COLLECTOR_TASK, called)));
    }

    private void cleanUp(int prepared) {
        UsersEnd.of(executor, "closing what is left open by bolt", prepared, bolt -> {
            UsersEnd.call(executor, "cleanup of bolt", ((IBolt) bolt)::cleanup);
            Reviewed.closeLeftOpen(bolt);
        });
        cleanedUp = true;
    }

    /** Many bolts write what they keep at a tick; those that Storm sends wait in the queue. */
    private void tickIfDue() {
        long now = System.nanoTime();
        AddressedTuple tick = tickOrNull(executor);
        if (tick == null
                || tickedFor == askedNanos && now - tickedNanos < TimeUnit.SECONDS.toNanos(tickSecs(executor))) {
            return;
        }
        tickedFor = askedNanos;
        tickedNanos = now;
        working = true;
        try {
            executor.accept(tick);
        } finally {
            working = false;
        }
    }

    private static int tickSecs(Executor executor) {
        return ObjectReader.getInt(executor.getTopoConf().get(Config.TOPOLOGY_TICK_TUPLE_FREQ_SECS));
    }

    /** A tick for bolts that get ticks anyway: any other may take it for data. */
    static AddressedTuple tickOrNull(Executor executor) {
        if (executor.getTopoConf().get(Config.TOPOLOGY_TICK_TUPLE_FREQ_SECS) == null) {
            return null;
        }
        TupleImpl tick = new TupleImpl(
                executor.getWorkerTopologyContext(),
                new Values(tickSecs(executor)),
                Constants.SYSTEM_COMPONENT_ID,
                (int) Constants.SYSTEM_TASK_ID,
                Constants.SYSTEM_TICK_STREAM_ID);
        return new AddressedTuple(AddressedTuple.BROADCAST_DEST, tick);
    }
}

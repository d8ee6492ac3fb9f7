package nstorm.worker.exit;

import java.util.Map;
import java.util.concurrent.Callable;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicReference;
import java.util.function.BooleanSupplier;
import nstorm.proof.Memory;
import nstorm.worker.routes.HandOver;
import nstorm.worker.routes.OrderGate;
import nstorm.worker.routes.OrderMarker;
import org.apache.storm.daemon.Acker;
import org.apache.storm.executor.Executor;
import org.apache.storm.executor.spout.SpoutExecutor;
import org.apache.storm.tuple.AddressedTuple;
import org.apache.storm.utils.JCQueue;

/**
 * Ends one executor between two tuples. What a bolt has not begun goes to the new owner, and what it has emitted is flushed or handed on.
 * Then its loop returns null, and Storm lets the thread end. An acker also hands its open trees on. {@link SpoutExit} ends a spout, and
 * {@link BoltExit} a bolt that holds what only one copy may hold.
 */
public final class StopSwitch implements Callable<Long> {
    /** Executors of this JVM that may not just take their next tuple; almost always 0, so the check per tuple is one read. */
    public static final AtomicInteger ATTENDED = new AtomicInteger();

    /** Between two looks of an executor that holds still. */
    private static final long STILL_MS = 1;

    private static final Map<Executor, StopSwitch> BY_EXECUTOR = new ConcurrentHashMap<>();

    private final Executor executor;
    /** Null for a bolt. */
    private final SpoutExit spout;
    /** Null for a spout. */
    private final BoltExit bolt;

    private final CountDownLatch mayOpen = new CountDownLatch(1);
    private Callable<Long> stockLoop;
    private volatile Memory memory;
    private boolean abandoned;
    private AckerTrees trees;
    private volatile boolean looping;
    private volatile boolean still;
    private final AtomicReference<Runnable> whileStill = new AtomicReference<>();
    private final AtomicReference<Runnable> betweenTuples = new AtomicReference<>();
    /** Looked at after each turn, from a turn on in which no tuple was taken any more; null while none is asked for. */
    private volatile BooleanSupplier empty;

    private volatile boolean emptied;
    /** Where tuples go that this executor may not take any more; null while it may. */
    private volatile HandOver handOver;

    private volatile boolean ending;
    private volatile boolean cleansUp;
    /** What stands before its queue while it moves, and where the markers that come through the queue go on; null at rest. */
    private volatile OrderGate gate;

    private volatile HandOver markersTo;
    private BooleanSupplier probes;
    private volatile boolean departed;
    private boolean attended;
    /** It takes nothing any more; changed by its own thread alone. */
    private volatile boolean ended;

    private StopSwitch(Executor executor) {
        this.executor = executor;
        spout = executor instanceof SpoutExecutor ? new SpoutExit(executor) : null;
        bolt = spout == null ? new BoltExit(executor) : null;
    }

    /** The switch of an executor, also before its loop exists: the executor may still be in prepare(). */
    public static StopSwitch of(Executor executor) {
        return BY_EXECUTOR.computeIfAbsent(executor, StopSwitch::new);
    }

    /** To be called once the executor's thread is dead, or Storm's executor would be kept for ever. */
    public static void forget(Executor executor) {
        StopSwitch stop = BY_EXECUTOR.remove(executor);
        if (stop != null) {
            stop.leaveAlone();
        }
    }

    /** To be called before anything is set that {@link #divert} looks at: who sees it must come there. */
    private synchronized void attend() {
        if (!attended) {
            attended = true;
            ATTENDED.incrementAndGet();
        }
    }

    private synchronized void leaveAlone() {
        if (attended) {
            attended = false;
            ATTENDED.decrementAndGet();
        }
    }

    /** To be called once something of that is no longer so. */
    private synchronized void attendIfNeeded() {
        if (handOver == null
                && !still
                && betweenTuples.get() == null
                && gate == null
                && (bolt == null || !bolt.attends())) {
            leaveAlone();
        }
    }

    /** What its bolts remember, looked at as soon as they were prepared; null before. */
    public void remembers(Memory prepared) {
        memory = prepared;
    }

    public Memory memory() {
        return memory;
    }

    /** Wraps the loop that {@code call()} of a bolt or spout returned: prepare() or open() has ended. */
    public synchronized Callable<Long> wrap(Callable<Long> loop) {
        stockLoop = loop;
        looping = true;
        if (!abandoned) {
            return this;
        }
        // It was ours, and there is no other from now on: with it Storm's loop would end before its first turn.
        Thread.interrupted();
        return this::endUnused;
    }

    /** A spout, and a bolt that is cleaned up, holds what only one may hold as soon as it is open. */
    private Long endUnused() {
        ended = true;
        if (spout != null) {
            spout.closeUnused();
        } else if (cleansUp) {
            bolt.cleanUp();
        }
        return null;
    }

    /** True once prepare() has ended. */
    public boolean ready() {
        return executor.getOpenOrPrepareWasCalled().get() && looping;
    }

    /** It holds what only one may hold as soon as it is open, as a spout always does: it is cleaned up however it ends. */
    public void opensLate() {
        cleansUp = true;
    }

    /** The first thing an executor does on its thread where a plan starts it: another copy may have to be closed first. */
    @SuppressWarnings("unchecked")
    public Callable<Long> openWhenAllowed() throws Exception {
        try {
            mayOpen.await();
            return (Callable<Long>) executor.call();
        } catch (Throwable e) {
            if (!executor.getOpenOrPrepareWasCalled().get()) {
                endUnopened();
            }
            throw e;
        }
    }

    private void endUnopened() {
        if (spout != null) {
            spout.closeOpened();
        } else if (cleansUp) {
            bolt.cleanUpPrepared();
        }
    }

    /** Lets the executor open, and go on if it was to finish. */
    public synchronized void run() {
        mayOpen.countDown();
        if (spout != null) {
            spout.keep();
        } else if (bolt.keep()) {
            attendIfNeeded();
        }
    }

    /**
     * A spout emits no more, and is closed and ends once nothing is pending. A bolt takes no more tuples, and is cleaned up and ends once
     * it keeps none. The move may still be undone until then.
     */
    public void finish(HandOver to, BooleanSupplier keepsNothing, BooleanSupplier mayClose) {
        if (spout != null) {
            spout.finish(to, mayClose);
        } else {
            finishBolt(to, keepsNothing, mayClose);
        }
    }

    private synchronized void finishBolt(HandOver to, BooleanSupplier keepsNothing, BooleanSupplier mayCleanUp) {
        if (looping) {
            attend();
            bolt.finish(to, keepsNothing, mayCleanUp);
        }
    }

    /** Whether what it has pending, or keeps, has not finished in the time that it was given. */
    public boolean late() {
        return spout != null ? spout.stalls() : bolt.late() && bolt.keeps();
    }

    /** Whether it cannot be closed, as what it has pending or keeps does not finish, or it remembers something. */
    public boolean staysOpen() {
        return spout != null ? spout.stalls() || spout.remembers() : bolt.late() || bolt.remembers();
    }

    /** Whether its tasks were closed on its own thread, as a spout always is. */
    public boolean cleanedUp() {
        return spout != null || bolt.cleanedUp();
    }

    public boolean isSpout() {
        return spout != null;
    }

    /** Puts a tick into its queue, if it gets ticks at all. */
    public void tick() {
        AddressedTuple tick = BoltExit.tickOrNull(executor);
        JCQueue queue = executor.getReceiveQueue();
        if (tick != null && queue.tryPublish(tick)) {
            queue.tryFlush();
        }
    }

    /** Since when there is no way back, for what it holds is being closed or is; 0 while there is one. */
    public long closingNanos() {
        return spout != null ? spout.closingNanos() : bolt.closingNanos();
    }

    /**
     * Asks the executor to end between two tuples; the tuples still queued go to {@code to}.
     * One that is still in prepare() ends as soon as prepare() returns.
     *
     * @param interruptible the thread to interrupt in prepare(); null for one that Storm itself started: what
     *     prepare() then throws would end the whole worker
     * @param cleanUp whether a bolt is cleaned up at the end
     */
    public synchronized void stop(HandOver to, Thread interruptible, boolean cleanUp) {
        cleansUp = cleanUp;
        if (!looping) {
            abandoned = true;
            if (interruptible != null) {
                interruptible.interrupt();
            }
        } else if (spout != null) {
            spout.close(to);
        } else {
            handOn(to);
            ending = true;
            bolt.keep();
        }
    }

    /**
     * An acker gives all that it has and gets to the new owner, and goes on: the move may still be undone. So does a bolt whose senders'
     * order is kept: else the new owner would wait for all that is queued here.
     */
    public synchronized void leave(HandOver to, boolean ordered) {
        if (looping && (ordered || isAcker())) {
            handOn(to);
        }
    }

    /**
     * Markers of senders come through its queue from now on; null: no more.
     *
     * @param sendsProbes sends a probe behind all that the executor's thread has emitted; false if it is to be called again
     */
    public synchronized void guard(OrderGate gateOrNull, HandOver to, BooleanSupplier sendsProbes) {
        if (gateOrNull != null) {
            attend();
            markersTo = to;
            probes = sendsProbes;
            departed = false;
            gate = gateOrNull;
        } else if (gate != null) {
            gate = null;
            attendIfNeeded();
        }
    }

    /** What waits goes to the new owner while the executor holds still: its state has gone there. */
    public synchronized void handOnQueue(HandOver to) {
        if (looping) {
            handOn(to);
        }
    }

    /** Takes no more tuples but ticks, and looks after each turn whether the bolt keeps nothing any more; the move may still be undone. */
    public synchronized void awaitEmpty(HandOver to, BooleanSupplier keepsNothing) {
        if (looping && empty == null) {
            handOn(to);
            emptied = false;
            empty = keepsNothing;
        }
    }

    /** Whether the bolt kept nothing after its last turn, and can keep nothing any more. */
    public boolean emptied() {
        return emptied;
    }

    private boolean isAcker() {
        return executor.getComponentId().equals(Acker.ACKER_COMPONENT_ID);
    }

    private void handOn(HandOver to) {
        if (handOver == null) {
            attend();
            handOver = to;
        }
    }

    /** The move is undone: the executor takes its tuples again. */
    public synchronized void keep() {
        if (spout != null) {
            spout.keep();
        } else if (handOver != null && !ending) {
            handOver = null;
            empty = null;
            departed = false;
            attendIfNeeded();
        }
    }

    /** Lets the executor take no tuple, or take them again. One that stops while it holds still changes nothing any more. */
    public synchronized void holdStill(boolean hold) {
        if (hold) {
            attend();
            still = true;
        } else if (still) {
            still = false;
            whileStill.set(null);
            attendIfNeeded();
        }
    }

    public boolean holdsStill() {
        return still;
    }

    /** Whether it takes nothing out of its queue now: who publishes into that must not wait for room. */
    public boolean takesNothing() {
        return still && handOver == null || ended || closingNanos() != 0 || bolt != null && bolt.asked();
    }

    /** Runs something short on the executor's thread, where nothing else touches its bolt; the bolt goes on. */
    public synchronized void betweenTuples(Runnable work) {
        attend();
        betweenTuples.set(work);
    }

    /** The same, and only while it holds still. */
    public void whileStill(Runnable work) {
        whileStill.set(work);
    }

    /** True if its executor must not take the tuple, as it is stopping; runs on the executor's thread. */
    public static boolean divert(Executor executor, AddressedTuple tuple) {
        StopSwitch stop = BY_EXECUTOR.get(executor);
        return stop != null && stop.divert(tuple);
    }

    /** An executor whose queue never empties is always here, and never begins another turn of its loop. */
    private boolean divert(AddressedTuple tuple) {
        doBetweenTuples();
        if (bolt != null && bolt.holdsBack(tuple)) {
            return true;
        }
        OrderGate passed = gate;
        if (passed != null && OrderMarker.is(tuple.tuple)) {
            passed.taken();
            markersTo.take(tuple);
            return true;
        }
        while (still && handOver == null) {
            depart();
            doWhileStill();
            if (interrupted()) {
                return true;
            }
        }
        HandOver to = handOver;
        if (to != null) {
            depart();
        }
        while (to != null && tuple.dest != AddressedTuple.BROADCAST_DEST && !to.hasRoom()) {
            if (interrupted()) {
                return true;
            }
            to = handOver;
        }
        if (to == null) {
            return false;
        }
        if (tuple.dest == AddressedTuple.BROADCAST_DEST) {
            // A tick would have a bolt flush what another copy has by now, or what it was never given.
            return still;
        }
        to.take(tuple);
        return true;
    }

    /** Waits; true if the worker ends. What its state does not have any more may not be acked then. */
    private static boolean interrupted() {
        try {
            Thread.sleep(STILL_MS);
            return false;
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            return true;
        }
    }

    private void doBetweenTuples() {
        if (betweenTuples.get() != null) {
            betweenTuples.getAndSet(null).run();
            attendIfNeeded();
        }
    }

    private void doWhileStill() {
        Runnable work = whileStill.getAndSet(null);
        if (work != null) {
            work.run();
        }
    }

    @Override
    public Long call() throws Exception {
        if (spout != null) {
            return spout.turn(stockLoop);
        } else if (ended) {
            return handedOn(handOver);
        }
        doBetweenTuples();
        if (still && handOver == null) {
            // What its bolt has emitted goes before what the new copy will emit.
            if (SpoutExit.sentPendingEmits(executor)) {
                depart();
                doWhileStill();
            }
            return STILL_MS;
        } else if (bolt.asked()) {
            return bolt.closed() ? null : Long.valueOf(STILL_MS);
        } else if (bolt.holdsSomething()) {
            if (bolt.goOn(handOver != null)) {
                attendIfNeeded();
            }
            return 0L;
        }
        BooleanSupplier asked = empty;
        Long pause = stockLoop.call();
        if (asked != null) {
            emptied = asked.getAsBoolean();
        }
        HandOver to = handOver;
        if (to != null && executor.getPendingEmits().isEmpty()) {
            depart();
        }
        boolean sent = sentTrees(to);
        if (to == null || !ending) {
            return pause;
        }
        if (sent && executor.getReceiveQueue().size() == 0 && (departed || gate == null)) {
            ended = true;
            if (cleansUp) {
                bolt.cleanUp();
            }
            return handedOn(to);
        }
        to.takePendingEmits(executor);
        return 0L;
    }

    /** Ends the loop once what its bolt has emitted has gone, or waits for room: the bolt is given nothing any more. */
    private Long handedOn(HandOver to) throws InterruptedException {
        if (!to.takePendingEmits(executor)) {
            return STILL_MS;
        }
        to.flushBatchesOf(executor);
        return null;
    }

    private boolean sentTrees(HandOver toOrNull) {
        if (toOrNull != null && isAcker()) {
            if (trees == null) {
                trees = new AckerTrees(executor, toOrNull);
            }
            trees.take();
        }
        return trees == null || trees.sent();
    }

    /** Its bolt emits nothing any more that the new copy could overtake; runs on the executor's thread. */
    private void depart() {
        if (departed || gate == null) {
            return;
        }
        try {
            markersTo.flushBatchesOf(executor);
            departed = probes.getAsBoolean();
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
    }
}

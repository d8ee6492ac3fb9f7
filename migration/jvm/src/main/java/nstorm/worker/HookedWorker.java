package nstorm.worker;

import java.util.ArrayList;
import java.util.Collections;
import java.util.HashMap;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.atomic.AtomicReference;
import java.util.function.Predicate;
import nstorm.hook.Faults;
import nstorm.load.Traffic;
import nstorm.load.TupleSizes;
import nstorm.proof.Memory;
import nstorm.wire.ExecutorId;
import nstorm.wire.Plan;
import nstorm.wire.Slot;
import nstorm.worker.exit.StopSwitch;
import nstorm.worker.plan.Desired;
import nstorm.worker.plan.PlanOverlay;
import nstorm.worker.routes.HandOver;
import nstorm.worker.routes.LocalCopies;
import nstorm.worker.routes.MisroutedTuples;
import nstorm.worker.routes.TupleOrder;
import nstorm.worker.routes.TupleRouting;
import nstorm.worker.routes.WorkerBackPressure;
import nstorm.worker.routes.WorkerTables;
import nstorm.worker.state.CopyState;
import nstorm.worker.state.StateTransfer;
import nstorm.worker.storm.CancellableTicks;
import nstorm.worker.storm.ExecutorMetrics;
import nstorm.worker.storm.LocalGroupings;
import nstorm.worker.storm.RunningExecutors;
import nstorm.worker.storm.StormFields;
import org.apache.storm.StormTimer;
import org.apache.storm.daemon.worker.BackPressureTracker.BackpressureState;
import org.apache.storm.daemon.worker.Worker;
import org.apache.storm.daemon.worker.WorkerState;
import org.apache.storm.executor.Executor;
import org.apache.storm.executor.ExecutorShutdown;
import org.apache.storm.executor.IRunningExecutor;
import org.apache.storm.tuple.AddressedTuple;
import org.apache.storm.utils.JCQueue;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * This JVM's Storm worker, whose executors may come and go: the copies that run here, from their start until they
 * are taken down. Which of these and when is the {@link Reconciler}'s business.
 *
 * <p>All methods that change something are called by the reconciler's thread only.
 */
final class HookedWorker implements LocalCopies {
    private static final Logger LOG = LoggerFactory.getLogger(HookedWorker.class);
    /** For so long nothing came: what is on its way after all routes have changed takes milliseconds. */
    private static final long QUIET_NANOS = TimeUnit.SECONDS.toNanos(5);

    final WorkerState state;
    final Slot me;
    final PlanOverlay overlay;
    final WorkerTables tables;
    final WorkerBackPressure backPressure;
    final MisroutedTuples misrouted;
    final HandOver handOver;
    final StateTransfer transfer;
    final TupleOrder order;
    final TupleRouting routing;
    final TupleSizes sizes;
    final Map<ExecutorId, ExecutorCopy> copies = new ConcurrentHashMap<>();
    final ExecutorFactory factory;
    private final Map<ExecutorId, ExecutorFactory.Build> builds = new HashMap<>();
    private final Map<Integer, ExecutorCopy> copyByTask = new ConcurrentHashMap<>();
    private final AtomicLong registrations = new AtomicLong();
    private long lastHandedOn;
    private long quietSinceNanos = System.nanoTime();
    private volatile List<IRunningExecutor> running;
    private final AtomicBoolean refreshIsDue = new AtomicBoolean();
    private volatile long misroutedUntilNanos = System.nanoTime();

    /** Takes over a worker state that has just been built. */
    HookedWorker(WorkerState state, Slot me, PlanOverlay overlay) {
        this.state = state;
        this.me = me;
        this.overlay = overlay;
        int maxTaskId = Collections.max(state.getTaskToComponent().keySet());
        tables = new WorkerTables(state, maxTaskId);
        overlay.attach(me, slot -> slot.equals(me) || tables.isConnected(slot));
        backPressure = new WorkerBackPressure(state, tables.routes);
        factory = new ExecutorFactory(state, tables, backPressure);
        Traffic.prepare(maxTaskId);
        tables.taskIds().forEach(Traffic::addSource);
        sizes = new TupleSizes(state.getTaskToComponent());
        routing = new TupleRouting(state, me, tables, this);
        order = routing.order;
        misrouted = routing.misrouted;
        handOver = routing.handOver;
        transfer = new StateTransfer(state, me, tables, handOver, this::stateOf);
    }

    /** Takes over the list of running executors that Storm's timers iterate over. */
    List<IRunningExecutor> takeOver(Worker worker, List<IRunningExecutor> started) {
        List<IRunningExecutor> shared = new RunningExecutors(started);
        for (IRunningExecutor executor : started) {
            if (executor.getExecutorId().get(0) >= 0) {
                register(factory.of((ExecutorShutdown) executor));
            }
        }
        StormFields.<AtomicReference<List<IRunningExecutor>>>get(StormFields.EXECUTORS_ATOM, worker)
                .set(shared);
        running = shared;
        return shared;
    }

    /** How often an executor has come or gone here. */
    long registrations() {
        return registrations.get();
    }

    private void register(ExecutorCopy copy) {
        copies.put(copy.id(), copy);
        for (int task = copy.id().start(); task <= copy.id().end(); task++) {
            copyByTask.put(task, copy);
        }
        registrations.incrementAndGet();
    }

    /**
     * Builds an executor, and once it is built starts its thread; it takes no tuples until it is routed to, nor while it holds still.
     * To be called again until its copy is there.
     *
     * @param waits whether its bolts are prepared only once it is to {@link #run}, as spouts are always opened
     * @throws IllegalStateException if the user's classes or Storm threw anything; nothing of it is left then
     */
    void start(ExecutorId id, boolean still, boolean waits) {
        ExecutorFactory.Build build = builds.get(id);
        if (build == null) {
            builds.put(id, factory.begin(id, waits));
        } else if (build.made().isDone()) {
            builds.remove(id);
            start(build, still, waits);
        }
    }

    /** Starts what is built, and waits until it is. */
    void start(ExecutorFactory.Build build, boolean still, boolean waits) {
        ExecutorId id = build.id();
        ExecutorCopy copy = factory.finish(build);
        copy.state.holdStill(still);
        if (waits) {
            copy.waitToOpen();
        } else if (!copy.spout()) {
            copy.run(state.getIsTopologyActive().get());
        }
        try {
            register(copy);
            running.add(copy.running);
            copy.thread().start();
        } catch (RuntimeException | Error e) {
            // Errors as well: a JVM at its limit of threads throws an OutOfMemoryError.
            running.remove(copy.running);
            unregister(copy);
            factory.discard(id, copy.queue(), copy.executor());
            throw new IllegalStateException("cannot start it: " + e, e);
        }
    }

    /** Takes back what has been built and is not wanted here any more. */
    void discardBuilds(Predicate<ExecutorId> wanted) {
        for (ExecutorFactory.Build build : List.copyOf(builds.values())) {
            if (build.made().isDone() && !wanted.test(build.id())) {
                builds.remove(build.id());
                factory.discard(build);
            }
        }
    }

    /** True if no tuple waits here for an executor to come, and none is being built. */
    boolean holdsNothing() {
        return misrouted.parked() + order.parked() == 0 && builds.isEmpty();
    }

    /** Storm itself starts what a restarted target owns, before the reconciler looks: it may not run without the state. */
    boolean startsStill(ExecutorId id) {
        Plan plan = overlay.plan();
        return plan != null
                && plan.entries().stream()
                        .anyMatch(entry -> entry.executor().equals(id)
                                && Desired.holdsStill(
                                        new Desired.Part(entry, id, Desired.Action.RUN),
                                        overlay.assigned().get(id),
                                        me));
    }

    /** What the bolts of an executor remember, looked at right after they were prepared; of Storm's own nothing. */
    Memory memoryOf(Executor executor) {
        return executor.getComponentId().startsWith("__") ? null : factory.memoryOf(executor);
    }

    private void unregister(ExecutorCopy copy) {
        for (int task = copy.id().start(); task <= copy.id().end(); task++) {
            copyByTask.remove(task, copy);
        }
        copies.remove(copy.id(), copy);
        registrations.incrementAndGet();
    }

    /** From now on tuples of the executor are for its copy here. */
    void claim(ExecutorCopy copy) {
        tables.claim(copy.id(), task -> order.turn(copy, task, true));
    }

    /** To be called after the worker has renounced it and is connected to the new owner. */
    void stopDelivering(ExecutorId id, ExecutorCopy copyOrNull) {
        tables.stopDelivering(id, task -> copyOrNull == null ? null : order.turn(copyOrNull, task, false));
    }

    @Override
    public ExecutorCopy copyOf(ExecutorId executor) {
        return copies.get(executor);
    }

    @Override
    public ExecutorCopy copyOf(int task) {
        return copyByTask.get(task);
    }

    /** What the bolts of an executor keep here, or null. */
    CopyState stateOf(ExecutorId executor) {
        ExecutorCopy copy = copies.get(executor);
        return copy == null ? null : copy.state;
    }

    /** This worker owns the executor: its copy may open and work, and Nimbus hears of it also while it opens. */
    void run(ExecutorCopy copy) {
        copy.run(state.getIsTopologyActive().get());
        tables.beginHeartbeats(copy.id());
    }

    /** Storm activates a worker once it is connected to all others of its topology; from then on it stays so. */
    boolean active() {
        return state.getIsWorkerActive().getCount() == 0;
    }

    /** Storm's local-or-shuffle groupings follow executors that have come or gone. */
    void regroup() {
        copies.values().forEach(copy -> LocalGroupings.rebuild(copy.executor()));
    }

    /** Takes down what is left of an executor whose thread has ended. */
    void takeDown(ExecutorCopy copy) {
        running.remove(copy.running);
        tables.endHeartbeats(copy.id());
        CancellableTicks.cancel(copy.thread());
        StopSwitch.forget(copy.executor());
        JCQueue queue = copy.queue();
        tables.removeReceiveQueue(copy.id(), queue);
        tables.abandon(copy.id(), queue, task -> order.turn(copy, task, false));
        UserCleanup.shutDown(copy, factory.cleanedUp.contains(copy.component));
        ExecutorMetrics.remove(state.getMetricRegistry(), copy.id(), me.port());
        // Holds the queue alone: with the copy it would hold the user's bolt until the messages have timed out.
        Map<Integer, BackpressureState> last = backPressure.of(copy.id());
        misrouted.retire(
                queue,
                routing.messageTimeoutSecs,
                () -> last.keySet().forEach(task -> tables.closeTask(task, queue)),
                () -> {
                    last.keySet().forEach(task -> tables.forgetTask(task, queue));
                    // A thread that finds the queue full asks Storm for its state of back-pressure.
                    backPressure.forget(last);
                    forgetBatches(queue);
                });
        unregister(copy);
    }

    /**
     * Each thread that has published into a queue keeps a batch of it in a thread-local. The batch leads back to the queue and so to
     * itself: it would be kept for as long as the thread lives.
     */
    private void forgetBatches(JCQueue queue) {
        if (routing.producerBatch > 1) {
            StormFields.set(StormFields.QUEUE_BATCHES, queue, new ThreadLocal<>());
        }
    }

    /**
     * True once this worker, left without executors, has handed everything on: nothing waits here, and nothing has come
     * for a while. Looked at in each pass: the tuple path notes nothing.
     */
    boolean emptied() {
        long now = System.nanoTime();
        long handedOn = misrouted.forwarded.get() + misrouted.dropped.get();
        if (!copies.isEmpty() || misrouted.parked() > 0 || handedOn != lastHandedOn) {
            lastHandedOn = handedOn;
            quietSinceNanos = now;
        }
        return now - quietSinceNanos >= QUIET_NANOS;
    }

    /** Routes are changing or have just changed: messages may be queued for tasks that become local. */
    void expectMisrouted() {
        misroutedUntilNanos = System.nanoTime() + TimeUnit.SECONDS.toNanos(routing.messageTimeoutSecs);
    }

    boolean expectsMisrouted() {
        return System.nanoTime() - misroutedUntilNanos < 0;
    }

    /** Runs a stock refresh of assignment and connections on the worker's own timer, if none is due there yet. */
    void refreshSoon() {
        StormTimer timer = StormFields.get(StormFields.REFRESH_CONNECTIONS_TIMER, state);
        if (!refreshIsDue.compareAndSet(false, true)) {
            return;
        }
        try {
            timer.schedule(0, this::refresh);
        } catch (IllegalStateException e) {
            // So Storm's timer answers once the worker ends, as it does when its last executor has left it.
            LOG.info("no refresh of the connections: {}", e.getMessage());
        }
    }

    private void refresh() {
        refreshIsDue.set(false);
        try {
            state.refreshConnections();
        } catch (RuntimeException e) {
            Faults.report("refreshing connections", e);
        }
    }

    /** Removes the tuples this worker does not own from a batch that has just arrived by Netty. */
    void takeMisrouted(ArrayList<AddressedTuple> batch, int first) {
        for (Iterator<AddressedTuple> tuples = batch.listIterator(first); tuples.hasNext(); ) {
            AddressedTuple tuple = tuples.next();
            if (StateTransfer.isPiece(tuple)) {
                tuples.remove();
                transfer.take(tuple);
            } else {
                routing.takeMisrouted(tuples, tuple);
            }
        }
    }
}

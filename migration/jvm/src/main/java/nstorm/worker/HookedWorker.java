package nstorm.worker;

import java.util.ArrayList;
import java.util.Collections;
import java.util.HashMap;
import java.util.HashSet;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicReference;
import java.util.concurrent.atomic.AtomicReferenceArray;
import nstorm.load.Traffic;
import nstorm.wire.ExecutorId;
import nstorm.wire.Slot;
import org.apache.storm.Config;
import org.apache.storm.StormTimer;
import org.apache.storm.daemon.worker.BackPressureTracker;
import org.apache.storm.daemon.worker.BackPressureTracker.BackpressureState;
import org.apache.storm.daemon.worker.Worker;
import org.apache.storm.daemon.worker.WorkerState;
import org.apache.storm.daemon.worker.WorkerTransfer;
import org.apache.storm.executor.Executor;
import org.apache.storm.executor.ExecutorShutdown;
import org.apache.storm.executor.ExecutorTransfer;
import org.apache.storm.executor.IRunningExecutor;
import org.apache.storm.generated.NodeInfo;
import org.apache.storm.messaging.netty.BackPressureStatus;
import org.apache.storm.serialization.KryoTupleSerializer;
import org.apache.storm.tuple.AddressedTuple;
import org.apache.storm.utils.JCQueue;
import org.apache.storm.utils.ObjectReader;
import org.apache.storm.utils.Utils;
import org.apache.storm.utils.Utils.SmartThread;

/**
 * This JVM's Storm worker with its fixed collections made changeable: starts and stops single executors
 * and switches their routes. Which of these and when is the {@link Reconciler}'s business.
 *
 * <p>All methods that change something are called by the reconciler's thread only.
 */
final class HookedWorker implements Strays.Delivery {
    final WorkerState state;
    final Slot me;
    final PlanOverlay overlay;
    final Routes routes;
    final Strays strays;
    final Map<ExecutorId, ExecutorCopy> copies = new ConcurrentHashMap<>();
    final boolean batchesProducers;
    private final boolean flushTuples;
    private final Set<String> cleanedUp;
    private final Routes.TaskIds taskIds;
    private final Set<List<Long>> localExecutors;
    private final Map<Integer, JCQueue> taskToQueue;
    private final Map<Integer, BackpressureState> backPressure;
    private final Map<Integer, ExecutorCopy> copyByTask = new ConcurrentHashMap<>();
    private final AtomicReference<Map<Integer, NodeInfo>> taskToNodePort;
    private final AtomicBoolean[] remoteBackPressure;
    private final long messageTimeoutSecs;
    private volatile List<IRunningExecutor> running;
    private volatile long strayUntilNanos = System.nanoTime();
    private KryoTupleSerializer forwardSerializer;

    /** Swaps the collections of a worker state that has just been built. */
    HookedWorker(WorkerState state, Slot me, PlanOverlay overlay) {
        this.state = state;
        this.me = me;
        this.overlay = overlay;
        int maxTaskId = Collections.max(state.getTaskToComponent().keySet());
        routes = new Routes(maxTaskId);
        taskToQueue = swapMap(StormFields.TASK_TO_QUEUE);
        taskToQueue.forEach(routes::deliver);
        swapMap(StormFields.EXECUTOR_RECEIVE_QUEUES);
        swapMap(StormFields.LOCAL_RECEIVE_QUEUES);
        localExecutors = ConcurrentHashMap.newKeySet();
        localExecutors.addAll(state.getLocalExecutors());
        StormFields.set(StormFields.LOCAL_EXECUTORS, state, localExecutors);
        taskIds = new Routes.TaskIds(state.getLocalTaskIds());
        StormFields.set(StormFields.LOCAL_TASK_IDS, state, taskIds);
        Set<Integer> all = new HashSet<>(state.getTaskToComponent().keySet());
        all.removeIf(task -> task < 0);
        StormFields.set(StormFields.OUTBOUND_TASKS, state, all);
        BackPressureTracker tracker = StormFields.get(StormFields.BP_TRACKER, state);
        backPressure = new ConcurrentHashMap<>(StormFields.<Map<Integer, BackpressureState>>get(
                StormFields.BP_TASKS, tracker));
        StormFields.set(StormFields.BP_TASKS, tracker, backPressure);
        taskToNodePort = StormFields.get(StormFields.TASK_TO_NODE_PORT, state);
        WorkerTransfer transfer = StormFields.get(StormFields.WORKER_TRANSFER, state);
        remoteBackPressure = StormFields.get(StormFields.REMOTE_BACK_PRESSURE, transfer);
        Map<String, Object> conf = state.getTopologyConf();
        batchesProducers = ObjectReader.getInt(conf.get(Config.TOPOLOGY_PRODUCER_BATCH_SIZE), 1) > 1;
        flushTuples = publishesFlushTuples(conf);
        messageTimeoutSecs = ObjectReader.getInt(conf.get(Config.TOPOLOGY_MESSAGE_TIMEOUT_SECS), 30);
        cleanedUp = UserCleanup.components(conf);
        Traffic.prepare(maxTaskId);
        taskIds.forEach(Traffic::addSource);
        strays = new Strays(this);
    }

    /** True if Storm puts a flush tuple into every queue at intervals, as {@code setupFlushTupleTimer} decides. */
    static boolean publishesFlushTuples(Map<String, Object> topologyConf) {
        boolean batches = ObjectReader.getInt(topologyConf.get(Config.TOPOLOGY_PRODUCER_BATCH_SIZE)) != 1
                || ObjectReader.getInt(topologyConf.get(Config.TOPOLOGY_TRANSFER_BATCH_SIZE)) != 1;
        return batches && ObjectReader.getLong(topologyConf.get(Config.TOPOLOGY_BATCH_FLUSH_INTERVAL_MILLIS)) != 0;
    }

    private <K, V> Map<K, V> swapMap(java.lang.reflect.Field field) {
        Map<K, V> swapped = new ConcurrentHashMap<>(StormFields.<Map<K, V>>get(field, state));
        StormFields.set(field, state, swapped);
        return swapped;
    }

    /** Gives an executor's transfer the shared table of local queues. */
    void install(ExecutorTransfer transfer) {
        StormFields.set(StormFields.TRANSFER_TO_FLUSH, transfer, new AtomicReferenceArray<JCQueue>(routes.size()));
        StormFields.set(StormFields.TRANSFER_BASE, transfer, Routes.INDEXING_BASE);
        StormFields.set(StormFields.TRANSFER_QUEUES, transfer, routes);
    }

    /** Takes over the list of running executors that Storm's timers iterate over. */
    List<IRunningExecutor> takeOver(Worker worker, List<IRunningExecutor> started) {
        List<IRunningExecutor> shared = new RunningExecutors(started);
        for (IRunningExecutor executor : started) {
            if (executor.getExecutorId().get(0) >= 0) {
                register(new ExecutorCopy((ExecutorShutdown) executor, flushTuples, false));
            }
        }
        StormFields.<AtomicReference<List<IRunningExecutor>>>get(StormFields.EXECUTORS_ATOM, worker).set(shared);
        running = shared;
        return shared;
    }

    private void register(ExecutorCopy copy) {
        copies.put(copy.id, copy);
        for (int task = copy.id.start(); task <= copy.id.end(); task++) {
            copyByTask.put(task, copy);
        }
    }

    /**
     * Builds queue and executor and starts its thread; it takes no tuples until it is routed to.
     *
     * @throws IllegalStateException if the user's classes or Storm threw anything; nothing of it is left then
     */
    void start(ExecutorId id) {
        List<Long> stormId = id.toStorm();
        JCQueue queue = makeQueue(stormId);
        state.getExecutorReceiveQueueMap().put(stormId, queue);
        try {
            Executor executor = Executor.mkExecutor(state, stormId, credentials());
            for (int task = id.start(); task <= id.end(); task++) {
                Traffic.addSource(task);
                taskToQueue.put(task, queue);
                backPressure.put(task, (BackpressureState) StormFields.BP_STATE.newInstance(
                        queue, task, state.getTaskToComponent().get(task), state.getMetricRegistry()));
            }
            ExecutorCopy copy = new ExecutorCopy(withThread(executor, queue), flushTuples, true);
            copy.thread().start();
            register(copy);
            running.add(copy.running);
        } catch (Throwable t) {
            // Of any kind: the user's classes are loaded and built here.
            forget(id, queue);
            throw new IllegalStateException("cannot build it: " + t, t);
        }
    }

    private void forget(ExecutorId id, JCQueue queue) {
        state.getExecutorReceiveQueueMap().remove(id.toStorm(), queue);
        for (int task = id.start(); task <= id.end(); task++) {
            if (taskToQueue.remove(task, queue)) {
                backPressure.remove(task);
            }
        }
        ExecutorMetrics.remove(state.getMetricRegistry(), id, me.port());
        queue.close();
    }

    private JCQueue makeQueue(List<Long> stormId) {
        try {
            @SuppressWarnings("unchecked")
            Map<List<Long>, JCQueue> made = (Map<List<Long>, JCQueue>) StormFields.MAKE_RECEIVE_QUEUES.invoke(
                    state, state.getTopologyConf(), Collections.singleton(stormId), state.getTaskToComponent());
            return made.get(stormId);
        } catch (ReflectiveOperationException e) {
            throw new IllegalStateException("cannot build a receive queue for " + stormId, e);
        }
    }

    private Map<String, String> credentials() {
        return state.getCredentials() == null ? new HashMap<>() : state.getCredentials().get_creds();
    }

    /**
     * As {@code Executor.execute()}, its thread not started yet. A bolt that throws before it is prepared
     * ends only its own thread: stock Storm would end the whole worker for a copy that nobody depends on yet.
     */
    private static ExecutorShutdown withThread(Executor executor, JCQueue queue) {
        Thread.UncaughtExceptionHandler stock = StormFields.get(StormFields.REPORT_ERROR_DIE, executor);
        Thread.UncaughtExceptionHandler careful = (thread, error) -> {
            if (executor.getOpenOrPrepareWasCalled().get()) {
                stock.uncaughtException(thread, error);
            } else {
                Faults.report("prepare of " + executor.getComponentId() + executor.getExecutorId(), error);
            }
        };
        SmartThread thread = Utils.asyncLoop(executor, false, careful, Thread.NORM_PRIORITY, true, false,
                executor.getComponentId() + "-executor" + executor.getExecutorId());
        List<SmartThread> threads = new ArrayList<>(List.of(thread));
        return new ExecutorShutdown(executor, threads, StormFields.get(StormFields.ID_TO_TASK, executor), queue);
    }

    /** From now on tuples of the executor are for its copy here. */
    void claim(ExecutorCopy copy) {
        localExecutors.add(copy.id.toStorm());
        taskIds.addAllOf(copy.id.start(), copy.id.end());
        for (int task = copy.id.start(); task <= copy.id.end(); task++) {
            routes.deliver(task, copy.queue);
        }
    }

    /**
     * Connections to the new owner come first: see {@link #stopDelivering}. The executor stays in this worker's
     * heartbeats while its copy lives: the new owner may not have read that it is the owner, and Nimbus takes an
     * executor of which nobody speaks for dead.
     */
    void renounce(ExecutorId id) {
        taskIds.removeAllOf(id.start(), id.end());
    }

    /** To be called after {@link #renounce} and a refresh of the connections, or tuples had nowhere to go. */
    void stopDelivering(ExecutorId id) {
        for (int task = id.start(); task <= id.end(); task++) {
            routes.deliver(task, null);
        }
    }

    /** Storm's local-or-shuffle groupings follow executors that have come or gone. */
    void regroup() {
        copies.values().forEach(copy -> LocalGroupings.rebuild(copy.executor()));
    }

    boolean delivers(ExecutorId id) {
        return routes.queue(id.start()) != null;
    }

    /** Upstream's flag belongs to the old owner's queue; the new owner sets it anew if it must. */
    void clearBackPressure(ExecutorId id) {
        for (int task = id.start(); task <= id.end(); task++) {
            remoteBackPressure[task].set(false);
        }
    }

    void sendBackPressure() {
        BackPressureTracker tracker = StormFields.get(StormFields.BP_TRACKER, state);
        state.getReceiver().sendBackPressureStatus(tracker.getCurrStatus());
    }

    /** A worker speaks for the tasks it owns, not for a retired queue it still drains. */
    void keepOwnTasks(BackPressureStatus status) {
        status.bpTasks.removeIf(task -> routes.queue(task) == null);
        status.nonBpTasks.removeIf(task -> routes.queue(task) == null);
    }

    /** Takes down what is left of an executor whose thread has ended. */
    void bury(ExecutorCopy copy) {
        running.remove(copy.running);
        localExecutors.remove(copy.id.toStorm());
        Ticks.cancel(copy.thread());
        StopSwitch.forget(copy.executor());
        JCQueue queue = copy.queue;
        state.getExecutorReceiveQueueMap().remove(copy.id.toStorm(), queue);
        UserCleanup.shutDown(copy, cleanedUp.contains(copy.component));
        ExecutorMetrics.remove(state.getMetricRegistry(), copy.id, me.port());
        Map<Integer, BackpressureState> last = new HashMap<>();
        for (int task = copy.id.start(); task <= copy.id.end(); task++) {
            copyByTask.remove(task, copy);
            last.put(task, backPressure.get(task));
        }
        // Holds the queue alone: with the copy it would hold the user's bolt until the messages have timed out.
        strays.retire(queue, messageTimeoutSecs, () -> last.forEach((task, pressure) -> {
            taskToQueue.remove(task, queue);
            backPressure.remove(task, pressure);
        }));
        copies.remove(copy.id, copy);
    }

    /** Routes are changing or have just changed: messages may be queued for tasks that become local. */
    void watchForStrays() {
        strayUntilNanos = System.nanoTime() + TimeUnit.SECONDS.toNanos(messageTimeoutSecs);
    }

    boolean watchingForStrays() {
        return System.nanoTime() - strayUntilNanos < 0;
    }

    /** Runs a stock refresh of assignment and connections on the worker's own timer. */
    void refreshSoon() {
        StormTimer timer = StormFields.get(StormFields.REFRESH_CONNECTIONS_TIMER, state);
        timer.schedule(0, () -> {
            try {
                state.refreshConnections();
            } catch (RuntimeException e) {
                Faults.report("refreshing connections", e);
            }
        });
    }

    /** Removes the tuples this worker does not own from a batch that has just arrived by Netty. */
    void takeStrays(ArrayList<AddressedTuple> batch, int first) {
        for (Iterator<AddressedTuple> tuples = batch.listIterator(first); tuples.hasNext();) {
            AddressedTuple tuple = tuples.next();
            if (routes.queue(tuple.dest) == null) {
                tuples.remove();
                strays.offer(tuple);
            }
        }
    }

    @Override
    public boolean deliver(AddressedTuple tuple) {
        JCQueue queue = routes.queue(tuple.dest);
        ExecutorCopy copy = copyByTask.get(tuple.dest);
        if (queue == null && copy != null && copy.acceptsEarly()) {
            queue = copy.queue;
        }
        if (queue != null) {
            return queue.isEmptyOverflow() && queue.tryPublishDirect(tuple) || queue.tryPublishToOverflow(tuple);
        }
        NodeInfo owner = taskToNodePort.get().get(tuple.dest);
        if (owner == null || PlanOverlay.slot(owner).equals(me)) {
            return false;
        }
        if (forwardSerializer == null) {
            forwardSerializer = new KryoTupleSerializer(state.getTopologyConf(), state.getWorkerTopologyContext());
        }
        return state.tryTransferRemote(tuple, null, forwardSerializer);
    }

    @Override
    public void flush() {
        state.tryFlushRemotes();
    }

    /**
     * Flushes what the calling executor thread holds back in thread-local batches. One flush moves at
     * least one tuple of each batch and none if it is empty, hence as many flushes as a batch is long.
     */
    void flushBatchesOf(Executor executor) throws InterruptedException {
        executor.getExecutorTransfer().flush();
        Map<String, Object> conf = executor.getTopoConf();
        int producerBatch = ObjectReader.getInt(conf.get(Config.TOPOLOGY_PRODUCER_BATCH_SIZE), 1);
        for (int i = 1; i < producerBatch; i++) {
            for (JCQueue queue : routes) {
                if (queue != null) {
                    queue.flush();
                }
            }
        }
        int transferBatch = ObjectReader.getInt(conf.get(Config.TOPOLOGY_TRANSFER_BATCH_SIZE), 1);
        for (int i = 1; i < transferBatch; i++) {
            state.flushRemotes();
        }
    }

    /**
     * The executors that Storm's timers walk through by index: a list that shrinks between
     * {@code size()} and {@code get(i)} must not throw, for the timer would halt the worker.
     */
    private static final class RunningExecutors extends CopyOnWriteArrayList<IRunningExecutor> {
        private static final long serialVersionUID = 1L;

        RunningExecutors(List<IRunningExecutor> executors) {
            super(executors);
        }

        @Override
        public IRunningExecutor get(int index) {
            try {
                return super.get(index);
            } catch (ArrayIndexOutOfBoundsException e) {
                return super.get(0);
            }
        }
    }
}

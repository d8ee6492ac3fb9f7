package nstorm.worker;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.Callable;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.ReentrantLock;
import nstorm.hook.Faults;
import nstorm.hook.HookStatus;
import nstorm.load.SpoutAcks;
import nstorm.load.Traffic;
import nstorm.wire.ExecutorId;
import nstorm.wire.Slot;
import nstorm.worker.exit.StopSwitch;
import nstorm.worker.plan.PlanOverlay;
import nstorm.worker.routes.Routes;
import nstorm.worker.storm.CancellableTicks;
import nstorm.worker.storm.StormFields;
import org.apache.storm.StormTimer;
import org.apache.storm.daemon.worker.Worker;
import org.apache.storm.daemon.worker.WorkerState;
import org.apache.storm.executor.Executor;
import org.apache.storm.executor.ExecutorTransfer;
import org.apache.storm.executor.IRunningExecutor;
import org.apache.storm.generated.Assignment;
import org.apache.storm.generated.NodeInfo;
import org.apache.storm.messaging.TaskMessage;
import org.apache.storm.messaging.netty.BackPressureStatus;
import org.apache.storm.tuple.AddressedTuple;
import org.apache.storm.utils.JCQueue;

/**
 * What the advices in a worker JVM call: the one border between Storm's threads and ours.
 *
 * <p>Every method here contains its own faults. Until the worker state has been taken over, and for ever
 * if that fails, each of them leaves stock Storm as it is.
 */
public final class WorkerCalls {
    /** A stock refresh that read the assignment earlier must not overwrite routes switched since. */
    private static final ReentrantLock REFRESH = new ReentrantLock();

    /** Set on a thread that refreshes, null on all others. */
    private static final ThreadLocal<Boolean> REFRESHING = new ThreadLocal<>();

    /** Storm's port is open before its state is built. */
    private static final CountDownLatch BUILT = new CountDownLatch(1);
    /** A take-over lasts some 50 ms. One that lasts longer than this has failed. */
    private static final long BUILT_SECS = 10;

    private static volatile PlanOverlay overlay;
    private static volatile WorkerLoop loop;

    private WorkerCalls() {}

    /** What runs in this JVM's worker, or null while it is stock. */
    static WorkerLoop loop() {
        return loop;
    }

    /** Storm's constructor of the worker state has ended: take the state over, whole or not at all. */
    public static void onStateBuilt(WorkerState state) {
        if (overlay == null || !HookStatus.active()) {
            return;
        }
        try {
            Map<String, Object> conf = StormFields.get(StormFields.CONF, state);
            loop = new WorkerLoop(new HookedWorker(state, slot(state), overlay), conf);
        } catch (RuntimeException | LinkageError e) {
            HookStatus.refuse("worker state could not be taken over: " + e);
            Faults.report("taking over the worker state", e);
        } finally {
            BUILT.countDown();
        }
    }

    private static Slot slot(WorkerState state) {
        return new Slot(StormFields.get(StormFields.ASSIGNMENT_ID, state), state.getPort());
    }

    /** The assignment to use instead of asking the supervisor, on the reconciler's own thread; else null. */
    public static Assignment knownAssignment() {
        WorkerLoop now = loop;
        if (now == null || Thread.currentThread() != now.thread) {
            return null;
        }
        assignmentRead(); // first: a refresh of Storm's may read a newer one, and the plan is laid over that
        return now.worker.overlay.stockCopy();
    }

    /**
     * Storm has read its assignment: what it is to take instead, with the plan laid over it. Storm's own stays as it is:
     * a supervisor in the same JVM (LocalCluster) would hand it out again.
     */
    public static Assignment onAssignment(WorkerState state, Assignment assignment, boolean fromStorm) {
        if (assignment == null || !HookStatus.active()) {
            return assignment;
        }
        try {
            if (overlay == null) {
                Map<String, Object> conf = StormFields.get(StormFields.CONF, state);
                HookStatus.configured(conf);
                overlay = new PlanOverlay(state.getTopologyId(), WorkerLoop.planStore(conf, state.getTopologyId()));
                if (overlay.inert() != null) {
                    HookStatus.refuse("the hooks are switched off: " + overlay.inert());
                    return assignment;
                }
            }
            if (fromStorm) {
                overlay.remember(assignment);
            }
            return overlay.over(fromStorm ? assignment.deepCopy() : assignment);
        } catch (RuntimeException | LinkageError e) {
            Faults.report("laying the plan over the assignment", e);
            return assignment;
        }
    }

    /**
     * The assignment to go on with where none could be read. A supervisor can give it to every worker that Storm assigns. For an opened
     * slot Storm asks ZooKeeper, and a worker would not outlive its absence.
     *
     * @return null if what was thrown is to stand
     */
    public static Assignment whileAway(Throwable thrown) {
        PlanOverlay known = overlay;
        try {
            Assignment last =
                    thrown instanceof Exception && known != null && known.opensHere() ? known.stockCopy() : null;
            return last == null ? null : known.over(last);
        } catch (RuntimeException | LinkageError e) {
            Faults.report("laying the plan over the last assignment", e);
            return null;
        }
    }

    /** True if the worker must not end itself, for the plan explains why the assignment differs. */
    public static boolean explained(WorkerState state, Assignment assignment) {
        WorkerLoop now = loop;
        try {
            return now != null && assignment != null && now.explains(state, assignment);
        } catch (RuntimeException | LinkageError e) {
            Faults.report("comparing assignments", e);
            return false;
        }
    }

    public static void beforeRefresh() {
        REFRESHING.set(true);
    }

    /**
     * The assignment was read, or could not be: from here on a refresh is alone. Storm asks the supervisor for it, which takes more than
     * 10 s where that is down, and the reconciler must not wait for that. The plan is laid over what was read after this.
     */
    public static void assignmentRead() {
        if (REFRESHING.get() != null && !REFRESH.isHeldByCurrentThread()) {
            REFRESH.lock();
        }
    }

    public static void afterRefresh() {
        REFRESHING.remove();
        if (REFRESH.isHeldByCurrentThread()) {
            REFRESH.unlock();
        }
    }

    /** A batch has arrived by Netty: what this worker does not own leaves it. On the tuple path. */
    public static void onBatch(ArrayList<AddressedTuple> batch) {
        WorkerLoop now = loop;
        if (now == null) {
            now = takenOver();
        }
        if (now == null) {
            return;
        }
        Routes routes = now.worker.tables.routes;
        int size = batch.size();
        for (int i = 0; i < size; i++) {
            if (routes.arrival(batch.get(i).dest) == null) {
                now.worker.takeMisrouted(batch, i);
                return;
            }
        }
    }

    /**
     * Storm finds no queue for what comes for a move, or for an executor that a plan has moved away, and would throw. The other end sends
     * such messages as soon as the port is open. So they wait until the state is taken over, or is not.
     */
    private static WorkerLoop takenOver() {
        if (overlay == null || !HookStatus.active()) {
            return null;
        }
        try {
            return BUILT.await(BUILT_SECS, TimeUnit.SECONDS) ? loop : null;
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            return null;
        }
    }

    /**
     * The batch is in the receive queues. With {@code topology.producer.batch.size} above 1 Storm leaves its tail in batches of the Netty
     * thread until more arrives. It would lose this tail with a queue that moves. Dynamic batches would become small by that, so they
     * are flushed only while queues may move. Then those of all queues are: the tail may be older than the move.
     */
    public static void afterBatch(ArrayList<AddressedTuple> batch) {
        WorkerLoop now = loop;
        if (now == null || now.worker.routing.producerBatch <= 1) {
            return;
        }
        Routes routes = now.worker.tables.routes;
        if (now.worker.routing.dynamicBatch) {
            if (now.worker.expectsMisrouted()) {
                routes.flushArrivals();
            }
            return;
        }
        int size = batch.size();
        for (int i = 0; i < size; i++) {
            JCQueue queue = routes.arrival(batch.get(i).dest);
            if (queue != null) {
                queue.tryFlush();
            }
        }
    }

    /** The executors run: take their list over and begin to follow the plan. */
    public static List<IRunningExecutor> onLoaded(Worker worker, List<IRunningExecutor> executors) {
        WorkerLoop now = loop;
        if (now == null) {
            return executors;
        }
        try {
            List<IRunningExecutor> shared = now.worker.takeOver(worker, executors);
            now.thread.start();
            return shared;
        } catch (RuntimeException | LinkageError e) {
            HookStatus.refuse("running executors could not be taken over: " + e);
            Faults.report("taking over the running executors", e);
            return executors;
        }
    }

    public static void onStatus(BackPressureStatus status) {
        WorkerLoop now = loop;
        if (now != null) {
            now.worker.backPressure.keepOwnTasks(status);
        }
    }

    public static void onLocalQueues(ExecutorTransfer transfer) {
        WorkerLoop now = loop;
        try {
            if (now != null) {
                now.worker.tables.install(transfer);
            }
        } catch (RuntimeException | LinkageError e) {
            Faults.report("installing local routes", e);
        }
    }

    /** One tuple has been taken by a local or the transfer queue. On the tuple path. */
    public static void onTransferred(AddressedTuple tuple) {
        Traffic.count(tuple);
    }

    /** A tuple of a spout is acked, and took this time if Storm has timed it. On the tuple path. */
    public static void onAcked(Long latencyMs) {
        SpoutAcks.HERE.acked(latencyMs);
    }

    /** A tuple of a spout has failed. On the tuple path. */
    public static void onFailed() {
        SpoutAcks.HERE.failed();
    }

    /** Storm's transfer thread sends these messages by their destination tasks; now and then their sizes are looked at. */
    public static void onSend(Map<Integer, ArrayList<TaskMessage>> bundles, Map<Integer, NodeInfo> taskToNode) {
        WorkerLoop now = loop;
        if (now == null) {
            return;
        }
        if (now.worker.expectsMisrouted()) {
            takeMisrouted(now, bundles, taskToNode);
        }
        now.worker.sizes.sent(bundles);
    }

    /** Messages to tasks that have become local since they were queued: Storm would drop them. */
    private static void takeMisrouted(
            WorkerLoop now, Map<Integer, ArrayList<TaskMessage>> bundles, Map<Integer, NodeInfo> taskToNode) {
        now.worker.order.onSend(bundles, taskToNode);
        for (Map.Entry<Integer, ArrayList<TaskMessage>> bundle : bundles.entrySet()) {
            NodeInfo node = taskToNode.get(bundle.getKey());
            if (!bundle.getValue().isEmpty()
                    && node != null
                    && PlanOverlay.slot(node).equals(now.worker.me)) {
                now.worker.routing.takeBack(bundle.getValue());
            }
        }
    }

    /** True if its executor must not take the tuple, as it is stopping. On the tuple path. */
    public static boolean divert(Executor executor, Object event) {
        return StopSwitch.ATTENDED.get() != 0 && StopSwitch.divert(executor, (AddressedTuple) event);
    }

    public static Callable<Long> executorLoop(Executor executor, Callable<Long> stock) {
        WorkerLoop now = loop;
        if (now == null) {
            return stock;
        }
        StopSwitch stop = StopSwitch.of(executor);
        if (executor.getExecutorId().get(0) >= 0 && now.worker.startsStill(ExecutorId.of(executor.getExecutorId()))) {
            stop.holdStill(true);
        }
        if (executor.getExecutorId().get(0) >= 0) {
            remember(now, executor, stop);
        }
        CancellableTicks.waitWhile(stop::takesNothing);
        return stop.wrap(stock);
    }

    private static void remember(WorkerLoop now, Executor executor, StopSwitch stop) {
        try {
            stop.remembers(now.worker.memoryOf(executor));
        } catch (RuntimeException | LinkageError e) {
            // Then it stays.
            Faults.report("looking at what executor " + executor.getExecutorId() + " keeps", e);
        }
    }

    /** True if the recurring task of an executor has been scheduled by us, so that it can be cancelled. */
    public static boolean recurring(StormTimer timer, int delaySecs, int recurSecs, Runnable body) {
        WorkerLoop now = loop;
        if (now == null || timer != StormFields.<StormTimer>get(StormFields.USER_TIMER, now.worker.state)) {
            return false;
        }
        CancellableTicks.schedule(timer, delaySecs, recurSecs, body);
        return true;
    }
}

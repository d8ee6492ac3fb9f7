package nstorm.worker.routes;

import java.util.HashMap;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicBoolean;
import nstorm.wire.ExecutorId;
import nstorm.worker.storm.StormFields;
import org.apache.storm.daemon.worker.BackPressureTracker;
import org.apache.storm.daemon.worker.BackPressureTracker.BackpressureState;
import org.apache.storm.daemon.worker.WorkerState;
import org.apache.storm.daemon.worker.WorkerTransfer;
import org.apache.storm.messaging.netty.BackPressureStatus;
import org.apache.storm.utils.JCQueue;

/** Back-pressure of a worker whose executors come and go: the states of its own queues, and the flags of others. */
public final class WorkerBackPressure {
    private final WorkerState state;
    private final Routes routes;
    private final BackPressureTracker tracker;
    private final Map<Integer, BackpressureState> states;
    private final AtomicBoolean[] remoteFlags;

    public WorkerBackPressure(WorkerState state, Routes routes) {
        this.state = state;
        this.routes = routes;
        tracker = StormFields.get(StormFields.BP_TRACKER, state);
        states = new ConcurrentHashMap<>(
                StormFields.<Map<Integer, BackpressureState>>get(StormFields.BP_TASKS, tracker));
        StormFields.set(StormFields.BP_TASKS, tracker, states);
        WorkerTransfer transfer = StormFields.get(StormFields.WORKER_TRANSFER, state);
        remoteFlags = StormFields.get(StormFields.REMOTE_BACK_PRESSURE, transfer);
    }

    /** Storm's tracker watches the queue of a task that has come here. */
    public void watch(int task, JCQueue queue) throws ReflectiveOperationException {
        states.put(task, (BackpressureState) StormFields.BP_STATE.newInstance(
                queue, task, state.getTaskToComponent().get(task), state.getMetricRegistry()));
    }

    public void forget(int task) {
        states.remove(task);
    }

    /** The states that the executor's tasks have now, to be given to {@link #forget(Map)} later. */
    public Map<Integer, BackpressureState> of(ExecutorId id) {
        Map<Integer, BackpressureState> ofTasks = new HashMap<>();
        for (int task = id.start(); task <= id.end(); task++) {
            ofTasks.put(task, states.get(task));
        }
        return ofTasks;
    }

    /** Forgets these states, unless a task has got another one since. */
    public void forget(Map<Integer, BackpressureState> ofTasks) {
        ofTasks.forEach(states::remove);
    }

    /** Upstream's flag belongs to the old owner's queue; the new owner sets it again if it must. */
    public void clearFlags(ExecutorId id) {
        for (int task = id.start(); task <= id.end(); task++) {
            remoteFlags[task].set(false);
        }
    }

    /** Sends the full status to every worker that is connected. */
    public void send() {
        state.getReceiver().sendBackPressureStatus(tracker.getCurrStatus());
    }

    /** A worker speaks for the tasks it owns, not for a retired queue it still drains. */
    public void keepOwnTasks(BackPressureStatus status) {
        status.bpTasks.removeIf(task -> routes.queue(task) == null);
        status.nonBpTasks.removeIf(task -> routes.queue(task) == null);
    }
}

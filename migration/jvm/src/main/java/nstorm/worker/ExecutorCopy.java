package nstorm.worker;

import java.io.IOException;
import java.util.ArrayList;
import java.util.List;
import java.util.Objects;
import java.util.Set;
import java.util.concurrent.TimeUnit;
import nstorm.memory.BoltState;
import nstorm.memory.Declared;
import nstorm.wire.ExecutorId;
import nstorm.wire.Way;
import org.apache.storm.daemon.Task;
import org.apache.storm.executor.Executor;
import org.apache.storm.executor.ExecutorShutdown;
import org.apache.storm.executor.spout.SpoutExecutor;
import org.apache.storm.utils.JCQueue;
import org.apache.storm.utils.Utils.SmartThread;

/** One executor thread of this JVM, whether Storm started it or a plan did. */
final class ExecutorCopy {
    private static final long STUCK_AFTER_NANOS = TimeUnit.SECONDS.toNanos(5);
    /**
     * Where Storm puts a flush tuple into every queue each millisecond, that of an executor that sleeps is
     * never empty for long. Tuples among so few go on to the new owner when the executor stops.
     */
    private static final int FLUSH_TUPLES = 16;

    final ExecutorId id;
    final String component;
    final JCQueue queue;
    final ExecutorShutdown running;
    private final Executor executor;
    private final SmartThread thread;
    private final StopSwitch stopSwitch;
    private final boolean startedHere;
    private final int queuedWhenIdle;
    private volatile boolean forwarding;
    private volatile byte[] savedState;
    private volatile boolean loaded;
    private volatile boolean refused;
    private long idleSinceNanos;
    private boolean drained;
    private long stopAskedNanos;

    private final Stays stays;

    ExecutorCopy(ExecutorShutdown running, boolean getsFlushTuples, boolean startedHere, Declared declared) {
        this.running = running;
        this.startedHere = startedHere;
        queuedWhenIdle = getsFlushTuples ? FLUSH_TUPLES : 0;
        executor = StormFields.get(StormFields.SHUTDOWN_EXECUTOR, running);
        thread = StormFields.<List<SmartThread>>get(StormFields.SHUTDOWN_THREADS, running).get(0);
        stopSwitch = StopSwitch.of(executor);
        id = ExecutorId.of(executor.getExecutorId());
        component = executor.getComponentId();
        queue = executor.getReceiveQueue();
        ArrayList<Task> tasks = StormFields.get(StormFields.ID_TO_TASK, executor);
        stays = new Stays(component, executor instanceof SpoutExecutor, tasks.get(0).getTaskObject(), declared);
    }

    /** How it moves, if it does. */
    Way way() {
        return stays.way();
    }

    /** Why it may not move, or by which way of its own it does, or null. */
    String pinned() {
        return stays.reason(ready());
    }

    boolean ready() {
        return executor.getOpenOrPrepareWasCalled().get() && stopSwitch.looping();
    }

    boolean spout() {
        return stopSwitch.spout != null;
    }

    /** Whether the executor may be routed to as soon as the plan says so; a spout opens only then. */
    boolean prepared() {
        return ready() || spout() && alive();
    }

    /** From now on a spout may open, and emits. */
    void run() {
        stopSwitch.allowOpen();
        stopSwitch.keep();
    }

    /** A spout emits no more, and ends once nothing is pending. */
    void finish(HandOver handOver) {
        stopSwitch.spout.finish(handOver);
    }

    boolean alive() {
        return thread.isAlive();
    }

    /** Total CPU time is read by thread id. */
    long threadId() {
        return thread.getId();
    }

    Thread thread() {
        return thread;
    }

    Executor executor() {
        return executor;
    }

    /** True once queue, overflow and pending emits were idle in reads over {@code idleMs}; then it stays. */
    boolean drained(long idleMs) {
        long now = System.nanoTime();
        if (queue.size() > queuedWhenIdle || !executor.getPendingEmits().isEmpty()) {
            idleSinceNanos = 0;
        } else if (idleSinceNanos == 0) {
            idleSinceNanos = now;
        } else if (now - idleSinceNanos > TimeUnit.MILLISECONDS.toNanos(idleMs)) {
            drained = true;
        }
        return drained;
    }

    /** As the source of a move: what still arrives here goes on to the new owner, of an acker all that it has too. */
    void forward(HandOver handOver) {
        forwarding = true;
        stopSwitch.leave(handOver);
    }

    /** The route came back: draining starts anew the next time. */
    void keep() {
        stopSwitch.keep();
        forwarding = false;
        idleSinceNanos = 0;
        drained = false;
    }

    /** Lets it take no tuple for now, or go on. */
    void holdStill(boolean still) {
        stopSwitch.holdStill(still);
    }

    /** Then its queue does not empty, but goes on when it stops. */
    boolean holdsStill() {
        return stopSwitch.holdsStill();
    }

    /** The fields of its bolt that travel when it moves; null if it does not move so. */
    Set<String> stateFields() {
        return stays.state();
    }

    /** Asks for what its bolts keep, as it is while the copy holds still. What the user's classes throw may not end the worker. A state that cannot travel pins the executor. */
    void saveState() {
        savedState = null;
        refused = false;
        Set<String> fields = stays.state();
        stopSwitch.whileStill(() -> {
            try {
                savedState = BoltState.save(bolts(), fields);
            } catch (IOException | RuntimeException | Error e) {
                stays.failed("its state could not travel: " + e.getMessage());
                refused = true;
                Faults.report("saving the state of executor " + id, e);
            }
        });
    }

    /** What was asked for, once it is there. */
    byte[] savedState() {
        return savedState;
    }

    /** Gives its bolts what those of the source keep. */
    void loadState(byte[] state) {
        stopSwitch.whileStill(() -> {
            try {
                BoltState.load(state, bolts());
                loaded = true;
            } catch (IOException | RuntimeException | Error e) {
                refused = true;
                Faults.report("loading the state of executor " + id, e);
            }
        });
    }

    /** Whether the state could not be saved, or not be loaded. */
    boolean refused() {
        return refused;
    }

    /** Whether its bolts have what those of the source kept. */
    boolean loaded() {
        return loaded;
    }

    private List<Object> bolts() {
        ArrayList<Task> tasks = StormFields.get(StormFields.ID_TO_TASK, executor);
        return tasks.stream().filter(Objects::nonNull).map(Task::getTaskObject).toList();
    }

    /** A tuple for a copy that is not routed to here yet (or no longer elsewhere) may be taken at once. */
    boolean acceptsEarly() {
        return ready() && !forwarding && !stopping();
    }

    boolean stopping() {
        return stoppingSinceNanos() != 0;
    }

    private long stoppingSinceNanos() {
        return stopAskedNanos == 0 && spout() ? stopSwitch.spout.closingNanos() : stopAskedNanos;
    }

    /** Asks the executor to end; see {@link StopSwitch#stop}. */
    void stop(HandOver handOver) {
        if (stopAskedNanos == 0) {
            stopAskedNanos = System.nanoTime();
            stopSwitch.stop(handOver, startedHere ? thread : null);
        }
    }

    /** Asked to stop long ago and still in user code. */
    boolean stuck() {
        return stopping() && alive() && System.nanoTime() - stoppingSinceNanos() > STUCK_AFTER_NANOS;
    }
}

package nstorm.worker;

import java.util.ArrayList;
import java.util.ConcurrentModificationException;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.function.BooleanSupplier;
import nstorm.memory.Declared;
import nstorm.wire.ExecutorId;
import nstorm.wire.Way;
import nstorm.worker.exit.StopSwitch;
import nstorm.worker.routes.HandOver;
import nstorm.worker.routes.LocalCopies;
import nstorm.worker.routes.OrderGate;
import nstorm.worker.state.CopyState;
import nstorm.worker.state.Stays;
import nstorm.worker.storm.StormFields;
import org.apache.storm.daemon.Task;
import org.apache.storm.executor.Executor;
import org.apache.storm.executor.ExecutorShutdown;
import org.apache.storm.executor.spout.SpoutExecutor;
import org.apache.storm.utils.JCQueue;
import org.apache.storm.utils.RotatingMap;
import org.apache.storm.utils.Utils.SmartThread;

/** One executor thread of this JVM, whether Storm started it or a plan did. */
final class ExecutorCopy implements LocalCopies.Copy {
    private static final long STUCK_AFTER_NANOS = TimeUnit.SECONDS.toNanos(5);

    final String component;
    final ExecutorShutdown running;
    final CopyState state;
    final CopyDrain drain;
    private final ExecutorId id;
    private final JCQueue queue;
    private final Executor executor;
    private final SmartThread thread;
    private final StopSwitch stopSwitch;
    private final Stays stays;
    private final boolean startedHere;
    private boolean waits;
    /** Since when it may open in an active topology; 0 until then. */
    private long openingNanos;

    private long stopAskedNanos;

    ExecutorCopy(ExecutorShutdown running, boolean getsFlushTuples, boolean startedHere, Declared declared) {
        this.running = running;
        this.startedHere = startedHere;
        executor = StormFields.get(StormFields.SHUTDOWN_EXECUTOR, running);
        thread = StormFields.<List<SmartThread>>get(StormFields.SHUTDOWN_THREADS, running)
                .get(0);
        stopSwitch = StopSwitch.of(executor);
        id = ExecutorId.of(executor.getExecutorId());
        component = executor.getComponentId();
        queue = executor.getReceiveQueue();
        ArrayList<Task> tasks = StormFields.get(StormFields.ID_TO_TASK, executor);
        stays = new Stays(
                component,
                executor instanceof SpoutExecutor,
                tasks.get(0).getTaskObject(),
                declared,
                stopSwitch::memory);
        state = new CopyState(id, executor, stopSwitch, stays);
        drain = new CopyDrain(executor, stopSwitch, stays, state, getsFlushTuples);
    }

    @Override
    public ExecutorId id() {
        return id;
    }

    @Override
    public JCQueue queue() {
        return queue;
    }

    Executor executor() {
        return executor;
    }

    Thread thread() {
        return thread;
    }

    /** Total CPU time is read by thread id. */
    long threadId() {
        return thread.getId();
    }

    boolean alive() {
        return thread.isAlive();
    }

    boolean spout() {
        return stopSwitch.isSpout();
    }

    /** Tuples of a spout that are neither acked nor failed; -1 for a bolt, before it opens, and where Storm changes them now. */
    long pendingTuples() {
        if (!(executor instanceof SpoutExecutor)) {
            return -1;
        }
        try {
            RotatingMap<?, ?> pending = StormFields.get(StormFields.SPOUT_PENDING, executor);
            return pending == null ? -1 : pending.size();
        } catch (ConcurrentModificationException | NullPointerException e) {
            return -1;
        }
    }

    /** How it moves, if it does. */
    Way way() {
        return stays.way();
    }

    /** Why it may not move, or by which way of its own it does, or null. */
    String pinned() {
        return stays.reason(ready());
    }

    /** About how large what travels with it is; negative where that is not known. */
    long stateBytes() {
        return stays.aboutBytes();
    }

    /** From now on it stays, whatever its bolts keep. */
    void stay(String why) {
        stays.failed(why);
    }

    /** Its bolts are prepared only when this worker owns them, as a spout is opened only then. */
    void waitToOpen() {
        waits = true;
        stopSwitch.opensLate();
    }

    /**
     * From now on what waited may open, and what was to finish goes on.
     *
     * @param active whether the topology is: else Storm waits before it opens anything
     */
    void run(boolean active) {
        if (active && openingNanos == 0) {
            openingNanos = System.nanoTime();
        }
        drain.goOn();
    }

    /** Whether its {@code open()} or {@code prepare()} has not returned for so long. */
    boolean opensFor(long nanos) {
        return openingNanos != 0 && !ready() && System.nanoTime() - openingNanos > nanos;
    }

    boolean ready() {
        return stopSwitch.ready();
    }

    /**
     * Whether the executor may be routed to as soon as the plan allows it; one that waits opens only then.
     *
     * @param workerActive whether Storm has activated the worker: it opens nothing before
     */
    boolean prepared(boolean workerActive) {
        return ready() || (waits || spout()) && alive() && workerActive;
    }

    /** Whether tuples may wait in its queue: parked for a bolt that is being prepared they would hold no sender back. */
    boolean receives() {
        return ready() || waits && alive();
    }

    @Override
    public boolean pauses() {
        return state.holdsStill() || !ready();
    }

    @Override
    public boolean forwards() {
        return drain.forwards();
    }

    @Override
    public boolean acceptsEarly() {
        return ready() && !forwards() && !stopping();
    }

    @Override
    public void guard(OrderGate gateOrNull, HandOver handOver, BooleanSupplier sendsProbes) {
        stopSwitch.guard(gateOrNull, handOver, sendsProbes);
    }

    /** Asks the executor to end; see {@link StopSwitch#stop}. */
    void stop(HandOver handOver) {
        if (stopAskedNanos == 0) {
            stopAskedNanos = System.nanoTime();
            stopSwitch.stop(handOver, startedHere ? thread : null, waits || stays.renews());
        }
    }

    boolean stopping() {
        return stoppingSinceNanos() != 0;
    }

    private long stoppingSinceNanos() {
        return stopAskedNanos == 0 ? stopSwitch.closingNanos() : stopAskedNanos;
    }

    /** Asked to stop long ago and still in user code. */
    boolean stuck() {
        return stopping() && alive() && System.nanoTime() - stoppingSinceNanos() > STUCK_AFTER_NANOS;
    }

    /** Whether its tasks were closed on its own thread, as a spout always is. */
    boolean cleanedUp() {
        return stopSwitch.cleanedUp();
    }
}

package nstorm.worker;

import java.io.IOException;
import java.util.ArrayList;
import java.util.List;
import java.util.Objects;
import java.util.Set;
import java.util.concurrent.TimeUnit;
import java.util.function.BooleanSupplier;
import java.util.function.Consumer;
import nstorm.memory.Declared;
import nstorm.memory.KeptTuples;
import nstorm.proof.Departure;
import nstorm.proof.Memory;
import nstorm.state.FirstMaps;
import nstorm.state.FirstPass;
import nstorm.state.StateBytes;
import nstorm.state.StateSize;
import nstorm.wire.ExecutorId;
import nstorm.wire.Way;
import org.apache.storm.daemon.Task;
import org.apache.storm.executor.Executor;
import org.apache.storm.executor.ExecutorShutdown;
import org.apache.storm.executor.spout.SpoutExecutor;
import org.apache.storm.tuple.AddressedTuple;
import org.apache.storm.utils.JCQueue;
import org.apache.storm.utils.Utils.SmartThread;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** One executor thread of this JVM, whether Storm started it or a plan did. */
final class ExecutorCopy {
    private static final Logger LOG = LoggerFactory.getLogger(ExecutorCopy.class);
    private static final long STUCK_AFTER_NANOS = TimeUnit.SECONDS.toNanos(5);
    /**
     * Where Storm puts a flush tuple into every queue each millisecond, that of an executor that sleeps is
     * never empty for long. Tuples among so few go on to the new owner when the executor stops.
     */
    private static final int FLUSH_TUPLES = 16;
    /** What is wrong once may be so by chance: an operator has cancelled, a tuple was lost. */
    private static final int IN_VAIN_MAX = 2;
    private static final long SIZED_NANOS = TimeUnit.SECONDS.toNanos(60);
    /** A little less than a move waits: one that was cancelled says nothing. */
    private static final long KEPT_TOO_LONG_SECS = 35;

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
    private volatile StateBytes savedState;
    private volatile byte[] savedProof;
    private String provingFor;
    private volatile Boolean provedLive;
    /** The move whose state was set, and is still to be compared. */
    private volatile String set;
    private Set<String> loadedFields;
    private volatile String refusal;
    /** The move whose state its bolts have. */
    private volatile String loadedWith;
    private String begunWith;
    private long stillNanos;
    private long sizedNanos;
    private volatile boolean refused;
    private int sentInVain;
    private int aheadInVain;
    private int finishedInVain;
    private long emptyingNanos;
    private boolean waits;
    /** Since when it may open in an active topology; 0 until then. */
    private long openingNanos;
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
        stays = new Stays(component, executor instanceof SpoutExecutor, tasks.get(0).getTaskObject(), declared, stopSwitch::memory);
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

    /** Its bolts are prepared only when this worker owns them, as a spout is opened only then. */
    void waitToOpen() {
        waits = true;
    }

    /** Whether the executor may be routed to as soon as the plan says so; one that waits opens only then. */
    boolean prepared() {
        return ready() || (waits || spout()) && alive();
    }

    /** Whether tuples may wait in its queue: parked for a bolt that is being prepared they would hold no sender back. */
    boolean receives() {
        return ready() || waits && alive();
    }

    /**
     * From now on what waited may open, and what was to finish goes on.
     *
     * @param active whether the topology is: else Storm waits before it opens anything
     */
    void run(boolean active) {
        if (!spout()) {
            if (stopSwitch.bolt.late() && stopSwitch.bolt.keeps()) {
                stays.failed("keeps tuples, and had not acked them all after 15 s in a move");
            }
        } else if (stopSwitch.spout.stalls() && ++finishedInVain == IN_VAIN_MAX) {
            stays.failed("in " + finishedInVain + " moves nothing of what it had pending finished for 10 s, as where tuples wait in windows");
        }
        if (active && openingNanos == 0) {
            openingNanos = System.nanoTime();
        }
        stopSwitch.run();
    }

    /** Whether its {@code open()} or {@code prepare()} has not returned for so long. */
    boolean opensFor(long nanos) {
        return openingNanos != 0 && !ready() && System.nanoTime() - openingNanos > nanos;
    }

    /** A spout emits no more, and ends once nothing is pending; a bolt takes no more tuples, and ends once it keeps none. */
    void finish(HandOver handOver) {
        Set<String> tuples = stays.tuples();
        if (spout()) {
            stopSwitch.spout.finish(handOver, () -> changed() == null);
        } else {
            stopSwitch.finish(handOver, () -> tuples == null || holdsNone(tuples), () -> changed() == null);
        }
    }

    /** Whether it cannot be closed, as what it has pending or keeps does not finish, or it remembers something: to be undone. */
    boolean staysOpen() {
        return spout() ? stopSwitch.spout.stalls() || stopSwitch.spout.remembers() : stopSwitch.bolt.late() || stopSwitch.bolt.remembers();
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

    /** True once nothing waits for it, and its bolts keep no tuple that they have to ack. */
    boolean drained(long idleMs, HandOver handOver) {
        return idle(idleMs) && emptied(handOver);
    }

    /** True once queue, overflow and pending emits were idle in reads over {@code idleMs}; then it stays. */
    private boolean idle(long idleMs) {
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

    /** Bolts that keep tuples take no more of them, and get a tick: many write what they have at one. */
    private boolean emptied(HandOver handOver) {
        Set<String> tuples = stays.tuples();
        if (tuples != null && emptyingNanos == 0) {
            emptyingNanos = System.nanoTime();
            forwarding = true;
            boolean forgets = stays.renews();
            // What it keeps besides tuples would stay behind.
            stopSwitch.awaitEmpty(handOver, () -> holdsNone(tuples) && (forgets || changed() == null));
            tick();
        }
        return tuples == null || stopSwitch.emptied();
    }

    /** On the executor's thread, where nothing may throw. */
    private boolean holdsNone(Set<String> tuples) {
        try {
            return KeptTuples.none(bolts(), tuples);
        } catch (RuntimeException | LinkageError | StackOverflowError e) {
            Faults.report("looking for tuples that executor " + id + " keeps", e);
            return false;
        }
    }

    private void tick() {
        AddressedTuple tick = BoltExit.tickOrNull(executor);
        if (tick != null && queue.tryPublish(tick)) {
            queue.tryFlush();
        }
    }

    /** Whether its bolts have had so long to ack what they keep. */
    boolean emptyingFor(long secs) {
        return emptyingNanos != 0 && System.nanoTime() - emptyingNanos > TimeUnit.SECONDS.toNanos(secs);
    }

    /** As the source of a move: what still arrives here goes on to the new owner, of an acker all that it has too. */
    void forward(HandOver handOver, boolean ordered) {
        forwarding = true;
        stopSwitch.leave(handOver, ordered);
    }

    /** What stands before its queue while it moves. */
    void guard(OrderGate gateOrNull, HandOver handOver, BooleanSupplier sendsProbes) {
        stopSwitch.guard(gateOrNull, handOver, sendsProbes);
    }

    /** The route came back: draining starts anew the next time. */
    void keep() {
        if (emptyingFor(KEPT_TOO_LONG_SECS) && !stopSwitch.emptied()) {
            stays.failed("keeps tuples, and had not acked them all after " + KEPT_TOO_LONG_SECS + " s in a move");
        }
        emptyingNanos = 0;
        stopSwitch.keep();
        forwarding = false;
        idleSinceNanos = 0;
        drained = false;
    }

    /** Lets it take no tuple for now, or go on. */
    void holdStill(boolean still) {
        if (still && !holdsStill()) {
            stillNanos = System.nanoTime();
        }
        stopSwitch.holdStill(still);
    }

    /** Since when it holds still. */
    long stillNanos() {
        return stillNanos;
    }

    /** Its state has gone to the new owner: so does what waits for it. */
    void handOnQueue(HandOver handOver) {
        stopSwitch.handOnQueue(handOver);
    }

    /** Then its queue does not empty, but is handed on. */
    boolean holdsStill() {
        return stopSwitch.holdsStill();
    }

    /** The fields of its bolt that travel when it moves; null if it does not move so. */
    Set<String> stateFields() {
        return stays.state();
    }

    /**
     * Has its own thread look up what may go ahead of its state, or null; its bolts go on. What could not be taken or not be read
     * in time goes with the state the next time: then it is seen what hinders it.
     */
    void lookAhead(Consumer<FirstPass> then) {
        Set<String> fields = stays.state();
        boolean goes = aheadInVain < IN_VAIN_MAX;
        stopSwitch.betweenTuples(() -> {
            measure(fields);
            FirstPass first = null;
            try {
                first = goes ? FirstPass.of(bolts(), fields) : null;
            } catch (RuntimeException | Error e) {
                Faults.report("looking at the state of executor " + id, e);
            }
            then.accept(first);
        });
    }

    /** About how large its state was when it was looked at last. */
    long aboutBytes() {
        return stays.aboutBytes();
    }

    /** Looks from time to time about how large the state is that travels, so that it is known before. */
    void size() {
        Set<String> fields = stays.state();
        long now = System.nanoTime();
        if (fields == null || sizedNanos != 0 && now - sizedNanos < SIZED_NANOS) {
            return;
        }
        sizedNanos = now;
        stopSwitch.betweenTuples(() -> measure(fields));
    }

    private void measure(Set<String> fields) {
        try {
            stays.sized(StateSize.aboutBytes(bolts(), fields));
        } catch (IOException | RuntimeException | Error e) {
            // Why it cannot travel is said when it is to.
            stays.sized(0);
        }
    }

    /**
     * Has its own thread look whether its bolts remember something by now; they go on. Null until it has looked for this move, else whether two copies of it
     * may work at once. If not, its executor moves by another way from now on, or stays.
     */
    Boolean provedLive(String move) {
        if (!move.equals(provingFor)) {
            provingFor = move;
            provedLive = null;
            stopSwitch.betweenTuples(() -> {
                String changed = changed();
                provedLive = changed == null;
            });
        }
        return provedLive;
    }

    /** On the executor's thread, where nothing may throw. */
    private String changed() {
        Memory memory = stopSwitch.memory();
        if (memory == null) {
            return null; // Storm's own
        }
        String changed;
        try {
            changed = memory.changedSincePrepared();
        } catch (RuntimeException | Error e) {
            changed = "it cannot be looked into (" + e + ")";
        }
        if (changed != null) {
            LOG.info("memory_found executor={} what=\"{}\"", id, changed);
            if (memory.way().state() == null || spout()) {
                stays.failed(changed);
            }
        }
        return changed;
    }

    /**
     * Asks for what its bolts keep, as it is while the copy holds still. What the user's classes throw may not end the worker.
     * A state that cannot travel pins the executor.
     *
     * @param firstOrNull what of it has gone ahead
     */
    void saveState(FirstPass firstOrNull) {
        savedState = null;
        savedProof = null;
        refused = false;
        Memory memory = stopSwitch.memory();
        stopSwitch.whileStill(() -> {
            try {
                long begunNanos = System.nanoTime();
                Departure departure = memory.depart(firstOrNull);
                LOG.info("state_written executor={} fields={} bytes={} ms={}", id, departure.fields(), departure.state().size(),
                        millisSince(begunNanos));
                savedState = stopSwitch.holdsStill() ? departure.state() : null;
                byte[] proof = departure.proof();
                LOG.info("state_proved executor={} bytes={} ms={}", id, proof.length, millisSince(begunNanos));
                savedProof = proof;
            } catch (IOException | RuntimeException | Error e) {
                stays.failed("its state could not travel: " + e.getMessage());
                refuse("saving", e);
            }
        });
    }

    /** What the target is to compare with, once it is there, and only once. */
    byte[] takeSavedProof() {
        byte[] proof = savedProof;
        savedProof = null;
        return proof;
    }

    /** The target has said why it does not take the state: so would the next one. */
    void refusedByTarget(String why) {
        stays.failed("its state " + why);
    }

    /** What was asked for, once it is there, and only once: nothing of it stays here. */
    StateBytes takeSavedState() {
        StateBytes state = savedState;
        savedState = null;
        return state;
    }

    /** Its state went to a target, and the move was undone: what one target cannot read the next cannot either. */
    void sentInVain() {
        if (++sentInVain == IN_VAIN_MAX) {
            stays.failed("its state went to a target " + sentInVain + " times and each move was undone; the target's log has the reason");
        }
    }

    /** Something went ahead of its state, and the move was undone before anybody asked for the state. */
    void aheadInVain() {
        aheadInVain++;
    }

    /** Its state cannot go on, or not come in: the move is to be undone. */
    void refuse(String during, Throwable e) {
        refused = true;
        refusal = e.getMessage() == null ? e.toString() : e.getMessage();
        Faults.report(during + " the state of executor " + id, e);
    }

    /**
     * Gives its bolts what those of the source keep.
     *
     * @param firstOrNull what of it came ahead
     */
    void loadState(String move, byte[] state, FirstMaps firstOrNull) {
        Memory memory = stopSwitch.memory();
        stopSwitch.whileStill(() -> {
            try {
                long begunNanos = System.nanoTime();
                loadedFields = memory.load(state, firstOrNull);
                LOG.info("state_loaded move={} executor={} bytes={} ms={}", move, id, state.length, millisSince(begunNanos));
                set = move;
            } catch (IOException | RuntimeException | Error e) {
                refuse("loading", e);
            }
        });
    }

    /** Whether its bolts have been given what those of the move's source keep, and nobody has looked yet whether it is the same. */
    boolean hasState(String move) {
        return move.equals(set);
    }

    /** Compares what its bolts have with what those of the source keep. */
    void compareState(String move, byte[] proof) {
        set = null;
        Memory memory = stopSwitch.memory();
        stopSwitch.whileStill(() -> {
            try {
                long begunNanos = System.nanoTime();
                String difference = memory.differs(loadedFields, proof);
                LOG.info("state_compared move={} executor={} ms={}", move, id, millisSince(begunNanos));
                if (difference == null) {
                    loadedWith = move;
                } else {
                    refuse("comparing", new IOException(difference));
                }
            } catch (IOException | RuntimeException | Error e) {
                refuse("comparing", e);
            }
        });
    }

    private static long millisSince(long nanos) {
        return TimeUnit.NANOSECONDS.toMillis(System.nanoTime() - nanos);
    }

    /** Why, for the other end of the move. */
    String refusal() {
        return refusal;
    }

    /** Whether the state could not be saved, or not be loaded. */
    boolean refused() {
        return refused;
    }

    /** Whether its bolts have what those of the move's source kept. */
    boolean loadedWith(String move) {
        return move.equals(loadedWith);
    }

    /** Works from now on with what its bolts have, and as long as there is this move. */
    void begin(String move) {
        if (!move.equals(begunWith)) {
            begunWith = move;
            stopSwitch.holdStill(false);
            LOG.info("state_begun move={} executor={}", move, id);
        }
    }

    boolean begunWith(String move) {
        return move.equals(begunWith);
    }

    private List<Object> bolts() {
        ArrayList<Task> tasks = StormFields.get(StormFields.ID_TO_TASK, executor);
        return tasks.stream().filter(Objects::nonNull).map(Task::getTaskObject).toList();
    }

    /** Whether what it takes goes on to another worker. */
    boolean forwards() {
        return forwarding;
    }

    /** A tuple for a copy that is not routed to here yet (or no longer elsewhere) may be taken at once. */
    boolean acceptsEarly() {
        return ready() && !forwarding && !stopping();
    }

    boolean stopping() {
        return stoppingSinceNanos() != 0;
    }

    private long stoppingSinceNanos() {
        return stopAskedNanos == 0 ? stopSwitch.closingNanos() : stopAskedNanos;
    }

    /** Asks the executor to end; see {@link StopSwitch#stop}. */
    void stop(HandOver handOver) {
        if (stopAskedNanos == 0) {
            stopAskedNanos = System.nanoTime();
            stopSwitch.stop(handOver, startedHere ? thread : null, waits || stays.renews());
        }
    }

    /** Whether its bolts were cleaned up on its own thread. */
    boolean cleanedUp() {
        return !spout() && stopSwitch.bolt.cleanedUp();
    }

    /** Asked to stop long ago and still in user code. */
    boolean stuck() {
        return stopping() && alive() && System.nanoTime() - stoppingSinceNanos() > STUCK_AFTER_NANOS;
    }
}

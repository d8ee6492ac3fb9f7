package nstorm.worker.state;

import java.io.IOException;
import java.util.ArrayList;
import java.util.List;
import java.util.Objects;
import java.util.Set;
import java.util.concurrent.TimeUnit;
import java.util.function.Consumer;
import nstorm.hook.Faults;
import nstorm.proof.Arrival;
import nstorm.proof.Departure;
import nstorm.proof.Learnt;
import nstorm.proof.Memory;
import nstorm.state.FirstMaps;
import nstorm.state.FirstPass;
import nstorm.state.StateBytes;
import nstorm.state.StateSize;
import nstorm.wire.ExecutorId;
import nstorm.worker.exit.StopSwitch;
import nstorm.worker.routes.HandOver;
import nstorm.worker.storm.StormFields;
import org.apache.storm.daemon.Task;
import org.apache.storm.executor.Executor;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * What the bolts of one copy keep: looked at, saved and loaded on the executor's own thread, and compared there with what the
 * source kept.
 */
public final class CopyState {
    private static final Logger LOG = LoggerFactory.getLogger(CopyState.class);
    /** What is wrong once may be so by chance: an operator has cancelled, a tuple was lost. */
    private static final int UNDONE_MAX = 2;

    private static final long SIZED_NANOS = TimeUnit.SECONDS.toNanos(60);

    final String component;
    private final ExecutorId id;
    private final Executor executor;
    private final StopSwitch stopSwitch;
    private final Stays stays;
    private volatile StateBytes saved;
    private volatile byte[] savedProof;
    private String provingFor;
    private volatile Boolean provedLive;
    /** The move whose state was set, and is still to be compared. */
    private volatile String set;

    private Arrival arrival;
    private volatile String refusal;
    /** The move whose state its bolts have. */
    private volatile String loadedWith;

    private String begunWith;
    private long stillNanos;
    private long sizedNanos;
    private volatile boolean refused;
    /** What was asked for last can travel the next time. */
    private volatile boolean learnt;

    private int undoneAfterSent;
    private int undoneAfterAhead;

    public CopyState(ExecutorId id, Executor executor, StopSwitch stopSwitch, Stays stays) {
        this.id = id;
        this.executor = executor;
        component = executor.getComponentId();
        this.stopSwitch = stopSwitch;
        this.stays = stays;
    }

    /** Whether its bolts are prepared. */
    boolean ready() {
        return stopSwitch.ready();
    }

    public List<Object> bolts() {
        ArrayList<Task> tasks = StormFields.get(StormFields.ID_TO_TASK, executor);
        return tasks.stream().filter(Objects::nonNull).map(Task::getTaskObject).toList();
    }

    /** The fields of its bolt that travel when it moves; null if it does not move so. */
    public Set<String> fields() {
        return stays.state();
    }

    /** About how large it was when it was looked at last. */
    long aboutBytes() {
        return stays.aboutBytes();
    }

    /** Looks from time to time about how large the state is that travels, so that it is known before. */
    public void size() {
        Set<String> fields = stays.sizedState();
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
        } catch (Throwable e) {
            // The reason why it cannot travel is reported when it has to.
            stays.sized(Stays.UNKNOWN);
        }
    }

    /**
     * Has its own thread look whether its bolts remember something by now; they go on. Null until it has looked for this move, else whether two copies of it
     * may work at once. If not, its executor moves by another way from now on, or stays.
     */
    public Boolean provedLive(String move) {
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

    /** What its bolts remember by now, or null; on the executor's thread, where nothing may throw. */
    public String changed() {
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
            if (memory.way().state() == null || stopSwitch.isSpout()) {
                stays.failed(changed);
            }
        }
        return changed;
    }

    /** Lets the copy take no tuple for now, or go on. */
    public void holdStill(boolean still) {
        if (still && !holdsStill()) {
            stillNanos = System.nanoTime();
        }
        stopSwitch.holdStill(still);
    }

    /** Then its queue does not empty, but is handed on. */
    public boolean holdsStill() {
        return stopSwitch.holdsStill();
    }

    /** Since when it holds still. */
    long stillNanos() {
        return stillNanos;
    }

    /** It has gone to the new owner: so does what waits for the copy. */
    void handOnQueue(HandOver handOver) {
        stopSwitch.handOnQueue(handOver);
    }

    /**
     * Has the copy's own thread look up what may go ahead, or null; its bolts go on. What could not be taken or not be read
     * in time goes with the state the next time: then it is seen what hinders it.
     */
    void lookAhead(Consumer<FirstPass> then) {
        Set<String> fields = stays.state();
        boolean goes = undoneAfterAhead < UNDONE_MAX;
        stopSwitch.betweenTuples(() -> {
            measure(fields);
            FirstPass first = null;
            try {
                first = goes ? FirstPass.of(bolts(), fields) : null;
            } catch (Throwable e) {
                Faults.contained("looking at the state of executor " + id, e);
            }
            then.accept(first);
        });
    }

    /**
     * Asks for what its bolts keep, as it is while the copy holds still. What the user's classes throw may not end the worker.
     * A state that cannot travel pins the executor, but for one that can the next time.
     *
     * @param firstOrNull what of it has gone ahead
     */
    void save(FirstPass firstOrNull) {
        saved = null;
        savedProof = null;
        refused = false;
        learnt = false;
        Memory memory = stopSwitch.memory();
        stopSwitch.whileStill(() -> {
            try {
                long begunNanos = System.nanoTime();
                Departure departure = memory.depart(firstOrNull);
                LOG.info(
                        "state_written executor={} fields={} bytes={} ms={}",
                        id,
                        departure.fields(),
                        departure.state().size(),
                        millisSince(begunNanos));
                saved = stopSwitch.holdsStill() ? departure.state() : null;
                byte[] proof = departure.proof();
                LOG.info("state_proved executor={} bytes={} ms={}", id, proof.length, millisSince(begunNanos));
                savedProof = proof;
            } catch (Learnt e) {
                learnt = true;
                refuse("saving", e);
            } catch (Throwable e) {
                stays.failed("its state could not travel: " + e.getMessage());
                refuse("saving", e);
            }
        });
    }

    /** What was asked for, once it is there, and only once: nothing of it stays here. */
    StateBytes takeSaved() {
        StateBytes taken = saved;
        saved = null;
        return taken;
    }

    /** What the target is to compare with, once it is there, and only once. */
    byte[] takeSavedProof() {
        byte[] proof = savedProof;
        savedProof = null;
        return proof;
    }

    /** The target has given the reason why it does not take the state: the next one would not take it either. */
    void refusedByTarget(String why) {
        stays.failed("its state " + why);
    }

    /** It went to a target, and the move was undone: what one target cannot read the next cannot either. */
    void undoneAfterSent() {
        if (!learnt && ++undoneAfterSent == UNDONE_MAX) {
            stays.failed("its state went to a target " + undoneAfterSent
                    + " times and each move was undone; the target's log has the reason");
        }
    }

    /** Something went ahead of it, and the move was undone before anybody asked for the state. */
    void undoneAfterAhead() {
        undoneAfterAhead++;
    }

    /** It cannot go on, or not come in: the move is to be undone. */
    void refuse(String during, Throwable e) {
        refusal = e.getMessage() == null ? e.toString() : e.getMessage();
        refused = true; // who sees this asks for the reason
        Faults.contained(during + " the state of executor " + id, e);
    }

    /** Whether it could not be saved, or not be loaded. */
    public boolean refused() {
        return refused;
    }

    /** Why, for the other end of the move. */
    String refusal() {
        return refusal;
    }

    /**
     * Gives its bolts what those of the source keep.
     *
     * @param firstOrNull what of it came ahead
     */
    void load(String move, byte[] state, FirstMaps firstOrNull) {
        Memory memory = stopSwitch.memory();
        stopSwitch.whileStill(() -> {
            try {
                long begunNanos = System.nanoTime();
                arrival = memory.load(state, firstOrNull);
                LOG.info(
                        "state_loaded move={} executor={} bytes={} ms={}",
                        move,
                        id,
                        state.length,
                        millisSince(begunNanos));
                set = move;
            } catch (Throwable e) {
                refuse("loading", e);
            }
        });
    }

    /** Whether its bolts have been given what those of the move's source keep, and nobody has looked yet whether it is the same. */
    public boolean isSet(String move) {
        return move.equals(set);
    }

    /** Compares what its bolts have with what those of the source keep. */
    void compare(String move, byte[] proof) {
        set = null;
        stopSwitch.whileStill(() -> {
            try {
                String difference = arrival.differs(proof);
                arrival = null;
                LOG.info("state_compared move={} executor={}", move, id);
                if (difference == null) {
                    loadedWith = move;
                } else {
                    refuse("comparing", new IOException(difference));
                }
            } catch (Throwable e) {
                refuse("comparing", e);
            }
        });
    }

    /** Whether its bolts have what those of the move's source kept. */
    boolean loadedWith(String move) {
        return move.equals(loadedWith);
    }

    /** The copy works from now on with what its bolts have, and as long as there is this move. */
    void begin(String move) {
        if (!move.equals(begunWith)) {
            begunWith = move;
            stopSwitch.holdStill(false);
            LOG.info("state_begun move={} executor={}", move, id);
        }
    }

    public boolean begunWith(String move) {
        return move.equals(begunWith);
    }

    private static long millisSince(long nanos) {
        return TimeUnit.NANOSECONDS.toMillis(System.nanoTime() - nanos);
    }
}

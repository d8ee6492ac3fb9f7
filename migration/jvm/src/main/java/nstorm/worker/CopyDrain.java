package nstorm.worker;

import java.util.Set;
import java.util.concurrent.TimeUnit;
import nstorm.hook.Faults;
import nstorm.memory.KeptTuples;
import nstorm.wire.ExecutorId;
import nstorm.worker.exit.StopSwitch;
import nstorm.worker.routes.HandOver;
import nstorm.worker.state.CopyState;
import nstorm.worker.state.Stays;
import org.apache.storm.executor.Executor;

/** How one copy, as the source of a move, gets rid of what waits for it and of what it has pending. Knows whether it is done. */
final class CopyDrain {
    static final long DRAINED_MS = 50;
    /**
     * Where Storm puts a flush tuple into every queue each millisecond, that of an executor that sleeps is
     * never empty for long. Tuples among so few go on to the new owner when the executor stops.
     */
    private static final int FLUSH_TUPLES = 16;
    /** What is wrong once may be so by chance: an operator has cancelled, a tuple was lost. */
    private static final int UNDONE_MAX = 2;
    /** A little less than a move waits: a cancelled move proves nothing. */
    private static final long KEPT_TOO_LONG_SECS = 35;

    private final Executor executor;
    private final StopSwitch stopSwitch;
    private final Stays stays;
    private final CopyState state;
    private final int queuedWhenIdle;
    private volatile boolean forwarding;
    private int unfinishedMoves;
    private long emptyingNanos;
    private long idleSinceNanos;
    private boolean drained;

    CopyDrain(Executor executor, StopSwitch stopSwitch, Stays stays, CopyState state, boolean getsFlushTuples) {
        this.executor = executor;
        this.stopSwitch = stopSwitch;
        this.stays = stays;
        this.state = state;
        queuedWhenIdle = getsFlushTuples ? FLUSH_TUPLES : 0;
    }

    /** What still arrives here goes on to the new owner, of an acker all that it has too. */
    void forward(HandOver handOver, boolean ordered) {
        forwarding = true;
        stopSwitch.leave(handOver, ordered);
    }

    /** Whether what it takes goes on to another worker. */
    boolean forwards() {
        return forwarding;
    }

    /** True once nothing waits for it, and its bolts keep no tuple that they have to ack. */
    boolean drained(long idleMs, HandOver handOver) {
        return idle(idleMs) && emptied(handOver);
    }

    /** True once queue, overflow and pending emits were idle in reads over {@code idleMs}; then it stays. */
    private boolean idle(long idleMs) {
        long now = System.nanoTime();
        if (executor.getReceiveQueue().size() > queuedWhenIdle
                || !executor.getPendingEmits().isEmpty()) {
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
            // What it keeps other than tuples would stay behind.
            stopSwitch.awaitEmpty(handOver, () -> holdsNone(tuples) && (forgets || state.changed() == null));
            stopSwitch.tick();
        }
        return tuples == null || stopSwitch.emptied();
    }

    /** On the executor's thread, where nothing may throw. */
    private boolean holdsNone(Set<String> tuples) {
        try {
            return KeptTuples.none(state.bolts(), tuples);
        } catch (Throwable e) {
            Faults.contained(
                    "looking for tuples that executor " + ExecutorId.of(executor.getExecutorId()) + " keeps", e);
            return false;
        }
    }

    /** Whether its bolts have had so long to ack what they keep. */
    boolean emptyingFor(long secs) {
        return emptyingNanos != 0 && System.nanoTime() - emptyingNanos > TimeUnit.SECONDS.toNanos(secs);
    }

    /** The route came back: draining begins from the start the next time. */
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

    /** A spout emits no more, and ends once nothing is pending; a bolt takes no more tuples, and ends once it keeps none. */
    void finish(HandOver handOver) {
        Set<String> tuples = stays.tuples();
        stopSwitch.finish(handOver, () -> tuples == null || holdsNone(tuples), () -> state.changed() == null);
    }

    /** Whether it cannot be closed: the move is to be undone. */
    boolean staysOpen() {
        return stopSwitch.staysOpen();
    }

    /** What was to finish goes on: one that could not finish in time stays from now on. */
    void goOn() {
        if (stopSwitch.late()) {
            if (!stopSwitch.isSpout()) {
                stays.failed("keeps tuples, and had not acked them all after 15 s in a move");
            } else if (++unfinishedMoves == UNDONE_MAX) {
                stays.failed("in " + unfinishedMoves
                        + " moves nothing of what it had pending finished for 10 s, as where tuples wait in windows");
            }
        }
        stopSwitch.run();
    }
}

package nstorm.worker.state;

import java.util.Set;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.function.Supplier;
import nstorm.load.OwnWay;
import nstorm.memory.Declared;
import nstorm.memory.MoveWay;
import nstorm.proof.Memory;
import nstorm.state.BoltState;
import nstorm.wire.Way;

/** Whether one copy's executor stays where it is, and why, or how it moves. What its bolt keeps is looked up once the bolt is prepared. */
public final class Stays {
    /** One thread for the JVM, since to read a bolt's code takes up to five seconds of CPU. */
    private static final ExecutorService READER = Executors.newSingleThreadExecutor(work -> {
        Thread thread = new Thread(work, "nstorm-memory");
        thread.setDaemon(true);
        return thread;
    });

    static final long UNKNOWN = -1;

    private final Supplier<Memory> memoryOnceReady;
    private final Way own;
    /** Why it stays whatever it keeps, or moves by a way of its own; null if what it keeps decides. */
    private final String reason;

    private boolean asked;
    private volatile String failed;
    /** Why its state is far too large by the last estimate; null if it is not. */
    private volatile String tooLarge;

    private volatile long aboutBytes = UNKNOWN;

    /** @param memoryOnceReady what its bolts remember; null until they are prepared */
    public Stays(
            String component, boolean spout, Object taskObject, Declared declared, Supplier<Memory> memoryOnceReady) {
        this.memoryOnceReady = memoryOnceReady;
        OwnWay kind = OwnWay.of(component, spout, taskObject, declared);
        own = kind.way();
        reason = kind.reason();
    }

    /** The reason why it does not move live, or null; from any thread. */
    public synchronized String reason(boolean prepared) {
        Memory memory = memoryOnceReady.get();
        if ((reason == null || own == Way.SPOUT) && prepared && memory != null && !asked) {
            asked = true;
            READER.execute(own == Way.SPOUT ? memory::readSpout : memory::read);
        }
        MoveWay now = now();
        if (own == Way.SPOUT && now.pinned() == null) {
            return reason;
        }
        return now.state() == null ? now.pinned() : now.pinned() + size(aboutBytes);
    }

    private MoveWay now() {
        MoveWay kept = kept();
        return kept.state() != null && tooLarge != null ? new MoveWay(tooLarge) : kept;
    }

    private MoveWay kept() {
        Memory memory = memoryOnceReady.get();
        if (failed != null || reason != null && own != Way.SPOUT) {
            return new MoveWay(failed != null ? failed : reason);
        }
        return memory == null ? new MoveWay("it is not known yet what it keeps") : memory.way();
    }

    /** How it moves, if it does. */
    public Way way() {
        MoveWay now = now();
        if (own == Way.SPOUT) {
            return now.pinned() == null ? Way.SPOUT : Way.LIVE;
        }
        return now.renews()
                ? Way.RENEW
                : now.state() != null ? Way.CARRY : now.tuples() != null ? Way.DRAIN : failed == null ? own : Way.LIVE;
    }

    /** The fields of the bolt that travel when its executor moves; null if it does not move so. */
    Set<String> state() {
        return now().state();
    }

    /** The same of one that stays only since its state was far too large when it was looked at. */
    Set<String> sizedState() {
        return kept().state();
    }

    /** The fields of the bolt that hold no tuple any more before its executor moves; null if it does not move so. */
    public Set<String> tuples() {
        return now().tuples();
    }

    /** Whether its bolts are cleaned up wherever they end, and may forget what they keep other than tuples. */
    public boolean renews() {
        Memory memory = memoryOnceReady.get();
        return memory != null && memory.way().renews();
    }

    /**
     * About how large the state is that travels. One that is far too large stays at once, and as long as it is; others stay once they are written.
     */
    void sized(long bytes) {
        aboutBytes = bytes;
        tooLarge = bytes <= 2L * BoltState.SIZE_MAX_BYTES
                ? null
                : "its state is some " + megabytes(bytes) + " MB, and no more than " + (BoltState.SIZE_MAX_BYTES >> 20)
                        + " MB travel";
    }

    /** As the last estimate has it; negative where there is none, or no state that travels. */
    public long aboutBytes() {
        return sizedState() == null ? UNKNOWN : aboutBytes;
    }

    private static long megabytes(long bytes) {
        return Math.round(bytes / (double) (1 << 20));
    }

    private static String size(long bytes) {
        long mb = megabytes(bytes);
        return mb == 0 ? "" : ", some " + (mb < 100 ? mb : 10 * Math.round(mb / 10.0)) + " MB";
    }

    /** It could not move as it ought to: from now on it stays. */
    public void failed(String why) {
        failed = why;
    }
}

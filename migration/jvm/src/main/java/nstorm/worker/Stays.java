package nstorm.worker;

import java.util.Set;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import nstorm.load.Pinning;
import nstorm.memory.Declared;
import nstorm.memory.MoveWay;
import nstorm.state.BoltState;
import nstorm.wire.Way;

/** Whether one copy's executor stays where it is, and why, or how it moves. What its bolt keeps is looked up once the bolt is prepared. */
final class Stays {
    /** One thread for the JVM, since to read a bolt's code takes up to five seconds of CPU. */
    private static final ExecutorService READER = Executors.newSingleThreadExecutor(work -> {
        Thread thread = new Thread(work, "nstorm-memory");
        thread.setDaemon(true);
        return thread;
    });

    private final String component;
    private final Declared declared;
    private volatile Way own;
    private Object bolt;
    private volatile MoveWay way;
    private volatile long aboutBytes;

    Stays(String component, boolean spout, Object taskObject, Declared declared) {
        this.component = component;
        this.declared = declared;
        String reason = declared.reason(component);
        own = reason == null ? Pinning.way(component, spout, taskObject) : Way.LIVE;
        if (reason == null) {
            reason = Pinning.reason(component, spout, taskObject);
        }
        if (reason == null && !declared.isLive(component)) {
            reason = "it is not known yet what it keeps";
            bolt = taskObject;
        }
        way = new MoveWay(reason);
    }

    /** The reason why it does not move live, or null; from any thread. */
    synchronized String reason(boolean prepared) {
        if (bolt != null && prepared) {
            Object read = bolt;
            bolt = null;
            READER.execute(() -> way = MoveWay.of(component, read, declared));
        }
        MoveWay now = way;
        return now.state() == null ? now.pinned() : now.pinned() + size(aboutBytes);
    }

    /** How it moves, if it does. */
    Way way() {
        MoveWay now = way;
        return now.state() != null ? Way.CARRY : now.tuples() != null ? Way.DRAIN : own;
    }

    /** The fields of the bolt that travel when its executor moves; null if it does not move so. */
    Set<String> state() {
        return way.state();
    }

    /** The fields of the bolt that hold no tuple any more before its executor moves; null if it does not move so. */
    Set<String> tuples() {
        return way.tuples();
    }

    /** About how large the state is that travels; one that is far too large stays at once, and others once they are written. */
    void sized(long bytes) {
        aboutBytes = bytes;
        if (bytes > 2L * BoltState.SIZE_MAX_BYTES) {
            failed("its state is some " + megabytes(bytes) + " MB, and no more than " + (BoltState.SIZE_MAX_BYTES >> 20) + " MB travel");
        }
    }

    long aboutBytes() {
        return aboutBytes;
    }

    private static long megabytes(long bytes) {
        return Math.round(bytes / (double) (1 << 20));
    }

    private static String size(long bytes) {
        long mb = megabytes(bytes);
        return mb == 0 ? "" : ", some " + (mb < 100 ? mb : 10 * Math.round(mb / 10.0)) + " MB";
    }

    /** It could not move as it ought to: from now on it stays. */
    void failed(String why) {
        own = Way.LIVE;
        way = new MoveWay(why);
    }
}

package nstorm.worker;

import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import nstorm.load.Pinning;
import nstorm.memory.BoltMemory;
import nstorm.memory.Declared;
import nstorm.wire.Way;

/** Why one copy's executor stays where it is, or by which way of its own it moves. What its bolt keeps is looked up once the bolt is prepared. */
final class Stays {
    /** One thread for the JVM, since to read a bolt's code takes up to two seconds. */
    private static final ExecutorService READER = Executors.newSingleThreadExecutor(work -> {
        Thread thread = new Thread(work, "nstorm-memory");
        thread.setDaemon(true);
        return thread;
    });

    final Way way;
    private final String component;
    private Object bolt;
    private volatile String reason;

    Stays(String component, boolean spout, Object taskObject, Declared declared) {
        this.component = component;
        String fixed = declared.reason(component);
        way = fixed == null ? Pinning.way(component, spout, taskObject) : Way.LIVE;
        if (fixed == null) {
            fixed = Pinning.reason(component, spout, taskObject);
        }
        if (fixed == null && !declared.isLive(component)) {
            fixed = "it is not known yet what it keeps";
            bolt = taskObject;
        }
        reason = fixed;
    }

    /** The reason, or null if it may move; from any thread. */
    synchronized String reason(boolean prepared) {
        if (bolt != null && prepared) {
            Object read = bolt;
            bolt = null;
            READER.execute(() -> reason = BoltMemory.of(read).reason(component));
        }
        return reason;
    }
}

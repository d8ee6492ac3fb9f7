package nstorm.hook;

import java.util.concurrent.atomic.AtomicLong;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** Counts and logs what went wrong inside a hook; nothing of ours may reach the host. */
public final class Faults {
    private static final Logger LOG = LoggerFactory.getLogger(Faults.class);
    private static final AtomicLong COUNT = new AtomicLong();
    private static volatile String last;

    private Faults() {}

    public static void report(String during, Throwable fault) {
        COUNT.incrementAndGet();
        last = during + ": " + fault;
        LOG.error("nstorm_fault during=\"{}\"", during, fault);
    }

    public static long count() {
        return COUNT.get();
    }

    /** The newest fault, or null. */
    public static String last() {
        return last;
    }
}

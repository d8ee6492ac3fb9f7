package nstorm.hook;

import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicLong;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** Counts and logs what went wrong inside a hook; nothing of ours may reach the host. */
public final class Faults {
    private static final Logger LOG = LoggerFactory.getLogger(Faults.class);
    private static final AtomicLong COUNT = new AtomicLong();
    private static volatile String last;

    /** By what was done: a lasting fault is reported up to some hundred times a second. */
    private static final Map<String, Failures> LOGGED = new ConcurrentHashMap<>();

    private static final int MOST_LOGGED = 100;

    private Faults() {}

    public static void report(String during, Throwable fault) {
        COUNT.incrementAndGet();
        last = during + ": " + fault;
        if (LOGGED.size() > MOST_LOGGED) {
            LOGGED.clear();
        }
        switch (LOGGED.computeIfAbsent(during, any -> new Failures()).of(fault, System.nanoTime())) {
            case TRACE -> LOG.error("nstorm_fault during=\"{}\"", during, fault);
            case SENTENCE -> LOG.error("nstorm_fault during=\"{}\", again: {}", during, fault.toString());
            case NONE -> {}
        }
    }

    /** Called by Storm's own methods where the code that was woven into them has failed. */
    public static void suppressed(Throwable fault) {
        contained("a hook", fault);
    }

    /**
     * Reports what code of a user's has thrown, on a thread whose end would end the worker. Never throws. Compilers other than Java's let a
     * method throw what it does not declare, so the caller catches every {@link Throwable}.
     */
    public static void contained(String during, Throwable thrown) {
        if (thrown instanceof InterruptedException) {
            Thread.currentThread().interrupt();
        }
        try {
            report(during, thrown);
        } catch (Throwable again) {
            // It is counted; there may be no memory to log it, or it cannot be shown.
        }
    }

    public static long count() {
        return COUNT.get();
    }

    /** The newest fault, or null. */
    public static String last() {
        return last;
    }
}

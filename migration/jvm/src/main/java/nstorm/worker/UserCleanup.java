package nstorm.worker;

import java.util.Collection;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.stream.Collectors;
import nstorm.hook.Faults;
import org.apache.storm.executor.Executor;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Shuts an executor down whose thread has ended, with the user's {@code cleanup()} only where the user allows it.
 *
 * <p>Stock Storm calls {@code cleanup()} when the whole JVM ends. A bolt or a task hook may close there what all of the
 * JVM share.
 */
final class UserCleanup {
    private static final Logger LOG = LoggerFactory.getLogger(UserCleanup.class);
    private static final String KEY = "nstorm.cleanup";

    private UserCleanup() {}

    /** The components whose bolts and task hooks are cleaned up when they leave a JVM that lives on: {@code nstorm.cleanup}. */
    static Set<String> components(Map<String, Object> topologyConf) {
        Object given = topologyConf.getOrDefault(KEY, List.of());
        if (given instanceof Collection<?> list && list.stream().allMatch(String.class::isInstance)) {
            return list.stream().map(String.class::cast).collect(Collectors.toUnmodifiableSet());
        }
        LOG.warn(
                "{} must be a list of component ids, is {}: it is taken as empty, so no bolt or task hook"
                        + " is cleaned up when it moves away",
                KEY,
                given);
        return Set.of();
    }

    static void shutDown(ExecutorCopy copy, boolean cleanUp) {
        if (cleanUp) {
            if (copy.cleanedUp()) {
                // Storm would close its tasks again, and cleans up the hooks alone of what was never opened.
                copy.executor().getOpenOrPrepareWasCalled().set(false);
            }
            // The user's cleanup() may block: it has a thread of its own.
            Thread thread = new Thread(() -> contained(copy, copy.running::shutdown), "nstorm-cleanup-" + copy.id());
            thread.setDaemon(true);
            thread.start();
        } else {
            contained(copy, () -> release(copy.executor()));
        }
    }

    /** What {@code ExecutorShutdown.shutdown()} does, without its calls of the user's code. */
    private static void release(Executor executor) {
        executor.getReceiveQueue().close();
        executor.getStats().cleanupStats();
        executor.getStormClusterState().disconnect();
    }

    private static void contained(ExecutorCopy copy, Runnable shutdown) {
        try {
            shutdown.run();
        } catch (Throwable e) {
            // What escapes a thread of the worker ends the worker.
            Faults.contained("shutting down executor " + copy.id(), e);
        }
    }
}

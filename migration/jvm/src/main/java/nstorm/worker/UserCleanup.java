package nstorm.worker;

import java.util.Collection;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.stream.Collectors;
import nstorm.hook.Faults;
import nstorm.wire.ExecutorId;
import nstorm.worker.exit.UsersEnd;
import org.apache.storm.daemon.Task;
import org.apache.storm.executor.Executor;
import org.apache.storm.hooks.ITaskHook;
import org.apache.storm.task.IBolt;
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

    /** Releases what Storm holds for it first: what the user's code throws, or its waiting, keeps none of that. */
    static void shutDown(ExecutorCopy copy, boolean cleanUp) {
        Executor executor = copy.executor();
        contained(executor, () -> release(executor));
        if (cleanUp) {
            cleanUp(executor, executor.getOpenOrPrepareWasCalled().get() && !copy.cleanedUp());
        }
    }

    /**
     * Cleans task hooks up, and bolts if they are open. Storm prepares hooks of {@code topology.auto.task.hooks} while it builds an
     * executor, so also one that never ran has them.
     */
    static void cleanUp(Executor executor, boolean bolts) {
        contained(executor, () -> {
            // The user's cleanup() may block: it has a thread of its own.
            ExecutorId id = ExecutorId.of(executor.getExecutorId());
            Thread thread =
                    new Thread(() -> contained(executor, () -> callUsers(executor, bolts)), "nstorm-cleanup-" + id);
            thread.setDaemon(true);
            thread.start();
        });
    }

    private static void callUsers(Executor executor, boolean bolts) {
        List<Task> tasks = UsersEnd.tasks(executor);
        for (Task task : tasks) {
            for (ITaskHook hook : task.getUserContext().getHooks()) {
                UsersEnd.call(executor, "cleanup of a task hook of", hook::cleanup);
            }
        }
        if (bolts) {
            tasks.forEach(
                    task -> UsersEnd.call(executor, "cleanup of bolt", () -> ((IBolt) task.getTaskObject()).cleanup()));
        }
    }

    /** What {@code ExecutorShutdown.shutdown()} does, without its calls of the user's code. */
    private static void release(Executor executor) {
        executor.getReceiveQueue().close();
        executor.getStats().cleanupStats();
        executor.getStormClusterState().disconnect();
    }

    private static void contained(Executor executor, Runnable part) {
        try {
            part.run();
        } catch (Throwable e) {
            // What escapes a thread of the worker ends the worker.
            Faults.contained("shutting down executor " + executor.getExecutorId(), e);
        }
    }
}

package nstorm.worker.exit;

import java.util.List;
import java.util.Objects;
import java.util.function.Consumer;
import nstorm.hook.Faults;
import nstorm.worker.storm.StormFields;
import org.apache.storm.daemon.Task;
import org.apache.storm.executor.Executor;

/** Ends what an executor has of the user's. What the user's code throws must not end a worker that lives on. */
public final class UsersEnd {
    private UsersEnd() {}

    /** Storm's own list may have gaps. */
    public static List<Task> tasks(Executor executor) {
        return StormFields.<List<Task>>get(StormFields.ID_TO_TASK, executor).stream()
                .filter(Objects::nonNull)
                .toList();
    }

    /**
     * Closes tasks on the executor's own thread, and leaves their hooks alone: one may close what all tasks of the JVM share.
     *
     * @param opened how many tasks are open, the first of all
     */
    static void of(Executor executor, String name, int opened, Consumer<Object> close) {
        tasks(executor).stream()
                .limit(opened)
                .forEach(task -> call(executor, name, () -> close.accept(task.getTaskObject())));
    }

    /**
     * Runs one call of the user's code, and reports what it throws. An interrupt of an earlier call does not reach it: what it closes could
     * stay open. Nor does it leave one, with which Storm's loop would end before the executor is closed and has handed on.
     */
    public static void call(Executor executor, String name, Runnable call) {
        Thread.interrupted();
        try {
            call.run();
        } catch (Throwable e) {
            Faults.contained(name + " " + executor.getComponentId() + executor.getExecutorId(), e);
        } finally {
            Thread.interrupted();
        }
    }
}

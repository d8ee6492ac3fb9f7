package nstorm.worker.exit;

import java.util.List;
import java.util.Objects;
import java.util.function.Consumer;
import nstorm.hook.Faults;
import nstorm.worker.storm.StormFields;
import org.apache.storm.daemon.Task;
import org.apache.storm.executor.Executor;
import org.apache.storm.hooks.ITaskHook;

/** Ends what an executor has of the user's, on the executor's own thread. What the user's code throws must not end a worker that lives on. */
final class UsersEnd {
    private UsersEnd() {}

    /** Storm's own list may have gaps. */
    static List<Task> tasks(Executor executor) {
        return StormFields.<List<Task>>get(StormFields.ID_TO_TASK, executor).stream()
                .filter(Objects::nonNull)
                .toList();
    }

    /**
     * Closes tasks, and then cleans up the hooks of all, which Storm has prepared as it built each task.
     *
     * @param opened how many tasks are open, the first of all
     */
    static void of(Executor executor, String name, int opened, Consumer<Object> close) {
        List<Task> tasks = tasks(executor);
        tasks.stream().limit(opened).forEach(task -> call(executor, name, () -> close.accept(task.getTaskObject())));
        for (Task task : tasks) {
            for (ITaskHook hook : task.getUserContext().getHooks()) {
                call(executor, "cleanup of a task hook of", hook::cleanup);
            }
        }
        // An interrupt that the user's code leaves would end the thread before it has handed on.
        Thread.interrupted();
    }

    /** Runs one call of the user's code, and reports what it throws. */
    static void call(Executor executor, String name, Runnable call) {
        try {
            call.run();
        } catch (Throwable e) {
            Faults.contained(name + " " + executor.getComponentId() + executor.getExecutorId(), e);
        }
    }
}

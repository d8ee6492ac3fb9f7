package nstorm.worker.storm;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.apache.storm.daemon.GrouperFactory;
import org.apache.storm.daemon.Task;
import org.apache.storm.executor.Executor;
import org.apache.storm.generated.Grouping;
import org.apache.storm.grouping.LoadAwareCustomStreamGrouping;
import org.apache.storm.task.WorkerTopologyContext;
import org.apache.storm.tuple.Fields;

/**
 * Rebuilds the local-or-shuffle groupings of an executor after executors have come or gone.
 *
 * <p>Storm picks their targets once, when it builds the executor. Without this a bolt would go on to prefer tasks that
 * have left its worker, and not know those that have come.
 */
public final class LocalGroupings {
    private LocalGroupings() {}

    public static void rebuild(Executor executor) {
        Map<String, Map<String, LoadAwareCustomStreamGrouping>> groupers = executor.getStreamToComponentToGrouper();
        WorkerTopologyContext context = executor.getWorkerTopologyContext();
        context.getTargets(executor.getComponentId())
                .forEach((stream, targets) -> targets.forEach((component, grouping) -> {
                    if (grouping.getSetField() == Grouping._Fields.LOCAL_OR_SHUFFLE) {
                        replace(
                                executor,
                                stream,
                                groupers.get(stream).get(component),
                                build(executor, context, stream, component, grouping));
                    }
                }));
    }

    private static LoadAwareCustomStreamGrouping build(
            Executor executor, WorkerTopologyContext context, String stream, String component, Grouping grouping) {
        Fields fields = context.getComponentOutputFields(executor.getComponentId(), stream);
        LoadAwareCustomStreamGrouping built = GrouperFactory.mkGrouper(
                context,
                executor.getComponentId(),
                stream,
                fields,
                grouping,
                context.getComponentTasks(component),
                executor.getTopoConf());
        executor.getStreamToComponentToGrouper().get(stream).put(component, built);
        return built;
    }

    /** Replaces one reference in each list that the executor's thread and the load timer read. */
    private static void replace(
            Executor executor, String stream, LoadAwareCustomStreamGrouping old, LoadAwareCustomStreamGrouping built) {
        replace(StormFields.get(StormFields.GROUPERS, executor), old, built);
        ArrayList<Task> tasks = StormFields.get(StormFields.ID_TO_TASK, executor);
        for (Task task : tasks) {
            if (task != null) {
                Map<String, ArrayList<LoadAwareCustomStreamGrouping>> byStream =
                        StormFields.get(StormFields.STREAM_TO_GROUPERS, task);
                replace(byStream.get(stream), old, built);
            }
        }
    }

    /** By index, for {@code replaceAll} would count as a structural change to a thread that iterates at the same time. */
    private static void replace(
            List<LoadAwareCustomStreamGrouping> list,
            LoadAwareCustomStreamGrouping old,
            LoadAwareCustomStreamGrouping built) {
        for (int i = 0; i < list.size(); i++) {
            if (list.get(i) == old) {
                list.set(i, built);
            }
        }
    }
}

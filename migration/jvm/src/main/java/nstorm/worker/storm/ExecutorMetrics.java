package nstorm.worker.storm;

import com.codahale.metrics.Metric;
import com.codahale.metrics.MetricRegistry;
import java.lang.reflect.Field;
import java.util.HashSet;
import java.util.Map;
import java.util.Set;
import nstorm.wire.ExecutorId;
import org.apache.storm.metrics2.RateCounter;
import org.apache.storm.metrics2.StormMetricRegistry;
import org.apache.storm.metrics2.TaskMetricDimensions;

/**
 * Removes every metric of a stopped executor, so that nothing leaks and the executor may return. A name that is still
 * registered would make its constructor throw.
 */
public final class ExecutorMetrics {
    private ExecutorMetrics() {}

    /**
     * Removes the metrics of the executor's tasks.
     *
     * <p>Storm's names hold {@code .<task>.<port>-<metric>} for worker and topology metrics alike.
     */
    public static void remove(StormMetricRegistry storm, ExecutorId executor, int port) {
        for (int task = executor.start(); task <= executor.end(); task++) {
            removeTask(storm, task, port);
        }
    }

    private static void removeTask(StormMetricRegistry storm, int task, int port) {
        String mark = "." + task + "." + port + "-";
        MetricRegistry registry = storm.getRegistry();
        Set<Metric> gone = new HashSet<>();
        registry.removeMatching((name, metric) -> name.contains(mark) && gone.add(metric));
        Set<RateCounter> rateCounters = StormFields.get(StormFields.RATE_COUNTERS, storm);
        rateCounters.removeIf(gone::contains);
        Map<TaskMetricDimensions, ?> repositories = StormFields.get(StormFields.TASK_METRICS, storm);
        String taskText = Integer.toString(task);
        repositories
                .keySet()
                .removeIf(key -> taskText.equals(key.getDimensions().get("taskid")));
        for (Field byTask : StormFields.METRICS_BY_TASK) {
            StormFields.<Map<Integer, ?>>get(byTask, storm).remove(task);
        }
    }
}

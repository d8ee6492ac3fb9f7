package nstorm.wire.report;

import java.util.List;
import java.util.Map;
import nstorm.wire.ExecutorId;
import nstorm.wire.Slot;
import nstorm.wire.json.JsonText;

/**
 * What a worker has used and sent since its JVM started; totals never fall.
 *
 * @param traffic rows of source task, destination task, tuples
 * @param folded  what was sent to all other destinations
 * @param meters  numbers of the whole JVM by their names; what cannot be read is not there
 * @param sizes   of tuples to other workers, by the components of both ends; of some of the tuples
 * @param latency rows of bucket, tuples: how long acked tuples took, where that was measured
 * @param executorMeters numbers of the executors by their names, in the order of those; below 0 where not known
 */
public record WorkerLoad(
        String topology,
        Slot slot,
        String incarnation,
        long timeMs,
        long processCpuNs,
        List<ExecutorLoad> executors,
        List<long[]> traffic,
        List<FoldedTraffic> folded,
        Map<String, Long> meters,
        List<TupleSize> sizes,
        List<long[]> latency,
        Map<String, long[]> executorMeters) {

    public byte[] toJson() {
        JsonText json = new JsonText()
                .open()
                .put("topology", topology)
                .put("slot", slot)
                .put("incarnation", incarnation)
                .put("time_ms", timeMs)
                .put("process_cpu_ns", processCpuNs)
                .list(
                        "executors",
                        executors,
                        (out, load) -> out.open()
                                .put("executor", load.executor(), ExecutorId::write)
                                .put("component", load.component())
                                .put("cpu_ns", load.cpuNs())
                                .put("queue", load.queue())
                                .put("pinned", load.pinned())
                                .close())
                .list("traffic", traffic, JsonText::values)
                .list(
                        "folded",
                        folded,
                        (out, rest) -> out.listOf(() ->
                                out.value(rest.source()).value(rest.component()).value(rest.tuples())));
        if (!meters.isEmpty()) {
            json.open("meters");
            meters.forEach((name, value) -> json.put(name, value.longValue()));
            json.close();
        }
        if (!sizes.isEmpty()) {
            json.list(
                    "sizes",
                    sizes,
                    (out, size) -> out.listOf(() -> out.value(size.source())
                            .value(size.destination())
                            .value(size.tuples())
                            .value(size.bytes())));
        }
        if (!latency.isEmpty()) {
            json.list("latency", latency, JsonText::values);
        }
        if (!executorMeters.isEmpty()) {
            json.open("executor_meters");
            executorMeters.forEach((name, values) -> json.put(name, values, JsonText::values));
            json.close();
        }
        return json.close().bytes();
    }
}

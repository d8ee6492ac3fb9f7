package nstorm.wire.report;

import java.util.List;
import nstorm.wire.ExecutorId;
import nstorm.wire.Protocol;
import nstorm.wire.Slot;
import nstorm.wire.json.JsonText;

/**
 * What Storm itself knows of one topology, as the hook in Nimbus publishes it.
 *
 * @param mode the mode in the topology's own configuration, or null
 * @param workerTimeoutSecs after how long of silence Nimbus places the executors of a worker elsewhere
 * @param messageTimeoutSecs after how long a tuple that is not acked fails
 */
public record Publication(
        String topology,
        String name,
        String status,
        long refreshPollSecs,
        List<Component> components,
        List<Edge> edges,
        List<Placed> executors,
        String mode,
        long workerTimeoutSecs,
        long messageTimeoutSecs) {

    /**
     * A component; the kind is spout, bolt or system.
     *
     * @param memoryMb what each of its executors declares; null where Storm's scheduler does not count memory
     */
    public record Component(String id, String kind, long parallelism, Double memoryMb) {}

    /** A subscription of one component to a stream of another. */
    public record Edge(String from, String to, String stream, String grouping) {}

    /** Where Storm assigns an executor; slot and start are null while it is unassigned. */
    public record Placed(ExecutorId executor, String component, Slot slot, Long startSecs) {}

    public byte[] toJson() {
        JsonText text = new JsonText()
                .open()
                .put("topology", topology)
                .put("name", name)
                .put("status", status)
                .put("refresh_poll_secs", refreshPollSecs)
                .list("components", components, Publication::write)
                .list("edges", edges, Publication::write)
                .list("executors", executors, Publication::write)
                .put("speaks", Protocol.SPEAKS);
        return (mode == null ? text : text.put("mode", mode))
                .put("worker_timeout_secs", workerTimeoutSecs)
                .put("message_timeout_secs", messageTimeoutSecs)
                .close()
                .bytes();
    }

    private static void write(JsonText out, Component component) {
        out.open().put("id", component.id).put("kind", component.kind).put("parallelism", component.parallelism);
        (component.memoryMb == null ? out : out.put("memory_mb", component.memoryMb.doubleValue())).close();
    }

    private static void write(JsonText out, Edge edge) {
        out.open()
                .put("from", edge.from)
                .put("to", edge.to)
                .put("stream", edge.stream)
                .put("grouping", edge.grouping)
                .close();
    }

    private static void write(JsonText out, Placed placed) {
        out.open()
                .put("executor", placed.executor, ExecutorId::write)
                .put("component", placed.component)
                .put("slot", placed.slot)
                .put("start_secs", placed.startSecs, JsonText::value)
                .close();
    }
}

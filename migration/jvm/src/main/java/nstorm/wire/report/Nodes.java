package nstorm.wire.report;

import java.util.List;
import nstorm.wire.json.JsonText;

/** The supervisors of the cluster, as the hook in Nimbus publishes them. */
public record Nodes(List<Node> nodes) {

    /**
     * A supervisor; its capacity in per cent of a core.
     *
     * @param closed why nothing may come to it, or null
     * @param memoryMb what it has; null where Storm's scheduler does not count memory
     */
    public record Node(
            String id,
            String host,
            double cpuCapacity,
            List<Integer> slots,
            int slotsInUse,
            String closed,
            Double memoryMb) {

        private static void write(JsonText out, Node node) {
            out.open()
                    .put("id", node.id)
                    .put("host", node.host)
                    .put("cpu_capacity", node.cpuCapacity)
                    .list("slots", node.slots, (list, port) -> list.value(port.longValue()))
                    .put("slots_in_use", node.slotsInUse)
                    .put("closed", node.closed);
            (node.memoryMb == null ? out : out.put("memory_mb", node.memoryMb.doubleValue())).close();
        }
    }

    public byte[] toJson() {
        return new JsonText().open().list("nodes", nodes, Node::write).close().bytes();
    }
}

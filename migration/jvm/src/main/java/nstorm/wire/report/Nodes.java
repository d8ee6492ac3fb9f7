package nstorm.wire.report;

import java.util.List;
import nstorm.wire.json.JsonText;

/** The supervisors of the cluster, as the hook in Nimbus publishes them. */
public record Nodes(List<Node> nodes) {

    /**
     * A supervisor; its capacity in per cent of a core.
     *
     * @param closed why nothing may come to it, or null
     */
    public record Node(
            String id, String host, double cpuCapacity, List<Integer> slots, int slotsInUse, String closed) {}

    public byte[] toJson() {
        return new JsonText()
                .open()
                .list(
                        "nodes",
                        nodes,
                        (out, node) -> out.open()
                                .put("id", node.id)
                                .put("host", node.host)
                                .put("cpu_capacity", node.cpuCapacity)
                                .list("slots", node.slots, (list, port) -> list.value(port.longValue()))
                                .put("slots_in_use", node.slotsInUse)
                                .put("closed", node.closed)
                                .close())
                .close()
                .bytes();
    }
}

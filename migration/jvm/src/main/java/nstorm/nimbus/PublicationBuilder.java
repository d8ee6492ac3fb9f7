package nstorm.nimbus;

import java.util.ArrayList;
import java.util.Collection;
import java.util.Comparator;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import nstorm.wire.ExecutorId;
import nstorm.wire.Slot;
import nstorm.wire.report.Nodes;
import nstorm.wire.report.Nodes.Node;
import nstorm.wire.report.Publication;
import nstorm.wire.report.Publication.Component;
import nstorm.wire.report.Publication.Edge;
import nstorm.wire.report.Publication.Placed;
import org.apache.storm.Config;
import org.apache.storm.DaemonConfig;
import org.apache.storm.generated.Assignment;
import org.apache.storm.generated.ComponentCommon;
import org.apache.storm.generated.Grouping;
import org.apache.storm.generated.NodeInfo;
import org.apache.storm.generated.StormBase;
import org.apache.storm.generated.StormTopology;
import org.apache.storm.generated.SupervisorInfo;
import org.apache.storm.scheduler.ExecutorDetails;
import org.apache.storm.scheduler.SupervisorDetails;
import org.apache.storm.scheduler.TopologyDetails;
import org.apache.storm.utils.ObjectReader;

/** Turns what Nimbus knows into what is published. */
final class PublicationBuilder {

    /** Not {@code nstorm.mode}: Nimbus lays its own configuration under that of a topology. */
    private static final String MODE = "topology.nstorm.mode";

    private final TopologyDetails details;
    private final StormTopology topology;
    private final Assignment assignment;
    private final StormPasses passes;

    /**
     * Looks at one topology.
     *
     * @param assignment Storm's assignment of it, null if it has none
     */
    PublicationBuilder(TopologyDetails details, Assignment assignment, StormPasses passes) {
        this.details = details;
        this.topology = details.getTopology();
        this.assignment = assignment;
        this.passes = passes;
    }

    Publication publication(StormBase base) {
        return new Publication(
                details.getId(),
                base.get_name(),
                base.get_status().name(),
                number(Config.TASK_REFRESH_POLL_SECS, 10),
                components(),
                edges(),
                executors(),
                mode(),
                workerTimeoutSecs(),
                number(Config.TOPOLOGY_MESSAGE_TIMEOUT_SECS, 30));
    }

    /**
     * As Nimbus computes it: a topology may only ask for a longer time. What Nimbus had at its submission stands in
     * the configuration of a topology too, and counts no more.
     */
    private long workerTimeoutSecs() {
        long ofNimbus = ObjectReader.getInt(passes.conf().get(DaemonConfig.NIMBUS_TASK_TIMEOUT_SECS), 30);
        return Math.max(ofNimbus, number(Config.TOPOLOGY_WORKER_TIMEOUT_SECS, 0));
    }

    private String mode() {
        Object mode = details.getConf().get(MODE);
        return mode == null ? null : mode.toString();
    }

    /** All supervisors, with the slots that the assignments of all topologies use. */
    static Nodes nodes(
            Collection<Assignment> assignments, Map<String, SupervisorInfo> supervisors, StormPasses passes) {
        Set<Slot> used = new HashSet<>();
        for (Assignment each : assignments) {
            new HashSet<>(each.get_executor_node_port().values()).forEach(node -> used.add(Placement.slot(node)));
        }
        List<Node> nodes = new ArrayList<>();
        new TreeMap<>(supervisors).forEach((id, info) -> {
            List<Long> offered = info.is_set_meta() ? info.get_meta() : List.of();
            List<Integer> ports = offered.stream().map(Long::intValue).sorted().toList();
            int inUse = (int) ports.stream()
                    .filter(port -> used.contains(new Slot(id, port)))
                    .count();
            SupervisorDetails details =
                    new SupervisorDetails(id, info.get_hostname(), null, ports, info.get_resources_map());
            nodes.add(new Node(
                    id,
                    info.get_hostname(),
                    details.getTotalCpu(),
                    ports,
                    inUse,
                    passes.closes(info, inUse == 0),
                    passes.countsMemory() ? details.getTotalMemory() : null));
        });
        return new Nodes(nodes);
    }

    private long number(String key, int otherwise) {
        return ObjectReader.getInt(details.getConf().get(key), otherwise);
    }

    private List<Component> components() {
        Map<String, Integer> parallelism = new TreeMap<>();
        Map<String, Double> memoryMb = new HashMap<>();
        details.getExecutorToComponent().forEach((executor, id) -> {
            parallelism.merge(id, 1, Integer::sum);
            if (passes.countsMemory()) {
                // All executors of a component declare the same.
                memoryMb.putIfAbsent(id, details.getTotalMemReqTask(executor));
            }
        });
        List<Component> components = new ArrayList<>();
        parallelism.forEach(
                (id, executors) -> components.add(new Component(id, kind(id), executors, memoryMb.get(id))));
        return components;
    }

    private String kind(String component) {
        if (topology.get_spouts().containsKey(component)) {
            return "spout";
        }
        return topology.get_bolts().containsKey(component) ? "bolt" : "system";
    }

    private List<Edge> edges() {
        List<Edge> edges = new ArrayList<>();
        topology.get_bolts().forEach((id, bolt) -> edges(id, bolt.get_common(), edges));
        edges.sort(Comparator.comparing(Edge::to).thenComparing(Edge::from).thenComparing(Edge::stream));
        return edges;
    }

    private static void edges(String to, ComponentCommon common, List<Edge> edges) {
        common.get_inputs()
                .forEach((stream, grouping) ->
                        edges.add(new Edge(stream.get_componentId(), to, stream.get_streamId(), name(grouping))));
    }

    private static String name(Grouping grouping) {
        boolean global = grouping.is_set_fields() && grouping.get_fields().isEmpty();
        return global ? "global" : grouping.getSetField().getFieldName();
    }

    private List<Placed> executors() {
        List<Placed> executors = new ArrayList<>();
        details.getExecutorToComponent().forEach((executor, component) -> executors.add(placed(executor, component)));
        // By slot: its id is hardly compressible, but for where it stands again nearby.
        executors.sort(Comparator.comparing((Placed placed) ->
                        placed.slot() == null ? "" : placed.slot().toString())
                .thenComparing(Placed::executor));
        return executors;
    }

    private Placed placed(ExecutorDetails range, String component) {
        ExecutorId executor = new ExecutorId(range.getStartTask(), range.getEndTask());
        NodeInfo node =
                assignment == null ? null : assignment.get_executor_node_port().get(executor.toStorm());
        if (node == null) {
            return new Placed(executor, component, null, null);
        }
        Long start = assignment.get_executor_start_time_secs().get(executor.toStorm());
        return new Placed(executor, component, Placement.slot(node), start);
    }
}

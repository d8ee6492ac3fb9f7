package nstorm.nimbus;

import java.util.ArrayList;
import java.util.Comparator;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import nstorm.hook.HookStatus;
import nstorm.wire.ExecutorId;
import nstorm.wire.Plan;
import nstorm.wire.Slot;
import nstorm.wire.report.Publication;
import nstorm.wire.report.Publication.Component;
import nstorm.wire.report.Publication.Edge;
import nstorm.wire.report.Publication.Node;
import nstorm.wire.report.Publication.Placed;
import org.apache.storm.Config;
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

    private final TopologyDetails details;
    private final StormTopology topology;
    private final Map<String, Assignment> assignments;

    /**
     * Looks at one topology.
     *
     * @param assignments Storm's assignments of all topologies, as they are now
     */
    PublicationBuilder(TopologyDetails details, Map<String, Assignment> assignments) {
        this.details = details;
        this.topology = details.getTopology();
        this.assignments = assignments;
    }

    String id() {
        return details.getId();
    }

    Publication publication(StormBase base, String scheduler, long timeMs, long round, Plan plan,
                            Map<String, SupervisorInfo> supervisors) {
        return new Publication(details.getId(), base.get_name(), base.get_status().name(), timeMs, HookStatus.VERSION,
            scheduler, number(Config.TASK_REFRESH_POLL_SECS, 10), round, plan, components(), edges(), nodes(supervisors), executors());
    }

    private long number(String key, int otherwise) {
        return ObjectReader.getInt(details.getConf().get(key), otherwise);
    }

    private List<Component> components() {
        Map<String, Integer> parallelism = new TreeMap<>();
        details.getExecutorToComponent().values().forEach(id -> parallelism.merge(id, 1, Integer::sum));
        List<Component> components = new ArrayList<>();
        parallelism.forEach((id, executors) -> components.add(new Component(id, kind(id), executors)));
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
        common.get_inputs().forEach((stream, grouping) ->
            edges.add(new Edge(stream.get_componentId(), to, stream.get_streamId(), name(grouping))));
    }

    private static String name(Grouping grouping) {
        boolean global = grouping.is_set_fields() && grouping.get_fields().isEmpty();
        return global ? "global" : grouping.getSetField().getFieldName();
    }

    private List<Node> nodes(Map<String, SupervisorInfo> supervisors) {
        Set<Slot> used = new HashSet<>();
        for (Assignment assignment : assignments.values()) {
            assignment.get_executor_node_port().values().forEach(node -> used.add(Placement.slot(node)));
        }
        List<Node> nodes = new ArrayList<>();
        new TreeMap<>(supervisors).forEach((id, info) -> {
            List<Integer> ports = info.get_meta().stream().map(Long::intValue).sorted().toList();
            int inUse = (int) ports.stream().filter(port -> used.contains(new Slot(id, port))).count();
            double capacity = new SupervisorDetails(id, info.get_hostname(), null, ports, info.get_resources_map())
                .getTotalCpu();
            nodes.add(new Node(id, info.get_hostname(), capacity, ports, inUse));
        });
        return nodes;
    }

    private List<Placed> executors() {
        Assignment assignment = assignments.get(details.getId());
        List<Placed> executors = new ArrayList<>();
        details.getExecutorToComponent().forEach((executor, component) ->
            executors.add(placed(executor, component, assignment)));
        executors.sort(Comparator.comparing(Placed::executor));
        return executors;
    }

    private static Placed placed(ExecutorDetails details, String component, Assignment assignment) {
        ExecutorId executor = new ExecutorId(details.getStartTask(), details.getEndTask());
        NodeInfo node = assignment == null ? null : assignment.get_executor_node_port().get(executor.toStorm());
        if (node == null) {
            return new Placed(executor, component, null, null);
        }
        Long start = assignment.get_executor_start_time_secs().get(executor.toStorm());
        return new Placed(executor, component, Placement.slot(node), start);
    }
}

package nstorm.workload;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.apache.storm.StormSubmitter;
import org.apache.storm.generated.Assignment;
import org.apache.storm.generated.ClusterSummary;
import org.apache.storm.generated.ExecutorInfo;
import org.apache.storm.generated.ExecutorSummary;
import org.apache.storm.generated.KillOptions;
import org.apache.storm.generated.Nimbus;
import org.apache.storm.generated.NodeInfo;
import org.apache.storm.generated.RebalanceOptions;
import org.apache.storm.generated.SupervisorSummary;
import org.apache.storm.generated.TopologyInfo;
import org.apache.storm.generated.TopologySummary;
import org.apache.storm.shade.net.minidev.json.JSONValue;
import org.apache.storm.utils.NimbusClient;
import org.apache.storm.utils.Utils;

/**
 * Nimbus' answers as JSON: one request a line on stdin, as [command, argument…], one answer a line on stdout.
 * It ends with its stdin, so it never outlives the process that asks.
 */
public final class Client {
    private final Map<String, Object> conf = Utils.readStormConfig();

    private Client() {}

    public static void main(String[] args) throws IOException {
        PrintStream answers = System.out;
        System.setOut(System.err);
        Client client = new Client();
        BufferedReader requests = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = requests.readLine(); line != null; line = requests.readLine()) {
            answers.println(JSONValue.toJSONString(client.answer(line)));
            answers.flush();
        }
        System.exit(0);
    }

    // Storm before 2.6.4 has no builder of clients.
    @SuppressWarnings("deprecation")
    private Map<String, Object> answer(String line) {
        List<?> request = (List<?>) JSONValue.parse(line);
        try (NimbusClient nimbus = NimbusClient.getConfiguredClient(conf)) {
            return dispatch(nimbus.getClient(), request);
        } catch (Exception e) {
            return Map.of("error", e.toString());
        }
    }

    private Map<String, Object> dispatch(Nimbus.Iface nimbus, List<?> request) throws Exception {
        String argument = request.size() > 1 ? (String) request.get(1) : "";
        return switch ((String) request.get(0)) {
            case "cluster" -> cluster(nimbus.getClusterInfo());
            case "topology" -> topology(nimbus, argument);
            case "submit" -> submit(nimbus, argument, object(request.get(2)), (String) request.get(3));
            case "kill" -> {
                KillOptions kill = new KillOptions();
                kill.set_wait_secs(((Number) request.get(2)).intValue());
                nimbus.killTopologyWithOpts(argument, kill);
                yield Map.of();
            }
            case "rebalance" -> {
                nimbus.rebalance(argument, rebalanceOptions(object(request.get(2))));
                yield Map.of();
            }
            case "activate" -> {
                nimbus.activate(argument);
                yield Map.of();
            }
            case "deactivate" -> {
                nimbus.deactivate(argument);
                yield Map.of();
            }
            default -> throw new IllegalArgumentException("no such command: " + request.get(0));
        };
    }

    private static Map<String, Object> object(Object value) {
        Map<String, Object> copy = new HashMap<>();
        ((Map<?, ?>) value).forEach((key, entry) -> copy.put((String) key, entry));
        return copy;
    }

    private static Map<String, Object> cluster(ClusterSummary summary) {
        List<Object> supervisors = new ArrayList<>();
        for (SupervisorSummary s : summary.get_supervisors()) {
            supervisors.add(Map.of(
                    "id",
                    s.get_supervisor_id(),
                    "host",
                    s.get_host(),
                    "slots",
                    s.get_num_workers(),
                    "slots_in_use",
                    s.get_num_used_workers(),
                    "version",
                    s.get_version()));
        }
        List<Object> topologies = new ArrayList<>();
        for (TopologySummary t : summary.get_topologies()) {
            topologies.add(Map.of(
                    "id",
                    t.get_id(),
                    "name",
                    t.get_name(),
                    "status",
                    t.get_status(),
                    "executors",
                    t.get_num_executors(),
                    "workers",
                    t.get_num_workers()));
        }
        return Map.of("supervisors", supervisors, "topologies", topologies);
    }

    private static Map<String, Object> topology(Nimbus.Iface nimbus, String id) throws Exception {
        // The assignment first: one that comes between the two questions would have executors that info lacks.
        Assignment assignment = assignment(nimbus, id);
        TopologyInfo info = nimbus.getTopologyInfo(id);
        Map<List<Long>, String> components = new HashMap<>();
        for (ExecutorSummary summary : info.get_executors()) {
            ExecutorInfo executor = summary.get_executor_info();
            components.put(
                    List.of((long) executor.get_task_start(), (long) executor.get_task_end()),
                    summary.get_component_id());
        }
        List<Object> executors = new ArrayList<>();
        // A rebalance between the two makes other executors of the tasks: as good as no assignment yet.
        if (assignment != null
                && components
                        .keySet()
                        .containsAll(assignment.get_executor_node_port().keySet())) {
            assignment
                    .get_executor_node_port()
                    .forEach((executor, slot) -> executors.add(executor(
                            executor,
                            components.get(executor),
                            slot,
                            assignment.get_executor_start_time_secs().get(executor))));
        }
        return Map.of("id", id, "name", info.get_name(), "status", info.get_status(), "executors", executors);
    }

    private static Map<String, Object> executor(List<Long> executor, String component, NodeInfo slot, Long startSecs) {
        Map<String, Object> row = new LinkedHashMap<>();
        row.put("executor", executor);
        row.put("component", component);
        row.put("slot", slot.get_node() + ":" + slot.get_port().iterator().next());
        row.put("start_secs", startSecs);
        return row;
    }

    /** The whole assignment; Nimbus hands it to any supervisor that has a part in it. */
    private static Assignment assignment(Nimbus.Iface nimbus, String id) throws Exception {
        for (SupervisorSummary supervisor : nimbus.getClusterInfo().get_supervisors()) {
            Assignment assignment = nimbus.getSupervisorAssignments(supervisor.get_supervisor_id())
                    .get_storm_assignment()
                    .get(id);
            if (assignment != null) {
                return assignment;
            }
        }
        return null;
    }

    private static Map<String, Object> submit(
            Nimbus.Iface nimbus, String name, Map<String, Object> topologyConf, String workload) throws Exception {
        StormSubmitter.submitTopology(name, topologyConf, Workloads.build(workload, topologyConf));
        return Map.of("id", nimbus.getTopologySummaryByName(name).get_id());
    }

    private static RebalanceOptions rebalanceOptions(Map<String, Object> wanted) {
        RebalanceOptions options = new RebalanceOptions();
        options.set_wait_secs((int) WordCount.number(wanted, "wait_secs", 0));
        if (wanted.get("workers") instanceof Number workers) {
            options.set_num_workers(workers.intValue());
        }
        if (wanted.get("executors") instanceof Map<?, ?> executors) {
            executors.forEach((component, count) ->
                    options.put_to_num_executors((String) component, ((Number) count).intValue()));
        }
        return options;
    }
}

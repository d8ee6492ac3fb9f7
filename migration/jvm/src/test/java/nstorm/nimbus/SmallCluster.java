package nstorm.nimbus;

import java.util.ArrayList;
import java.util.Collection;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.stream.Collectors;
import nstorm.wire.Entry;
import nstorm.wire.ExecutorId;
import nstorm.wire.Phase;
import nstorm.wire.Plan;
import nstorm.wire.Slot;
import org.apache.storm.daemon.nimbus.Nimbus;
import org.apache.storm.generated.Assignment;
import org.apache.storm.generated.NodeInfo;
import org.apache.storm.metric.StormMetricsRegistry;
import org.apache.storm.scheduler.Cluster;
import org.apache.storm.scheduler.ExecutorDetails;
import org.apache.storm.scheduler.SchedulerAssignmentImpl;
import org.apache.storm.scheduler.SupervisorDetails;
import org.apache.storm.scheduler.Topologies;
import org.apache.storm.scheduler.TopologyDetails;
import org.apache.storm.scheduler.WorkerSlot;
import org.apache.storm.scheduler.resource.normalization.ResourceMetrics;
import org.apache.storm.testing.TestWordSpout;
import org.apache.storm.topology.TopologyBuilder;
import org.apache.storm.utils.Utils;

/** Storm's own Cluster and Topologies as Nimbus makes them for a round: two supervisors with three slots each. */
final class SmallCluster {

    static final long START = 100;

    private final Map<String, TopologyDetails> topologies = new HashMap<>();
    private final Map<String, Map<Integer, Slot>> placed = new HashMap<>();
    private final Map<String, Set<Integer>> dead = new HashMap<>();
    private final Map<String, Plan> plans = new HashMap<>();

    private final Map<String, Integer> isolated = new HashMap<>();
    private final Map<String, Integer> priorities = new HashMap<>();

    private Map<String, Object> conf(String name) {
        Map<String, Object> conf = new HashMap<>(Utils.readDefaultConfig());
        conf.put("topology.name", name);
        // A component's executor takes one core.
        conf.put("topology.component.cpu.pcore.percent", 100.0);
        conf.put("topology.priority", priorities.getOrDefault(name, 29));
        conf.put("isolation.scheduler.machines", isolated);
        return conf;
    }

    /** Storm's isolation scheduler gives the topology a machine of its own. */
    SmallCluster isolated(String id) {
        isolated.put(id, 1);
        return this;
    }

    /** The resource-aware scheduler places it first, at the cost of others. */
    SmallCluster comesFirst(String id) {
        priorities.put(id, 0);
        return this;
    }

    /** A topology of executors 1 to n that asks for some workers. */
    SmallCluster topology(String id, int executors, int workers) {
        TopologyBuilder builder = new TopologyBuilder();
        builder.setSpout("words", new TestWordSpout(), executors);
        Map<ExecutorDetails, String> components = new HashMap<>();
        for (int task = 1; task <= executors; task++) {
            components.put(new ExecutorDetails(task, task), "words");
        }
        topologies.put(id, new TopologyDetails(id, conf(id), builder.createTopology(), workers, components, 1, "user"));
        return this;
    }

    /** Storm's assignment puts these tasks into a slot such as {@code s1:6700}. */
    SmallCluster place(String id, String slot, int firstTask, int lastTask) {
        for (int task = firstTask; task <= lastTask; task++) {
            placed.computeIfAbsent(id, key -> new TreeMap<>()).put(task, Slot.parse(slot));
        }
        return this;
    }

    /** The worker in a slot no longer beats. */
    SmallCluster kill(String id, String slot) {
        placed.get(id).forEach((task, at) -> {
            if (at.equals(Slot.parse(slot))) {
                dead.computeIfAbsent(id, key -> new HashSet<>()).add(task);
            }
        });
        return this;
    }

    /** Gives the topology a plan of moves. */
    SmallCluster plan(String id, Entry... entries) {
        plans.put(id, new Plan("c", 1, 1, id, List.of(entries)));
        return this;
    }

    static Entry move(int task, String from, String to, Phase phase) {
        return new Entry(
                "m" + task,
                new ExecutorId(task, task),
                Slot.parse(from),
                Slot.parse(to),
                phase,
                Slot.parse(from),
                START,
                null);
    }

    /** A move to a slot where the topology has no worker in Storm's assignment. */
    static Entry opening(int task, String from, String to, Phase phase) {
        Entry move = move(task, from, to, phase);
        return new Entry(
                move.id(),
                move.executor(),
                move.from(),
                move.to(),
                phase,
                move.baseSlot(),
                START,
                null,
                move.way(),
                "host2",
                true);
    }

    KnownPlans plans() {
        return new KnownPlans() {
            @Override
            public Plan of(String topologyId) {
                return plans.get(topologyId);
            }

            @Override
            public boolean manages(String topologyId) {
                return plans.containsKey(topologyId);
            }
        };
    }

    Topologies topologies() {
        return new Topologies(topologies);
    }

    /** What Nimbus reads from its state. */
    Map<String, Assignment> existing() {
        Map<String, Assignment> existing = new HashMap<>();
        placed.forEach((id, tasks) -> {
            Assignment assignment = new Assignment("dir");
            assignment.set_node_host(Map.of("s1", "host1", "s2", "host2"));
            assignment.set_executor_node_port(new HashMap<>());
            assignment.set_executor_start_time_secs(new HashMap<>());
            tasks.forEach((task, slot) -> {
                List<Long> executor = List.of((long) task, (long) task);
                assignment
                        .get_executor_node_port()
                        .put(executor, new NodeInfo(slot.supervisor(), new HashSet<>(Set.of((long) slot.port()))));
                assignment.get_executor_start_time_secs().put(executor, START);
            });
            existing.put(id, assignment);
        });
        return existing;
    }

    /** The cluster as Nimbus shows it to its scheduler: the dead have no slot, their ports are hidden. */
    Cluster cluster() {
        Map<String, SchedulerAssignmentImpl> assignments = new HashMap<>();
        Set<Slot> hidden = new HashSet<>();
        placed.forEach((id, tasks) -> {
            Map<ExecutorDetails, WorkerSlot> alive = new HashMap<>();
            tasks.forEach((task, slot) -> {
                if (dead.getOrDefault(id, Set.of()).contains(task)) {
                    hidden.add(slot);
                } else {
                    alive.put(new ExecutorDetails(task, task), new WorkerSlot(slot.supervisor(), slot.port()));
                }
            });
            assignments.put(id, new SchedulerAssignmentImpl(id, alive, null, null));
        });
        return new Cluster(
                new Nimbus.StandaloneINimbus(),
                new ResourceMetrics(new StormMetricsRegistry()),
                Map.of("s1", supervisor("s1", "host1", hidden), "s2", supervisor("s2", "host2", hidden)),
                assignments,
                topologies(),
                conf("t"));
    }

    private static SupervisorDetails supervisor(String id, String host, Set<Slot> hidden) {
        Collection<Integer> ports = new ArrayList<>(List.of(6700, 6701, 6702));
        ports.removeIf(port -> hidden.contains(new Slot(id, port)));
        return new SupervisorDetails(
                id,
                host,
                null,
                ports,
                new HashMap<>(Map.of(
                        "cpu.pcore.percent",
                        400.0,
                        "onheap.memory.mb",
                        1e6,
                        "offheap.memory.mb",
                        1e6,
                        "memory.mb",
                        1e6)));
    }

    /** A cluster's answer as text: {@code s1:6700=1,2,3 s2:6700=4}. */
    static String shown(Cluster cluster, String id) {
        Map<String, List<Integer>> bySlot = new TreeMap<>();
        if (cluster.getAssignmentById(id) != null) {
            cluster.getAssignmentById(id)
                    .getExecutorToSlot()
                    .forEach((executor, slot) -> bySlot.computeIfAbsent(
                                    slot.getNodeId() + ":" + slot.getPort(), key -> new ArrayList<>())
                            .add(executor.getStartTask()));
        }
        return bySlot.entrySet().stream()
                .map(entry -> entry.getKey() + "="
                        + entry.getValue().stream()
                                .sorted()
                                .map(String::valueOf)
                                .collect(Collectors.joining(",")))
                .collect(Collectors.joining(" "));
    }
}

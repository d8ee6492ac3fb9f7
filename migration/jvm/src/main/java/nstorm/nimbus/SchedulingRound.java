package nstorm.nimbus;

import java.lang.management.ManagementFactory;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.function.LongSupplier;
import nstorm.nimbus.Placement.Move;
import nstorm.wire.ExecutorId;
import nstorm.wire.Plan;
import nstorm.wire.Slot;
import org.apache.storm.generated.Assignment;
import org.apache.storm.generated.NodeInfo;
import org.apache.storm.scheduler.Cluster;
import org.apache.storm.scheduler.Topologies;
import org.apache.storm.scheduler.TopologyDetails;

/** One scheduling round of Nimbus; lives on its thread, under its lock. */
final class SchedulingRound {

    /**
     * What the scheduler is to see instead of what Nimbus gave.
     *
     * @param lacking the topologies but those that are placed as they shall be
     */
    record Prepared(Topologies topologies, Topologies lacking, Cluster cluster) {}

    /** Of CPU: a collection of garbage or a stolen core must not cost a topology the placement that it has. */
    private static final long LIMIT_NANOS = 2_000_000_000L;

    private final Map<String, Assignment> existing;
    private final KnownPlans plans;
    private final LongSupplier cpuNanos;
    private final Map<String, List<Move>> moves = new HashMap<>();

    /**
     * Begins a round.
     *
     * @param existing Storm's assignments before it
     */
    SchedulingRound(Map<String, Assignment> existing, KnownPlans plans) {
        this(existing, plans, ManagementFactory.getThreadMXBean()::getCurrentThreadCpuTime);
    }

    /** The same with a clock of the CPU that the thread uses. */
    SchedulingRound(Map<String, Assignment> existing, KnownPlans plans, LongSupplier cpuNanos) {
        this.existing = existing;
        this.plans = plans;
        this.cpuNanos = cpuNanos;
    }

    /** A copy in which every managed topology is placed as it shall be; null if there is none. Changes nothing. */
    Prepared prepare(Topologies topologies, Cluster cluster) {
        long end = cpuNanos.getAsLong() + LIMIT_NANOS;
        Cluster draft = null;
        Map<String, TopologyDetails> asking = new HashMap<>();
        Map<String, TopologyDetails> lacking = new HashMap<>();
        Map<String, List<Move>> drafted = new HashMap<>();
        for (TopologyDetails topology : topologies.getTopologies()) {
            boolean whole = false;
            asking.put(topology.getId(), topology);
            if (isPlaced(topology) && plans.manages(topology.getId())) {
                draft = draft == null ? new Cluster(cluster) : draft;
                Placement placement = placement(draft, topology);
                placement.reassignDead();
                placement.applyTo(draft);
                asking.put(topology.getId(), placement.asking());
                whole = placement.isWhole();
                drafted.put(topology.getId(), placement.moves());
            }
            if (!whole) {
                lacking.put(topology.getId(), asking.get(topology.getId()));
            }
            if (cpuNanos.getAsLong() > end) {
                throw new IllegalStateException("preparing took more than " + LIMIT_NANOS / 1_000_000 + " ms of CPU");
            }
        }
        moves.putAll(drafted);
        Topologies asked = new Topologies(asking);
        return draft == null ? null : new Prepared(asked, new Topologies(lacking), new Cluster(draft, asked));
    }

    private Placement placement(Cluster cluster, TopologyDetails topology) {
        Placement placement = new Placement(cluster, topology, existing.get(topology.getId()));
        Plan plan = plans.of(topology.getId());
        if (plan != null) {
            placement.absorb(plan);
        }
        return placement;
    }

    /** Absorbs the plans into a cluster and leaves everything else as it is. */
    void absorb(Topologies topologies, Cluster cluster) {
        // On a copy first: a cluster left half done would be written, and workers killed.
        Cluster draft = new Cluster(cluster);
        for (TopologyDetails topology : topologies.getTopologies()) {
            if (isPlaced(topology) && isLeft(draft, topology) && plans.of(topology.getId()) != null) {
                Placement placement = placement(draft, topology);
                placement.applyTo(draft);
                moves.put(topology.getId(), placement.moves());
            }
        }
        if (moves.values().stream().anyMatch(moved -> !moved.isEmpty())) {
            cluster.updateFrom(draft);
        }
    }

    /** False if it was just submitted or is being rebalanced: Storm's scheduler alone decides. */
    private boolean isPlaced(TopologyDetails topology) {
        return existing.containsKey(topology.getId());
    }

    /** False if the scheduler has taken all of its slots away, for a topology of a higher priority. */
    private static boolean isLeft(Cluster cluster, TopologyDetails topology) {
        return !cluster.getUsedSlotsByTopologyId(topology.getId()).isEmpty();
    }

    /** Removes from the executors that Nimbus would give new start times those that only followed the plan. */
    void keepStartTimes(
            Map<List<Long>, NodeInfo> before, Map<List<Long>, List<Object>> after, List<List<Long>> changed) {
        // The method that this serves knows no topology; the map is the one inside the assignment.
        existing.forEach((topology, assignment) -> {
            List<Move> moved = moves.getOrDefault(topology, List.of());
            if (assignment.get_executor_node_port() == before && !moved.isEmpty()) {
                var kept = StartTimes.kept(
                        StartTimes.read(before, Placement::slot), StartTimes.read(after, SchedulingRound::slot), moved);
                changed.removeIf(executor -> kept.contains(ExecutorId.of(executor)));
            }
        });
    }

    private static Slot slot(List<Object> nodePort) {
        return new Slot((String) nodePort.get(0), ((Long) nodePort.get(1)).intValue());
    }
}

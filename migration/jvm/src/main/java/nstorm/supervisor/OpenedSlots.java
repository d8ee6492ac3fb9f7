package nstorm.supervisor;

import java.util.Comparator;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.function.Function;
import java.util.function.Supplier;
import java.util.stream.Stream;
import nstorm.wire.Entry;
import nstorm.wire.ExecutorId;
import nstorm.wire.LocalPlan;
import nstorm.wire.Plan;
import org.apache.storm.generated.Assignment;
import org.apache.storm.generated.ExecutorInfo;
import org.apache.storm.generated.LocalAssignment;
import org.apache.storm.generated.WorkerResources;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The slots of this node in which a plan wants a worker that Storm does not assign yet.
 *
 * <p>Only this supervisor gets them, and the worker reads the plan from the same file. Storm's own assignment keeps the
 * executor where it was, so no reader can take another for its owner.
 */
final class OpenedSlots {

    private static final Logger LOG = LoggerFactory.getLogger(OpenedSlots.class);

    /** Stands for an empty set, which Storm would take for no worker: the system executor that every worker has. */
    static final ExecutorId NOTHING_YET = new ExecutorId(-1, -1);

    private final String supervisorId;
    private final Supplier<LocalPlan> plans;
    private final Function<String, Assignment> inZooKeeper;
    private final Function<Integer, LocalAssignment> running;
    private final Runnable readAgain;
    /** Topologies by port as Storm last got them; null until Storm has read its assignments once. */
    private volatile Map<Integer, String> told;

    /**
     * Follows the plans of this node.
     *
     * @param inZooKeeper Storm's assignment of a topology of which this supervisor may have none; null if there is none
     * @param running     what this supervisor's worker at a port works by; null if there is none
     * @param readAgain   lets Storm read its assignments at once
     */
    OpenedSlots(
            String supervisorId,
            Supplier<LocalPlan> plans,
            Function<String, Assignment> inZooKeeper,
            Function<Integer, LocalAssignment> running,
            Runnable readAgain) {
        this.supervisorId = supervisorId;
        this.plans = plans;
        this.inZooKeeper = inZooKeeper;
        this.running = running;
        this.readAgain = readAgain;
    }

    /** Storm looks at its assignments each 10 s: where a slot is to be opened or closed, it looks at once. */
    void look() {
        Map<Integer, String> before = told;
        Map<Integer, String> wanted = wanted();
        if (before != null && !wanted.equals(before)) {
            told = wanted;
            readAgain.run();
        }
    }

    /** Adds the opened slots to what Storm assigns to this supervisor's ports; where Storm assigns something, that stays. */
    void addTo(Map<Integer, LocalAssignment> ports, Map<String, Assignment> assignments) {
        Map<Integer, String> wanted = wanted();
        told = wanted;
        wanted.forEach((port, topology) -> {
            if (!ports.containsKey(port)) {
                LocalAssignment here = at(port, topology, assignments);
                if (here != null) {
                    ports.put(port, here);
                }
            }
        });
    }

    /** What a slot is to work by; while ZooKeeper does not answer, a worker that runs goes on, and no slot is opened. */
    private LocalAssignment at(int port, String topology, Map<String, Assignment> assignments) {
        try {
            Assignment known = assignments.get(topology);
            Assignment assignment = known == null ? inZooKeeper.apply(topology) : known;
            return assignment == null ? null : opened(topology, assignment);
        } catch (RuntimeException e) {
            LOG.warn("nstorm: the assignment of {} could not be read for port {}: {}", topology, port, e.toString());
            LocalAssignment runs = running.apply(port);
            return runs != null && runs.get_topology_id().equals(topology) ? runs : null;
        }
    }

    private Map<Integer, String> wanted() {
        LocalPlan local = plans.get();
        Map<Integer, String> wanted = new TreeMap<>();
        for (Plan plan :
                Stream.concat(local.plans().stream(), local.kept().stream()).toList()) {
            for (Entry entry : plan.entries()) {
                if (entry.opens() != null
                        && entry.voidReason() == null
                        && Acceptance.isHere(entry.to(), supervisorId)) {
                    wanted.putIfAbsent(entry.to().port(), plan.topology());
                }
            }
        }
        return wanted;
    }

    /** With as much memory as the topology's largest worker: this one is to carry as much some day, and its heap stays. */
    private static LocalAssignment opened(String topology, Assignment assignment) {
        LocalAssignment opened =
                new LocalAssignment(topology, List.of(new ExecutorInfo(NOTHING_YET.start(), NOTHING_YET.end())));
        Map<?, WorkerResources> resources = assignment.get_worker_resources();
        if (resources != null) {
            resources.values().stream()
                    .max(Comparator.comparingDouble(WorkerResources::get_mem_on_heap))
                    .ifPresent(opened::set_resources);
        }
        opened.set_owner(assignment.get_owner());
        return opened;
    }
}

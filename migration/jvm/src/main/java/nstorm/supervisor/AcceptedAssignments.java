package nstorm.supervisor;

import java.util.HashSet;
import java.util.List;
import java.util.Objects;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.function.Function;
import java.util.stream.Stream;
import nstorm.wire.Entry;
import nstorm.wire.ExecutorId;
import nstorm.wire.Plan;
import org.apache.storm.generated.ExecutorInfo;
import org.apache.storm.generated.LocalAssignment;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** Judges pairs of assignments for the slots of one supervisor; each slot asks on a thread of its own. */
final class AcceptedAssignments {

    private static final Logger LOG = LoggerFactory.getLogger(AcceptedAssignments.class);

    /** What one slot's thread last got. */
    private static final class Told {
        private LocalAssignment next;
        private LocalAssignment current;
        private double launchedHeapMb;
    }

    private final String supervisorId;
    private final Function<String, Plan> plans;
    private final ThreadLocal<Told> told = ThreadLocal.withInitial(Told::new);
    private final Set<String> topologies = ConcurrentHashMap.newKeySet();

    /**
     * Judges by the plans of this node.
     *
     * @param plans the newest plan of a topology, null if there is none; from any thread
     */
    AcceptedAssignments(String supervisorId, Function<String, Plan> plans) {
        this.supervisorId = supervisorId;
        this.plans = plans;
    }

    /** True if the running worker may go on with the next assignment instead of the current one. */
    @SuppressWarnings("ReferenceEquality") // the very objects that the slot asked about
    boolean accepts(LocalAssignment next, LocalAssignment current) {
        Told last = told.get();
        if (next != null && last.next == next && last.current == current) {
            // A slot asks twice in one step and ends the supervisor if the second answer is another one.
            return true;
        }
        if (next == null
                || current == null
                || !next.get_topology_id().equals(current.get_topology_id())
                || !Objects.equals(next.get_owner(), current.get_owner())) {
            return false;
        }
        Plan plan = plans.apply(next.get_topology_id());
        if (plan == null || !Acceptance.accepts(executors(current), executors(next), moving(plan), supervisorId)) {
            return false;
        }
        remember(last, next, current);
        return true;
    }

    /** What is not understood is under way all the same: Nimbus may be of a later version than this supervisor. */
    private static List<Entry> moving(Plan plan) {
        return Stream.concat(plan.entries().stream(), plan.notUnderstood().stream())
                .toList();
    }

    /** True once a set of the topology was accepted: its reservations are then under an older set. */
    boolean hasAccepted(String topologyId) {
        return topologies.contains(topologyId);
    }

    @SuppressWarnings("ReferenceEquality") // as above
    private void remember(Told last, LocalAssignment next, LocalAssignment current) {
        boolean launched = last.next != current;
        last.launchedHeapMb = launched ? heapMb(current) : last.launchedHeapMb;
        last.next = next;
        last.current = current;
        topologies.add(next.get_topology_id());
        LOG.info(
                "nstorm: adopting executors {} instead of {} in the running worker of {}",
                executors(next),
                executors(current),
                next.get_topology_id());
        if (heapMb(next) > last.launchedHeapMb) {
            LOG.warn(
                    "nstorm: executors of {} moved here ask for {} MB of heap, the worker was launched for {} MB",
                    next.get_topology_id(),
                    heapMb(next),
                    last.launchedHeapMb);
        }
    }

    private static double heapMb(LocalAssignment assignment) {
        return assignment.is_set_resources() ? assignment.get_resources().get_mem_on_heap() : 0;
    }

    private static Set<ExecutorId> executors(LocalAssignment assignment) {
        Set<ExecutorId> executors = new HashSet<>();
        for (ExecutorInfo executor : assignment.get_executors()) {
            executors.add(new ExecutorId(executor.get_task_start(), executor.get_task_end()));
        }
        return executors;
    }
}

package nstorm.supervisor;

import java.nio.file.Path;
import java.util.Map;
import java.util.function.Supplier;
import nstorm.hook.HookStatus;
import nstorm.store.PlanStore;
import nstorm.store.StoreDir;
import nstorm.store.UserFolders;
import org.apache.storm.daemon.supervisor.ClientSupervisorUtils;
import org.apache.storm.daemon.supervisor.Supervisor;
import org.apache.storm.generated.Assignment;
import org.apache.storm.generated.LocalAssignment;
import org.apache.storm.localizer.PortAndAssignment;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** What the advices in a supervisor call; whatever fails here, the supervisor goes on as stock. */
public final class SupervisorCalls {

    private static final Logger LOG = LoggerFactory.getLogger(SupervisorCalls.class);

    private static volatile AcceptedAssignments accepted;
    private static volatile OpenedSlots opened;

    private SupervisorCalls() {}

    /** The supervisor is about to recover its slots. */
    public static void launched(Supervisor supervisor) {
        if (!HookStatus.active()) {
            return;
        }
        HookStatus.log(LOG);
        try {
            HookStatus.configured(supervisor.getConf());
            boolean follows = HookStatus.watching() == null;
            Path store = StoreDir.of(supervisor.getConf());
            Supplier<Map<Long, LocalAssignment>> slots = supervisor.getCurrAssignment()::get;
            NodePlans plans =
                    new NodePlans(new PlanStore(store.resolve("plan"), topology -> runs(slots.get(), topology)));
            if (follows) {
                follow(supervisor.getAssignmentId(), plans);
            }
            OpenedSlots slotsToOpen = new OpenedSlots(
                    supervisor.getAssignmentId(),
                    plans::newest,
                    topology -> supervisor.getStormClusterState().remoteAssignmentInfo(topology, null),
                    port -> slots.get().get((long) port),
                    () -> supervisor.getReadClusterState().run());
            opened = follows ? slotsToOpen : null;
            boolean users = UserFolders.used(supervisor.getConf());
            FoldersOfUsers folders = new FoldersOfUsers(
                    store,
                    (user, dir) ->
                            ClientSupervisorUtils.setupWorkerArtifactsDir(supervisor.getConf(), user, dir.toString()));
            Runnable each = () -> {
                if (users) {
                    folders.look(slots.get().values(), System.nanoTime());
                }
                if (follows) {
                    slotsToOpen.look();
                }
            };
            Thread thread = new Thread(
                    new SupervisorReport(supervisor.getId(), plans::newest, plans::inert, slots, store, users, each),
                    "nstorm-supervisor");
            thread.setDaemon(true);
            thread.start();
        } catch (RuntimeException | LinkageError e) {
            accepted = null;
            LOG.error("nstorm: the hooks of this supervisor stay passive", e);
        }
    }

    private static boolean runs(Map<Long, LocalAssignment> slots, String topology) {
        return slots.values().stream().anyMatch(slot -> slot.get_topology_id().equals(topology));
    }

    /** Storm has read what it assigns to the ports of this supervisor, null if it could not: adds the slots that plans open. */
    public static void openSlots(Map<Integer, LocalAssignment> ports, Map<String, Assignment> assignments) {
        OpenedSlots known = opened;
        try {
            if (known != null && ports != null && HookStatus.active()) {
                known.addTo(ports, assignments);
            }
        } catch (RuntimeException | LinkageError e) {
            LOG.error("nstorm: no slot is opened, Storm's assignments stand", e);
        }
    }

    /** From now on these plans decide. */
    static void follow(String assignmentId, NodePlans plans) {
        accepted = new AcceptedAssignments(assignmentId, plans::of);
    }

    /** Whether a running worker may go on with the next assignment; asked only after Storm itself has refused. */
    public static boolean accepts(LocalAssignment next, LocalAssignment current) {
        AcceptedAssignments judge = accepted;
        try {
            return judge != null && HookStatus.active() && judge.accepts(next, current);
        } catch (RuntimeException | LinkageError e) {
            LOG.error("nstorm: comparing assignments failed, Storm's answer stands", e);
            return false;
        }
    }

    /**
     * Whether a reservation of a blob is the one to release, although its set of executors is an older one.
     *
     * <p>Once the entry has left the plan the two sets are no longer accepted, and the blob would stay for ever.
     */
    public static boolean isSameReservation(PortAndAssignment held, PortAndAssignment released) {
        AcceptedAssignments judge = accepted;
        try {
            return judge != null
                    && held.getPort() == released.getPort()
                    && held.getToplogyId().equals(released.getToplogyId())
                    && judge.hasAccepted(held.getToplogyId());
        } catch (RuntimeException | LinkageError e) {
            LOG.error("nstorm: comparing reservations failed, Storm's answer stands", e);
            return false;
        }
    }
}

package nstorm.supervisor;

import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.TreeMap;
import java.util.concurrent.TimeUnit;
import java.util.function.Supplier;
import nstorm.hook.Faults;
import nstorm.hook.HookStatus;
import nstorm.store.LateSampleStore;
import nstorm.store.SampleStore;
import nstorm.wire.ExecutorId;
import nstorm.wire.LocalPlan;
import nstorm.wire.report.SupervisorAck;
import nstorm.wire.report.SupervisorAck.PlanSeen;
import nstorm.wire.report.SupervisorAck.SlotSet;
import org.apache.storm.generated.LocalAssignment;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** Reports to this node's agent what the supervisor has persisted and which plans it has read. One daemon thread. */
final class SupervisorReport implements Runnable {

    private static final Logger LOG = LoggerFactory.getLogger(SupervisorReport.class);
    private static final long LOOK_MS = 100;
    private static final long ALIVE_NANOS = TimeUnit.SECONDS.toNanos(2);

    private final String supervisorId;
    private final Supplier<LocalPlan> plans;
    private final Supplier<String> inert;
    private final Supplier<Map<Long, LocalAssignment>> persisted;
    private final Path dir;
    private final boolean users;
    private final Runnable each;
    private final long pid = ProcessHandle.current().pid();
    private LocalPlan lastPlans;
    private List<SlotSet> lastSlots;
    private String lastOff;
    private long lastNanos;

    /**
     * Reports what {@code persisted} gives, which Storm fills after each write of its local state.
     *
     * @param inert    why it follows no plan until it is switched on, null if it does
     * @param storeDir the node's store
     * @param users    whether workers have users of their own
     * @param each     what else is to be done at each look
     */
    SupervisorReport(
            String supervisorId,
            Supplier<LocalPlan> plans,
            Supplier<String> inert,
            Supplier<Map<Long, LocalAssignment>> persisted,
            Path storeDir,
            boolean users,
            Runnable each) {
        this.supervisorId = supervisorId;
        this.plans = plans;
        this.inert = inert;
        this.persisted = persisted;
        this.users = users;
        this.each = each;
        dir = storeDir.resolve("s").resolve(Long.toString(pid));
    }

    @Override
    public void run() {
        LateSampleStore store = new LateSampleStore(
                () -> SampleStore.open(dir),
                failure -> LOG.warn("nstorm: no report of this supervisor until {} can be opened", dir, failure));
        try {
            while (true) {
                report(store.get(System.nanoTime()));
                Thread.sleep(LOOK_MS);
            }
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
    }

    private void report(SampleStore samples) {
        try {
            each.run();
            byte[] ack = samples == null ? null : due();
            if (ack != null) {
                samples.put("ack", ack);
            }
        } catch (RuntimeException | LinkageError e) {
            Faults.report("reporting of this supervisor", e);
        }
    }

    /** The report if something has changed or the last is 2 s old, else null. */
    byte[] due() {
        LocalPlan newest = plans.get();
        String off = inert.get();
        List<SlotSet> slots = slots(persisted.get());
        long now = System.nanoTime();
        boolean same = newest.equals(lastPlans) && slots.equals(lastSlots) && Objects.equals(off, lastOff);
        if (same && now - lastNanos < ALIVE_NANOS) {
            return null;
        }
        lastOff = off;
        lastPlans = newest;
        lastSlots = slots;
        lastNanos = now;
        long timeMs = System.currentTimeMillis();
        // Which plan it last read means nothing while it follows none.
        List<PlanSeen> seen = newest.plans().stream()
                .filter(plan -> off == null)
                .map(plan -> new PlanSeen(plan.topology(), plan.epoch(), plan.version()))
                .toList();
        return new SupervisorAck(
                        supervisorId,
                        pid,
                        HookStatus.VERSION,
                        timeMs,
                        newest.cluster(),
                        seen,
                        slots,
                        HookStatus.storm(),
                        off == null ? HookStatus.watching() : "the hooks are off: " + off)
                .toJson();
    }

    private List<SlotSet> slots(Map<Long, LocalAssignment> assignments) {
        List<SlotSet> slots = new ArrayList<>();
        new TreeMap<>(assignments).forEach((port, assignment) -> {
            List<ExecutorId> executors = assignment.get_executors().stream()
                    .map(info -> new ExecutorId(info.get_task_start(), info.get_task_end()))
                    .filter(executor -> !executor.equals(OpenedSlots.NOTHING_YET))
                    .sorted()
                    .toList();
            String user = users ? assignment.get_owner() : null;
            slots.add(new SlotSet(port.intValue(), assignment.get_topology_id(), executors, user));
        });
        return slots;
    }
}

package nstorm.worker;

import java.io.IOException;
import java.lang.management.ManagementFactory;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Collection;
import java.util.Comparator;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.TimeUnit;
import nstorm.hook.Faults;
import nstorm.hook.HookStatus;
import nstorm.load.LoadSampler;
import nstorm.store.LateSampleStore;
import nstorm.store.PlanStore;
import nstorm.store.SampleStore;
import nstorm.store.StoreDir;
import nstorm.store.UserFolders;
import nstorm.wire.ExecutorId;
import nstorm.wire.Plan;
import nstorm.wire.Slot;
import nstorm.wire.Way;
import nstorm.wire.report.EntryAck;
import nstorm.wire.report.WorkerAck;
import nstorm.worker.plan.PlanOverlay;
import nstorm.worker.storm.StormFields;
import org.apache.storm.daemon.worker.WorkerState;
import org.apache.storm.daemon.worker.WorkerTransfer;
import org.apache.storm.generated.Assignment;
import org.apache.storm.generated.NodeInfo;
import org.apache.storm.utils.JCQueue;

/** This JVM's hooks at work: polls the plan, lets the reconciler act, acknowledges. One daemon thread. */
final class WorkerLoop implements Runnable {
    private static final long POLL_MS = 50;
    private static final String POLL_KEY = "nstorm.worker.poll.ms";
    private static final long BUSY_POLL_MS = 10;
    private static final long PAUSE_POLL_MS = 2;
    private static final long OFF_POLL_MS = 500;
    /**
     * How long it may take until an ack shows that an executor moves another way than before. Where a move has progressed the ack follows
     * at once.
     */
    private static final long EXECUTORS_NANOS = TimeUnit.SECONDS.toNanos(1);

    private static final long SETTLE_REFRESH_NANOS = TimeUnit.SECONDS.toNanos(1);

    final HookedWorker worker;
    final Thread thread = new Thread(this, "nstorm-worker");
    final Reconciler reconciler;
    private final LateSampleStore store;
    private final String incarnation;
    private final long pollMs;
    private final WorkerAck.Messaging messaging;
    private SampleStore samples;
    private final AckWriter writer = new AckWriter();
    volatile byte[] lastAck = new byte[0];
    private List<EntryAck> lastEntries = List.of();
    private Executors executors;
    private long executorsOf = -1;
    private long executorsNanos;
    private long lastSettleNanos;
    /** Why this worker does nothing until it is switched on; null while it does. */
    private volatile String off;

    WorkerLoop(HookedWorker worker, Map<String, Object> conf) {
        this.worker = worker;
        reconciler = new Reconciler(worker);
        long pid = ProcessHandle.current().pid();
        incarnation = pid + "-" + ManagementFactory.getRuntimeMXBean().getStartTime();
        store = new LateSampleStore(
                () -> sampleStore(StoreDir.of(conf), worker.me.port() + "-" + pid, UserFolders.used(conf)),
                e -> Faults.report("opening the sample store", e));
        messaging = WorkerAck.Messaging.of(worker.state.getTopologyConf(), worker.state.getConf());
        pollMs = conf.get(POLL_KEY) instanceof Number given ? Math.max(given.longValue(), 1) : POLL_MS;
        thread.setDaemon(true);
    }

    static PlanStore planStore(Map<String, Object> conf, String topology) {
        Path store = StoreDir.of(conf);
        return UserFolders.used(conf)
                ? PlanStore.ofUser(store, topology)
                : PlanStore.of(store.resolve("plan"), topology);
    }

    private static SampleStore sampleStore(Path store, String name, boolean ofUser) throws IOException {
        return ofUser
                ? SampleStore.ofUser(store, name)
                : SampleStore.open(store.resolve("w").resolve(name));
    }

    @Override
    public void run() {
        while (true) {
            try {
                off = reconciler.atRest() ? worker.overlay.inert() : null;
                List<EntryAck> entries = off == null ? reconciler.pass() : List.of();
                settle();
                if (opened()) {
                    acknowledge(entries);
                }
            } catch (RuntimeException | LinkageError | OutOfMemoryError e) {
                // Without this thread no move of this worker would ever end, nor one be undone.
                Faults.report("reconciling", e);
            }
            try {
                Thread.sleep(pauseMs());
            } catch (InterruptedException e) {
                return;
            }
        }
    }

    private long pauseMs() {
        if (off != null) {
            return OFF_POLL_MS;
        }
        return reconciler.pausing()
                ? Math.min(PAUSE_POLL_MS, pollMs)
                : reconciler.busy() ? Math.min(BUSY_POLL_MS, pollMs) : pollMs;
    }

    /** Whether there is a store to write to. Without one this worker follows plans all the same: its routes must fit. */
    private boolean opened() {
        if (samples == null) {
            samples = store.get(System.nanoTime());
            if (samples != null) {
                JCQueue transfer = StormFields.<WorkerTransfer>get(StormFields.WORKER_TRANSFER, worker.state)
                        .getTransferQueue();
                new LoadSampler(
                                worker.state,
                                worker.me,
                                incarnation,
                                samples,
                                this::loads,
                                transfer,
                                worker.sizes,
                                () -> off != null)
                        .start();
            }
        }
        return samples != null;
    }

    private List<LoadSampler.Running> loads() {
        List<LoadSampler.Running> all = new ArrayList<>();
        for (ExecutorCopy copy : worker.copies.values()) {
            if (LoadSampler.isUnmeasured(copy.thread(), ManagementFactory.getThreadMXBean()::getThreadCpuTime)) {
                copy.stay("Java knows no CPU of its thread, as of a virtual one");
            }
            all.add(new LoadSampler.Running(
                    copy.id(),
                    copy.component,
                    copy.threadId(),
                    copy.queue(),
                    copy.pinned(),
                    copy.pendingTuples(),
                    copy.stateBytes()));
        }
        return all;
    }

    /** Storm reads its assignment each 10 s; a move that only waits for that asks once a second. */
    private void settle() {
        long now = System.nanoTime();
        if (reconciler.settling() && now - lastSettleNanos > SETTLE_REFRESH_NANOS) {
            lastSettleNanos = now;
            worker.refreshSoon();
        }
    }

    private void acknowledge(List<EntryAck> entries) {
        Plan plan = off == null ? worker.overlay.plan() : null;
        long now = System.nanoTime();
        if (worker.registrations() != executorsOf
                || !entries.equals(lastEntries)
                || now - executorsNanos > EXECUTORS_NANOS) {
            executorsOf = worker.registrations();
            executorsNanos = now;
            executors = Executors.of(worker.copies.values());
        }
        lastEntries = entries;
        WorkerAck.Counters counters = new WorkerAck.Counters(
                worker.misrouted.forwarded.get(),
                worker.misrouted.parked() + worker.order.parked(),
                worker.misrouted.dropped.get(),
                Faults.count(),
                worker.order.unordered.get());
        WorkerAck ack = new WorkerAck(
                worker.state.getTopologyId(),
                worker.me,
                ProcessHandle.current().pid(),
                incarnation,
                HookStatus.VERSION,
                0,
                plan == null ? "" : plan.cluster(),
                plan == null ? 0 : plan.epoch(),
                plan == null ? -1 : plan.version(),
                entries,
                executors.ids(),
                off == null ? executors.pinned() : List.of(),
                off == null ? executors.ways() : List.of(),
                counters,
                Faults.last(),
                worker.overlay.error(),
                HookStatus.storm(),
                off,
                messaging);
        if (writer.due(ack, now)) {
            lastAck = ack.at(System.currentTimeMillis()).toJson();
            samples.put("ack", lastAck);
        }
    }

    /** What an ack holds about the executors here: to ask each takes a lock and makes a text. */
    private record Executors(List<ExecutorId> ids, List<WorkerAck.Pinned> pinned, List<WorkerAck.ExecutorWay> ways) {
        static Executors of(Collection<ExecutorCopy> copies) {
            Executors all = new Executors(new ArrayList<>(), new ArrayList<>(), new ArrayList<>());
            copies.stream()
                    .sorted(Comparator.comparingInt(copy -> copy.id().start()))
                    .forEach(all::add);
            return all;
        }

        private void add(ExecutorCopy copy) {
            ids.add(copy.id());
            String reason = copy.pinned();
            if (reason != null) {
                pinned.add(new WorkerAck.Pinned(copy.id(), reason));
            }
            if (copy.way() != Way.LIVE) {
                ways.add(new WorkerAck.ExecutorWay(copy.id(), copy.way()));
            }
        }
    }

    /** True if the plan explains every difference between the executors here and those Storm assigns. */
    boolean explains(WorkerState state, Assignment assignment) {
        Set<List<Long>> mine = new HashSet<>(state.getLocalExecutors());
        Set<List<Long>> theirs = new HashSet<>();
        assignment.get_executor_node_port().forEach((executor, node) -> {
            if (here(node)) {
                theirs.add(executor);
            }
        });
        Set<ExecutorId> difference = new HashSet<>();
        mine.stream().filter(e -> e.get(0) >= 0 && !theirs.contains(e)).forEach(e -> difference.add(ExecutorId.of(e)));
        theirs.stream().filter(e -> !mine.contains(e)).forEach(e -> difference.add(ExecutorId.of(e)));
        return reconciler.explains(difference);
    }

    private boolean here(NodeInfo node) {
        Slot slot = PlanOverlay.slot(node);
        return slot.equals(worker.me);
    }
}

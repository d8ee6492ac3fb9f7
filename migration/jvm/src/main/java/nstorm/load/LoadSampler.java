package nstorm.load;

import java.lang.management.ManagementFactory;
import java.lang.management.ThreadMXBean;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.Comparator;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import java.util.function.BooleanSupplier;
import java.util.function.LongUnaryOperator;
import java.util.function.Supplier;
import java.util.function.ToLongFunction;
import java.util.stream.IntStream;
import nstorm.hook.Faults;
import nstorm.store.SampleStore;
import nstorm.wire.ExecutorId;
import nstorm.wire.Slot;
import nstorm.wire.report.ExecutorLoad;
import nstorm.wire.report.WorkerLoad;
import org.apache.storm.daemon.StormCommon;
import org.apache.storm.daemon.worker.WorkerState;
import org.apache.storm.utils.JCQueue;

/** Once a second writes what each executor of this JVM has used and sent; one daemon thread. */
public final class LoadSampler implements Runnable {
    /**
     * An executor thread as it runs now.
     *
     * @param pendingTuples those of a spout that are neither acked nor failed; negative where that is not known
     * @param stateBytes about how large what travels with it is; negative where that is not known
     */
    public record Running(
            ExecutorId id,
            String component,
            long threadId,
            JCQueue queue,
            String pinned,
            long pendingTuples,
            long stateBytes) {}

    /** CPU of an executor: of its thread now, plus of its earlier threads in this JVM. */
    private static final class Cpu {
        long threadId;
        long beforeNs;
        long threadNs;
    }

    private static final long PERIOD_MS = 1000;
    /** Long after the last report with its figures. */
    private static final long GONE_NANOS = TimeUnit.MINUTES.toNanos(10);

    /** By their names in {@code migration/meters.py}; negative where a number cannot be read. */
    private static final Map<String, ToLongFunction<Running>> METERS = Map.of(
            "allocated_bytes",
            executor -> allocatedBytes(executor.threadId()),
            "pending_tuples",
            Running::pendingTuples,
            "state_bytes",
            Running::stateBytes);

    private final ThreadMXBean threads = ManagementFactory.getThreadMXBean();
    private final Map<ExecutorId, Cpu> cpuOf = new HashMap<>();
    private final WorkerState state;
    private final Slot slot;
    private final String incarnation;
    private final SampleStore samples;
    private final TrafficFigures traffic;
    private final Supplier<List<Running>> running;
    private final WorkerMeters meters;
    private final TupleSizes sizes;
    private final SpoutAcks acks;
    private final BooleanSupplier rests;

    public LoadSampler(
            WorkerState state,
            Slot slot,
            String incarnation,
            SampleStore samples,
            Supplier<List<Running>> running,
            JCQueue transfer,
            TupleSizes sizes,
            BooleanSupplier rests) {
        this.rests = rests;
        this.state = state;
        this.slot = slot;
        this.incarnation = incarnation;
        this.samples = samples;
        this.running = running;
        this.sizes = sizes;
        // Without ackers Storm acks each tuple while it is emitted, after 0 ms.
        acks = StormCommon.hasAckers(state.getTopologyConf()) ? SpoutAcks.HERE : null;
        meters = new WorkerMeters(transfer, acks);
        traffic = new TrafficFigures(Traffic.counters(), components(state.getTaskToComponent()), System.nanoTime());
    }

    private static String[] components(Map<Integer, String> byTask) {
        String[] components = new String[Collections.max(byTask.keySet()) + 1];
        byTask.forEach((task, component) -> {
            if (task >= 0) {
                components[task] = component;
            }
        });
        return components;
    }

    /** Starts the thread. */
    public void start() {
        Thread thread = new Thread(this, "nstorm-load");
        thread.setDaemon(true);
        thread.start();
    }

    @Override
    public void run() {
        while (true) {
            try {
                Thread.sleep(PERIOD_MS);
                if (!rests.getAsBoolean()) {
                    samples.put("load", sample().toJson());
                }
            } catch (InterruptedException e) {
                return;
            } catch (RuntimeException | OutOfMemoryError e) {
                // A full heap is the topology's to die of, not for the sake of a sample.
                Faults.report("reporting the load", e);
            }
        }
    }

    private WorkerLoad sample() {
        List<ExecutorLoad> executors = new ArrayList<>();
        List<Running> now = new ArrayList<>(running.get());
        now.sort(Comparator.comparingInt(executor -> executor.id().start()));
        for (Running executor : now) {
            executors.add(new ExecutorLoad(
                    executor.id(),
                    executor.component(),
                    cpuNs(executor),
                    executor.queue().size(),
                    executor.pinned()));
            IntStream.rangeClosed(executor.id().start(), executor.id().end()).forEach(Traffic::addSource);
        }
        Traffic.removeGone(System.nanoTime() - GONE_NANOS).forEach(traffic::forget);
        TrafficFigures.Figures sent = traffic.at(System.nanoTime());
        return new WorkerLoad(
                state.getTopologyId(),
                slot,
                incarnation,
                System.currentTimeMillis(),
                processCpuNs(),
                executors,
                sent.named(),
                sent.folded(),
                meters.read(),
                sizes.read(),
                acks == null ? List.of() : acks.latency(),
                numbers(now));
    }

    /** What can be read of at least one of them. */
    static Map<String, long[]> numbers(List<Running> executors) {
        Map<String, long[]> found = new LinkedHashMap<>();
        METERS.forEach((name, meter) -> {
            long[] numbers = executors.stream().mapToLong(meter).toArray();
            if (Arrays.stream(numbers).anyMatch(number -> number >= 0)) {
                found.put(name, numbers);
            }
        });
        return found;
    }

    private static long allocatedBytes(long threadId) {
        return ManagementFactory.getThreadMXBean() instanceof com.sun.management.ThreadMXBean jvm
                        && jvm.isThreadAllocatedMemorySupported()
                ? jvm.getThreadAllocatedBytes(threadId)
                : -1;
    }

    private long cpuNs(Running executor) {
        Cpu cpu = cpuOf.computeIfAbsent(executor.id(), id -> new Cpu());
        if (cpu.threadId != executor.threadId()) {
            cpu.threadId = executor.threadId();
            cpu.beforeNs += cpu.threadNs;
            cpu.threadNs = 0;
        }
        cpu.threadNs = Math.max(cpu.threadNs, threads.getThreadCpuTime(executor.threadId()));
        return cpu.beforeNs + cpu.threadNs;
    }

    /**
     * True if Java knows no CPU of a thread that runs, as of a virtual one.
     *
     * @param cpuNs the CPU of a thread by its id, negative if it is not known
     */
    public static boolean isUnmeasured(Thread thread, LongUnaryOperator cpuNs) {
        return cpuNs.applyAsLong(thread.getId()) < 0 && thread.isAlive();
    }

    private static long processCpuNs() {
        return ((com.sun.management.OperatingSystemMXBean) ManagementFactory.getOperatingSystemMXBean())
                .getProcessCpuTime();
    }
}

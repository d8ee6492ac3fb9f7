package nstorm.load;

import java.lang.management.GarbageCollectorMXBean;
import java.lang.management.ManagementFactory;
import java.lang.management.MemoryPoolMXBean;
import java.lang.management.MemoryType;
import java.lang.management.MemoryUsage;
import java.lang.management.ThreadInfo;
import java.lang.management.ThreadMXBean;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.function.LongSupplier;
import java.util.function.Predicate;
import java.util.function.ToLongFunction;
import java.util.regex.Pattern;
import org.apache.storm.utils.JCQueue;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** The meters of this JVM, by their names in {@code migration/meters.py}; they are read when a report is written. */
final class WorkerMeters {
    private static final Logger LOG = LoggerFactory.getLogger(WorkerMeters.class);
    private static final long UNKNOWN = -1;
    /** Of the one thread that takes all tuples for other workers out of their queue, as {@code Worker} names it. */
    private static final String TRANSFER = "Worker-Transfer";

    private static final Predicate<String> TRANSPORT = Pattern.compile(
                    TRANSFER + "|client-worker-\\d+|Netty-server-.*-worker-\\d+")
            .asMatchPredicate();

    /** Each is given the threads of this JVM, which are listed once for a report. */
    private final Map<String, ToLongFunction<ThreadInfo[]>> meters = new LinkedHashMap<>();

    /**
     * @param transfer the worker's queue of tuples for other workers, or null
     * @param acks     what was counted at the spouts, or null where Storm tracks no tuple
     */
    WorkerMeters(JCQueue transfer, SpoutAcks acks) {
        List<GarbageCollectorMXBean> collectors = ManagementFactory.getGarbageCollectorMXBeans();
        List<MemoryPoolMXBean> pools = ManagementFactory.getMemoryPoolMXBeans();
        meters.put("heap_live_bytes", threads -> liveBytes(collectors, pools));
        meters.put("heap_max_bytes", threads -> Runtime.getRuntime().maxMemory());
        meters.put("gc_ms", threads -> collectedMs(collectors));
        meters.put("transfer_queue_tuples", threads -> transfer == null ? UNKNOWN : transfer.size());
        meters.put("transport_cpu_ns", threads -> threadsNs(threads, TRANSPORT));
        meters.put("transfer_cpu_ns", threads -> threadsNs(threads, TRANSFER::equals));
        meters.put("acked_tuples", threads -> acks == null ? UNKNOWN : acks.ackedTuples());
        meters.put("failed_tuples", threads -> acks == null ? UNKNOWN : acks.failedTuples());
    }

    /** What can be read now. */
    Map<String, Long> read() {
        Map<String, Long> found = new LinkedHashMap<>();
        ThreadInfo[] threads = threads();
        meters.forEach((name, meter) -> {
            long value = value(name, () -> meter.applyAsLong(threads));
            if (value >= 0) {
                found.put(name, value);
            }
        });
        return found;
    }

    /** What goes wrong with one number must not take the report with it. */
    private static long value(String name, LongSupplier meter) {
        try {
            return meter.getAsLong();
        } catch (RuntimeException e) {
            LOG.debug("meter_failed {}", name, e);
            return UNKNOWN;
        }
    }

    /** Without stack traces, so that no thread stops for it; none where they cannot be listed. */
    private static ThreadInfo[] threads() {
        try {
            ThreadMXBean threads = ManagementFactory.getThreadMXBean();
            return threads.getThreadInfo(threads.getAllThreadIds());
        } catch (RuntimeException e) {
            LOG.debug("threads_not_listed", e);
            return new ThreadInfo[0];
        }
    }

    /** The CPU of Storm's threads of such names: those for tuples between workers do nothing else. */
    private static long threadsNs(ThreadInfo[] threads, Predicate<String> named) {
        ThreadMXBean times = ManagementFactory.getThreadMXBean();
        return Arrays.stream(threads)
                .filter(thread -> thread != null && named.test(thread.getThreadName()))
                .mapToLong(thread -> times.getThreadCpuTime(thread.getThreadId()))
                .filter(nanos -> nanos >= 0)
                .reduce(Long::sum)
                .orElse(UNKNOWN);
    }

    static long liveBytes(List<GarbageCollectorMXBean> collectors, List<MemoryPoolMXBean> pools) {
        if (collectors.stream().noneMatch(collector -> collector.getCollectionCount() > 0)) {
            return UNKNOWN;
        }
        long sum = 0;
        for (MemoryPoolMXBean pool : pools) {
            if (pool.getType() != MemoryType.HEAP) {
                continue;
            }
            MemoryUsage left = pool.getCollectionUsage();
            if (left == null) {
                return UNKNOWN;
            }
            // Nothing in a pool that was never collected has been found dead: the old generation of a young JVM. And
            // concurrent cycles of G1 free regions without a collection that counts, so what is in use now is a bound.
            long used = pool.getUsage().getUsed();
            sum += left.getCommitted() == 0 ? used : Math.min(left.getUsed(), used);
        }
        return sum;
    }

    /** What runs while the topology's threads do is left out; the pauses of such a collector have a bean of their own. */
    static long collectedMs(List<GarbageCollectorMXBean> collectors) {
        return collectors.stream()
                .filter(collector -> !collector.getName().matches(".*(Cycles|Concurrent).*"))
                .mapToLong(GarbageCollectorMXBean::getCollectionTime)
                .filter(millis -> millis >= 0)
                .reduce(Long::sum)
                .orElse(UNKNOWN);
    }
}

package nstorm.load;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.lang.management.GarbageCollectorMXBean;
import java.lang.management.ManagementFactory;
import java.lang.management.MemoryPoolMXBean;
import java.lang.management.MemoryType;
import java.lang.management.MemoryUsage;
import java.lang.reflect.Proxy;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.function.LongSupplier;
import java.util.stream.Stream;
import org.apache.storm.utils.JCQueue;
import org.junit.jupiter.api.Test;

class WorkerMetersTest {
    private static final GarbageCollectorMXBean YOUNG = collector("G1 Young Generation", 3, 40);
    private static final MemoryPoolMXBean EDEN = pool(MemoryType.HEAP, usage(70, 100), usage(0, 100));
    private static final MemoryPoolMXBean OLD = pool(MemoryType.HEAP, usage(900, 1000), usage(500, 1000));
    /** As long as it was not collected itself. */
    private static final MemoryPoolMXBean NEW_OLD = pool(MemoryType.HEAP, usage(900, 1000), usage(0, 0));

    private static final MemoryPoolMXBean SILENT = pool(MemoryType.HEAP, usage(900, 1000), null);
    private static final MemoryPoolMXBean CODE = pool(MemoryType.NON_HEAP, usage(9, 10), usage(9, 10));

    @Test
    void aJvmReadsAllOfItself() throws Exception {
        System.gc();
        Map<String, Long> found =
                new WorkerMeters(new JCQueue("q", "q", 8, 0, 1, null, "t", "c", List.of(), 6700, null), null).read();
        assertEquals(Set.of("heap_live_bytes", "heap_max_bytes", "gc_ms", "transfer_queue_tuples"), found.keySet());
        assertTrue(found.get("heap_live_bytes") > 0);
        assertTrue(found.get("heap_live_bytes") < found.get("heap_max_bytes"));
        assertEquals(0, found.get("transfer_queue_tuples"));
    }

    @Test
    void whatIsNotThereIsLeftOut() {
        assertFalse(new WorkerMeters(null, null).read().containsKey("transfer_queue_tuples"));
    }

    @Test
    void threadsBetweenWorkersAreCounted() throws Exception {
        WorkerMeters meters = new WorkerMeters(null, null);
        assertFalse(meters.read().containsKey("transport_cpu_ns"), "no such thread");
        CountDownLatch counted = new CountDownLatch(1);
        List<Thread> threads = Stream.of("Worker-Transfer", "client-worker-2", "Netty-server-localhost-6700-worker-1")
                .map(name -> new Thread(() -> burn(counted), name))
                .toList();
        Thread other = new Thread(() -> burn(counted), "client-worker-of-the-user");
        other.start();
        assertFalse(meters.read().containsKey("transport_cpu_ns"), "a thread of another name");
        assertFalse(meters.read().containsKey("transfer_cpu_ns"));
        threads.forEach(Thread::start);
        long least = TimeUnit.MILLISECONDS.toNanos(5);
        for (long now = 0; now < 3 * least; now = meters.read().getOrDefault("transport_cpu_ns", 0L)) {
            Thread.sleep(1);
        }
        LongSupplier transfer = () -> ManagementFactory.getThreadMXBean()
                .getThreadCpuTime(threads.get(0).getId());
        long before = transfer.getAsLong();
        long one = meters.read().get("transfer_cpu_ns");
        assertTrue(before <= one && one <= transfer.getAsLong(), "of the first alone");
        counted.countDown();
        for (Thread thread : threads) {
            thread.join();
        }
        other.join();
    }

    private static void burn(CountDownLatch until) {
        while (until.getCount() > 0) {
            Thread.onSpinWait();
        }
    }

    @Test
    void tuplesOfSpoutsAreKnownOnceOneIsAckedOrFailed() {
        SpoutAcks acks = new SpoutAcks();
        WorkerMeters meters = new WorkerMeters(null, acks);
        assertFalse(meters.read().containsKey("acked_tuples"), "spouts may want no acks");
        acks.acked(3L);
        assertEquals(1, meters.read().get("acked_tuples"));
        assertEquals(0, meters.read().get("failed_tuples"));
        assertFalse(new WorkerMeters(null, null).read().containsKey("acked_tuples"), "a topology without ackers");
    }

    @Test
    void whatWasLeftAfterTheLastCollectionLives() {
        assertEquals(500, WorkerMeters.liveBytes(List.of(YOUNG), List.of(EDEN, OLD, CODE)));
        assertEquals(900, WorkerMeters.liveBytes(List.of(YOUNG), List.of(EDEN, NEW_OLD, CODE)));
    }

    @Test
    void noMoreLivesThanIsInUseNow() {
        MemoryPoolMXBean freed = pool(MemoryType.HEAP, usage(300, 1000), usage(500, 1000));
        assertEquals(300, WorkerMeters.liveBytes(List.of(YOUNG), List.of(EDEN, freed, CODE)));
    }

    @Test
    void nobodyKnowsWhatLives() {
        GarbageCollectorMXBean idle = collector("G1 Young Generation", 0, 0);
        assertTrue(WorkerMeters.liveBytes(List.of(idle), List.of(EDEN, NEW_OLD)) < 0, "nothing was collected yet");
        assertTrue(WorkerMeters.liveBytes(List.of(YOUNG), List.of(EDEN, SILENT)) < 0, "this collector has no figures");
        assertTrue(WorkerMeters.liveBytes(List.of(), List.of(EDEN, OLD)) < 0, "no collector");
    }

    @Test
    void onlyCollectorsThatStopTheThreadsCount() {
        GarbageCollectorMXBean old = collector("G1 Old Generation", 1, 200);
        assertEquals(240, WorkerMeters.collectedMs(List.of(YOUNG, old, collector("G1 Concurrent GC", 2, 5_000))));
        assertEquals(
                7, WorkerMeters.collectedMs(List.of(collector("ZGC Cycles", 2, 900), collector("ZGC Pauses", 6, 7))));
        assertEquals(40, WorkerMeters.collectedMs(List.of(YOUNG, collector("unknown", -1, -1))));
        assertTrue(WorkerMeters.collectedMs(List.of()) < 0);
    }

    private static MemoryUsage usage(long used, long committed) {
        return new MemoryUsage(0, used, committed, -1);
    }

    private static GarbageCollectorMXBean collector(String name, long count, long millis) {
        return bean(
                GarbageCollectorMXBean.class,
                Map.of("getName", name, "getCollectionCount", count, "getCollectionTime", millis));
    }

    private static MemoryPoolMXBean pool(MemoryType type, MemoryUsage now, MemoryUsage afterCollection) {
        Map<String, Object> answers = new HashMap<>(Map.of("getType", type, "getUsage", now));
        answers.put("getCollectionUsage", afterCollection);
        return bean(MemoryPoolMXBean.class, answers);
    }

    private static <T> T bean(Class<T> type, Map<String, Object> answers) {
        return type.cast(Proxy.newProxyInstance(
                type.getClassLoader(), new Class<?>[] {type}, (proxy, method, arguments) -> {
                    assertTrue(answers.containsKey(method.getName()), method.getName());
                    return answers.get(method.getName());
                }));
    }
}

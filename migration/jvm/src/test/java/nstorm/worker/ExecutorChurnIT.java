package nstorm.worker;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.lang.management.ManagementFactory;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Queue;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;
import java.util.function.BooleanSupplier;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import javax.management.MBeanServer;
import javax.management.ObjectName;
import nstorm.hook.Faults;
import nstorm.wire.ExecutorId;
import nstorm.worker.storm.StormFields;
import org.apache.storm.Config;
import org.apache.storm.LocalCluster;
import org.apache.storm.StormTimer;
import org.apache.storm.spout.SpoutOutputCollector;
import org.apache.storm.task.OutputCollector;
import org.apache.storm.task.TopologyContext;
import org.apache.storm.topology.OutputFieldsDeclarer;
import org.apache.storm.topology.TopologyBuilder;
import org.apache.storm.topology.base.BaseRichBolt;
import org.apache.storm.topology.base.BaseRichSpout;
import org.apache.storm.tuple.Fields;
import org.apache.storm.tuple.Tuple;
import org.apache.storm.tuple.Values;
import org.apache.storm.utils.Utils;
import org.junit.jupiter.api.Test;

/**
 * Starts and stops a bolt five hundred times in one JVM, and the acker and the spout now and then, through Storm's real
 * classes with the real hooks woven in, while tuples flow: nothing may be lost, no tree stay open, nothing may grow.
 */
class ExecutorChurnIT {
    private static final int TURNS = 100;
    private static final AtomicLong EMITTED = new AtomicLong();
    private static final AtomicLong ACKED = new AtomicLong();
    private static final AtomicLong FAILED = new AtomicLong();
    private static final AtomicLong PREPARED = new AtomicLong();
    private static final AtomicLong CLEANED = new AtomicLong();
    private static final AtomicLong OPEN_SPOUTS = new AtomicLong();
    private static final AtomicLong OPENED = new AtomicLong();
    private static volatile boolean twoWereOpen;
    private static volatile boolean paused;

    /** Emits a tuple about every millisecond. */
    public static final class Source extends BaseRichSpout {
        private static final long serialVersionUID = 1L;
        private transient SpoutOutputCollector out;

        @Override
        public void open(Map<String, Object> conf, TopologyContext context, SpoutOutputCollector collector) {
            out = collector;
            OPENED.incrementAndGet();
            twoWereOpen |= OPEN_SPOUTS.incrementAndGet() > 1;
        }

        @Override
        public void close() {
            OPEN_SPOUTS.decrementAndGet();
        }

        @Override
        public void nextTuple() {
            Utils.sleep(1);
            if (!paused) {
                out.emit(new Values(EMITTED.incrementAndGet()), EMITTED.get());
            }
        }

        @Override
        public void ack(Object id) {
            ACKED.incrementAndGet();
        }

        @Override
        public void fail(Object id) {
            FAILED.incrementAndGet();
        }

        @Override
        public void declareOutputFields(OutputFieldsDeclarer declarer) {
            declarer.declare(new Fields("n"));
        }
    }

    /** Acknowledges; takes ticks. */
    public static final class Sink extends BaseRichBolt {
        private static final long serialVersionUID = 1L;
        private transient OutputCollector out;

        @Override
        public void prepare(Map<String, Object> conf, TopologyContext context, OutputCollector collector) {
            out = collector;
            PREPARED.incrementAndGet();
            context.registerGauge("of-the-user", () -> 1);
        }

        @Override
        public void execute(Tuple tuple) {
            out.ack(tuple);
        }

        @Override
        public void cleanup() {
            CLEANED.incrementAndGet();
        }

        @Override
        public void declareOutputFields(OutputFieldsDeclarer declarer) {}

        @Override
        public Map<String, Object> getComponentConfiguration() {
            return new HashMap<>(Map.of(Config.TOPOLOGY_TICK_TUPLE_FREQ_SECS, 1));
        }
    }

    private static void await(String what, BooleanSupplier condition) throws InterruptedException {
        long end = System.nanoTime() + TimeUnit.SECONDS.toNanos(60);
        while (!condition.getAsBoolean()) {
            assertTrue(
                    System.nanoTime() < end,
                    () -> "waited 60 s in vain: " + what + "; emitted " + EMITTED.get() + ", acked "
                            + ACKED.get() + ", failed " + FAILED.get() + ", opened " + OPENED.get() + ", faults "
                            + Faults.count() + " "
                            + Faults.last());
            Thread.sleep(1);
        }
    }

    private record Footprint(
            int threads,
            int metrics,
            int rateCounters,
            int timers,
            long files,
            long heapBytes,
            int beans,
            int classes,
            int loaders) {
        static Footprint of(HookedWorker worker) throws Exception {
            StormTimer timer = StormFields.get(StormFields.USER_TIMER, worker.state);
            var os = (com.sun.management.UnixOperatingSystemMXBean) ManagementFactory.getOperatingSystemMXBean();
            for (int i = 0; i < 3; i++) {
                System.gc();
                Thread.sleep(100);
            }
            Runtime runtime = Runtime.getRuntime();
            MBeanServer beans = ManagementFactory.getPlatformMBeanServer();
            return new Footprint(
                    Thread.activeCount(),
                    worker.state.getMetricRegistry().getRegistry().getNames().size(),
                    StormFields.<java.util.Set<?>>get(StormFields.RATE_COUNTERS, worker.state.getMetricRegistry())
                            .size(),
                    queueOf(timer).size(),
                    os.getOpenFileDescriptorCount(),
                    runtime.totalMemory() - runtime.freeMemory(),
                    beans.getMBeanCount(),
                    ManagementFactory.getClassLoadingMXBean().getLoadedClassCount(),
                    loaders(beans));
        }

        /** Those that have classes, as the JVM lists them; a hidden class may count as one. */
        private static int loaders(MBeanServer beans) throws Exception {
            String listed = (String) beans.invoke(
                    new ObjectName("com.sun.management:type=DiagnosticCommand"),
                    "vmClassloaderStats",
                    new Object[] {new String[0]},
                    new String[] {String[].class.getName()});
            Matcher total = Pattern.compile("(?m)^Total = (\\d+)").matcher(listed);
            assertTrue(total.find(), listed);
            return Integer.parseInt(total.group(1));
        }

        /** Storm registers some metrics and loads some classes on first use, so a few may differ; a leak would be a thousand. */
        boolean isLike(Footprint before, long noiseBytes) {
            return metrics <= before.metrics + 20
                    && rateCounters <= before.rateCounters + 20
                    && timers <= before.timers + 1
                    && threads <= before.threads + 10
                    && files <= before.files + 10
                    && heapBytes < before.heapBytes + noiseBytes
                    && beans <= before.beans + 10
                    && classes <= before.classes + 100
                    && loaders <= before.loaders + 10;
        }

        private static Queue<?> queueOf(StormTimer timer) throws Exception {
            var task = StormTimer.class.getDeclaredField("task");
            task.setAccessible(true);
            var queue = StormTimer.StormTimerTask.class.getDeclaredField("queue");
            queue.setAccessible(true);
            return (Queue<?>) queue.get(task.get(timer));
        }
    }

    /** What has ended takes its time to go; a leak stays. */
    private Footprint settled(HookedWorker worker, Footprint before) throws Exception {
        long end = System.nanoTime() + TimeUnit.SECONDS.toNanos(60);
        Footprint now = Footprint.of(worker);
        while (!now.isLike(before, noiseBytes()) && System.nanoTime() < end) {
            Thread.sleep(1000);
            now = Footprint.of(worker);
        }
        return now;
    }

    /** As the reconciler does at each look while a plan has entries: a turn may take longer than messages time out. */
    private static BooleanSupplier moving(HookedWorker worker, BooleanSupplier condition) {
        return () -> {
            worker.expectMisrouted();
            return condition.getAsBoolean();
        };
    }

    private static void turn(HookedWorker worker, ExecutorId id) throws Exception {
        worker.expectMisrouted();
        ExecutorCopy old = worker.copies.get(id);
        worker.tables.renounce(id);
        worker.stopDelivering(id, null);
        old.drain.forward(worker.handOver, false);
        old.stop(worker.handOver);
        await("executor " + id + " stopped", moving(worker, () -> !worker.copies.containsKey(id)));
        worker.start(worker.factory.begin(id, false), false, false);
        ExecutorCopy copy = worker.copies.get(id);
        await("executor " + id + " ready", moving(worker, copy::ready));
        worker.claim(copy);
    }

    private static ExecutorId idOf(HookedWorker worker, String component) {
        return worker.copies.values().stream()
                .filter(c -> c.component.equals(component))
                .findFirst()
                .orElseThrow()
                .id();
    }

    /** Pending tuples are acked first, and the next copy opens only once this one is closed. */
    private static void spoutTurn(HookedWorker worker, ExecutorId id) throws Exception {
        worker.copies.get(id).drain.finish(worker.handOver);
        await("spout " + id + " closed", moving(worker, () -> !worker.copies.containsKey(id)));
        worker.start(worker.factory.begin(id, false), false, false);
        ExecutorCopy copy = worker.copies.get(id);
        assertTrue(copy.prepared(true));
        worker.run(copy);
        await("spout " + id + " opened", moving(worker, copy::ready));
        worker.claim(copy);
    }

    /** By how much the heap may differ. */
    long noiseBytes() {
        return 8_000_000;
    }

    /** How many tuples Storm's threads publish at once. */
    int producerBatch() {
        return 1;
    }

    @Test
    void startsAndStopsLoseNothingAndLeaveNothing() throws Exception {
        assertNull(System.getProperty("nstorm.refused"));
        TopologyBuilder builder = new TopologyBuilder();
        builder.setSpout("source", new Source(), 1);
        builder.setBolt("sink", new Sink(), 2).shuffleGrouping("source");
        Config conf = new Config();
        conf.setNumWorkers(1);
        conf.setNumAckers(1);
        // Retired queues are kept for so long. No tuple times out, however slow the machine: a lost one is never acked.
        conf.setMessageTimeoutSecs(3);
        conf.put(Config.TOPOLOGY_ENABLE_MESSAGE_TIMEOUTS, false);
        conf.put(Config.TOPOLOGY_PRODUCER_BATCH_SIZE, producerBatch());
        conf.put("nstorm.cleanup", List.of("sink"));
        try (LocalCluster cluster = new LocalCluster.Builder()
                        .withSupervisors(1)
                        .withPortsPerSupervisor(1)
                        .build();
                LocalCluster.LocalTopology topology = cluster.submitTopology("churn", conf, builder.createTopology());
                AutoCloseable sampling = OneWorker::endSampling) {
            await("hooked worker", () -> WorkerCalls.loop() != null && ACKED.get() > 100);
            HookedWorker worker = WorkerCalls.loop().worker;
            ExecutorId id = idOf(worker, "sink");
            ExecutorId acker = idOf(worker, "__acker");
            ExecutorId spout = idOf(worker, "source");
            for (int i = 0; i < 50; i++) {
                turn(worker, id);
                turn(worker, acker);
                spoutTurn(worker, spout);
            }
            Thread.sleep(5000);
            Footprint before = Footprint.of(worker);
            long preparedBefore = PREPARED.get();
            for (int i = 0; i < TURNS; i++) {
                turn(worker, id);
                if (i % 5 == 0) {
                    turn(worker, acker);
                    spoutTurn(worker, spout);
                }
            }
            paused = true;
            await("all acked", () -> ACKED.get() == EMITTED.get());
            Thread.sleep(5000);
            Footprint after = settled(worker, before);
            System.out.println("churn before " + before + " after " + after + " emitted " + EMITTED.get());
            assertEquals(0, FAILED.get());
            assertEquals(1 + 50 + TURNS / 5, OPENED.get());
            assertTrue(!twoWereOpen, "a spout was opened before the one before it was closed");
            assertEquals(TURNS, PREPARED.get() - preparedBefore);
            assertEquals(TURNS + 50, CLEANED.get());
            assertEquals(0, worker.misrouted.dropped.get());
            assertEquals(0, Faults.count(), () -> Faults.last());
            assertNotNull(worker.copies.get(id));
            assertTrue(after.isLike(before, noiseBytes()), before + " then " + after);
        }
    }
}

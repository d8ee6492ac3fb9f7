package nstorm.worker;

import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.ObjectInputStream;
import java.io.OutputStream;
import java.net.ServerSocket;
import java.net.Socket;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.Callable;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.FutureTask;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.atomic.LongAdder;
import java.util.function.BooleanSupplier;
import nstorm.Threads;
import nstorm.store.PlanWriting;
import nstorm.wire.ExecutorId;
import nstorm.wire.Phase;
import nstorm.wire.Slot;
import org.apache.storm.Config;
import org.apache.storm.LocalCluster;
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
import org.apache.storm.utils.TupleUtils;
import org.apache.storm.utils.Utils;

/**
 * A real worker in this JVM, hooked by the real jar, that follows plans as a node's agent would write them.
 * It is the topology's only one: the other ends of its moves are slots where nothing of Storm runs.
 */
public final class OneWorker implements AutoCloseable {
    /** Emits a tuple about every millisecond, and notes what Storm asks of it. */
    public static final class Source extends BaseRichSpout {
        static final AtomicLong EMITTED = new AtomicLong();
        static final AtomicLong ACKED = new AtomicLong();
        static final AtomicLong FAILED = new AtomicLong();
        /** Of the copy that runs. */
        static final Set<Long> PENDING = ConcurrentHashMap.newKeySet();
        /** open, activate, deactivate and close, in their order. */
        static final List<String> CALLS = new CopyOnWriteArrayList<>();

        static volatile CountDownLatch openGate = new CountDownLatch(0);
        static volatile boolean failsInOpen;

        private static final long serialVersionUID = 1L;
        private transient SpoutOutputCollector out;

        @Override
        public void open(Map<String, Object> conf, TopologyContext context, SpoutOutputCollector collector) {
            out = collector;
            CALLS.add("open");
            if (failsInOpen) {
                throw new IllegalStateException("no route to the user's broker");
            }
            hold(openGate);
            PENDING.clear();
        }

        @Override
        public void nextTuple() {
            Utils.sleep(1);
            long message = EMITTED.incrementAndGet();
            PENDING.add(message);
            out.emit(new Values(1), message);
            out.emit("more", new Values(message));
        }

        @Override
        public void ack(Object message) {
            ACKED.incrementAndGet();
            PENDING.remove(message);
        }

        @Override
        public void fail(Object message) {
            FAILED.incrementAndGet();
            PENDING.remove(message);
        }

        @Override
        public void activate() {
            CALLS.add("activate");
        }

        @Override
        public void deactivate() {
            CALLS.add("deactivate");
        }

        @Override
        public void close() {
            CALLS.add("close");
        }

        @Override
        public void declareOutputFields(OutputFieldsDeclarer declarer) {
            declarer.declare(new Fields("n"));
            declarer.declareStream("more", new Fields("n"));
        }
    }

    /** Keeps tuples and writes them at a tick, if a test lets it. */
    public static final class Batch extends BaseRichBolt {
        static final LongAdder TAKEN = new LongAdder();
        static final LongAdder WRITTEN = new LongAdder();
        static volatile boolean waits;

        private static final long serialVersionUID = 1L;
        private transient List<Tuple> batch;
        private transient OutputCollector out;

        @Override
        public void prepare(Map<String, Object> conf, TopologyContext context, OutputCollector collector) {
            out = collector;
            batch = new ArrayList<>();
        }

        @Override
        public void execute(Tuple tuple) {
            if (!TupleUtils.isTick(tuple)) {
                TAKEN.increment();
                batch.add(tuple);
            } else if (!waits) {
                WRITTEN.add(batch.size());
                for (Tuple kept : batch) {
                    out.ack(kept);
                }
                batch.clear();
            }
        }

        @Override
        public void declareOutputFields(OutputFieldsDeclarer declarer) {}

        @Override
        public Map<String, Object> getComponentConfiguration() {
            return new HashMap<>(Map.of(Config.TOPOLOGY_TICK_TUPLE_FREQ_SECS, 1));
        }
    }

    /** Counts, and does in its constructor and prepare() what a test asks for. */
    public static final class Sink extends BaseRichBolt {
        static final AtomicLong EXECUTED = new AtomicLong();
        static final AtomicInteger PREPARES = new AtomicInteger();
        static final AtomicInteger CLEANUPS = new AtomicInteger();
        static volatile CountDownLatch prepareGate = new CountDownLatch(0);
        /** What comes now is never acked. */
        static volatile boolean forgets;

        static volatile boolean failsWhenBuilt;
        /** How often one was built. */
        static final AtomicInteger BUILT = new AtomicInteger();

        static volatile CountDownLatch buildGate = new CountDownLatch(0);
        static volatile boolean failsInPrepare;
        /** Longer than the source takes to emit, and its queue never empties. */
        static volatile int takesMs;

        private static final long serialVersionUID = 1L;
        long count;
        Map<String, Long> held = new HashMap<>();
        ReconcilerIT.Slow slow;
        private transient OutputCollector out;

        private void readObject(ObjectInputStream in) {
            BUILT.incrementAndGet();
            hold(buildGate);
            if (failsWhenBuilt) {
                throw new NoClassDefFoundError("of the user");
            }
        }

        @Override
        public void prepare(Map<String, Object> conf, TopologyContext context, OutputCollector collector) {
            PREPARES.incrementAndGet();
            if (failsInPrepare) {
                throw new IllegalStateException("no connection to the user's database");
            }
            out = collector;
            hold(prepareGate);
        }

        @Override
        public void execute(Tuple tuple) {
            EXECUTED.incrementAndGet();
            Utils.sleep(takesMs);
            count++;
            if (!forgets) {
                out.ack(tuple);
            }
        }

        @Override
        public void cleanup() {
            CLEANUPS.incrementAndGet();
        }

        @Override
        public void declareOutputFields(OutputFieldsDeclarer declarer) {}

        @Override
        public Map<String, Object> getComponentConfiguration() {
            return new HashMap<>(Map.of(Config.TOPOLOGY_TICK_TUPLE_FREQ_SECS, 1));
        }
    }

    /** As what tries again until it is connected. */
    static void hold(CountDownLatch gate) {
        while (gate.getCount() > 0) {
            try {
                gate.await();
            } catch (InterruptedException e) {
                // Again.
            }
        }
    }

    static final int MESSAGE_TIMEOUT_SECS = 3;
    /** An acker, too. */
    private static final int EXECUTORS = 5;

    final WorkerLoop loop;
    final HookedWorker worker;
    /** The executor that is moved: the only one of the component {@code sink}. */
    final ExecutorId id;

    final Slot elsewhere;
    final Slot elsewhereToo;
    final LocalCluster cluster;
    private final Path plans;
    /** Of the moves that are planned from now on. */
    String way = "live";

    boolean ordered;
    private int version;

    OneWorker(Path dir) throws Exception {
        TopologyBuilder builder = new TopologyBuilder();
        builder.setSpout("source", new Source(), 1);
        builder.setBolt("sink", new Sink(), 1).shuffleGrouping("source");
        builder.setBolt("batch", new Batch(), 1).shuffleGrouping("source", "more");
        builder.setBolt("holder", new Holder(), 1).shuffleGrouping("source", "more");
        Config conf = new Config();
        conf.setNumWorkers(1);
        conf.setMessageTimeoutSecs(MESSAGE_TIMEOUT_SECS);
        // Off in a LocalCluster.
        conf.put(Config.TOPOLOGY_ENABLE_MESSAGE_TIMEOUTS, true);
        // What its spout counts is the test's own.
        conf.put("nstorm.move", Map.of("sink", "carry", "source", "renew", "holder", "renew"));
        conf.put("nstorm.state", Map.of("sink", List.of("count"), "holder", List.of("batch")));
        // Storm's connections inside a JVM know no back-pressure.
        cluster = new LocalCluster.Builder()
                .withSupervisors(1)
                .withPortsPerSupervisor(1)
                .withSupervisorSlotPortMin(freePort())
                .withDaemonConf(Config.STORM_LOCAL_MODE_ZMQ, true)
                .withDaemonConf("nstorm.store.dir", dir.toString())
                // Tests take executors away from it, for which Nimbus would start the worker again.
                .withDaemonConf("nimbus.task.timeout.secs", 600)
                .build();
        cluster.submitTopology("one", conf, builder.createTopology());
        // An executor may run before the hooks have taken it over.
        await(
                "a hooked worker",
                () -> WorkerCalls.loop() != null
                        && WorkerCalls.loop().worker.copies.size() == EXECUTORS
                        && Sink.EXECUTED.get() > 100);
        loop = WorkerCalls.loop();
        worker = loop.worker;
        id = idOf("sink");
        elsewhere = new Slot(worker.me.supervisor(), deafPort());
        elsewhereToo = new Slot(worker.me.supervisor(), deafPort());
        plans = Files.createDirectories(dir.resolve("plan"));
    }

    ExecutorId idOf(String component) {
        return worker.copies.values().stream()
                .filter(c -> c.component.equals(component))
                .findFirst()
                .orElseThrow()
                .id();
    }

    static int freePort() throws Exception {
        try (ServerSocket socket = new ServerSocket(0)) {
            return socket.getLocalPort();
        }
    }

    /** A port of the test's own, so that no tuple reaches a stranger: takes what is sent to it and answers nothing. */
    private static int deafPort() throws Exception {
        return listen(0);
    }

    static int listen(int port) throws Exception {
        ServerSocket server = new ServerSocket(port);
        daemon(() -> {
            while (true) {
                Socket socket = server.accept();
                daemon(() -> socket.getInputStream().transferTo(OutputStream.nullOutputStream()));
            }
        });
        return server.getLocalPort();
    }

    private static void daemon(Callable<?> body) {
        Thread thread = new Thread(new FutureTask<>(body), "deaf-slot");
        thread.setDaemon(true);
        thread.start();
    }

    public static void await(String what, BooleanSupplier condition) throws InterruptedException {
        long end = System.nanoTime() + TimeUnit.SECONDS.toNanos(60);
        while (!condition.getAsBoolean()) {
            assertTrue(System.nanoTime() < end, "waited 60 s in vain: " + what);
            Thread.sleep(1);
        }
    }

    /** Writes a plan with one entry for {@link #id}, as the assignment is now. */
    void plan(String move, Slot from, Slot to, Phase phase) throws Exception {
        plan(move, id, from, to, phase);
    }

    void plan(String move, ExecutorId id, Slot from, Slot to, Phase phase) throws Exception {
        long startSecs = worker.overlay.assigned().get(this.id).startSecs();
        write(String.format(
                "{\"id\":\"%s\",\"executor\":[%d,%d],\"from\":\"%s\",\"to\":\"%s\",\"phase\":\"%s\","
                        + "\"base\":[\"%s\",%d],\"void\":null,\"way\":\"%s\",\"ordered\":%s}",
                move, id.start(), id.end(), from, to, phase, worker.me, startSecs, way, ordered));
    }

    /** Writes a plan in which nothing moves. */
    void planNothing() throws Exception {
        write("");
    }

    private void write(String entries) throws Exception {
        PlanWriting.write(
                plans,
                String.format(
                        "{\"cluster\":\"c\",\"plans\":[{\"cluster\":\"c\",\"epoch\":1,"
                                + "\"version\":%d,\"topology\":\"%s\",\"entries\":[%s]}]}",
                        ++version, worker.state.getTopologyId(), entries));
    }

    /** Waits until this worker has acknowledged the newest plan with this state of the move. */
    void awaitAck(String move, String state) throws InterruptedException {
        String applied = "\"version\":" + version + ",";
        String entry = "{\"id\":\"" + move + "\",\"state\":\"" + state + "\"";
        await(move + " " + state, () -> ack().contains(applied) && ack().contains(entry));
    }

    String ack() {
        return new String(loop.lastAck, StandardCharsets.UTF_8);
    }

    void awaitTuples() throws InterruptedException {
        long before = Sink.EXECUTED.get();
        await("tuples reach the copy here", () -> Sink.EXECUTED.get() > before + 10);
    }

    /** Waits until nothing of the last move is left and the executor runs here. */
    void settle() throws Exception {
        // As a move ends that is undone: routed here again, then the entry leaves.
        plan("settle", worker.me, elsewhere, Phase.UNDO);
        awaitAck("settle", "ROUTED");
        planNothing();
        await("settled", () -> !loop.reconciler.busy());
        awaitTuples();
    }

    List<Thread> threadsOfSink() {
        return Thread.getAllStackTraces().keySet().stream()
                .filter(t -> t.getName().contains("sink-executor"))
                .toList();
    }

    /** In a process of its own they end with the worker; here they would write into folders that are deleted. */
    static void endSampling() throws InterruptedException {
        for (Thread thread : Thread.getAllStackTraces().keySet()) {
            if (Set.of("nstorm-worker", "nstorm-load").contains(thread.getName())) {
                Threads.end(thread);
            }
        }
    }

    @Override
    public void close() throws Exception {
        endSampling();
        cluster.close();
    }
}

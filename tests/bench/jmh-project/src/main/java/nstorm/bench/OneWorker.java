package nstorm.bench;

import java.lang.reflect.Field;
import java.util.ArrayList;
import java.util.Map;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import org.apache.storm.Config;
import org.apache.storm.LocalCluster;
import org.apache.storm.executor.Executor;
import org.apache.storm.executor.ExecutorTransfer;
import org.apache.storm.executor.bolt.BoltOutputCollectorImpl;
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
import org.apache.storm.utils.JCQueue;

/**
 * A real worker of Storm in this JVM, with two bolts. The second one's own thread is held in its first
 * {@code execute}, so that the measuring thread may take its place: what it emits it also consumes, through
 * Storm's own collector, transfer, queue and executor, and no other thread disturbs the figure.
 */
final class OneWorker {
    private static final CountDownLatch PREPARED = new CountDownLatch(2);
    private static final CountDownLatch HELD = new CountDownLatch(1);
    private static OneWorker only;

    private static volatile OutputCollector fromCollector;
    private static volatile OutputCollector toCollector;
    private static volatile int toTask;

    final OutputCollector out = fromCollector;
    final Executor from = executorOf(fromCollector);
    final Executor to = executorOf(toCollector);
    final JCQueue queue = to.getReceiveQueue();
    final int task = toTask;

    /** Never emits; a topology needs one. */
    public static final class Silent extends BaseRichSpout {
        private static final long serialVersionUID = 1L;

        @Override
        public void open(Map<String, Object> conf, TopologyContext context, SpoutOutputCollector collector) {}

        @Override
        public void nextTuple() {}

        @Override
        public void declareOutputFields(OutputFieldsDeclarer declarer) {
            declarer.declare(new Fields("word"));
        }
    }

    /** Lends its collector to the measuring thread. */
    public static final class From extends BaseRichBolt {
        private static final long serialVersionUID = 1L;

        @Override
        public void prepare(Map<String, Object> conf, TopologyContext context, OutputCollector collector) {
            fromCollector = collector;
            PREPARED.countDown();
        }

        @Override
        public void execute(Tuple tuple) {}

        @Override
        public void declareOutputFields(OutputFieldsDeclarer declarer) {
            declarer.declare(new Fields("word"));
        }
    }

    /** Does as little as a bolt can: acknowledges. Its own thread never comes back from the first tuple. */
    public static final class To extends BaseRichBolt {
        private static final long serialVersionUID = 1L;
        private transient OutputCollector out;

        @Override
        public void prepare(Map<String, Object> conf, TopologyContext context, OutputCollector collector) {
            out = collector;
            toCollector = collector;
            toTask = context.getThisTaskId();
            PREPARED.countDown();
        }

        @Override
        public void execute(Tuple tuple) {
            if (HELD.getCount() > 0) {
                HELD.countDown();
                sleepForEver();
            }
            out.ack(tuple);
        }

        @Override
        public void declareOutputFields(OutputFieldsDeclarer declarer) {}
    }

    private static void sleepForEver() {
        while (true) {
            try {
                Thread.sleep(Long.MAX_VALUE);
            } catch (InterruptedException e) {
                throw new IllegalStateException("the bolt's own thread must stay away", e);
            }
        }
    }

    private OneWorker() {}

    /** The worker of this JVM, started the first time. */
    static synchronized OneWorker get() throws Exception {
        if (only == null) {
            start();
            if (!PREPARED.await(120, TimeUnit.SECONDS)) {
                throw new IllegalStateException("the bolts were not prepared in 120 s");
            }
            fromCollector.emit(new Values("hold"));
            if (!HELD.await(120, TimeUnit.SECONDS)) {
                throw new IllegalStateException("no tuple reached the bolt in 120 s");
            }
            only = new OneWorker();
        }
        return only;
    }

    @SuppressWarnings("resource")
    private static void start() throws Exception {
        TopologyBuilder builder = new TopologyBuilder();
        builder.setSpout("spout", new Silent(), 1);
        builder.setBolt("from", new From(), 1).shuffleGrouping("spout");
        builder.setBolt("to", new To(), 1).shuffleGrouping("from");
        Config conf = new Config();
        conf.setNumWorkers(1);
        conf.setNumAckers(0);
        // It ends with the JVM.
        new LocalCluster.Builder()
                .withSupervisors(1)
                .withPortsPerSupervisor(1)
                .build()
                .submitTopology("bench", conf, builder.createTopology());
    }

    /** The table of local queues that the transfer of an executor looks destinations up in. */
    @SuppressWarnings("unchecked")
    static ArrayList<JCQueue> localQueues(Executor executor) {
        return (ArrayList<JCQueue>) field(ExecutorTransfer.class, executor.getExecutorTransfer(), "localReceiveQueues");
    }

    private static Executor executorOf(OutputCollector collector) {
        Object inner = field(OutputCollector.class, collector, "delegate");
        return (Executor) field(BoltOutputCollectorImpl.class, inner, "executor");
    }

    private static Object field(Class<?> type, Object owner, String name) {
        try {
            Field field = type.getDeclaredField(name);
            field.setAccessible(true);
            return field.get(owner);
        } catch (ReflectiveOperationException e) {
            throw new IllegalStateException("Storm has changed: " + e, e);
        }
    }
}

package nstorm.worker;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicLong;
import org.apache.storm.Config;
import org.apache.storm.task.OutputCollector;
import org.apache.storm.task.TopologyContext;
import org.apache.storm.topology.OutputFieldsDeclarer;
import org.apache.storm.topology.base.BaseRichBolt;
import org.apache.storm.tuple.Tuple;
import org.apache.storm.utils.TupleUtils;
import org.apache.storm.utils.Utils;

/** Holds from prepare() to cleanup() what only one copy may hold, keeps tuples, and writes them at a tick if a test lets it. */
public final class Holder extends BaseRichBolt {
    /** prepare and cleanup, in their order. */
    static final List<String> CALLS = new CopyOnWriteArrayList<>();

    static final AtomicBoolean HELD = new AtomicBoolean();
    /** What was not right. */
    static final List<String> WRONG = new CopyOnWriteArrayList<>();

    static final AtomicLong TAKEN = new AtomicLong();
    static final AtomicLong WRITTEN = new AtomicLong();
    /** The number of the tuple that was taken last, and how many came after a later one. */
    static final AtomicLong LAST = new AtomicLong();

    static final AtomicLong INVERTED = new AtomicLong();
    /** How often prepare() was entered. */
    static final AtomicLong ENTERED = new AtomicLong();

    static volatile boolean waits;
    static volatile int takesMs;
    static volatile CountDownLatch prepareGate = new CountDownLatch(0);
    static volatile CountDownLatch cleanupGate = new CountDownLatch(0);
    static volatile RuntimeException inCleanup;
    static volatile RuntimeException inPrepare;

    private static final long serialVersionUID = 1L;
    private transient List<Tuple> batch;
    private transient OutputCollector out;

    @Override
    public void prepare(Map<String, Object> conf, TopologyContext context, OutputCollector collector) {
        out = collector;
        batch = new ArrayList<>();
        ENTERED.incrementAndGet();
        OneWorker.hold(prepareGate);
        if (inPrepare != null) {
            throw inPrepare;
        }
        check(HELD.compareAndSet(false, true), "prepared while another copy holds it");
        CALLS.add("prepare");
    }

    @Override
    public void execute(Tuple tuple) {
        check(HELD.get(), "takes a tuple after it was cleaned up");
        if (!TupleUtils.isTick(tuple)) {
            Utils.sleep(takesMs);
            INVERTED.addAndGet(LAST.getAndSet(tuple.getLong(0)) < tuple.getLong(0) ? 0 : 1);
            TAKEN.incrementAndGet();
            batch.add(tuple);
        } else if (!waits) {
            WRITTEN.addAndGet(batch.size());
            batch.forEach(out::ack);
            batch.clear();
        }
    }

    @Override
    public void cleanup() {
        CALLS.add("cleanup");
        OneWorker.hold(cleanupGate);
        check(batch.isEmpty(), "cleaned up while it keeps tuples");
        check(HELD.compareAndSet(true, false), "cleaned up twice");
        if (inCleanup != null) {
            throw inCleanup;
        }
    }

    private static void check(boolean right, String wrong) {
        if (!right) {
            WRONG.add(wrong);
        }
    }

    @Override
    public void declareOutputFields(OutputFieldsDeclarer declarer) {}

    @Override
    public Map<String, Object> getComponentConfiguration() {
        return new HashMap<>(Map.of(Config.TOPOLOGY_TICK_TUPLE_FREQ_SECS, 1));
    }
}

package nstorm.workload;

import java.util.HashMap;
import java.util.Map;
import java.util.concurrent.locks.LockSupport;
import org.apache.storm.task.OutputCollector;
import org.apache.storm.task.TopologyContext;
import org.apache.storm.topology.OutputFieldsDeclarer;
import org.apache.storm.topology.base.BaseRichBolt;
import org.apache.storm.tuple.Tuple;
import org.apache.storm.utils.TupleUtils;

/** Counts words; the end of every tuple tree. */
public final class CountBolt extends BaseRichBolt {
    private final Map<String, Long> counts = new HashMap<>();
    private transient OutputCollector collector;
    private transient Ledger ledger;
    private int task;
    private long waitNanos;

    @Override
    public void prepare(Map<String, Object> conf, TopologyContext context, OutputCollector collector) {
        this.collector = collector;
        task = context.getThisTaskId();
        waitNanos = WordCount.integer(conf, WordCount.COUNT_WAIT_NS, 0);
        ledger = Ledger.join(conf, context);
    }

    @Override
    public void execute(Tuple tuple) {
        if (TupleUtils.isTick(tuple)) {
            ledger.ticks.increment();
            return;
        }
        if (waitNanos > 0) {
            // As for a database: slow without taking the CPU from those who are to move this bolt.
            LockSupport.parkNanos(waitNanos);
        }
        counts.merge(tuple.getString(0), 1L, Long::sum);
        ledger.wordsCounted.increment();
        collector.ack(tuple);
    }

    @Override
    public void cleanup() {
        ledger.leave(task);
    }

    @Override
    public void declareOutputFields(OutputFieldsDeclarer declarer) {
    }
}

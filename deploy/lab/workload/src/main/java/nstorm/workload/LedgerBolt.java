package nstorm.workload;

import java.util.Map;
import org.apache.storm.task.OutputCollector;
import org.apache.storm.task.TopologyContext;
import org.apache.storm.topology.OutputFieldsDeclarer;
import org.apache.storm.topology.base.BaseRichBolt;
import org.apache.storm.tuple.Tuple;

/** A bolt that is in the ledger from the end of its prepare until its cleanup. */
abstract class LedgerBolt extends BaseRichBolt {
    protected transient OutputCollector collector;
    protected transient Ledger ledger;
    protected int task;

    @Override
    public final void prepare(Map<String, Object> conf, TopologyContext context, OutputCollector collector) {
        this.collector = collector;
        task = context.getThisTaskId();
        open(conf, context);
        ledger = Ledger.join(conf, context);
        joined();
    }

    void open(Map<String, Object> conf, TopologyContext context) {}

    void joined() {}

    /** Spends CPU on a tuple out of the same JVM, as a bolt does that shares a lock with its source. */
    final void contend(Tuple tuple, long nanos) {
        if (nanos > 0 && ledger.isHere(tuple.getSourceTask())) {
            long begin = System.nanoTime();
            while (System.nanoTime() - begin < nanos) {
                Thread.onSpinWait();
            }
        }
    }

    @Override
    public void cleanup() {
        ledger.leave(task);
    }

    @Override
    public void declareOutputFields(OutputFieldsDeclarer declarer) {}
}

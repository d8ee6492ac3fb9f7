package nstorm.workload;

import java.util.Map;
import org.apache.storm.task.OutputCollector;
import org.apache.storm.task.TopologyContext;
import org.apache.storm.topology.OutputFieldsDeclarer;
import org.apache.storm.topology.base.BaseRichBolt;
import org.apache.storm.tuple.Tuple;
import org.apache.storm.utils.TupleUtils;

/**
 * A bolt that keeps something, and gives account of it when the ledger asks: at a tick, on the thread that changes it,
 * so nothing is locked and a copy that no longer runs no longer answers.
 */
abstract class KeepingBolt extends BaseRichBolt {
    protected transient OutputCollector collector;
    protected transient Ledger ledger;
    protected int task;
    private int answered;

    @Override
    public final void prepare(Map<String, Object> conf, TopologyContext context, OutputCollector collector) {
        this.collector = collector;
        task = context.getThisTaskId();
        open(conf, context);
        ledger = Ledger.join(conf, context);
        ledger.expect(task);
        answered = ledger.asked();
    }

    @Override
    public final void execute(Tuple tuple) {
        if (!TupleUtils.isTick(tuple)) {
            take(tuple);
            return;
        }
        ledger.ticks.increment();
        tick();
        int asked = ledger.asked();
        if (answered < asked) {
            answered = asked;
            ledger.tell("kept-" + asked, task, kept());
        }
    }

    abstract void open(Map<String, Object> conf, TopologyContext context);

    abstract void take(Tuple tuple);

    void tick() {
    }

    /** All that the next tuples will be added to. */
    abstract Map<String, ?> kept();

    @Override
    public void cleanup() {
        ledger.leave(task);
    }

    @Override
    public void declareOutputFields(OutputFieldsDeclarer declarer) {
    }
}

package nstorm.workload;

import java.util.Map;
import org.apache.storm.task.OutputCollector;
import org.apache.storm.task.TopologyContext;
import org.apache.storm.topology.OutputFieldsDeclarer;
import org.apache.storm.topology.base.BaseRichBolt;
import org.apache.storm.tuple.Fields;
import org.apache.storm.tuple.Tuple;
import org.apache.storm.tuple.Values;

/** Splits sentences into words, each anchored to its sentence. */
public final class SplitBolt extends BaseRichBolt {
    private transient OutputCollector collector;
    private transient Ledger ledger;
    private int task;

    @Override
    public void prepare(Map<String, Object> conf, TopologyContext context, OutputCollector collector) {
        this.collector = collector;
        task = context.getThisTaskId();
        ledger = Ledger.join(conf, context);
    }

    @Override
    public void execute(Tuple tuple) {
        for (String word : Sentences.withoutFiller(tuple.getString(0)).split(" ")) {
            ledger.wordsEmitted.increment();
            collector.emit(tuple, new Values(word));
        }
        collector.ack(tuple);
    }

    @Override
    public void cleanup() {
        ledger.leave(task);
    }

    @Override
    public void declareOutputFields(OutputFieldsDeclarer declarer) {
        declarer.declare(new Fields("word"));
    }
}

package nstorm.workload;

import java.util.Map;
import org.apache.storm.task.TopologyContext;
import org.apache.storm.topology.OutputFieldsDeclarer;
import org.apache.storm.tuple.Fields;
import org.apache.storm.tuple.Tuple;
import org.apache.storm.tuple.Values;

/** Splits sentences into words, each anchored to its sentence. */
public final class SplitBolt extends LedgerBolt {
    private long localNanos;

    @Override
    void open(Map<String, Object> conf, TopologyContext context) {
        localNanos = WordCount.integer(conf, "workload.split.local.ns", 0);
    }

    @Override
    public void execute(Tuple tuple) {
        contend(tuple, localNanos);
        for (String word : Sentences.withoutFiller(tuple.getString(0)).split(" ")) {
            ledger.wordsEmitted.increment();
            collector.emit(tuple, new Values(word));
        }
        collector.ack(tuple);
    }

    @Override
    public void declareOutputFields(OutputFieldsDeclarer declarer) {
        declarer.declare(new Fields("word"));
    }
}

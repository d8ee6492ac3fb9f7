package nstorm.trial.bolts;

import java.util.Map;
import org.apache.storm.task.OutputCollector;
import org.apache.storm.task.TopologyContext;
import org.apache.storm.topology.OutputFieldsDeclarer;
import org.apache.storm.topology.base.BaseRichBolt;
import org.apache.storm.tuple.Fields;
import org.apache.storm.tuple.Tuple;
import org.apache.storm.tuple.Values;
import org.apache.storm.utils.TupleUtils;

/** A bolt that emits one value for each tuple, or none. */
abstract class Case extends BaseRichBolt {
    transient OutputCollector collector;
    transient TopologyContext context;

    @Override
    public void prepare(Map<String, Object> conf, TopologyContext context, OutputCollector collector) {
        this.collector = collector;
        this.context = context;
        begin(conf);
    }

    void begin(Map<String, Object> conf) {}

    @Override
    public void execute(Tuple tuple) {
        if (TupleUtils.isTick(tuple)) {
            return;
        }
        Object out = on(tuple.getString(0), tuple.getLong(1));
        if (out != null) {
            collector.emit(tuple, new Values(out));
        }
        collector.ack(tuple);
    }

    Object on(String word, long number) {
        return null;
    }

    @Override
    public void declareOutputFields(OutputFieldsDeclarer declarer) {
        declarer.declare(new Fields("out"));
    }
}

package nstorm.workload;

import java.util.Map;
import org.apache.storm.task.OutputCollector;
import org.apache.storm.task.TopologyContext;
import org.apache.storm.topology.OutputFieldsDeclarer;
import org.apache.storm.topology.base.BaseRichBolt;
import org.apache.storm.tuple.Fields;
import org.apache.storm.tuple.Tuple;
import org.apache.storm.tuple.Values;

/** Gives each view the region of its visitor, from a made-up table of address blocks. */
final class PlaceBolt extends BaseRichBolt {
    private static final String[] REGIONS = {"africa", "america", "asia", "europe", "oceania"};

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
        collector.emit(tuple, new Values(tuple.getLong(0), tuple.getString(1), region(tuple.getString(2))));
        collector.ack(tuple);
    }

    static String region(String address) {
        return REGIONS[Integer.parseInt(address.substring(0, address.indexOf('.'))) % REGIONS.length];
    }

    @Override
    public void cleanup() {
        ledger.leave(task);
    }

    @Override
    public void declareOutputFields(OutputFieldsDeclarer declarer) {
        declarer.declare(new Fields("minute", "page", "region"));
    }
}

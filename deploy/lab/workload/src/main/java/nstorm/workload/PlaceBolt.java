package nstorm.workload;

import org.apache.storm.topology.OutputFieldsDeclarer;
import org.apache.storm.tuple.Fields;
import org.apache.storm.tuple.Tuple;
import org.apache.storm.tuple.Values;

/** Gives each view the region of its visitor, from a made-up table of address blocks. */
final class PlaceBolt extends LedgerBolt {
    private static final String[] REGIONS = {"africa", "america", "asia", "europe", "oceania"};

    @Override
    public void execute(Tuple tuple) {
        collector.emit(tuple, new Values(tuple.getLong(0), tuple.getString(1), region(tuple.getString(2))));
        collector.ack(tuple);
    }

    static String region(String address) {
        return REGIONS[Integer.parseInt(address.substring(0, address.indexOf('.'))) % REGIONS.length];
    }

    @Override
    public void declareOutputFields(OutputFieldsDeclarer declarer) {
        declarer.declare(new Fields("minute", "page", "region"));
    }
}

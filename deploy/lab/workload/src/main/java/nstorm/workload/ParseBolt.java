package nstorm.workload;

import java.util.Map;
import org.apache.storm.task.TopologyContext;
import org.apache.storm.topology.OutputFieldsDeclarer;
import org.apache.storm.tuple.Fields;
import org.apache.storm.tuple.Tuple;
import org.apache.storm.tuple.Values;

/** Parses the lines of a web site's log and lets pass what is a view of a page by a person. */
final class ParseBolt extends LedgerBolt {
    private int minuteLines;

    @Override
    void open(Map<String, Object> conf, TopologyContext context) {
        minuteLines = WordCount.integer(conf, "workload.minute.lines", 500);
    }

    @Override
    public void execute(Tuple tuple) {
        String[] parts = tuple.getString(0).split(" ");
        if (isView(parts)) {
            ledger.wordsEmitted.increment();
            collector.emit(tuple, new Values(tuple.getLong(1) / minuteLines, parts[2], parts[0]));
        }
        collector.ack(tuple);
    }

    static boolean isView(String[] parts) {
        return parts[1].equals("GET")
                && !parts[2].endsWith(".png")
                && parts[3].equals("200")
                && !parts[4].equals("robot");
    }

    @Override
    public void declareOutputFields(OutputFieldsDeclarer declarer) {
        declarer.declare(new Fields("minute", "page", "address"));
    }
}

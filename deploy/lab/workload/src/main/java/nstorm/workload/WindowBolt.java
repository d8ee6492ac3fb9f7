package nstorm.workload;

import java.util.HashMap;
import java.util.Map;
import org.apache.storm.generated.StormTopology;
import org.apache.storm.task.OutputCollector;
import org.apache.storm.task.TopologyContext;
import org.apache.storm.topology.TopologyBuilder;
import org.apache.storm.topology.base.BaseWindowedBolt;
import org.apache.storm.tuple.Fields;
import org.apache.storm.tuple.Tuple;
import org.apache.storm.windowing.TupleWindow;

/**
 * Adds up the numbers of each word in a sliding window of event time. A line's time follows from its number, and there
 * is one source: nothing comes late, so which line is in which window is known.
 */
final class WindowBolt extends BaseWindowedBolt {
    private transient Ledger ledger;
    private int task;

    static StormTopology build(Map<String, Object> conf) {
        long lineMs = WordCount.integer(conf, "workload.window.line.ms", 10);
        TopologyBuilder builder = new TopologyBuilder();
        builder.setSpout("spout", new LedgerSpout(Sentences::of, true), 1);
        builder.setBolt(
                        "window",
                        new WindowBolt()
                                .withTimestampExtractor(tuple -> (number(tuple) + 1) * lineMs)
                                .withWindow(
                                        Duration.of(WordCount.integer(conf, "workload.window.ms", 2000)),
                                        Duration.of(WordCount.integer(conf, "workload.window.slide.ms", 500))),
                        WordCount.integer(conf, "workload.windows", 2))
                .fieldsGrouping("spout", new Fields("sentence"));
        return builder.createTopology();
    }

    @Override
    public void prepare(Map<String, Object> conf, TopologyContext context, OutputCollector collector) {
        task = context.getThisTaskId();
        ledger = Ledger.join(conf, context);
    }

    @Override
    public void execute(TupleWindow window) {
        Map<String, Long> sums = new HashMap<>();
        window.get()
                .forEach(tuple -> sums.merge(Sentences.withoutFiller(tuple.getString(0)), number(tuple), Long::sum));
        ledger.tell("window", task, Map.of("end_ms", window.getEndTimestamp(), "sums", sums));
    }

    private static long number(Tuple tuple) {
        return tuple.getLongByField("number");
    }

    @Override
    public void cleanup() {
        ledger.leave(task);
    }
}

package nstorm.workload;

import java.util.Map;
import org.apache.storm.Config;
import org.apache.storm.generated.StormTopology;
import org.apache.storm.topology.BoltDeclarer;
import org.apache.storm.topology.IRichBolt;
import org.apache.storm.topology.TopologyBuilder;
import org.apache.storm.tuple.Fields;

/** Spout, split, count, acked; shaped by the keys "workload.*" of the topology's configuration. */
final class WordCount {
    static final String LEDGER_DIR = "workload.ledger.dir";
    static final String SEED = "workload.seed";
    static final String VOCABULARY = "workload.vocabulary";
    static final String SENTENCE_WORDS = "workload.sentence.words";
    static final String SENTENCE_BYTES = "workload.sentence.bytes";
    static final String LINES = "workload.lines";
    static final String SHIFT_LINES = "workload.shift.lines";
    static final String SHIFT_WORDS = "workload.shift.words";
    static final String WORDS = "workload.words";
    static final String ZIPF_EXPONENT = "workload.zipf.exponent";
    static final String COUNT_WAIT_NS = "workload.count.wait.ns";
    static final String SPOUTS = "workload.spouts";
    static final String COUNTS = "workload.counts";
    static final String TICK_SECS = "workload.tick.secs";

    private WordCount() {}

    static StormTopology build(Map<String, Object> conf) {
        return build(conf, new CountBolt());
    }

    static StormTopology build(Map<String, Object> conf, KeepingBolt count) {
        return build(conf, count, new LedgerSpout(Sentences::of, false));
    }

    /** With spouts that read a partition each. */
    static StormTopology ofPartitions(Map<String, Object> conf) {
        return build(conf, new CountBolt(), new LedgerSpout(Sentences::of, false, true));
    }

    private static StormTopology build(Map<String, Object> conf, KeepingBolt count, LedgerSpout spout) {
        TopologyBuilder builder = new TopologyBuilder();
        split(builder, conf, spout);
        ticking(
                builder.setBolt("count", count, integer(conf, COUNTS, 8)).fieldsGrouping("split", new Fields("word")),
                conf);
        return builder.createTopology();
    }

    /** The same with a bolt between split and count that hands the words on. */
    static StormTopology through(Map<String, Object> conf, String component, IRichBolt bolt) {
        TopologyBuilder builder = new TopologyBuilder();
        split(builder, conf, new LedgerSpout(Sentences::of, false));
        ticking(
                builder.setBolt(component, bolt, integer(conf, "workload.between", 2))
                        .shuffleGrouping("split"),
                conf);
        ticking(
                builder.setBolt("count", new CountBolt(), integer(conf, COUNTS, 8))
                        .fieldsGrouping(component, new Fields("word")),
                conf);
        return builder.createTopology();
    }

    private static void split(TopologyBuilder builder, Map<String, Object> conf, LedgerSpout spout) {
        builder.setSpout("spout", spout, integer(conf, SPOUTS, 2));
        builder.setBolt("split", new SplitBolt(), integer(conf, "workload.splits", 6))
                .shuffleGrouping("spout");
    }

    /** A bolt reports what it keeps at a tick; without ticks it is never asked. */
    static void ticking(BoltDeclarer bolt, Map<String, Object> conf) {
        int tickSecs = integer(conf, TICK_SECS, 0);
        if (tickSecs > 0) {
            bolt.addConfiguration(Config.TOPOLOGY_TICK_TUPLE_FREQ_SECS, tickSecs);
        }
    }

    static int integer(Map<String, Object> conf, String key, int otherwise) {
        return (int) number(conf, key, otherwise);
    }

    static double number(Map<String, Object> conf, String key, double otherwise) {
        return conf.get(key) instanceof Number value ? value.doubleValue() : otherwise;
    }
}

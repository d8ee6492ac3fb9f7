package nstorm.workload;

import java.util.Map;
import org.apache.storm.Config;
import org.apache.storm.generated.StormTopology;
import org.apache.storm.topology.BoltDeclarer;
import org.apache.storm.topology.TopologyBuilder;
import org.apache.storm.tuple.Fields;

/** Spout, split, count, acked; shaped by the keys "workload.*" of the topology's configuration. */
final class WordCount {
    static final String LEDGER_DIR = "workload.ledger.dir";
    static final String SEED = "workload.seed";
    static final String VOCABULARY = "workload.vocabulary";
    static final String SENTENCE_WORDS = "workload.sentence.words";
    static final String ZIPF_EXPONENT = "workload.zipf.exponent";
    static final String COUNT_WAIT_NS = "workload.count.wait.ns";
    static final String TICK_SECS = "workload.tick.secs";

    private WordCount() {
    }

    static StormTopology build(Map<String, Object> conf) {
        TopologyBuilder builder = new TopologyBuilder();
        builder.setSpout("spout", new LedgerSpout(), integer(conf, "workload.spouts", 2));
        builder.setBolt("split", new SplitBolt(), integer(conf, "workload.splits", 6)).shuffleGrouping("spout");
        BoltDeclarer count = builder.setBolt("count", new CountBolt(), integer(conf, "workload.counts", 8))
            .fieldsGrouping("split", new Fields("word"));
        int tickSecs = integer(conf, TICK_SECS, 0);
        if (tickSecs > 0) {
            count.addConfiguration(Config.TOPOLOGY_TICK_TUPLE_FREQ_SECS, tickSecs);
        }
        return builder.createTopology();
    }

    static int integer(Map<String, Object> conf, String key, int otherwise) {
        return (int) number(conf, key, otherwise);
    }

    static double number(Map<String, Object> conf, String key, double otherwise) {
        return conf.get(key) instanceof Number value ? value.doubleValue() : otherwise;
    }
}

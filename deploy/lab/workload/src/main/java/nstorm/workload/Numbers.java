package nstorm.workload;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.apache.storm.generated.StormTopology;
import org.apache.storm.task.TopologyContext;
import org.apache.storm.topology.OutputFieldsDeclarer;
import org.apache.storm.topology.TopologyBuilder;
import org.apache.storm.tuple.Fields;
import org.apache.storm.tuple.Tuple;
import org.apache.storm.tuple.Values;
import org.apache.storm.utils.TupleUtils;

/** Numbered lines that come to their tally straight from the spouts and through bolts of two kinds, to see whether each way keeps their order. */
final class Numbers {
    private static final Fields LINE = new Fields("sentence", "number", "origin");

    private Numbers() {}

    static StormTopology build(Map<String, Object> conf) {
        TopologyBuilder builder = new TopologyBuilder();
        builder.setSpout("spout", new LedgerSpout(Sentences::of, true), WordCount.integer(conf, WordCount.SPOUTS, 2));
        builder.setBolt("pass", new PassBolt(), WordCount.integer(conf, "workload.passes", 3))
                .shuffleGrouping("spout");
        WordCount.ticking(
                builder.setBolt("hold", new HoldBolt(), WordCount.integer(conf, "workload.holds", 3))
                        .fieldsGrouping("spout", new Fields("sentence")),
                conf);
        Fields sentence = new Fields("sentence");
        WordCount.ticking(
                builder.setBolt("tally", new TallyBolt(), WordCount.integer(conf, WordCount.COUNTS, 4))
                        .fieldsGrouping("spout", sentence)
                        .fieldsGrouping("pass", sentence)
                        .shuffleGrouping("hold"),
                conf);
        return builder.createTopology();
    }

    private static Values passedOn(Tuple line) {
        return new Values(line.getString(0), line.getLong(1), line.getSourceTask());
    }

    /** Keeps nothing. */
    static final class PassBolt extends LedgerBolt {
        @Override
        public void execute(Tuple line) {
            collector.emit(line, passedOn(line));
            collector.ack(line);
        }

        @Override
        public void declareOutputFields(OutputFieldsDeclarer declarer) {
            declarer.declare(LINE);
        }
    }

    /** Passes lines on at once, and acks them in batches. */
    static final class HoldBolt extends LedgerBolt {
        private static final int MOST = 50;
        private transient List<Tuple> held;

        @Override
        void open(Map<String, Object> conf, TopologyContext context) {
            held = new ArrayList<>();
        }

        @Override
        public void execute(Tuple line) {
            boolean tick = TupleUtils.isTick(line);
            if (!tick) {
                collector.emit(line, passedOn(line));
                held.add(line);
            }
            if (tick || held.size() == MOST) {
                held.forEach(collector::ack);
                held.clear();
            }
        }

        @Override
        public void declareOutputFields(OutputFieldsDeclarer declarer) {
            declarer.declare(LINE);
        }
    }
}

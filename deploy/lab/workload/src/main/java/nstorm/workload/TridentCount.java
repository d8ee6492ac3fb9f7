package nstorm.workload;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.UUID;
import org.apache.storm.generated.StormTopology;
import org.apache.storm.task.TopologyContext;
import org.apache.storm.trident.TridentTopology;
import org.apache.storm.trident.operation.BaseFunction;
import org.apache.storm.trident.operation.TridentCollector;
import org.apache.storm.trident.operation.builtin.Count;
import org.apache.storm.trident.state.State;
import org.apache.storm.trident.state.TransactionalValue;
import org.apache.storm.trident.state.map.IBackingMap;
import org.apache.storm.trident.state.map.TransactionalMap;
import org.apache.storm.trident.tuple.TridentTuple;
import org.apache.storm.tuple.Fields;
import org.apache.storm.tuple.Values;

/** The WordCount of Trident: batches that are the same when they come again, counts that take each batch once. */
final class TridentCount {
    private TridentCount() {}

    static StormTopology build(Map<String, Object> conf) {
        TridentTopology topology = new TridentTopology();
        // Trident remembers batches by this name, in ZooKeeper, for ever: each submission begins with a new one.
        topology.newStream("lines-" + UUID.randomUUID(), new BatchSpout(WordCount.integer(conf, WordCount.SPOUTS, 1)))
                .parallelismHint(WordCount.integer(conf, WordCount.SPOUTS, 1))
                .shuffle()
                .each(new Fields("sentence"), new Split(), new Fields("word"))
                .parallelismHint(WordCount.integer(conf, "workload.splits", 2))
                .groupBy(new Fields("word"))
                .persistentAggregate(
                        (stormConf, context, partition, partitions) -> Counts.of(stormConf, (TopologyContext) context),
                        new Count(),
                        new Fields("count"))
                .parallelismHint(WordCount.integer(conf, WordCount.COUNTS, 2));
        return topology.build();
    }

    private static final class Split extends BaseFunction {
        @Override
        public void execute(TridentTuple tuple, TridentCollector collector) {
            for (String word : Sentences.withoutFiller(tuple.getString(0)).split(" ")) {
                collector.emit(new Values(word));
            }
        }
    }

    /** In memory; whether a batch was counted already is remembered word by word. */
    @SuppressWarnings("rawtypes")
    private static final class Counts implements IBackingMap<TransactionalValue> {
        private final Map<List<Object>, TransactionalValue> values = new HashMap<>();

        static State of(Map<String, Object> conf, TopologyContext context) {
            return new Accountable(new Counts(), Ledger.join(conf, context), context.getThisTaskId());
        }

        @Override
        public List<TransactionalValue> multiGet(List<List<Object>> keys) {
            List<TransactionalValue> found = new ArrayList<>();
            keys.forEach(key -> found.add(values.get(key)));
            return found;
        }

        @Override
        public void multiPut(List<List<Object>> keys, List<TransactionalValue> put) {
            for (int i = 0; i < keys.size(); i++) {
                values.put(keys.get(i), put.get(i));
            }
        }

        Map<String, Object> named() {
            Map<String, Object> counts = new HashMap<>();
            values.forEach((key, value) -> counts.put((String) key.get(0), value.getVal()));
            return counts;
        }
    }

    /** Leaves word of all counts after each commit: Trident commits nothing at rest, and has no ticks. */
    private static final class Accountable extends TransactionalMap<Long> {
        private final Counts counts;
        private final Ledger ledger;
        private final int task;

        Accountable(Counts counts, Ledger ledger, int task) {
            super(counts);
            this.counts = counts;
            this.ledger = ledger;
            this.task = task;
            ledger.expect(task);
            tell();
        }

        @Override
        public void commit(Long transaction) {
            super.commit(transaction);
            tell();
        }

        private void tell() {
            ledger.keep(task, Map.of("task", task, "counts", counts.named()));
        }
    }
}

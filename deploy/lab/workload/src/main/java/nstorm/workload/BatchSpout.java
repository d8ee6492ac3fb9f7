package nstorm.workload;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.apache.storm.task.TopologyContext;
import org.apache.storm.trident.operation.TridentCollector;
import org.apache.storm.trident.spout.IPartitionedTridentSpout;
import org.apache.storm.trident.spout.ISpoutPartition;
import org.apache.storm.trident.topology.TransactionAttempt;
import org.apache.storm.tuple.Fields;
import org.apache.storm.tuple.Values;

/** A transactional spout: a batch is [from, to) of a partition's lines, which Trident keeps, so it can come again. */
final class BatchSpout implements IPartitionedTridentSpout<Integer, BatchSpout.Partition, List<Long>> {
    private final int partitions;

    BatchSpout(int partitions) {
        this.partitions = partitions;
    }

    record Partition(int index) implements ISpoutPartition {
        @Override
        public String getId() {
            return Integer.toString(index);
        }
    }

    @Override
    public Coordinator<Integer> getCoordinator(Map<String, Object> conf, TopologyContext context) {
        return new Coordinator<>() {
            @Override
            public Integer getPartitionsForBatch() {
                return partitions;
            }

            @Override
            public boolean isReady(long transaction) {
                return true;
            }

            @Override
            public void close() {}
        };
    }

    @Override
    public Emitter<Integer, Partition, List<Long>> getEmitter(Map<String, Object> conf, TopologyContext context) {
        return new LineEmitter(conf, context);
    }

    @Override
    public Map<String, Object> getComponentConfiguration() {
        return null;
    }

    @Override
    public Fields getOutputFields() {
        return new Fields("sentence");
    }

    /** How many lines a batch has; what is not a whole line yet is left to the next batch. */
    static final class Due {
        private double owed;

        long lines(double tps, double seconds) {
            owed += Math.max(0, tps) * seconds;
            long whole = (long) owed;
            owed -= whole;
            return whole;
        }
    }

    private final class LineEmitter implements Emitter<Integer, Partition, List<Long>> {
        private final Map<String, Object> conf;
        private final Ledger ledger;
        private final int task;
        private final Map<Integer, String[]> lines = new HashMap<>();
        private final Due due = new Due();
        private long sinceNanos = System.nanoTime();

        LineEmitter(Map<String, Object> conf, TopologyContext context) {
            this.conf = conf;
            ledger = Ledger.join(conf, context);
            task = context.getThisTaskId();
        }

        @Override
        public List<Partition> getOrderedPartitions(Integer count) {
            List<Partition> ordered = new ArrayList<>();
            for (int index = 0; index < count; index++) {
                ordered.add(new Partition(index));
            }
            return ordered;
        }

        @Override
        public Map<Partition, List<Long>> emitBatchNew(
                TransactionAttempt attempt,
                TridentCollector collector,
                Set<Partition> mine,
                Map<Partition, List<Long>> last) {
            long nowNanos = System.nanoTime();
            double seconds = Math.min(1, (nowNanos - sinceNanos) / 1e9);
            sinceNanos = nowNanos;
            long count = due.lines(ledger.rateTps() / partitions, seconds);
            Map<Partition, List<Long>> batches = new HashMap<>();
            for (Partition partition : mine) {
                List<? extends Number> before = last == null ? null : last.get(partition);
                long from = before == null ? 0 : before.get(1).longValue();
                List<Long> batch = List.of(from, from + count);
                reEmitPartitionBatch(attempt, collector, partition, batch);
                batches.put(partition, batch);
            }
            return batches;
        }

        @Override
        public void reEmitPartitionBatch(
                TransactionAttempt attempt, TridentCollector collector, Partition partition, List<Long> batch) {
            // Trident reads it from ZooKeeper, where small numbers lose their type.
            List<? extends Number> stored = batch;
            long from = stored.get(0).longValue();
            long to = stored.get(1).longValue();
            String[] repeated = lines.computeIfAbsent(partition.index, this::open);
            for (long number = from; number < to; number++) {
                collector.emit(new Values(repeated[(int) (number % repeated.length)]));
            }
            ledger.tell(
                    "emitted",
                    task,
                    Map.of(
                            "partition",
                            partition.index,
                            "transaction",
                            attempt.getTransactionId(),
                            "from",
                            from,
                            "to",
                            to));
        }

        private String[] open(int partition) {
            String[] made = Sentences.of(conf, partition);
            ledger.lines(partition, made);
            return made;
        }

        @Override
        public void refreshPartitions(List<Partition> mine) {}

        @Override
        public void close() {}
    }
}

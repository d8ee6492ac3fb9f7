package nstorm.workload;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.storm.task.TopologyContext;
import org.apache.storm.tuple.Tuple;

/** Writes words in batches, when a batch is full or at a tick, and acks them only then. */
class BatchBolt extends KeepingBolt {
    private transient List<Tuple> batch;
    private int size;

    @Override
    void open(Map<String, Object> conf, TopologyContext context) {
        batch = new ArrayList<>();
        size = WordCount.integer(conf, "workload.batch.size", 100);
    }

    @Override
    void take(Tuple tuple) {
        batch.add(tuple);
        if (batch.size() >= size) {
            write();
        }
    }

    @Override
    void tick() {
        if (!batch.isEmpty()) {
            write();
        }
    }

    private void write() {
        Map<String, Long> counts = new HashMap<>();
        batch.forEach(tuple -> counts.merge(tuple.getString(0), 1L, Long::sum));
        write(counts);
        ledger.wordsCounted.add(batch.size());
        batch.forEach(collector::ack);
        batch.clear();
    }

    void write(Map<String, Long> counts) {
        ledger.tell("batch", task, Map.of("counts", counts));
    }

    final int unwritten() {
        return batch.size();
    }

    @Override
    Map<String, ?> kept() {
        return Map.of("unwritten", unwritten());
    }
}

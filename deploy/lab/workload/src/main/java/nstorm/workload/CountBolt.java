package nstorm.workload;

import java.util.HashMap;
import java.util.Map;
import java.util.concurrent.locks.LockSupport;
import org.apache.storm.task.TopologyContext;
import org.apache.storm.tuple.Tuple;

/** Counts words; the end of every tuple tree. */
class CountBolt extends KeepingBolt {
    private final Map<String, Long> counts = new HashMap<>();
    private long waitNanos;
    private long localNanos;

    @Override
    void open(Map<String, Object> conf, TopologyContext context) {
        waitNanos = WordCount.integer(conf, WordCount.COUNT_WAIT_NS, 0);
        localNanos = WordCount.integer(conf, "workload.count.local.ns", 0);
    }

    @Override
    void take(Tuple tuple) {
        if (waitNanos > 0) {
            // As for a database: slow without taking the CPU from those who are to move this bolt.
            LockSupport.parkNanos(waitNanos);
        }
        contend(tuple, localNanos);
        String word = tuple.getString(0);
        counts.merge(word, 1L, Long::sum);
        counted(word);
        ledger.wordsCounted.increment();
        collector.ack(tuple);
    }

    /** What a kind of counter does apart from counting. */
    void counted(String word) {}

    @Override
    Map<String, ?> kept() {
        return Map.of("counts", counts);
    }
}

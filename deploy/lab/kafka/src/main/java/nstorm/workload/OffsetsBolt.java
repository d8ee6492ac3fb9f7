package nstorm.workload;

import java.util.HashMap;
import java.util.Map;
import org.apache.storm.tuple.Tuple;

/** Counts the records that come, by partition, and those that come again, or are left out. */
final class OffsetsBolt extends KeepingBolt {
    private final Map<Integer, Long> next = new HashMap<>();
    private final Map<Integer, Long> again = new HashMap<>();
    private final Map<Integer, Long> leftOut = new HashMap<>();

    @Override
    void take(Tuple record) {
        int partition = record.getIntegerByField("partition");
        long offset = record.getLongByField("offset");
        long expected = next.getOrDefault(partition, 0L);
        if (offset < expected) {
            again.merge(partition, 1L, Long::sum);
        } else {
            leftOut.merge(partition, offset - expected, Long::sum);
            next.put(partition, offset + 1);
        }
        collector.ack(record);
    }

    @Override
    Map<String, ?> kept() {
        return Map.of("next", next, "again", again, "left_out", leftOut);
    }
}

package nstorm.workload;

import java.util.HashMap;
import java.util.Map;
import java.util.TreeMap;
import org.apache.storm.task.TopologyContext;
import org.apache.storm.tuple.Tuple;

/** Counts views by minute, region and page; keeps the newest minutes and writes the others into the ledger. */
final class ViewsBolt extends KeepingBolt {
    private final TreeMap<Long, Map<String, Long>> minutes = new TreeMap<>();
    private int minutesMax;

    @Override
    void open(Map<String, Object> conf, TopologyContext context) {
        minutesMax = WordCount.integer(conf, "workload.minutes.kept", 3);
    }

    @Override
    void take(Tuple tuple) {
        minutes.computeIfAbsent(tuple.getLong(0), minute -> new HashMap<>())
                .merge(tuple.getString(2) + " " + tuple.getString(1), 1L, Long::sum);
        if (minutes.size() > minutesMax) {
            Map.Entry<Long, Map<String, Long>> oldest = minutes.pollFirstEntry();
            ledger.tell("views", task, Map.of("minutes", Map.of(oldest.getKey().toString(), oldest.getValue())));
        }
        ledger.wordsCounted.increment();
        collector.ack(tuple);
    }

    @Override
    Map<String, ?> kept() {
        Map<String, Object> named = new HashMap<>();
        minutes.forEach((minute, views) -> named.put(minute.toString(), views));
        return Map.of("minutes", named);
    }
}

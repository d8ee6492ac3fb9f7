package nstorm.workload;

import java.util.HashMap;
import java.util.Map;
import org.apache.storm.tuple.Tuple;

/** Notes for each way that lines take from a spout how many have come, and how many after one with a higher number. */
final class TallyBolt extends KeepingBolt {
    private final Map<String, Long> last = new HashMap<>();
    private final Map<String, Long> lines = new HashMap<>();
    private final Map<String, Long> late = new HashMap<>();

    @Override
    void take(Tuple line) {
        long number = line.getLong(1);
        String way = line.size() > 2 ? line.getInteger(2) + " " + line.getSourceTask() : Integer.toString(line.getSourceTask());
        String kind = line.getSourceComponent();
        lines.merge(kind, 1L, Long::sum);
        Long before = last.get(way);
        if (before != null && number < before) {
            late.merge(kind, 1L, Long::sum);
        } else {
            last.put(way, number);
        }
        collector.ack(line);
    }

    @Override
    Map<String, ?> kept() {
        return Map.of("lines", lines, "late", late);
    }
}

package nstorm.workload;

import java.util.HashMap;
import java.util.Map;
import org.apache.storm.tuple.Tuple;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** Notes for each way that lines take from a spout how many have come, and how many after one with a higher number. */
final class TallyBolt extends KeepingBolt {
    private static final Logger LOG = LoggerFactory.getLogger(TallyBolt.class);
    private static final int LOGGED = 200;
    private final Map<String, Long> last = new HashMap<>();
    private final Map<String, Long> lines = new HashMap<>();
    private final Map<String, Long> late = new HashMap<>();

    @Override
    void take(Tuple line) {
        long number = line.getLong(1);
        String way = line.size() > 2
                ? line.getInteger(2) + " " + line.getSourceTask()
                : Integer.toString(line.getSourceTask());
        String kind = line.getSourceComponent();
        lines.merge(kind, 1L, Long::sum);
        Long before = last.get(way);
        if (before != null && number < before) {
            if (late.merge(kind, 1L, Long::sum) <= LOGGED) {
                LOG.warn("Task {}: line {} of {} came after {}", task, number, kind + " " + way, before);
            }
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

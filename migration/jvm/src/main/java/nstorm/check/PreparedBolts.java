package nstorm.check;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collection;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicReference;
import org.apache.storm.generated.StormTopology;
import org.apache.storm.metrics2.StormMetricRegistry;
import org.apache.storm.task.IBolt;
import org.apache.storm.task.IOutputCollector;
import org.apache.storm.task.OutputCollector;
import org.apache.storm.task.TopologyContext;
import org.apache.storm.tuple.Fields;
import org.apache.storm.tuple.Tuple;
import org.apache.storm.utils.ThriftTopologyUtils;

/** Calls {@code prepare} of bolts as a worker does, with a collector that leads nowhere. */
final class PreparedBolts {
    private static final long LIMIT_MS = TimeUnit.SECONDS.toMillis(10);

    private final StormTopology topology;
    private final Map<String, Object> conf;

    /** @param failure why it could not be prepared, or null */
    record Bolt(TopologyContext context, OutputCollector collector, String failure) {}

    PreparedBolts(StormTopology topology, Map<String, Object> conf) {
        this.topology = topology;
        this.conf = conf;
    }

    /** Takes ten seconds at most; a {@code prepare} that goes on after that is left to itself. */
    Bolt prepare(String component, IBolt bolt) {
        OutputCollector collector = new OutputCollector(new NoCollector());
        TopologyContext context = context(component);
        AtomicReference<Throwable> thrown = new AtomicReference<>();
        Thread thread = new Thread(
                () -> {
                    try {
                        bolt.prepare(new HashMap<>(conf), context, collector);
                    } catch (Throwable t) {
                        thrown.set(t);
                    }
                },
                "prepare " + component);
        thread.setDaemon(true);
        thread.start();
        try {
            thread.join(LIMIT_MS);
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
        String failure = thread.isAlive()
                ? "its prepare has not ended after " + LIMIT_MS / 1000 + " s"
                : thrown.get() == null ? null : "its prepare threw " + thrown.get() + where(thrown.get());
        return new Bolt(context, collector, failure);
    }

    /** The place in code outside of the JDK: many exceptions show nothing else. */
    private static String where(Throwable thrown) {
        return Arrays.stream(thrown.getStackTrace())
                .filter(frame -> frame.getModuleName() == null)
                .findFirst()
                .map(frame -> " in " + frame)
                .orElse("");
    }

    /** As if all tasks were of one worker; how many a component has is its parallelism. */
    private TopologyContext context(String component) {
        Map<Integer, String> tasks = new TreeMap<>();
        Map<String, List<Integer>> byComponent = new HashMap<>();
        for (String id : new TreeSet<>(ThriftTopologyUtils.getComponentIds(topology))) {
            int wanted = Math.max(
                    1, ThriftTopologyUtils.getComponentCommon(topology, id).get_parallelism_hint());
            for (int count = 0; count < wanted; count++) {
                tasks.put(tasks.size() + 1, id);
                byComponent.computeIfAbsent(id, key -> new ArrayList<>()).add(tasks.size());
            }
        }
        String folder = System.getProperty("java.io.tmpdir");
        return new TopologyContext(
                topology,
                conf,
                tasks,
                byComponent,
                streams(),
                Map.of(),
                "check-1",
                folder,
                folder,
                byComponent.get(component).get(0),
                6700,
                new ArrayList<>(tasks.keySet()),
                new HashMap<>(),
                new HashMap<>(),
                new HashMap<>(),
                new HashMap<>(),
                new AtomicBoolean(),
                new StormMetricRegistry());
    }

    private Map<String, Map<String, Fields>> streams() {
        Map<String, Map<String, Fields>> streams = new HashMap<>();
        for (String id : ThriftTopologyUtils.getComponentIds(topology)) {
            Map<String, Fields> fields = new HashMap<>();
            ThriftTopologyUtils.getComponentCommon(topology, id)
                    .get_streams()
                    .forEach((stream, info) -> fields.put(stream, new Fields(info.get_output_fields())));
            streams.put(id, fields);
        }
        return streams;
    }

    private static final class NoCollector implements IOutputCollector {
        @Override
        public List<Integer> emit(String stream, Collection<Tuple> anchors, List<Object> tuple) {
            return List.of();
        }

        @Override
        public void emitDirect(int task, String stream, Collection<Tuple> anchors, List<Object> tuple) {}

        @Override
        public void ack(Tuple input) {}

        @Override
        public void fail(Tuple input) {}

        @Override
        public void resetTimeout(Tuple input) {}

        @Override
        public void flush() {}

        @Override
        public void reportError(Throwable error) {}
    }
}

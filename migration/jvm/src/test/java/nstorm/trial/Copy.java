package nstorm.trial;

import java.util.ArrayList;
import java.util.Collection;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.SortedMap;
import java.util.SortedSet;
import java.util.TreeMap;
import java.util.concurrent.atomic.AtomicBoolean;
import nstorm.memory.Declared;
import nstorm.proof.Memory;
import org.apache.storm.Constants;
import org.apache.storm.generated.StormTopology;
import org.apache.storm.metrics2.StormMetricRegistry;
import org.apache.storm.task.IOutputCollector;
import org.apache.storm.task.OutputCollector;
import org.apache.storm.task.TopologyContext;
import org.apache.storm.topology.BasicBoltExecutor;
import org.apache.storm.topology.IBasicBolt;
import org.apache.storm.topology.IRichBolt;
import org.apache.storm.tuple.Fields;
import org.apache.storm.tuple.Tuple;
import org.apache.storm.tuple.TupleImpl;

/** One copy of a bolt on a side of its own: prepared as a worker does it, and all that it does is noted. */
final class Copy implements IOutputCollector {
    private static final String[] WORDS = {"a", "bb", "ccc", "dd", "a", "e"};
    private static final int SOURCE_TASK = 1;
    private static final int TASK = 2;

    final IRichBolt bolt;
    final Memory memory;
    final List<String> outputs = new ArrayList<>();
    private final TopologyContext context = context();
    private final OwnTuples ownOrNull;

    /** @param watched whether the product looks at it */
    Copy(Side side, byte[] submitted, boolean watched) {
        Object user = side.read(submitted);
        ownOrNull = user instanceof OwnTuples own ? own : null;
        bolt = user instanceof IBasicBolt basic ? new BasicBoltExecutor(basic) : (IRichBolt) user;
        Map<String, Object> conf = new HashMap<>(Map.of("stop", "bb", "topology.name", "trial"));
        bolt.prepare(conf, context, new OutputCollector(this));
        memory = watched ? new Memory("bolt", List.of(bolt), List.of(context), Declared.of(conf), conf) : null;
        if (watched) {
            memory.prepared();
        }
    }

    private static TopologyContext context() {
        Map<String, Map<String, Fields>> fields = Map.of(
                "words",
                Map.of("default", new Fields("word", "number", "key")),
                "bolt",
                Map.of("default", new Fields("out")),
                Constants.SYSTEM_COMPONENT_ID,
                Map.of(Constants.SYSTEM_TICK_STREAM_ID, new Fields("rate")));
        TopologyContext context = new TopologyContext(
                new StormTopology(Map.of(), Map.of(), Map.of()),
                Map.of(),
                Map.of(SOURCE_TASK, "words", TASK, "bolt", -1, Constants.SYSTEM_COMPONENT_ID),
                Map.of("words", List.of(SOURCE_TASK), "bolt", List.of(TASK)),
                fields,
                Map.of(),
                "trial-1",
                "code",
                "pid",
                TASK,
                6700,
                List.of(SOURCE_TASK, TASK),
                new HashMap<>(),
                new HashMap<>(),
                new HashMap<>(),
                new HashMap<>(),
                new AtomicBoolean(),
                new StormMetricRegistry());
        return context;
    }

    /** Takes the tuples of these numbers, the first and not the last. */
    void take(int from, int to) {
        for (int i = from; i < to; i++) {
            List<Object> values = ownOrNull != null
                    ? ownOrNull.values(i)
                    : List.of(new String(WORDS[(i * i + i / 4) % WORDS.length]), (long) i, "k" + i % 4);
            take(new TupleImpl(context, values, "words", SOURCE_TASK, "default"), i);
        }
    }

    void tick() {
        take(
                new TupleImpl(context, List.of(1L), Constants.SYSTEM_COMPONENT_ID, -1, Constants.SYSTEM_TICK_STREAM_ID),
                -1);
    }

    private final Map<Tuple, Integer> numbers = new java.util.IdentityHashMap<>();

    private void take(Tuple tuple, int number) {
        numbers.put(tuple, number);
        try {
            bolt.execute(tuple);
        } catch (RuntimeException | LinkageError | StackOverflowError e) {
            outputs.add("threw " + e);
        }
    }

    private String name(Tuple tuple) {
        return String.valueOf(numbers.get(tuple));
    }

    /** Where Java gives no order, the order is no output. */
    private static String shown(Object value) {
        if (value instanceof Map<?, ?> map && !(value instanceof SortedMap<?, ?>)) {
            Map<String, String> sorted = new TreeMap<>();
            map.forEach((key, held) -> sorted.put(shown(key), shown(held)));
            return sorted.toString();
        } else if (value instanceof Set<?> set && !(value instanceof SortedSet<?>)) {
            return set.stream().map(Copy::shown).sorted().toList().toString();
        } else if (value instanceof Collection<?> many) {
            return many.stream().map(Copy::shown).toList().toString();
        }
        return String.valueOf(value);
    }

    @Override
    public List<Integer> emit(String stream, Collection<Tuple> anchors, List<Object> values) {
        outputs.add("emit " + stream + " " + shown(values) + " of "
                + (anchors == null ? "none" : anchors.stream().map(this::name).toList()));
        return List.of();
    }

    @Override
    public void emitDirect(int task, String stream, Collection<Tuple> anchors, List<Object> values) {
        emit(stream + " to " + task, anchors, values);
    }

    @Override
    public void ack(Tuple tuple) {
        outputs.add("ack " + name(tuple));
    }

    @Override
    public void fail(Tuple tuple) {
        outputs.add("fail " + name(tuple));
    }

    @Override
    public void resetTimeout(Tuple tuple) {}

    @Override
    public void flush() {}

    @Override
    public void reportError(Throwable error) {
        outputs.add("error " + error);
    }
}

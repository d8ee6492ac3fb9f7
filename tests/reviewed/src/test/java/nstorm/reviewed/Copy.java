package nstorm.reviewed;

import java.lang.reflect.Proxy;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicLong;
import nstorm.memory.Declared;
import nstorm.memory.KeptTuples;
import nstorm.memory.Reviewed;
import nstorm.proof.Memory;
import org.apache.storm.generated.StormTopology;
import org.apache.storm.metrics2.StormMetricRegistry;
import org.apache.storm.task.IOutputCollector;
import org.apache.storm.task.OutputCollector;
import org.apache.storm.task.TopologyContext;
import org.apache.storm.topology.IRichBolt;
import org.apache.storm.tuple.Fields;
import org.apache.storm.tuple.Tuple;
import org.apache.storm.tuple.TupleImpl;
import org.apache.storm.tuple.Values;
import org.apache.storm.utils.Utils;

/** One executor's bolt in one JVM, as a worker has it: made from the topology's bytes, prepared, looked at, and at the end cleaned up. */
final class Copy {
    private static final String SOURCE = "numbers";

    final AtomicLong acked = new AtomicLong();
    final AtomicLong failed = new AtomicLong();
    private final TopologyContext context;
    private final IRichBolt bolt;
    private final Memory memory;

    Copy(IRichBolt given, Map<String, Object> conf) {
        bolt = Utils.javaDeserialize(Utils.javaSerialize(given), IRichBolt.class);
        Map<String, Map<String, Fields>> streams = Map.of(
                SOURCE,
                Map.of("default", new Fields("n")),
                "sink",
                Map.of(),
                "__system",
                Map.of("__tick", new Fields("rate_secs")));
        context = new TopologyContext(
                new StormTopology(),
                conf,
                Map.of(1, SOURCE, 2, "sink", -1, "__system"),
                Map.of(SOURCE, List.of(1), "sink", List.of(2)),
                streams,
                Map.of(),
                "trial-1",
                "",
                "",
                2,
                6700,
                List.of(1, 2),
                new HashMap<>(),
                new HashMap<>(),
                new HashMap<>(),
                new HashMap<>(),
                new AtomicBoolean(),
                new StormMetricRegistry());
        OutputCollector collector = new OutputCollector((IOutputCollector) Proxy.newProxyInstance(
                getClass().getClassLoader(), new Class<?>[] {IOutputCollector.class}, (self, method, arguments) -> {
                    acked.addAndGet(method.getName().equals("ack") && !isTick((Tuple) arguments[0]) ? 1 : 0);
                    failed.addAndGet(method.getName().equals("fail") ? 1 : 0);
                    return null;
                }));
        bolt.prepare(conf, context, collector);
        memory = new Memory("sink", List.of(bolt), List.of(context), Declared.of(Map.of()), conf, context, collector);
        memory.prepared();
    }

    private static boolean isTick(Tuple tuple) {
        return tuple.getSourceStreamId().equals("__tick");
    }

    void take(long from, long to) {
        for (long n = from; n < to; n++) {
            bolt.execute(new TupleImpl(context, new Values(n), SOURCE, 1, "default"));
        }
    }

    void tick() {
        bolt.execute(new TupleImpl(context, new Values(1L), "__system", -1, "__tick"));
    }

    /** Whether all tuples are acked that it has taken, as far as the verdict's fields say. */
    boolean drained() {
        return KeptTuples.none(List.of(bolt), verdict().tuples());
    }

    /** What it remembers besides what the verdict says is made again; null if nothing. */
    String remembers() {
        return memory.changedSincePrepared();
    }

    Reviewed.Verdict verdict() {
        return Reviewed.of(bolt);
    }

    void cleanUp() {
        bolt.cleanup();
    }
}

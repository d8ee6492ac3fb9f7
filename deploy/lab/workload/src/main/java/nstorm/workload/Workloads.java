package nstorm.workload;

import java.util.Map;
import java.util.TreeMap;
import java.util.function.Function;
import org.apache.storm.generated.StormTopology;

/** The topologies by the names that deploy/lab/workloads.py knows, which also sets their configuration. */
final class Workloads {
    private static final Map<String, Function<Map<String, Object>, StormTopology>> BY_NAME =
            new TreeMap<>(Map.ofEntries(
                    Map.entry("wordcount", WordCount::build),
                    Map.entry("counters", WordCount::build),
                    Map.entry("partitions", WordCount::ofPartitions),
                    Map.entry("unacked", WordCount::build),
                    Map.entry("drift", WordCount::build),
                    Map.entry("harmonic", conf -> WordCount.build(conf, new HarmonicBolt())),
                    Map.entry("heap", conf -> WordCount.build(conf, HeapBolt.of(conf))),
                    Map.entry("batches", conf -> WordCount.build(conf, new BatchBolt())),
                    Map.entry("connections", conf -> WordCount.build(conf, new ConnectionBolt())),
                    Map.entry("slow-prepare", conf -> WordCount.through(conf, "slow", new SlowBolt())),
                    Map.entry("threads", conf -> WordCount.through(conf, "lookup", new LookupBolt())),
                    Map.entry("numbers", Numbers::build),
                    Map.entry("windows", WindowBolt::build),
                    Map.entry("page-views", PageViews::build),
                    Map.entry("trident", TridentCount::build),
                    Map.entry("kafka", Workloads::kafka)));

    private Workloads() {}

    /** Its class is in the jar that also has Kafka's classes. */
    private static StormTopology kafka(Map<String, Object> conf) {
        try {
            return (StormTopology) Class.forName("nstorm.workload.Kafka")
                    .getDeclaredMethod("build", Map.class)
                    .invoke(null, conf);
        } catch (ReflectiveOperationException e) {
            throw new IllegalArgumentException(
                    "no Kafka in this jar: type  make kafka,  and start the lab with --kafka", e);
        }
    }

    static StormTopology build(String name, Map<String, Object> conf) {
        Function<Map<String, Object>, StormTopology> found = BY_NAME.get(name);
        if (found == null) {
            throw new IllegalArgumentException("no workload " + name + ", there are " + BY_NAME.keySet());
        }
        return found.apply(conf);
    }
}

package nstorm.workload;

import java.util.Map;
import java.util.concurrent.atomic.AtomicInteger;
import org.apache.storm.task.TopologyContext;

/** Counts words, and needs more CPU for each the more of its like are in its JVM, as bolts do that share a lock. */
final class CrowdBolt extends CountBolt {
    static final String NS = "workload.crowd.ns";
    private static final AtomicInteger IN_JVM = new AtomicInteger();
    private long nanos;

    /** The counter for a configuration: where it asks for that, one that a crowd makes slow. */
    static CountBolt of(Map<String, Object> conf) {
        return WordCount.integer(conf, NS, 0) > 0 ? new CrowdBolt() : new CountBolt();
    }

    @Override
    void open(Map<String, Object> conf, TopologyContext context) {
        super.open(conf, context);
        nanos = WordCount.integer(conf, NS, 0);
        IN_JVM.incrementAndGet();
    }

    @Override
    public void cleanup() {
        IN_JVM.decrementAndGet();
        super.cleanup();
    }

    @Override
    void counted(String word) {
        long begin = System.nanoTime();
        long wanted = nanos * (IN_JVM.get() - 1);
        while (System.nanoTime() - begin < wanted) {
            Thread.onSpinWait();
        }
    }
}

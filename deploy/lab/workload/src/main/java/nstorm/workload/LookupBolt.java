package nstorm.workload;

import java.util.Map;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.atomic.LongAdder;
import org.apache.storm.task.TopologyContext;
import org.apache.storm.topology.OutputFieldsDeclarer;
import org.apache.storm.tuple.Fields;
import org.apache.storm.tuple.Tuple;
import org.apache.storm.tuple.Values;

/** Looks words up on threads of its own, which emit and ack, with the client that all bolts of the JVM share. */
final class LookupBolt extends KeepingBolt {
    private final LongAdder answers = new LongAdder();
    private final LongAdder refusals = new LongAdder();
    private transient ExecutorService threads;
    private transient SharedClient client;

    @Override
    void open(Map<String, Object> conf, TopologyContext context) {
        client = SharedClient.get();
        threads = Executors.newFixedThreadPool(WordCount.integer(conf, "workload.lookup.threads", 2), work -> {
            Thread thread = new Thread(work, "lookup-" + task);
            thread.setDaemon(true);
            return thread;
        });
    }

    @Override
    void take(Tuple tuple) {
        threads.execute(() -> lookUp(tuple));
    }

    private void lookUp(Tuple tuple) {
        try {
            collector.emit(tuple, new Values(client.ask(tuple.getString(0))));
            collector.ack(tuple);
            answers.increment();
        } catch (IllegalStateException e) {
            refusals.increment();
            collector.fail(tuple);
        }
    }

    @Override
    public void cleanup() {
        threads.shutdown();
        client.close();
        super.cleanup();
    }

    @Override
    Map<String, ?> kept() {
        return Map.of("answers", answers.sum(), "refusals", refusals.sum());
    }

    @Override
    public void declareOutputFields(OutputFieldsDeclarer declarer) {
        declarer.declare(new Fields("word"));
    }
}

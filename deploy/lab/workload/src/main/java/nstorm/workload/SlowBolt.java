package nstorm.workload;

import java.util.Map;
import org.apache.storm.task.TopologyContext;
import org.apache.storm.topology.OutputFieldsDeclarer;
import org.apache.storm.tuple.Fields;
import org.apache.storm.tuple.Tuple;
import org.apache.storm.tuple.Values;

/** Hands words on, once it has prepared: that takes seconds, and no interrupt ends it. */
final class SlowBolt extends KeepingBolt {
    private long preparedMs;
    private int interrupts;

    @Override
    void open(Map<String, Object> conf, TopologyContext context) {
        long begunNanos = System.nanoTime();
        long untilNanos = begunNanos + (long) (WordCount.number(conf, "workload.prepare.secs", 5) * 1e9);
        for (long left = untilNanos - begunNanos; left > 0; left = untilNanos - System.nanoTime()) {
            try {
                Thread.sleep(left / 1_000_000 + 1);
            } catch (InterruptedException e) {
                interrupts++;
            }
        }
        preparedMs = (System.nanoTime() - begunNanos) / 1_000_000;
    }

    @Override
    void take(Tuple tuple) {
        collector.emit(tuple, new Values(tuple.getString(0)));
        collector.ack(tuple);
    }

    @Override
    Map<String, ?> kept() {
        return Map.of("prepared_ms", preparedMs, "interrupts", interrupts);
    }

    @Override
    public void declareOutputFields(OutputFieldsDeclarer declarer) {
        declarer.declare(new Fields("word"));
    }
}

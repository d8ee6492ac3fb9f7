package nstorm.workload;

import java.util.Map;
import org.apache.storm.spout.SpoutOutputCollector;
import org.apache.storm.task.TopologyContext;
import org.apache.storm.topology.OutputFieldsDeclarer;
import org.apache.storm.topology.base.BaseRichSpout;
import org.apache.storm.tuple.Fields;
import org.apache.storm.tuple.Values;

/** Emits lines at the rate the ledger asks for, the same ones again and again, and books the fate of each. */
public final class LedgerSpout extends BaseRichSpout {
    private static final double CATCH_UP_SECS = 1;

    private final Lines source;
    private final boolean numbered;
    private transient SpoutOutputCollector collector;
    private transient Ledger ledger;
    private transient SpoutLedger book;
    private transient String[] sentences;
    private int spoutTasks;
    private double rateTps;
    private long rateSinceNanos;
    private long emittedAtRate;

    /**
     * @param numbered whether each line comes with its number, which counts from 0 in every task
     */
    LedgerSpout(Lines source, boolean numbered) {
        this.source = source;
        this.numbered = numbered;
    }

    @Override
    public void open(Map<String, Object> conf, TopologyContext context, SpoutOutputCollector collector) {
        this.collector = collector;
        ledger = Ledger.join(conf, context);
        book = ledger.spout(context.getThisTaskId());
        spoutTasks = context.getComponentTasks(context.getThisComponentId()).size();
        sentences = source.of(conf, context.getThisTaskId());
        ledger.lines(context.getThisTaskId(), sentences);
    }

    @Override
    public void nextTuple() {
        if (!due(ledger.rateTps() / spoutTasks, System.nanoTime())) {
            return;
        }
        long id = book.emit();
        if (id >= 0) {
            emittedAtRate++;
            String sentence = sentences[(int) (id % sentences.length)];
            collector.emit(numbered ? new Values(sentence, id) : new Values(sentence), id);
        }
    }

    /** Whether another tuple is due; a spout that was held up catches up, but by one second's worth at most. */
    private boolean due(double wantedTps, long nowNanos) {
        if (wantedTps != rateTps) {
            rateTps = wantedTps;
            rateSinceNanos = nowNanos;
            emittedAtRate = 0;
        }
        if (rateTps < 0) {
            return true;
        }
        double dueCount = rateTps * (nowNanos - rateSinceNanos) / 1e9;
        emittedAtRate = Math.max(emittedAtRate, (long) (dueCount - CATCH_UP_SECS * rateTps));
        return emittedAtRate < (long) dueCount;
    }

    @Override
    public void ack(Object id) {
        book.ack((Long) id);
    }

    @Override
    public void fail(Object id) {
        book.fail((Long) id);
    }

    @Override
    public void declareOutputFields(OutputFieldsDeclarer declarer) {
        declarer.declare(numbered ? new Fields("sentence", "number") : new Fields("sentence"));
    }
}

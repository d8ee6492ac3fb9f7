package nstorm.workload;

import java.util.Map;
import org.apache.storm.spout.SpoutOutputCollector;
import org.apache.storm.task.TopologyContext;
import org.apache.storm.topology.OutputFieldsDeclarer;
import org.apache.storm.topology.base.BaseRichSpout;
import org.apache.storm.tuple.Fields;
import org.apache.storm.tuple.Values;

/**
 * Emits lines at the rate the ledger asks for, the same ones again and again, and books the fate of each. One that reads
 * a partition goes on where the one before it has committed.
 */
public final class LedgerSpout extends BaseRichSpout {
    private static final double CATCH_UP_SECS = 1;

    private final Lines source;
    private final boolean numbered;
    private final boolean partitioned;
    private transient Partition partition;
    private transient SpoutOutputCollector collector;
    private transient Ledger ledger;
    private transient SpoutLedger book;
    private transient String[] sentences;
    private int task;
    private int spoutTasks;
    private double rateTps;
    private long rateSinceNanos;
    private long emittedAtRate;

    /**
     * @param numbered whether each line comes with its number, which counts from 0 in every task
     */
    LedgerSpout(Lines source, boolean numbered) {
        this(source, numbered, false);
    }

    LedgerSpout(Lines source, boolean numbered, boolean partitioned) {
        this.source = source;
        this.numbered = numbered;
        this.partitioned = partitioned;
    }

    @Override
    public void open(Map<String, Object> conf, TopologyContext context, SpoutOutputCollector collector) {
        this.collector = collector;
        ledger = Ledger.join(conf, context);
        task = context.getThisTaskId();
        book = ledger.spout(task);
        spoutTasks = context.getComponentTasks(context.getThisComponentId()).size();
        sentences = source.of(conf, task);
        ledger.lines(task, sentences);
        if (partitioned) {
            partition = Partition.open(ledger, task);
        }
    }

    @Override
    public void deactivate() {
        if (partitioned) {
            partition.commit();
        }
    }

    @Override
    public void close() {
        if (partitioned) {
            partition.close(book.emitted());
        }
        book.close();
        ledger.leave(task);
    }

    @Override
    public void nextTuple() {
        if (!due(ledger.rateTps() / spoutTasks, System.nanoTime())) {
            return;
        }
        long id = book.emit();
        if (id >= 0) {
            emittedAtRate++;
            long line = partitioned ? partition.first + id : id;
            String sentence = sentences[(int) (line % sentences.length)];
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
        if (partitioned) {
            partition.ack(partition.first + (Long) id);
        }
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

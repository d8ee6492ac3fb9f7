package nstorm.workload;

import java.util.Map;
import org.apache.storm.tuple.Tuple;
import org.apache.storm.utils.TupleUtils;

/**
 * A bolt that keeps something, and gives account of it when the ledger asks. It does so at a tick, on the thread that
 * changes it. So nothing is locked, and a copy that no longer runs no longer answers.
 */
abstract class KeepingBolt extends LedgerBolt {
    private int answered;

    @Override
    final void joined() {
        ledger.expect(task);
        answered = ledger.asked();
    }

    @Override
    public final void execute(Tuple tuple) {
        if (!TupleUtils.isTick(tuple)) {
            take(tuple);
            return;
        }
        ledger.ticks.increment();
        tick();
        int asked = ledger.asked();
        if (answered < asked) {
            answered = asked;
            ledger.tell("kept-" + asked, task, kept());
        }
    }

    abstract void take(Tuple tuple);

    void tick() {}

    /** All that the next tuples will be added to. */
    abstract Map<String, ?> kept();
}

package nstorm.trial.bolts;

import static nstorm.trial.Way.CARRY;
import static nstorm.trial.Way.DRAIN;

import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import nstorm.trial.OwnTuples;
import nstorm.trial.Right;
import org.apache.storm.tuple.Tuple;
import org.apache.storm.tuple.Values;
import org.apache.storm.utils.TupleUtils;

/** Bolts that keep tuples. */
final class Kept {
    private abstract static class Keeper extends Case {
        void write(List<Tuple> batch) {
            List<String> words = new ArrayList<>();
            batch.forEach(one -> words.add(one.getString(0)));
            collector.emit(batch, new Values(words));
            batch.forEach(collector::ack);
            batch.clear();
        }
    }

    @Right(DRAIN)
    static final class ByTick extends Keeper {
        transient List<Tuple> batch;

        @Override
        void begin(Map<String, Object> conf) {
            batch = new ArrayList<>();
        }

        @Override
        public void execute(Tuple tuple) {
            if (TupleUtils.isTick(tuple)) {
                write(batch);
            } else {
                batch.add(tuple);
            }
        }
    }

    @Right(DRAIN)
    static final class BySizeOrTick extends Keeper {
        final List<Tuple> batch = new ArrayList<>();

        @Override
        public void execute(Tuple tuple) {
            boolean tick = TupleUtils.isTick(tuple);
            if (!tick) {
                batch.add(tuple);
            }
            if (tick || batch.size() == 5) {
                write(batch);
            }
        }
    }

    /** Nothing but the next one lets go of the last one. */
    @Right({})
    static final class AcksThePrevious extends Case {
        private Tuple previous;

        @Override
        public void execute(Tuple tuple) {
            if (TupleUtils.isTick(tuple)) {
                return;
            }
            if (previous != null) {
                collector.emit(previous, new Values(previous.getString(0) + tuple.getString(0)));
                collector.ack(previous);
            }
            previous = tuple;
        }
    }

    /** Every second tuple is the partner of one that came earlier. */
    interface Pairs extends OwnTuples {
        @Override
        default List<Object> values(int number) {
            return List.of("id" + (number % 2 == 0 ? number : number - 7), (long) number, "k");
        }
    }

    /** The partner of what the old copy keeps goes to the new one. */
    @Right({})
    static final class Join extends Case implements Pairs {
        final Map<String, Tuple> waiting = new HashMap<>();

        @Override
        public void execute(Tuple tuple) {
            if (TupleUtils.isTick(tuple)) {
                return;
            }
            Tuple partner = waiting.remove(tuple.getString(0));
            if (partner == null) {
                waiting.put(tuple.getString(0), tuple);
                return;
            }
            collector.emit(List.of(partner, tuple), new Values(partner.getLong(1) + "+" + tuple.getLong(1)));
            collector.ack(partner);
            collector.ack(tuple);
        }
    }

    /** Gives up what has no partner by tick: still the partner would come to another copy. */
    @Right({})
    static final class JoinWithTicks extends Case implements Pairs {
        final Map<String, Tuple> waiting = new HashMap<>();

        @Override
        public void execute(Tuple tuple) {
            if (TupleUtils.isTick(tuple)) {
                waiting.values().forEach(collector::fail);
                waiting.clear();
                return;
            }
            Tuple partner = waiting.remove(tuple.getString(0));
            if (partner == null) {
                waiting.put(tuple.getString(0), tuple);
                return;
            }
            collector.emit(new Values(partner.getLong(1) + "+" + tuple.getLong(1)));
            collector.ack(partner);
            collector.ack(tuple);
        }
    }

    /** Each is looked at for every later one, and a tick or a size lets all go. */
    @Right({})
    static final class JoinUntilTick extends Keeper implements Pairs {
        final List<Tuple> waiting = new ArrayList<>();

        @Override
        public void execute(Tuple tuple) {
            if (TupleUtils.isTick(tuple)) {
                write(waiting);
                return;
            }
            for (Tuple other : waiting) {
                if (other.getString(0).equals(tuple.getString(0))) {
                    collector.emit(new Values(other.getLong(1) + "+" + tuple.getLong(1)));
                }
            }
            waiting.add(tuple);
            if (waiting.size() == 20) {
                write(waiting);
            }
        }
    }

    @Right(DRAIN)
    static final class PolledByTick extends Case {
        final Deque<Tuple> batch = new ArrayDeque<>();

        @Override
        public void execute(Tuple tuple) {
            if (!TupleUtils.isTick(tuple)) {
                batch.add(tuple);
                return;
            }
            for (Tuple next = batch.poll(); next != null; next = batch.poll()) {
                collector.emit(next, new Values(next.getString(0)));
                collector.ack(next);
            }
        }
    }

    @Right({})
    static final class InOrder extends Case {
        final TreeMap<Long, Tuple> early = new TreeMap<>();

        @Override
        public void execute(Tuple tuple) {
            if (TupleUtils.isTick(tuple)) {
                return;
            }
            early.put(tuple.getLong(1) ^ 3, tuple);
            while (early.size() > 4) {
                Tuple next = early.pollFirstEntry().getValue();
                collector.emit(next, new Values(next.getLong(1)));
                collector.ack(next);
            }
        }
    }

    /** Its number goes on, while its tuples would be drained. */
    @Right({})
    static final class BatchAndNumber extends Keeper {
        final List<Tuple> batch = new ArrayList<>();
        int batches;

        @Override
        public void execute(Tuple tuple) {
            if (TupleUtils.isTick(tuple)) {
                collector.emit(new Values("batch" + batches++));
                write(batch);
            } else {
                batch.add(tuple);
            }
        }
    }

    /** Acked at once: it is only its content that is kept. */
    @Right({})
    static final class LastTuple extends Case {
        transient Tuple last;

        @Override
        public void execute(Tuple tuple) {
            if (TupleUtils.isTick(tuple)) {
                return;
            }
            if (last != null) {
                collector.emit(tuple, new Values(last.getString(0)));
            }
            last = tuple;
            collector.ack(tuple);
        }
    }

    @Right(CARRY)
    static final class ValuesOnly extends Case {
        final Deque<List<Object>> last = new ArrayDeque<>();

        @Override
        public void execute(Tuple tuple) {
            if (!TupleUtils.isTick(tuple)) {
                last.addLast(new ArrayList<>(tuple.getValues()));
                if (last.size() > 3) {
                    collector.emit(tuple, new Values(last.removeFirst()));
                }
            }
            collector.ack(tuple);
        }
    }

    private Kept() {}
}

package nstorm.memory;

import static org.junit.jupiter.api.Assertions.assertAll;
import static org.junit.jupiter.api.Assertions.assertEquals;

import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.Deque;
import java.util.HashMap;
import java.util.Iterator;
import java.util.LinkedHashMap;
import java.util.LinkedList;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.PriorityQueue;
import java.util.Queue;
import java.util.Set;
import java.util.stream.Stream;
import org.apache.storm.task.OutputCollector;
import org.apache.storm.task.TopologyContext;
import org.apache.storm.topology.OutputFieldsDeclarer;
import org.apache.storm.topology.base.BaseRichBolt;
import org.apache.storm.tuple.Tuple;
import org.apache.storm.utils.TupleUtils;
import org.junit.jupiter.api.Test;

/** Which bolts that keep tuples ack them as a batch, and which find them by what has come. */
class BatchesTest {
    abstract static class Keeper extends BaseRichBolt {
        transient OutputCollector collector;

        @Override
        public void prepare(Map<String, Object> conf, TopologyContext context, OutputCollector collector) {
            this.collector = collector;
        }

        @Override
        public void execute(Tuple tuple) {
            if (TupleUtils.isTick(tuple)) {
                write();
            } else {
                take(tuple);
            }
        }

        abstract void take(Tuple tuple);

        void write() {}

        @Override
        public void declareOutputFields(OutputFieldsDeclarer declarer) {}
    }

    abstract static class ListKeeper extends Keeper {
        final List<Tuple> x = new ArrayList<>();

        @Override
        void write() {
            x.forEach(collector::ack);
            x.clear();
        }
    }

    static final class Polled extends Keeper {
        private final Queue<Tuple> x = new ArrayDeque<>();

        @Override
        void take(Tuple tuple) {
            x.add(tuple);
            if (x.size() == 5) {
                write();
            }
        }

        @Override
        void write() {
            for (Tuple next = x.poll(); next != null; next = x.poll()) {
                collector.ack(next);
            }
        }
    }

    static final class RemovedFromTheFront extends Keeper {
        private final Deque<Tuple> x = new LinkedList<>();

        @Override
        void take(Tuple tuple) {
            x.addLast(tuple);
        }

        @Override
        void write() {
            while (!x.isEmpty()) {
                collector.ack(x.removeFirst());
            }
        }
    }

    static final class ByIndex extends ListKeeper {
        @Override
        void take(Tuple tuple) {
            x.add(tuple);
        }

        @Override
        void write() {
            for (int i = 0; i < x.size(); i++) {
                collector.ack(x.get(i));
            }
            x.clear();
        }
    }

    /** Keeps only what is worth it. */
    static final class Checked extends ListKeeper {
        @Override
        void take(Tuple tuple) {
            if (tuple.getString(0).isEmpty()) {
                collector.ack(tuple);
                return;
            }
            x.add(tuple);
            if (x.size() > 4) {
                write();
            }
        }
    }

    static final class BySizeOfTexts extends ListKeeper {
        @Override
        void take(Tuple tuple) {
            int length = tuple.getString(0).length();
            for (Tuple one : x) {
                length += one.getString(0).length();
            }
            if (length > 100) {
                write();
            }
            x.add(tuple);
        }
    }

    static final class Sorted extends ListKeeper {
        @Override
        void take(Tuple tuple) {
            x.add(tuple);
        }

        @Override
        void write() {
            x.sort(Comparator.comparing(one -> one.getString(0)));
            super.write();
        }
    }

    static final class TickByName extends ListKeeper {
        @Override
        public void execute(Tuple tuple) {
            if (tuple.getSourceComponent().equals("__system")
                    && tuple.getSourceStreamId().equals("__tick")) {
                write();
            } else {
                x.add(tuple);
            }
        }

        @Override
        void take(Tuple tuple) {
            x.add(tuple);
        }
    }

    static final class TickByHelper extends ListKeeper {
        private static boolean isTick(Tuple tuple) {
            return tuple.getSourceComponent().equals("__system")
                    && tuple.getSourceStreamId().equals("__tick");
        }

        @Override
        public void execute(Tuple tuple) {
            if (isTick(tuple)) {
                write();
                return;
            }
            take(tuple);
        }

        @Override
        void take(Tuple tuple) {
            x.add(tuple);
        }
    }

    /** Two streams, one batch. */
    static final class OfTwoStreams extends ListKeeper {
        @Override
        void take(Tuple tuple) {
            if (tuple.getSourceStreamId().equals("urgent")) {
                add(tuple, 2);
            } else {
                add(tuple, 10);
            }
        }

        private void add(Tuple tuple, int most) {
            x.add(tuple);
            if (x.size() >= most) {
                write();
            }
        }
    }

    static final class ByTime extends ListKeeper {
        @Override
        void take(Tuple tuple) {
            x.add(tuple);
            if (System.currentTimeMillis() % 100 == 0) {
                write();
            }
        }
    }

    static final class OfTwoSources extends ListKeeper {
        @Override
        void take(Tuple tuple) {
            if (tuple.getSourceComponent().equals("requests")) {
                x.add(tuple);
            } else {
                write();
                collector.ack(tuple);
            }
        }
    }

    static final class RequestAndAnswer extends Keeper {
        private Tuple x;

        @Override
        void take(Tuple tuple) {
            if (tuple.getSourceStreamId().equals("requests")) {
                x = tuple;
            } else if (x != null) {
                collector.emit(x, List.of(tuple.getValue(0)));
                collector.ack(x);
                x = null;
            }
        }
    }

    static final class ByCommit extends ListKeeper {
        @Override
        void take(Tuple tuple) {
            x.add(tuple);
            if (tuple.getString(0).equals("commit") || x.size() == 100) {
                write();
            }
        }
    }

    static final class ByEndOfFile extends ListKeeper {
        @Override
        void take(Tuple tuple) {
            x.add(tuple);
            if (tuple.getLong(1) < 0 && !x.isEmpty()) {
                for (Tuple one : x) {
                    collector.ack(one);
                }
            }
        }
    }

    static final class ByIterator extends ListKeeper {
        @Override
        void take(Tuple tuple) {
            for (Iterator<Tuple> all = x.iterator(); all.hasNext(); ) {
                Tuple partner = all.next();
                if (partner.getString(0).equals(tuple.getString(0))) {
                    all.remove();
                    collector.ack(partner);
                    collector.ack(tuple);
                    return;
                }
            }
            x.add(tuple);
        }
    }

    static final class ByEntry extends Keeper {
        private final List<Map.Entry<String, Tuple>> x = new ArrayList<>();

        @Override
        void take(Tuple tuple) {
            String key = tuple.getString(0) + "|" + tuple.getLong(1);
            for (Map.Entry<String, Tuple> one : x) {
                if (key.equals(one.getKey())) {
                    collector.ack(one.getValue());
                }
            }
            x.add(Map.entry(key, tuple));
        }
    }

    static final class ByEntrySet extends Keeper {
        private final Map<Integer, Tuple> x = new LinkedHashMap<>();

        @Override
        void take(Tuple tuple) {
            for (Map.Entry<Integer, Tuple> one : x.entrySet()) {
                if (Objects.equals(one.getValue().getString(0), tuple.getString(0))) {
                    collector.ack(one.getValue());
                }
            }
            x.put(x.size(), tuple);
        }
    }

    static final class ByHelper extends ListKeeper {
        private static String key(Tuple tuple) {
            return tuple.getString(0).trim();
        }

        @Override
        void take(Tuple tuple) {
            for (Tuple one : x) {
                if (key(one).equals(key(tuple))) {
                    collector.ack(one);
                }
            }
            x.add(tuple);
        }
    }

    static final class ByHelperOfBoth extends ListKeeper {
        private static boolean same(Tuple one, Tuple other) {
            return one.getString(0).equals(other.getString(0));
        }

        @Override
        void take(Tuple tuple) {
            for (Tuple one : x) {
                if (same(one, tuple) || same(tuple, one)) {
                    collector.ack(one);
                }
            }
            x.add(tuple);
        }
    }

    static final class ByNumber extends ListKeeper {
        @Override
        void take(Tuple tuple) {
            long number = tuple.getLong(1);
            for (Tuple one : x) {
                if (one.getLong(1) + 1 == number) {
                    collector.ack(one);
                }
            }
            x.add(tuple);
        }
    }

    static final class ByRemovalIf extends ListKeeper {
        @Override
        void take(Tuple tuple) {
            String key = tuple.getString(0);
            if (!x.removeIf(one -> one.getString(0).equals(key))) {
                x.add(tuple);
            }
        }
    }

    static final class ByStream extends ListKeeper {
        @Override
        void take(Tuple tuple) {
            Object key = tuple.getValue(0);
            x.stream().filter(one -> one.getValue(0).equals(key)).findFirst().ifPresent(collector::ack);
            x.add(tuple);
        }
    }

    static final class ByOwnClass extends Keeper {
        private static final class Waiting {
            private final String key;
            private final Tuple tuple;

            Waiting(String key, Tuple tuple) {
                this.key = key;
                this.tuple = tuple;
            }

            boolean isFor(String other) {
                return key.equals(other);
            }
        }

        private final List<Waiting> x = new ArrayList<>();

        @Override
        void take(Tuple tuple) {
            for (Waiting one : x) {
                if (one.isFor(tuple.getString(0))) {
                    collector.ack(one.tuple);
                }
            }
            x.add(new Waiting(tuple.getString(0), tuple));
        }
    }

    static final class ByJavaEightText extends Keeper {
        private final Map<String, Tuple> x = new HashMap<>();

        @Override
        void take(Tuple tuple) {
            String key =
                    new StringBuilder().append(tuple.getString(0)).append('|').toString();
            Tuple partner = x.remove(key);
            if (partner != null) {
                collector.ack(partner);
            }
        }

        @Override
        void write() {
            x.put("", null);
        }

        @Override
        public void execute(Tuple tuple) {
            super.execute(tuple);
            x.put("last", tuple);
        }
    }

    static final class ByBucket extends Keeper {
        private final List<List<Tuple>> x = new ArrayList<>();

        @Override
        void take(Tuple tuple) {
            List<Tuple> bucket = x.get(tuple.getString(0).hashCode() & 7);
            bucket.forEach(collector::ack);
            bucket.add(tuple);
        }
    }

    static final class ByArray extends Keeper {
        private final Tuple[] x = new Tuple[8];

        @Override
        void take(Tuple tuple) {
            int at = tuple.getInteger(1) & 7;
            Tuple partner = x[at];
            x[at] = tuple;
            collector.ack(partner);
        }
    }

    static final class InOrder extends Keeper {
        private final PriorityQueue<Tuple> x = new PriorityQueue<>(Comparator.comparing((Tuple one) -> one.getLong(1)));

        @Override
        void take(Tuple tuple) {
            x.add(tuple);
            while (x.size() > 4) {
                collector.ack(x.poll());
            }
        }
    }

    static final class BySizeAndByKey extends ListKeeper {
        @Override
        void take(Tuple tuple) {
            for (Tuple one : x) {
                if (one.getString(0).equals(tuple.getString(0))) {
                    collector.ack(one);
                }
            }
            x.add(tuple);
            if (x.size() >= 10) {
                write();
            }
        }
    }

    private static BoltMemory of(Class<? extends Keeper> type) {
        try {
            return BoltMemory.of(type.getDeclaredConstructor().newInstance());
        } catch (ReflectiveOperationException e) {
            throw new IllegalStateException(e);
        }
    }

    @Test
    void whatASizeOrATickLetsGoIsABatch() {
        assertAll(Stream.of(
                        Polled.class,
                        RemovedFromTheFront.class,
                        ByIndex.class,
                        Checked.class,
                        BySizeOfTexts.class,
                        Sorted.class,
                        TickByName.class,
                        TickByHelper.class,
                        OfTwoStreams.class,
                        ByTime.class)
                .map(type -> () -> {
                    BoltMemory memory = of(type);
                    assertEquals("null [x]", memory.stays() + " " + memory.tuples(), type.getSimpleName() + memory);
                    assertEquals(Set.of("x"), memory.fields(), type.getSimpleName());
                }));
    }

    private static void assertLooksUp(Class<? extends Keeper> type) {
        assertEquals("keeps tuples that it looks up for others in its field x", of(type).stays(), type.getSimpleName());
    }

    @Test
    void whatTheInputAloneLetsGoStays() {
        assertAll(Stream.of(OfTwoSources.class, RequestAndAnswer.class, ByCommit.class, ByEndOfFile.class)
                .map(type -> () -> assertLooksUp(type)));
    }

    @Test
    void whatTheInputsContentFindsStays() {
        assertAll(Stream.of(
                        ByIterator.class,
                        ByEntry.class,
                        ByEntrySet.class,
                        ByHelper.class,
                        ByHelperOfBoth.class,
                        ByNumber.class,
                        ByRemovalIf.class,
                        ByStream.class,
                        ByOwnClass.class,
                        ByJavaEightText.class,
                        ByBucket.class,
                        ByArray.class,
                        InOrder.class,
                        BySizeAndByKey.class)
                .map(type -> () -> assertLooksUp(type)));
    }
}

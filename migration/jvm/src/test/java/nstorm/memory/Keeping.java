package nstorm.memory;

import java.io.File;
import java.io.FileWriter;
import java.io.IOException;
import java.io.Serializable;
import java.io.UncheckedIOException;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import java.util.AbstractMap;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.BitSet;
import java.util.Collections;
import java.util.HashMap;
import java.util.HashSet;
import java.util.Iterator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.Set;
import java.util.Timer;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.atomic.AtomicReference;
import java.util.concurrent.atomic.LongAdder;
import java.util.function.Consumer;
import java.util.function.Function;
import java.util.function.UnaryOperator;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import org.apache.storm.task.OutputCollector;
import org.apache.storm.task.TopologyContext;
import org.apache.storm.topology.BasicOutputCollector;
import org.apache.storm.topology.OutputFieldsDeclarer;
import org.apache.storm.topology.base.BaseBasicBolt;
import org.apache.storm.topology.base.BaseRichBolt;
import org.apache.storm.tuple.Tuple;
import org.apache.storm.tuple.Values;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** Bolts that keep something from one tuple to the next, each in another way, and bolts that only seem to. */
final class Keeping {
    private Keeping() {}

    /** Logs by a static field of another class, which is not final: a logger is nobody's memory. */
    static final class LogsElsewhere extends Bolt {
        @Override
        public void execute(Tuple tuple) {
            LooseLogger.log(tuple.getString(0));
        }
    }

    /** Calls another class that switches over an enum, by a table which the compiler keeps in a static field. */
    static final class SwitchesElsewhere extends Bolt {
        @Override
        public void execute(Tuple tuple) {
            collector.emit(new Values(SwitchesOverUnit.shown(TimeUnit.valueOf(tuple.getString(0)))));
        }
    }

    /** Holds a path, and opens its file for each tuple: a path cannot be changed. */
    static final class WritesToPath extends Bolt {
        static final class Results {
            final File file = new File("results.txt");

            void write(long total) {
                try (FileWriter writer = new FileWriter(file)) {
                    writer.write(Long.toString(total));
                } catch (IOException e) {
                    throw new UncheckedIOException(e);
                }
            }
        }

        long x;
        final transient Results results = new Results();

        @Override
        public void execute(Tuple tuple) {
            results.write(++x);
        }
    }

    /** A bolt as users write one. */
    abstract static class Bolt extends BaseRichBolt {
        protected transient OutputCollector collector;

        @Override
        public void prepare(Map<String, Object> conf, TopologyContext context, OutputCollector collector) {
            this.collector = collector;
        }

        @Override
        public void declareOutputFields(OutputFieldsDeclarer declarer) {}
    }

    static final class Holder implements Serializable {
        long count;
        final List<Object> items = new ArrayList<>();
        private int started;

        void add(Object item) {
            items.add(item);
        }

        List<Object> all() {
            return items;
        }

        int size() {
            return items.size() + started;
        }
    }

    interface Rule extends Serializable {
        boolean test(String word);
    }

    static final class LengthRule implements Rule {
        private final int length = 3;

        @Override
        public boolean test(String word) {
            return word.length() > length;
        }
    }

    static final class CountingRule implements Rule {
        private int count;

        @Override
        public boolean test(String word) {
            return count++ > 3;
        }
    }

    record Pair(String word, Object other) {}

    // What keeps nothing.

    static final class Splits extends Bolt {
        private static final Logger LOG = LoggerFactory.getLogger(Splits.class);
        private static final Pattern SPACE = Pattern.compile(" ");
        private static final Set<String> STOP = Set.of("the", "a");
        private Map<String, Long> weights = new HashMap<>();
        private List<String> names;
        private int length;

        @Override
        public void prepare(Map<String, Object> conf, TopologyContext context, OutputCollector collector) {
            super.prepare(conf, context, collector);
            weights.put("x", 1L);
            names = new ArrayList<>(conf.keySet());
            names.add("y");
            length = context == null ? 1 : context.getThisTaskId();
        }

        @Override
        public void execute(Tuple tuple) {
            Map<String, Long> seen = new HashMap<>();
            StringBuilder text = new StringBuilder();
            Holder holder = new Holder();
            int[] lengths = new int[3];
            long total = 0;
            for (String word : SPACE.split(tuple.getString(0))) {
                if (!STOP.contains(word) && !names.contains(word) && word.length() > length) {
                    seen.merge(word, weights.getOrDefault(word, 1L), Long::sum);
                    text.append(word).append(total);
                    holder.add(tuple);
                    holder.count++;
                    lengths[word.length() % 3]++;
                    total += 2 * lengths[0];
                }
            }
            List<String> sorted = new ArrayList<>(seen.keySet());
            Collections.sort(sorted);
            try {
                sorted.stream()
                        .map(word -> word + weights.get(word))
                        .filter(word -> word.length() > length)
                        .collect(Collectors.toList())
                        .forEach(word -> collector.emit(tuple, new Values(word, holder.size())));
            } catch (IllegalStateException e) {
                LOG.warn("cannot emit {}", text, e);
                collector.fail(tuple);
                return;
            }
            new Pair("x", tuple).toString();
            collector.ack(tuple);
        }
    }

    static final class AsksRules extends Bolt {
        private final List<Rule> rules = List.of(new LengthRule());
        private final Rule[] more = {new LengthRule()};

        @Override
        public void execute(Tuple tuple) {
            for (Rule rule : rules) {
                if (rule.test(tuple.getString(0)) && more[0].test("x")) {
                    collector.emit(new Values("x"));
                }
            }
        }
    }

    interface Mapping extends Function<String, String>, Serializable {}

    static final class AppliesLambda extends Bolt {
        private final Mapping mapping = word -> word + "!";

        @Override
        public void execute(Tuple tuple) {
            collector.emit(new Values(mapping.apply(tuple.getString(0))));
        }
    }

    /** As Java 8 compiles {@code names + " of " + tuple + separator}. */
    static final class JoinsTexts extends Bolt {
        private final List<String> names = new ArrayList<>(List.of("a"));
        private final Object separator = new int[] {','};

        @Override
        public void execute(Tuple tuple) {
            collector.emit(new Values(new StringBuilder()
                    .append(names)
                    .append(" of ")
                    .append(tuple)
                    .append(separator)
                    .append('.')
                    .toString()));
        }
    }

    /** One for the whole JVM, with a thread of its own, that counts how often something happens. */
    static final class Meter {
        private static Meter ofThisJvm;
        final LongAdder count = new LongAdder();

        static synchronized Meter get() {
            if (ofThisJvm == null) {
                ofThisJvm = new Meter();
                new Thread(ofThisJvm::report).start();
            }
            return ofThisJvm;
        }

        private void report() {
            count.sum();
        }
    }

    static final class CountsForTheJvm extends Bolt {
        private transient Meter meter;

        @Override
        public void prepare(Map<String, Object> conf, TopologyContext context, OutputCollector collector) {
            meter = Meter.get();
        }

        @Override
        public void execute(Tuple tuple) {
            meter.count.increment();
        }
    }

    // What keeps something in a field, which is called x.

    static final class Number extends Bolt {
        private int x;

        @Override
        public void execute(Tuple tuple) {
            x++;
        }
    }

    static final class Last extends Bolt {
        private String x;

        @Override
        public void execute(Tuple tuple) {
            x = tuple.getString(0);
        }
    }

    static final class InMap extends Bolt {
        private final Map<String, Long> x = new HashMap<>();

        @Override
        public void execute(Tuple tuple) {
            x.merge(tuple.getString(0), 1L, Long::sum);
        }
    }

    /** Compares two variables by identity as a short cut. */
    static final class InMapUnlessTheSame extends Bolt {
        private final Map<String, String> x = new HashMap<>();

        @Override
        public void execute(Tuple tuple) {
            String word = tuple.getString(0);
            String before = x.get("last");
            if (!(word == before || word.equals(before))) {
                x.put("last", word);
            }
        }
    }

    static final class InListOfMap extends Bolt {
        private final Map<String, List<Integer>> x = new HashMap<>();

        @Override
        public void execute(Tuple tuple) {
            List<Integer> list = x.get(tuple.getString(0));
            if (list != null) {
                list.add(1);
            }
        }
    }

    static final class InArray extends Bolt {
        private final long[] x = new long[8];

        @Override
        public void execute(Tuple tuple) {
            x[tuple.getInteger(0)]++;
        }
    }

    static final class InArrayOfArrays extends Bolt {
        private final Object[][] x = new Object[8][8];

        @Override
        public void execute(Tuple tuple) {
            Object[] row = x[1];
            row[tuple.getInteger(0)] = tuple.getString(1);
        }
    }

    static final class InAtomic extends Bolt {
        private final AtomicLong x = new AtomicLong();

        @Override
        public void execute(Tuple tuple) {
            x.incrementAndGet();
        }
    }

    static final class InAdder extends Bolt {
        private final LongAdder x = new LongAdder();

        @Override
        public void execute(Tuple tuple) {
            x.increment();
        }
    }

    static final class InReference extends Bolt {
        private final AtomicReference<String> x = new AtomicReference<>();

        @Override
        public void execute(Tuple tuple) {
            x.updateAndGet(before -> before + tuple.getString(0));
        }
    }

    static final class InNumberOfUnknownType extends Bolt {
        private final java.lang.Number x = new AtomicLong();

        @Override
        public void execute(Tuple tuple) {
            ((AtomicLong) x).addAndGet(2);
        }
    }

    static final class InText extends Bolt {
        private final StringBuilder x = new StringBuilder();

        @Override
        public void execute(Tuple tuple) {
            x.append(tuple.getString(0));
        }
    }

    static final class InHelper extends Bolt {
        private final Holder x = new Holder();

        @Override
        public void execute(Tuple tuple) {
            x.count++;
        }
    }

    static final class InHelpersList extends Bolt {
        private final Holder x = new Holder();

        @Override
        public void execute(Tuple tuple) {
            x.all().add(tuple.getString(0));
        }
    }

    static final class ByHelper extends Bolt {
        private final Holder x = new Holder();

        @Override
        public void execute(Tuple tuple) {
            x.add(tuple.getString(0));
        }
    }

    static final class InHelperOfCollection extends Bolt {
        private final List<Rule> x = new ArrayList<>(List.of(new CountingRule()));

        @Override
        public void execute(Tuple tuple) {
            x.get(0).test(tuple.getString(0));
        }
    }

    static final class InOneOfHelpers extends Bolt {
        private final Object[] x = {new LengthRule(), new CountingRule()};

        @Override
        public void execute(Tuple tuple) {
            ((Rule) x[1]).test(tuple.getString(0));
        }
    }

    static final class ByNestedClass extends Bolt {
        private int x;

        private final class Inner {
            void count() {
                x++;
            }
        }

        @Override
        public void execute(Tuple tuple) {
            new Inner().count();
        }
    }

    static final class ByAnonymousClass extends Bolt {
        private long x;

        @Override
        public void execute(Tuple tuple) {
            List.of("a").forEach(new Consumer<>() {
                @Override
                public void accept(String word) {
                    x += word.length();
                }
            });
        }
    }

    static final class ByLambda extends Bolt {
        private int x;

        @Override
        public void execute(Tuple tuple) {
            Runnable count = () -> x++;
            count.run();
        }
    }

    static final class ByLambdaOfTheJdk extends Bolt {
        private int x;

        @Override
        public void execute(Tuple tuple) {
            List.of(1, 2).forEach(n -> x += n);
        }
    }

    static final class ByMethodReference extends Bolt {
        private final List<String> x = new ArrayList<>();

        @Override
        public void execute(Tuple tuple) {
            List.of("a").forEach(x::add);
        }
    }

    static final class ByCapturedMap extends Bolt {
        private final Map<String, Integer> x = new HashMap<>();

        @Override
        public void execute(Tuple tuple) {
            Map<String, Integer> alias = x;
            Consumer<String> put = word -> alias.put(word, 1);
            put.accept(tuple.getString(0));
        }
    }

    abstract static class Counts extends Bolt {
        protected int x;

        void count() {
            x++;
        }
    }

    static final class Inherited extends Counts {
        @Override
        public void execute(Tuple tuple) {
            count();
        }
    }

    abstract static class Template extends Bolt {
        @Override
        public final void execute(Tuple tuple) {
            take(tuple);
        }

        abstract void take(Tuple tuple);
    }

    static final class Overrides extends Template {
        private int x;

        @Override
        void take(Tuple tuple) {
            x = tuple.getInteger(0);
        }
    }

    static final class ByStaticMethod extends Bolt {
        private final Set<String> x = new HashSet<>();

        @Override
        public void execute(Tuple tuple) {
            note(x, tuple.getString(0));
        }

        private static void note(Set<String> into, String word) {
            into.add(word);
        }
    }

    static final class ByTernary extends Bolt {
        private final List<String> x = new ArrayList<>();

        @Override
        public void execute(Tuple tuple) {
            List<String> none = new ArrayList<>();
            (tuple.getInteger(0) > 1 ? none : x).add("a");
        }
    }

    static final class ByEntry extends Bolt {
        private final Map<String, Integer> x = new HashMap<>();

        @Override
        public void execute(Tuple tuple) {
            for (Map.Entry<String, Integer> entry : x.entrySet()) {
                entry.setValue(entry.getValue() + 1);
            }
        }
    }

    static final class ByRemoval extends Bolt {
        private final List<String> x = new ArrayList<>(List.of("a", "b"));

        @Override
        public void execute(Tuple tuple) {
            x.removeIf(tuple.getString(0)::equals);
        }
    }

    static final class ByIteratorsRemoval extends Bolt {
        private final Set<String> x = new HashSet<>(Set.of("a"));

        @Override
        public void execute(Tuple tuple) {
            Iterator<String> words = x.iterator();
            words.next();
            words.remove();
        }
    }

    static final class ByCollections extends Bolt {
        private final List<String> x = new ArrayList<>();

        @Override
        public void execute(Tuple tuple) {
            Collections.addAll(x, tuple.getString(0));
        }
    }

    static final class ByRecord extends Bolt {
        private final Pair x = new Pair("a", new ArrayList<String>());

        @Override
        @SuppressWarnings("unchecked")
        public void execute(Tuple tuple) {
            ((List<String>) x.other()).add(tuple.getString(0));
        }
    }

    static final class BySwap extends Bolt {
        private Map<String, Integer> x = new HashMap<>();

        @Override
        public void execute(Tuple tuple) {
            Map<String, Integer> next = new HashMap<>(x);
            next.put(tuple.getString(0), 1);
            x = next;
        }
    }

    static final class ByException extends Bolt {
        private final List<String> x = new ArrayList<>();

        private static final class Carries extends RuntimeException {
            private final transient List<String> list;

            Carries(List<String> list) {
                this.list = list;
            }
        }

        @Override
        public void execute(Tuple tuple) {
            try {
                throw new Carries(x);
            } catch (Carries e) {
                e.list.add(tuple.getString(0));
            }
        }
    }

    static final class InThreadLocal extends Bolt {
        private final transient ThreadLocal<List<String>> x = ThreadLocal.withInitial(ArrayList::new);

        @Override
        public void execute(Tuple tuple) {
            x.get().add(tuple.getString(0));
        }
    }

    static final class InBits extends Bolt {
        private final BitSet x = new BitSet();

        @Override
        public void execute(Tuple tuple) {
            x.set(tuple.getInteger(0));
        }
    }

    static final class InRandom extends Bolt {
        private final Random x = new Random(7);

        @Override
        public void execute(Tuple tuple) {
            collector.emit(new Values(x.nextInt()));
        }
    }

    static final class InCursor extends Bolt {
        private transient Iterator<String> x = List.of("a", "b").iterator();

        @Override
        public void execute(Tuple tuple) {
            collector.emit(new Values(x.next()));
        }
    }

    static final class ByOwnMap extends Bolt {
        private final Map<String, Integer> x = new LinkedHashMap<>() {
            @Override
            protected boolean removeEldestEntry(Map.Entry<String, Integer> eldest) {
                return size() > 100;
            }
        };

        @Override
        public void execute(Tuple tuple) {
            x.put(tuple.getString(0), 1);
        }
    }

    static final class InLazyField extends Bolt {
        private Holder x;

        @Override
        public void execute(Tuple tuple) {
            if (x == null) {
                x = new Holder();
            }
            x.count++;
        }
    }

    static final class ByPreparedObject extends Bolt {
        private List<String> x;

        @Override
        public void prepare(Map<String, Object> conf, TopologyContext context, OutputCollector collector) {
            x = Collections.synchronizedList(new ArrayList<>());
        }

        @Override
        public void execute(Tuple tuple) {
            x.add(tuple.getString(0));
        }
    }

    static final class ByView extends Bolt {
        private final List<String> x = new ArrayList<>(List.of("a"));

        @Override
        public void execute(Tuple tuple) {
            x.subList(0, 1).clear();
        }
    }

    static final class ByFieldOfLambda extends Bolt {
        private final Map<String, Integer> x = new HashMap<>();
        private transient Consumer<String> put;

        @Override
        public void prepare(Map<String, Object> conf, TopologyContext context, OutputCollector collector) {
            put = word -> x.put(word, 1);
        }

        @Override
        public void execute(Tuple tuple) {
            put.accept(tuple.getString(0));
        }
    }

    static final class Serial extends Bolt {
        private final Ticket x = new Ticket();

        /** Its own next(): the name is that of an iterator's. */
        static final class Ticket implements Serializable {
            private int at;

            int next() {
                return at++;
            }
        }

        @Override
        public void execute(Tuple tuple) {
            collector.emit(new Values(x.next()));
        }
    }

    static final class Basic extends BaseBasicBolt {
        final Map<String, Long> counts = new HashMap<>();

        @Override
        public void execute(Tuple tuple, BasicOutputCollector collector) {
            counts.merge(tuple.getString(0), 1L, Long::sum);
            collector.emit(new Values(tuple.getString(0)));
        }

        @Override
        public void declareOutputFields(OutputFieldsDeclarer declarer) {}
    }

    static final class ChangesMuch extends Bolt {
        private int x0, x1, x2, x3, x4, x5, x6, x7, x8, x9, x10, x11, x12, x13, x14, x15, x16, x17, x18, x19;

        @Override
        public void execute(Tuple tuple) {
            x0 = x1 = x2 =
                    x3 = x4 = x5 = x6 = x7 = x8 = x9 = x10 = x11 = x12 = x13 = x14 = x15 = x16 = x17 = x18 = x19 = 1;
        }
    }

    // Tuples, kept in x.

    static final class KeepsTuple extends Bolt {
        private transient Tuple x;

        @Override
        public void execute(Tuple tuple) {
            x = tuple;
        }
    }

    static final class CollectsTuples extends Bolt {
        private transient List<Tuple> x = new ArrayList<>();

        @Override
        public void execute(Tuple tuple) {
            x.add(tuple);
        }
    }

    static final class CountsItsTuples extends Bolt {
        private transient List<Tuple> x = new ArrayList<>();
        private long written;

        @Override
        public void execute(Tuple tuple) {
            x.add(tuple);
            written++;
        }
    }

    static final class MapsTuples extends Bolt {
        private transient Map<String, List<Tuple>> x = new HashMap<>();

        @Override
        public void execute(Tuple tuple) {
            x.computeIfAbsent(tuple.getString(0), word -> new ArrayList<>()).add(tuple);
        }
    }

    static final class HoldsTuples extends Bolt {
        private transient ArrayDeque<Object> x = new ArrayDeque<>();

        @Override
        public void execute(Tuple tuple) {
            x.offer(new Pair("a", tuple));
        }
    }

    static final class PutsTuplesOff extends Bolt {
        private transient List<Runnable> x = new ArrayList<>();

        @Override
        public void execute(Tuple tuple) {
            x.add(() -> collector.ack(tuple));
        }
    }

    /** A collector of the user's own, which keeps what Storm's would hand on. */
    static final class AcksLater extends Bolt {
        private static final class Later extends OutputCollector {
            private final List<Tuple> tuples = new ArrayList<>();

            Later(OutputCollector stock) {
                super(stock);
            }

            @Override
            public void ack(Tuple tuple) {
                tuples.add(tuple);
            }
        }

        private transient OutputCollector x;

        @Override
        public void prepare(Map<String, Object> conf, TopologyContext context, OutputCollector collector) {
            x = new Later(collector);
        }

        @Override
        public void execute(Tuple tuple) {
            x.ack(tuple);
        }
    }

    static final class EntersTuples extends Bolt {
        private transient Object x;

        @Override
        public void execute(Tuple tuple) {
            Object[] both = {"a", new AbstractMap.SimpleEntry<>("b", List.of(tuple))};
            x = both;
        }
    }

    // Threads.

    static final class StartsThread extends Bolt {
        @Override
        public void prepare(Map<String, Object> conf, TopologyContext context, OutputCollector collector) {
            new Thread(() -> collector.emit(new Values("a"))).start();
        }

        @Override
        public void execute(Tuple tuple) {}
    }

    static final class HasPool extends Bolt {
        private transient ExecutorService pool;

        @Override
        public void prepare(Map<String, Object> conf, TopologyContext context, OutputCollector collector) {
            pool = Executors.newSingleThreadExecutor();
        }

        @Override
        public void execute(Tuple tuple) {}
    }

    static final class SharesWithThread extends Bolt {
        private transient Holder holder;

        @Override
        public void prepare(Map<String, Object> conf, TopologyContext context, OutputCollector collector) {
            Holder made = new Holder();
            holder = made;
            new Thread(() -> made.add(Meter.ofThisJvm)).start();
        }

        @Override
        public void execute(Tuple tuple) {}
    }

    static final class HasTimer extends Bolt {
        private final transient Timer timer = null;

        @Override
        public void prepare(Map<String, Object> conf, TopologyContext context, OutputCollector collector) {
            new Timer(true);
        }

        @Override
        public void execute(Tuple tuple) {}
    }

    static final class GoesAway extends Bolt {
        @Override
        public void execute(Tuple tuple) {
            CompletableFuture.runAsync(() -> collector.ack(tuple));
        }
    }

    // For the whole JVM.

    static final class InStaticMap extends Bolt {
        private static final Map<String, Integer> COUNTS = new HashMap<>();

        @Override
        public void execute(Tuple tuple) {
            COUNTS.put(tuple.getString(0), 1);
        }
    }

    static final class InStaticNumber extends Bolt {
        private static int count;

        @Override
        public void execute(Tuple tuple) {
            count++;
        }
    }

    static final class InStaticByField extends Bolt {
        private static final Map<String, Integer> COUNTS = new HashMap<>();
        private transient Map<String, Integer> mine;

        @Override
        public void prepare(Map<String, Object> conf, TopologyContext context, OutputCollector collector) {
            mine = COUNTS;
        }

        @Override
        public void execute(Tuple tuple) {
            mine.put(tuple.getString(0), 1);
        }
    }

    // What cannot be looked into.

    static final class Reflects extends Bolt {
        private int x;

        @Override
        public void execute(Tuple tuple) {
            try {
                Reflects.class.getDeclaredField("x").set(this, 1);
            } catch (ReflectiveOperationException e) {
                throw new IllegalStateException(e);
            }
        }
    }

    static final class HasVarHandle extends Bolt {
        private static final VarHandle X;
        private int x;

        static {
            try {
                X = MethodHandles.lookup().findVarHandle(HasVarHandle.class, "x", int.class);
            } catch (ReflectiveOperationException e) {
                throw new ExceptionInInitializerError(e);
            }
        }

        @Override
        public void execute(Tuple tuple) {
            X.getAndAdd(this, 1);
        }
    }

    static final class Native extends Bolt {
        @Override
        public void execute(Tuple tuple) {
            run(1);
        }

        private native void run(int n);
    }

    /** The compiler of a language: thousands of methods. */
    static final class CallsVeryMuch extends Bolt {
        @Override
        public void execute(Tuple tuple) {
            new net.bytebuddy.ByteBuddy().subclass(Object.class).make();
        }
    }

    static final class HandsItselfOut extends Bolt {
        private static final List<Object> LISTENERS = new ArrayList<>();

        @Override
        public void prepare(Map<String, Object> conf, TopologyContext context, OutputCollector collector) {
            LISTENERS.add(this);
        }

        @Override
        public void execute(Tuple tuple) {}
    }

    static final class CallsUnknownCode extends Bolt {
        private final transient UnaryOperator<String> operator = word -> word;

        @Override
        public void execute(Tuple tuple) {
            collector.emit(new Values(operator.apply(tuple.getString(0))));
        }
    }

    static final class SortsByUnknownCode extends Bolt {
        private final transient java.util.Comparator<String> order = (a, b) -> a.compareTo(b);

        @Override
        public void execute(Tuple tuple) {
            List<String> words = new ArrayList<>();
            words.sort(order);
        }
    }
}

package nstorm.trial.bolts;

import java.io.File;
import java.io.FileNotFoundException;
import java.io.IOException;
import java.io.PrintWriter;
import java.io.Serializable;
import java.nio.channels.FileChannel;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.EnumMap;
import java.util.EnumSet;
import java.util.Formatter;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Scanner;
import java.util.Set;
import java.util.TreeSet;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.DoubleAdder;
import java.util.concurrent.atomic.LongAdder;
import java.util.function.LongUnaryOperator;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import nstorm.trial.OwnTuples;
import nstorm.trial.Right;
import nstorm.trial.Way;
import org.apache.storm.metric.api.IMetric;
import org.apache.storm.tuple.Tuple;
import org.apache.storm.tuple.Values;

/** What the whole JVM shares, in other places than a bolt's own static fields, and what looks like it. */
final class Unlike {
    @Right({})
    static final class AdderInAText extends Case {
        static final LongAdder COUNT = new LongAdder();

        @Override
        Object on(String word, long number) {
            COUNT.increment();
            return "n" + COUNT;
        }
    }

    @Right({})
    static final class AdderAsText extends Case {
        static final LongAdder COUNT = new LongAdder();

        @Override
        Object on(String word, long number) {
            COUNT.increment();
            return String.valueOf(COUNT);
        }
    }

    @Right({})
    static final class AdderAsNumber extends Case {
        static final DoubleAdder SUM = new DoubleAdder();

        @Override
        Object on(String word, long number) {
            SUM.add(number);
            Number sum = SUM;
            return sum.longValue();
        }
    }

    @Right(Way.STOPPED)
    static final class AdderBehindAnObject extends Case {
        static Object sum;

        @Override
        void begin(Map<String, Object> conf) {
            sum = new LongAdder();
        }

        @Override
        Object on(String word, long number) {
            ((LongAdder) sum).add(number);
            return ((Number) sum).intValue();
        }
    }

    @Right({})
    static final class AdderBehindANumber extends Case {
        static final Number SUM = new LongAdder();

        @Override
        Object on(String word, long number) {
            ((LongAdder) SUM).add(number);
            return SUM.intValue();
        }
    }

    @Right(Way.LIVE)
    static final class AdderOfAMetric extends Case {
        static final LongAdder COUNT = new LongAdder();

        @Override
        void begin(Map<String, Object> conf) {
            context.registerGauge("count", COUNT::sum);
        }

        @Override
        Object on(String word, long number) {
            COUNT.add(number);
            return word;
        }
    }

    @Right({})
    static final class EnumsOfASet extends Case {
        @Override
        Object on(String word, long number) {
            long sum = 0;
            for (Ledger one : EnumSet.allOf(Ledger.class)) {
                one.sum += number;
                sum += one.sum;
            }
            return sum;
        }
    }

    @Right({})
    static final class EnumsOfTheirClass extends Case {
        @Override
        Object on(String word, long number) {
            Arrays.stream(Ledger.class.getEnumConstants()).forEach(one -> one.counts.merge(word, 1, Integer::sum));
            return Ledger.class.getEnumConstants()[0].counts.get(word);
        }
    }

    @Right({})
    static final class EnumOfATuple extends Case implements OwnTuples {
        @Override
        public List<Object> values(int number) {
            return List.of("w" + number % 3, (long) number, Ledger.values()[number % 2]);
        }

        @Override
        public void execute(Tuple tuple) {
            if (!tuple.getSourceComponent().equals("words")) {
                return;
            }
            Ledger ledger = (Ledger) tuple.getValue(2);
            ledger.sum += tuple.getLong(1);
            collector.emit(new Values(ledger.sum));
            collector.ack(tuple);
        }
    }

    /** What it reads another bolt of the JVM may write. */
    @Right({})
    static final class ReadsAnEnum extends Case {
        @Override
        Object on(String word, long number) {
            return String.valueOf(Ledger.FAST.count(word));
        }
    }

    enum Rate {
        ONE(1, value -> value),
        TEN(10, value -> 10 * value);

        private static final Map<Integer, Rate> BY_NUMBER = new HashMap<>();
        private final int number;
        private final LongUnaryOperator of;

        static {
            for (Rate one : values()) {
                BY_NUMBER.put(one.number, one);
            }
        }

        Rate(int number, LongUnaryOperator of) {
            this.number = number;
            this.of = of;
        }

        static Rate of(int number) {
            return BY_NUMBER.get(number);
        }
    }

    @Right(Way.LIVE)
    static final class EnumWithoutState extends Case {
        static final TimeUnit UNIT = TimeUnit.SECONDS;

        @Override
        Object on(String word, long number) {
            Rate rate = word.length() > 1 ? Rate.ONE : Rate.TEN;
            return switch (rate) {
                case ONE -> UNIT.toMillis(number) * rate.number;
                case TEN -> number + Rate.valueOf("ONE").number;
            };
        }
    }

    @Right({Way.LIVE, Way.STOPPED})
    static final class EnumThatFindsItself extends Case {
        @Override
        Object on(String word, long number) {
            return Rate.of(number % 2 == 0 ? 1 : 10).number;
        }
    }

    /** First in use once the first tuple has come. */
    @Right(Way.LIVE)
    static final class EnumWithATable extends Case {
        enum Grade {
            LOW(1),
            HIGH(2);

            private static final Map<Integer, Grade> BY_LENGTH = new HashMap<>();
            private final int length;

            static {
                for (Grade one : values()) {
                    BY_LENGTH.put(one.length, one);
                }
            }

            Grade(int length) {
                this.length = length;
            }

            static Grade of(int length) {
                return BY_LENGTH.get(length);
            }
        }

        @Override
        Object on(String word, long number) {
            return Grade.of(word.length()) + " " + number;
        }
    }

    @Right(Way.CARRY)
    static final class EnumsAsKeys extends Case {
        enum Size {
            SMALL(1),
            LARGE(3);

            final int from;

            Size(int from) {
                this.from = from;
            }
        }

        private final Map<Size, Integer> counts = new EnumMap<>(Size.class);
        private final Map<TimeUnit, Long> sums = new HashMap<>();

        @Override
        Object on(String word, long number) {
            sums.merge(number % 2 == 0 ? TimeUnit.DAYS : TimeUnit.HOURS, number, Long::sum);
            return counts.merge(word.length() < Size.LARGE.from ? Size.SMALL : Size.LARGE, 1, Integer::sum)
                    + sums.getOrDefault(TimeUnit.DAYS, 0L);
        }
    }

    @Right({})
    static final class CollectsIntoAHolder extends Case {
        static final class Holder {
            static final Set<String> SEEN = new TreeSet<>();
        }

        @Override
        Object on(String word, long number) {
            return Stream.of(word)
                    .collect(Collectors.toCollection(() -> Holder.SEEN))
                    .size();
        }
    }

    /** Another of its JVM writes what it reads: here whoever makes the tuples does. It may go only as long as nothing is there. */
    abstract static class Reader extends Case implements OwnTuples {
        abstract void fill(String word, long number);

        @Override
        public List<Object> values(int number) {
            fill("w" + number % 5, number);
            return List.of("w" + (number + 1) % 5, (long) number, "k");
        }
    }

    @Right(Way.STOPPED)
    static final class ReadsAHolder extends Reader {
        static final class Shared {
            static final Map<String, Long> LATEST = new ConcurrentHashMap<>();
            static volatile long last;
        }

        @Override
        void fill(String word, long number) {
            Shared.LATEST.put(word, number);
            Shared.last += number;
        }

        @Override
        Object on(String word, long number) {
            return Shared.LATEST.get(word) + " " + Shared.last;
        }
    }

    /** What is written through something of the JDK's. */
    @Right({})
    static final class FormatsIntoAStatic extends Case {
        private static final StringBuilder ALL = new StringBuilder();

        @Override
        Object on(String word, long number) {
            new Formatter(ALL).format("%s", word);
            return ALL.length();
        }
    }

    @Right({})
    static final class FormatsIntoAHolder extends Case {
        private static final class Holder {
            private static final StringBuilder ALL = new StringBuilder();
        }

        @Override
        Object on(String word, long number) {
            new Formatter(Holder.ALL).format("%s", word);
            return Holder.ALL.length();
        }
    }

    @Right(Way.LIVE)
    static final class FormatsAText extends Case {
        @Override
        Object on(String word, long number) {
            return new Formatter().format("%s %d", word, number).toString();
        }
    }

    interface Latest {
        Map<String, Long> BY_WORD = new ConcurrentHashMap<>();
    }

    @Right(Way.STOPPED)
    static final class ReadsItsInterface extends Reader implements Latest {
        @Override
        void fill(String word, long number) {
            BY_WORD.put(word, number);
        }

        @Override
        Object on(String word, long number) {
            return String.valueOf(BY_WORD.get(word));
        }
    }

    /** A holder that is in use only once the first tuple has come. */
    @Right(Way.STOPPED)
    static final class ReadsALazyEnum extends Reader {
        enum Only {
            ONE;

            private final Map<String, Long> latest = new ConcurrentHashMap<>();
        }

        @Override
        void fill(String word, long number) {
            Only.ONE.latest.put(word, number);
        }

        @Override
        Object on(String word, long number) {
            return String.valueOf(Only.ONE.latest.get(word));
        }
    }

    /** Its last node is found by identity, and what has travelled is another one. */
    @Right({})
    static final class EndsInAHolder extends Case {
        static final class Node implements Serializable {
            private static final long serialVersionUID = 1L;
            final String word;
            final Node next;

            Node(String word, Node next) {
                this.word = word;
                this.next = next;
            }
        }

        static final class Ends {
            static final Node NIL = new Node("", null);
        }

        private Node first;

        @Override
        void begin(Map<String, Object> conf) {
            first = first == null ? Ends.NIL : first;
        }

        @Override
        Object on(String word, long number) {
            int length = 0;
            for (Node at = first; at != Ends.NIL; at = at.next) {
                length += at.word.length();
            }
            first = new Node(word, first);
            return length;
        }
    }

    @Right(Way.LIVE)
    static final class HolderOfConstants extends Case {
        static final class Names {
            static final List<String> SHORT = List.of("a", "b");
            static final Pattern LONG = Pattern.compile("c+");
            static final long FROM = Long.parseLong("2");
        }

        @Override
        Object on(String word, long number) {
            return Names.SHORT.contains(word) || Names.LONG.matcher(word).matches() || number > Names.FROM;
        }
    }

    @Right({})
    static final class CountsInAFile extends Case {
        @Override
        Object on(String word, long number) {
            File file = new File("/nowhere/count");
            if (!file.isFile()) {
                return word;
            }
            try (Scanner in = new Scanner(file);
                    PrintWriter out = new PrintWriter("/nowhere/count")) {
                out.println(in.nextLong() + number);
            } catch (FileNotFoundException e) {
                return number;
            }
            return word;
        }
    }

    @Right({})
    static final class CountsInAChannel extends Case {
        @Override
        Object on(String word, long number) {
            try (FileChannel file = FileChannel.open(Path.of("/nowhere/count"))) {
                return file.size();
            } catch (IOException e) {
                return word;
            }
        }
    }

    private static final class Counting implements IMetric {
        final Map<String, Integer> counts = new HashMap<>();

        @Override
        public Object getValueAndReset() {
            return 0;
        }
    }

    @Right({})
    static final class MemoryInAMetric extends Case {
        @Override
        @SuppressWarnings("deprecation")
        void begin(Map<String, Object> conf) {
            context.registerMetric("mine", new Counting(), 60);
        }

        @Override
        @SuppressWarnings("deprecation")
        Object on(String word, long number) {
            return ((Counting) context.getRegisteredMetricByName("mine")).counts.merge(word, 1, Integer::sum);
        }
    }

    private Unlike() {}
}

package nstorm.trial.bolts;

import static nstorm.trial.Way.CARRY;

import java.io.Serializable;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.BitSet;
import java.util.Collections;
import java.util.Deque;
import java.util.HashMap;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.LinkedList;
import java.util.List;
import java.util.Map;
import java.util.PriorityQueue;
import java.util.Random;
import java.util.Set;
import java.util.TreeMap;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicLong;
import nstorm.trial.Right;
import org.apache.storm.topology.BasicOutputCollector;
import org.apache.storm.topology.OutputFieldsDeclarer;
import org.apache.storm.topology.base.BaseBasicBolt;
import org.apache.storm.tuple.Fields;
import org.apache.storm.tuple.Tuple;
import org.apache.storm.tuple.Values;
import org.apache.storm.utils.TupleUtils;

/** State as most bolts have it: it can travel. */
final class PlainState {
    @Right(CARRY)
    static final class Counts extends Case {
        private final Map<String, Long> counts = new HashMap<>();

        @Override
        Object on(String word, long number) {
            return counts.merge(word, 1L, Long::sum);
        }
    }

    @Right(CARRY)
    static final class Basic extends BaseBasicBolt {
        private final Map<String, Long> counts = new HashMap<>();

        @Override
        public void execute(Tuple tuple, BasicOutputCollector collector) {
            if (!TupleUtils.isTick(tuple)) {
                collector.emit(new Values(counts.merge(tuple.getString(0), 1L, Long::sum)));
            }
        }

        @Override
        public void declareOutputFields(OutputFieldsDeclarer declarer) {
            declarer.declare(new Fields("out"));
        }
    }

    @Right(CARRY)
    static final class Window extends Case {
        private final Deque<Long> window = new ArrayDeque<>();
        private long sum;

        @Override
        Object on(String word, long number) {
            window.addLast(number);
            sum += number - (window.size() > 4 ? window.removeFirst() : 0);
            return sum;
        }
    }

    @Right(CARRY)
    static final class Distinct extends Case {
        private transient Set<String> seen;

        @Override
        void begin(Map<String, Object> conf) {
            seen = new HashSet<>();
        }

        @Override
        Object on(String word, long number) {
            return seen.add(word + number % 3) ? word : null;
        }
    }

    abstract static class Base extends Case {
        private long total;

        long add(long number) {
            return total += number;
        }
    }

    @Right(CARRY)
    static final class InSuper extends Base {
        @Override
        Object on(String word, long number) {
            return add(number);
        }
    }

    @Right(CARRY)
    static final class SameName extends Base {
        private long total = 5;

        @Override
        Object on(String word, long number) {
            total *= 2;
            return add(number) + total;
        }
    }

    static final class Top implements Serializable {
        final PriorityQueue<Long> largest = new PriorityQueue<>();

        List<Long> add(long number) {
            largest.add(number * 7 % 11);
            if (largest.size() > 3) {
                largest.poll();
            }
            List<Long> sorted = new ArrayList<>(largest);
            Collections.sort(sorted);
            return sorted;
        }
    }

    @Right(CARRY)
    static final class Helper extends Case {
        private final Top top = new Top();

        @Override
        Object on(String word, long number) {
            return top.add(number);
        }
    }

    record Mean(long count, double sum) implements Serializable {
        Mean with(double value) {
            return new Mean(count + 1, sum + value);
        }
    }

    @Right(CARRY)
    static final class Records extends Case {
        private final Map<String, Mean> means = new HashMap<>();

        @Override
        Object on(String word, long number) {
            Mean mean = means.compute(word, (key, before) -> (before == null ? new Mean(0, 0) : before).with(number));
            return mean.sum / mean.count;
        }
    }

    @Right(CARRY)
    static final class Arrayed extends Case {
        private final int[][] counts = new int[4][3];

        @Override
        Object on(String word, long number) {
            counts[word.length()][(int) (number % 3)]++;
            return Arrays.deepToString(counts);
        }
    }

    @Right(CARRY)
    static final class Bits extends Case {
        private final BitSet seen = new BitSet();

        @Override
        Object on(String word, long number) {
            seen.flip((int) (number * 37 % 200));
            return seen.cardinality();
        }
    }

    @Right(CARRY)
    static final class Texts extends Case {
        private final StringBuilder all = new StringBuilder();

        @Override
        Object on(String word, long number) {
            return all.append(word).length() > 9 ? all.reverse().toString() : null;
        }
    }

    @Right(CARRY)
    static final class Drawn extends Case {
        private final Random random = new Random(5);

        @Override
        Object on(String word, long number) {
            return random.nextInt(100);
        }
    }

    @Right(CARRY)
    static final class Atomics extends Case {
        private final Map<String, AtomicLong> counts = new ConcurrentHashMap<>();

        @Override
        Object on(String word, long number) {
            return counts.computeIfAbsent(word, key -> new AtomicLong()).addAndGet(number);
        }
    }

    @Right(CARRY)
    static final class Recent extends Case {
        private final Map<String, Long> recent = new LinkedHashMap<>(16, 0.75f, true);

        @Override
        Object on(String word, long number) {
            recent.putIfAbsent(word, number);
            return recent.get(word) + " " + recent.keySet().iterator().next();
        }
    }

    /** Only reading changes the order. */
    @Right(CARRY)
    static final class ReadsRecent extends Case {
        private final Map<String, String> recent = new LinkedHashMap<>(16, 0.75f, true);

        @Override
        void begin(Map<String, Object> conf) {
            List.of("a", "bb", "ccc", "dd", "e").forEach(word -> recent.put(word, word));
        }

        @Override
        Object on(String word, long number) {
            String oldest = recent.keySet().iterator().next();
            return recent.get(word) + " " + oldest;
        }
    }

    @Right(CARRY)
    static final class TwoFieldsShare extends Case {
        private List<Long> numbers;
        private Map<String, List<Long>> byName;

        @Override
        void begin(Map<String, Object> conf) {
            numbers = new LinkedList<>();
            byName = new TreeMap<>(Map.of("all", numbers));
        }

        @Override
        Object on(String word, long number) {
            numbers.add(number);
            return byName.get("all").size();
        }
    }

    /** A view: the field that nobody changes shows what the other one keeps. */
    @Right(CARRY)
    static final class View extends Case {
        private final Map<String, Long> counts = new HashMap<>();
        private final Map<String, Long> shown = Collections.unmodifiableMap(counts);

        @Override
        Object on(String word, long number) {
            counts.merge(word, number, Long::sum);
            return shown.get(word);
        }
    }

    /** The keys of a map are a view that the map itself holds. */
    @Right({})
    static final class KeyView extends Case {
        private final Map<String, Long> counts = new HashMap<>();
        private transient Set<String> keys;

        @Override
        void begin(Map<String, Object> conf) {
            keys = counts.keySet();
        }

        @Override
        Object on(String word, long number) {
            counts.merge(word, number, Long::sum);
            return keys.size();
        }
    }

    interface Counting {
        Map<String, Long> counts();

        default long add(String word) {
            return counts().merge(word, 1L, Long::sum);
        }
    }

    static final class Counted implements Counting, Serializable {
        private final Map<String, Long> counts = new HashMap<>();

        @Override
        public Map<String, Long> counts() {
            return counts;
        }
    }

    @Right(CARRY)
    static final class DefaultMethod extends Case {
        private final Counting counted = new Counted();

        @Override
        Object on(String word, long number) {
            return counted.add(word);
        }
    }

    sealed interface Event extends Serializable permits Seen, Lost {}

    record Seen(String word) implements Event {}

    record Lost(long number) implements Event {}

    @Right(CARRY)
    static final class Sealed extends Case {
        private final List<Event> events = new ArrayList<>();

        @Override
        Object on(String word, long number) {
            events.add(number % 3 == 0 ? new Lost(number) : new Seen(word));
            return events.get(events.size() / 2).toString();
        }
    }

    @Right(CARRY)
    static final class Parallel extends Case {
        private final Map<String, Long> counts = new ConcurrentHashMap<>();

        @Override
        Object on(String word, long number) {
            Arrays.stream((word + " x " + number % 2).split(" "))
                    .parallel()
                    .forEach(one -> counts.merge(one, 1L, Long::sum));
            return counts;
        }
    }

    /** Only now and then. */
    @Right(CARRY)
    static final class Seldom extends Case {
        private long last = -1;

        @Override
        Object on(String word, long number) {
            long before = last;
            last = number % 6 == 5 ? number : last;
            return before;
        }
    }

    static final class Node implements Serializable {
        Node next = this;
        long number;
    }

    @Right(CARRY)
    static final class Ring extends Case {
        private final Node ring = new Node();

        @Override
        Object on(String word, long number) {
            Node node = new Node();
            node.number = number;
            node.next = ring.next;
            ring.next = node;
            return ring.next.next.number;
        }
    }

    private PlainState() {}
}

package nstorm.trial.bolts;

import static nstorm.trial.Way.CARRY;

import java.io.Serializable;
import java.time.Clock;
import java.time.Duration;
import java.time.Instant;
import java.time.ZoneId;
import java.time.ZoneOffset;
import java.util.AbstractList;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.Enumeration;
import java.util.HashMap;
import java.util.HashSet;
import java.util.Iterator;
import java.util.List;
import java.util.ListIterator;
import java.util.Map;
import java.util.Scanner;
import java.util.Set;
import java.util.StringTokenizer;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import nstorm.trial.Right;

/** What is changed by being read: cursors, streams, collections and clocks of the user's. */
final class Iterators {
    static final class Robin implements Serializable {
        final List<String> all = new ArrayList<>(List.of("x", "y", "z"));
        transient Iterator<String> left;

        String next() {
            left = left == null || !left.hasNext() ? all.iterator() : left;
            return left.next();
        }
    }

    @Right({})
    static final class InHelper extends Case {
        final Robin robin = new Robin();

        @Override
        Object on(String word, long number) {
            return robin.next();
        }
    }

    @Right({})
    static final class InMap extends Case {
        transient Map<String, Iterator<Integer>> left;

        @Override
        void begin(Map<String, Object> conf) {
            left = new HashMap<>();
            for (String word : List.of("a", "bb", "ccc", "dd", "e")) {
                left.put(word, Stream.iterate(word.length(), one -> one + 2).iterator());
            }
        }

        @Override
        Object on(String word, long number) {
            return left.get(word).next();
        }
    }

    @Right({})
    static final class InList extends Case {
        transient ListIterator<Integer> left;

        @Override
        void begin(Map<String, Object> conf) {
            left = new ArrayList<>(Collections.nCopies(100, 1)).listIterator();
        }

        @Override
        Object on(String word, long number) {
            left.next();
            return left.nextIndex();
        }
    }

    @Right({})
    static final class Tokens extends Case {
        transient StringTokenizer left;

        @Override
        void begin(Map<String, Object> conf) {
            left = new StringTokenizer("a b c d e f g h i j k l m n o p q r s t u v w x y z a b c d e");
        }

        @Override
        Object on(String word, long number) {
            return left.nextToken();
        }
    }

    @Right({})
    static final class Scanned extends Case {
        transient Scanner left;

        @Override
        void begin(Map<String, Object> conf) {
            left = new Scanner("1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29");
        }

        @Override
        Object on(String word, long number) {
            return left.nextInt();
        }
    }

    @Right({})
    static final class Enumerated extends Case {
        transient Enumeration<Integer> left;

        @Override
        void begin(Map<String, Object> conf) {
            left = Collections.enumeration(
                    Stream.iterate(0, one -> one + 1).limit(40).toList());
        }

        @Override
        Object on(String word, long number) {
            return left.nextElement();
        }
    }

    @Right(CARRY)
    static final class CollectedTo extends Case {
        final Set<String> seen = new HashSet<>();

        @Override
        Object on(String word, long number) {
            Arrays.stream((word + " " + number % 4).split(" ")).collect(Collectors.toCollection(() -> seen));
            return seen.size();
        }
    }

    @Right(CARRY)
    static final class CollectedBy extends Case {
        final Set<String> seen = new HashSet<>();

        @Override
        Object on(String word, long number) {
            Stream.of(word, "n" + number % 4).collect(() -> seen, Set::add, Set::addAll);
            return seen.size();
        }
    }

    @Right(CARRY)
    static final class Peeked extends Case {
        final List<Integer> lengths = new ArrayList<>();

        @Override
        Object on(String word, long number) {
            return Stream.of(word)
                            .map(String::length)
                            .filter(one -> one > 1)
                            .peek(lengths::add)
                            .count()
                    + lengths.size();
        }
    }

    static final class Once extends AbstractList<String> implements Serializable {
        private final List<String> left = new ArrayList<>(List.of("p", "q"));

        @Override
        public String get(int index) {
            return left.get(index);
        }

        @Override
        public int size() {
            return left.size();
        }

        @Override
        public Object[] toArray() {
            Object[] all = left.toArray();
            left.clear();
            return all;
        }
    }

    @Right(CARRY)
    static final class EmptiedByCopying extends Case {
        final Once once = new Once();

        @Override
        Object on(String word, long number) {
            return new ArrayList<>(once);
        }
    }

    static final class Ticks extends Clock implements Serializable {
        private long ticks;

        @Override
        public ZoneId getZone() {
            return ZoneOffset.UTC;
        }

        @Override
        public Clock withZone(ZoneId zone) {
            return this;
        }

        @Override
        public Instant instant() {
            return Instant.ofEpochSecond(ticks++);
        }
    }

    @Right(CARRY)
    static final class CountingClock extends Case {
        final Clock clock = new Ticks();

        @Override
        Object on(String word, long number) {
            return clock.instant().toString();
        }
    }

    /** The JDK's class holds the user's. */
    @Right(CARRY)
    static final class OffsetClock extends Case {
        final Clock clock = Clock.offset(new Ticks(), Duration.ofHours(1));

        @Override
        Object on(String word, long number) {
            return clock.instant().toString();
        }
    }

    /** To show it changes it. */
    static final class Numbered implements Serializable {
        private int shown;

        @Override
        public String toString() {
            return "id" + shown++;
        }
    }

    @Right(CARRY)
    static final class ShownCounts extends Case {
        final Numbered numbered = new Numbered();

        @Override
        Object on(String word, long number) {
            return word + numbered;
        }
    }

    /** To look it up changes it. */
    static final class Asked implements Serializable {
        private final String word;
        private int asked;

        Asked(String word) {
            this.word = word;
        }

        @Override
        public boolean equals(Object other) {
            asked++;
            return other instanceof Asked one && one.word.equals(word);
        }

        @Override
        public int hashCode() {
            asked++;
            return word.hashCode();
        }
    }

    /** What the stream does at the target calls it, too. */
    @Right({})
    static final class CountsQuestions extends Case {
        final Map<Asked, Integer> counts = new HashMap<>();

        @Override
        Object on(String word, long number) {
            counts.merge(new Asked(word), 1, Integer::sum);
            return counts.keySet().stream().mapToInt(one -> one.asked).sum();
        }
    }

    private Iterators() {}
}

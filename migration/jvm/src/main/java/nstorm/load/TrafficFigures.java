package nstorm.load;

import java.util.ArrayList;
import java.util.Collection;
import java.util.Comparator;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.PriorityQueue;
import java.util.Queue;
import java.util.Set;
import java.util.TreeMap;
import java.util.concurrent.TimeUnit;
import java.util.stream.Collectors;
import nstorm.wire.report.FoldedTraffic;

/**
 * Turns the counters of all pairs of tasks into few figures: the pairs with the most tuples of late are named, all
 * others are folded into one figure for a source task and a destination component.
 *
 * <p>No figure ever falls or jumps: what a pair had before it was named stays in its folded figure, and what a named
 * pair had when it is un-named leaves the figures for good. For the sampling thread alone.
 */
final class TrafficFigures {

    /** What is told of one moment: rows of source task, destination task, tuples; and the rest. */
    record Figures(List<long[]> named, List<FoldedTraffic> folded) {
    }

    private record Pair(int source, int destination) implements Comparable<Pair> {
        @Override
        public int compareTo(Pair other) {
            return source != other.source ? Integer.compare(source, other.source)
                : Integer.compare(destination, other.destination);
        }
    }

    private record Group(int source, String component) {
    }

    private record Ranked(Pair pair, long weight) {
    }

    private static final int MOST_NAMED = 1_000;
    private static final long RANK_NANOS = TimeUnit.SECONDS.toNanos(10);

    private final long[][] counters;
    private final String[] components;
    /** The counters as of this moment, by source task + 1 and destination task + 1. */
    private final long[][] now;
    private final long[][] ranked;
    /** Of each named pair, what it had when it was named. */
    private final Map<Pair, Long> bases = new TreeMap<>();
    private final Map<Group, Long> givenUp = new HashMap<>();
    private long rankedNanos;

    /**
     * Follows these counters.
     *
     * @param counters   by source task + 1 and destination task + 1; a row is null until its task sends from here
     * @param components by task; null where there is no such task
     */
    TrafficFigures(long[][] counters, String[] components, long nowNanos) {
        this.counters = counters;
        this.components = components;
        now = new long[counters.length][];
        ranked = new long[counters.length][];
        rankedNanos = nowNanos;
    }

    Figures at(long nowNanos) {
        read();
        // While there is room nothing was ever folded: a pair that is new is named with all it has.
        if (bases.size() < MOST_NAMED) {
            nameNew();
        }
        boolean full = bases.size() == MOST_NAMED;
        if (full && nowNanos - rankedNanos >= RANK_NANOS) {
            rankedNanos = nowNanos;
            rank();
        }
        List<long[]> named = new ArrayList<>(bases.size());
        bases.forEach((pair, base) -> named.add(new long[] {pair.source, pair.destination, count(pair) - base}));
        return new Figures(named, full ? folded() : List.of());
    }

    private void read() {
        // Index 0 is -1, the task of Storm itself.
        for (int source = 1; source < counters.length; source++) {
            long[] row = counters[source];
            if (row != null) {
                long[] copy = now[source];
                for (int i = 1; i < row.length; i++) {
                    if (row[i] > 0) {
                        // Many tasks have a row and send nothing.
                        copy = copy == null ? now[source] = new long[row.length] : copy;
                        // A bolt that emits from two threads may write an older count back.
                        copy[i] = Math.max(copy[i], row[i]);
                    }
                }
            }
        }
    }

    private void nameNew() {
        for (int source = 1; source < now.length; source++) {
            long[] row = now[source];
            for (int i = 1; row != null && i < row.length; i++) {
                if (row[i] > 0 && bases.size() < MOST_NAMED) {
                    bases.putIfAbsent(new Pair(source - 1, i - 1), 0L);
                }
            }
        }
    }

    private void rank() {
        Set<Pair> heaviest = heaviest().stream().map(Ranked::pair).collect(Collectors.toSet());
        bases.entrySet().removeIf(entry -> {
            Pair pair = entry.getKey();
            boolean unnamed = !heaviest.contains(pair);
            if (unnamed) {
                givenUp.merge(group(pair), count(pair) - entry.getValue(), Long::sum);
            }
            return unnamed;
        });
        heaviest.forEach(pair -> bases.computeIfAbsent(pair, this::count));
    }

    /** A named pair counts double, so that two of nearly the same weight do not swap their places for ever. */
    private Collection<Ranked> heaviest() {
        Queue<Ranked> heaviest = new PriorityQueue<>(Comparator.comparingLong(Ranked::weight));
        for (Pair pair : bases.keySet()) {
            long[] before = ranked[pair.source + 1];
            long had = before == null ? 0 : before[pair.destination + 1];
            heaviest.add(new Ranked(pair, 2 * (count(pair) - had)));
        }
        for (int source = 1; source < now.length; source++) {
            long[] row = now[source];
            if (row == null) {
                continue;
            }
            long[] before = ranked[source] == null ? ranked[source] = new long[row.length] : ranked[source];
            for (int i = 1; i < row.length; i++) {
                long tuples = row[i] - before[i];
                if (tuples > heaviest.element().weight) {
                    Pair pair = new Pair(source - 1, i - 1);
                    if (!bases.containsKey(pair)) {
                        heaviest.remove();
                        heaviest.add(new Ranked(pair, tuples));
                    }
                }
            }
            System.arraycopy(row, 0, before, 0, row.length);
        }
        return heaviest;
    }

    private List<FoldedTraffic> folded() {
        Map<Group, Long> named = new HashMap<>();
        bases.forEach((pair, base) -> named.merge(group(pair), count(pair) - base, Long::sum));
        List<FoldedTraffic> folded = new ArrayList<>();
        for (int source = 1; source < now.length; source++) {
            int task = source - 1;
            sums(now[source]).forEach((component, all) -> {
                Group group = new Group(task, component);
                long rest = all - named.getOrDefault(group, 0L) - givenUp.getOrDefault(group, 0L);
                if (rest > 0) {
                    folded.add(new FoldedTraffic(task, component, rest));
                }
            });
        }
        return folded;
    }

    private Map<String, Long> sums(long[] rowOrNull) {
        Map<String, Long> sums = new TreeMap<>();
        String run = null;
        long sum = 0;
        // The tasks of a component follow each other.
        for (int i = 1; rowOrNull != null && i < rowOrNull.length; i++) {
            String component = components[i - 1];
            if (!Objects.equals(component, run)) {
                add(sums, run, sum);
                run = component;
                sum = 0;
            }
            sum += rowOrNull[i];
        }
        add(sums, run, sum);
        return sums;
    }

    private static void add(Map<String, Long> sums, String component, long tuples) {
        if (component != null && tuples > 0) {
            sums.merge(component, tuples, Long::sum);
        }
    }

    private Group group(Pair pair) {
        return new Group(pair.source, components[pair.destination]);
    }

    private long count(Pair pair) {
        return now[pair.source + 1][pair.destination + 1];
    }
}

package nstorm.load;

import java.util.ArrayList;
import java.util.Arrays;
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
import java.util.function.Function;
import java.util.stream.Collectors;
import nstorm.wire.report.FoldedTraffic;

/**
 * Turns the counters of all pairs of tasks into few figures. The pairs that stand out are named. All others are folded
 * into one figure for a source task and a destination component.
 *
 * <p>Whoever reads a folded figure spreads it evenly over the tasks of the component. So for a shuffle, whose pairs are
 * alike, one figure is as exact as hundreds. A pair stands out that has many more tuples than the others of its source
 * and component.
 *
 * <p>No figure ever falls or jumps. The tuples of a pair before it was named stay in its folded figure. What a named
 * pair has counted leaves the figures for ever when it loses its name. For the sampling thread alone.
 */
final class TrafficFigures {

    /** The figures of one moment: rows of source task, destination task, tuples; and the rest. */
    record Figures(List<long[]> named, List<FoldedTraffic> folded) {}

    private record Pair(int source, int destination) implements Comparable<Pair> {
        @Override
        public int compareTo(Pair other) {
            return source != other.source
                    ? Integer.compare(source, other.source)
                    : Integer.compare(destination, other.destination);
        }
    }

    private record Group(int source, String component) {}

    private record Ranked(Pair pair, double weight) {}

    /** As many pairs are all named, alike or not. */
    private static final int ALL_NAMED = 100;

    private static final int MOST_NAMED = 1_000;
    /** How many times as many tuples as the mean a pair must have to be named, and to stay so. */
    private static final double STANDS_OUT = 1.5;

    private static final double STILL_STANDS_OUT = 1.25;
    private static final long RANK_NANOS = TimeUnit.SECONDS.toNanos(10);

    private final long[][] counters;
    private final String[] components;
    private final Map<String, Long> tasksOf;
    /** The counters as of this moment, by source task + 1 and destination task + 1. */
    private final long[][] now;

    private final long[][] ranked;
    /** Of each named pair, what it had when it was named. */
    private final Map<Pair, Long> bases = new TreeMap<>();

    private final Map<Group, Long> givenUp = new HashMap<>();
    private long rankedNanos;
    private boolean folds;

    /**
     * Follows these counters.
     *
     * @param counters   by source task + 1 and destination task + 1; a row is null until its task sends from here
     * @param components by task; null where there is no such task
     */
    TrafficFigures(long[][] counters, String[] components, long nowNanos) {
        this.counters = counters;
        this.components = components;
        tasksOf = Arrays.stream(components)
                .filter(Objects::nonNull)
                .collect(Collectors.groupingBy(Function.identity(), Collectors.counting()));
        now = new long[counters.length][];
        ranked = new long[counters.length][];
        rankedNanos = nowNanos;
    }

    Figures at(long nowNanos) {
        read();
        if (!folds) {
            nameNew();
        }
        if (folds && nowNanos - rankedNanos >= RANK_NANOS) {
            rankedNanos = nowNanos;
            rank();
        }
        List<long[]> named = new ArrayList<>(bases.size());
        bases.forEach((pair, base) -> named.add(new long[] {pair.source, pair.destination, count(pair) - base}));
        return new Figures(named, folds ? folded() : List.of());
    }

    /** Forgets what a task has sent that does not send from here any more. */
    void forget(int task) {
        now[task + 1] = null;
        ranked[task + 1] = null;
        bases.keySet().removeIf(pair -> pair.source == task);
        givenUp.keySet().removeIf(group -> group.source == task);
    }

    private void read() {
        // Index 0 is -1, the task of Storm itself.
        for (int source = 1; source < counters.length; source++) {
            long[] row = counters[source];
            if (row != null) {
                long[] copy = now[source];
                for (int i = 1; i < row.length; i++) {
                    if (row[i] > 0) {
                        if (copy == null) {
                            // Many tasks have a row and send nothing.
                            copy = new long[row.length];
                            now[source] = copy;
                        }
                        // A bolt that emits from two threads may write an older count back.
                        copy[i] = Math.max(copy[i], row[i]);
                    }
                }
            }
        }
    }

    /** Nothing was folded yet: a pair that is new is named with all it has. */
    private void nameNew() {
        for (int source = 1; source < now.length; source++) {
            long[] row = now[source];
            for (int i = 1; row != null && i < row.length && !folds; i++) {
                Pair pair = new Pair(source - 1, i - 1);
                if (row[i] > 0 && !bases.containsKey(pair)) {
                    folds = bases.size() == ALL_NAMED;
                    if (!folds) {
                        bases.put(pair, 0L);
                    }
                }
            }
        }
    }

    private void rank() {
        Set<Pair> standOut = standingOut();
        bases.entrySet().removeIf(entry -> {
            Pair pair = entry.getKey();
            boolean unnamed = !standOut.contains(pair);
            if (unnamed) {
                givenUp.merge(group(pair), count(pair) - entry.getValue(), Long::sum);
            }
            return unnamed;
        });
        standOut.forEach(pair -> bases.computeIfAbsent(pair, this::count));
    }

    /** The pairs of which folding would hide the most tuples since the last time. */
    private Set<Pair> standingOut() {
        Queue<Ranked> most = new PriorityQueue<>(Comparator.comparingDouble(Ranked::weight));
        for (int source = 1; source < now.length; source++) {
            long[] row = now[source];
            if (row == null) {
                continue;
            }
            if (ranked[source] == null) {
                ranked[source] = new long[row.length];
            }
            long[] before = ranked[source];
            for (int i = 1; i < row.length; i++) {
                before[i] = row[i] - before[i];
            }
            rank(source - 1, before, most);
            System.arraycopy(row, 0, before, 0, row.length);
        }
        return most.stream().map(Ranked::pair).collect(Collectors.toSet());
    }

    private void rank(int source, long[] tuples, Queue<Ranked> most) {
        Map<String, Long> sums = sums(tuples);
        String component = null;
        double mean = 0;
        for (int i = 1; i < tuples.length; i++) {
            if (!Objects.equals(components[i - 1], component)) {
                component = components[i - 1];
                mean = sums.containsKey(component) ? (double) sums.get(component) / tasksOf.get(component) : 0;
            }
            if (component != null && tuples[i] > STILL_STANDS_OUT * mean) {
                rank(new Pair(source, i - 1), tuples[i], mean, most);
            }
        }
    }

    /** A named pair has the advantage, so that two of nearly the same weight do not swap their places for ever. */
    private void rank(Pair pair, long tuples, double mean, Queue<Ranked> most) {
        boolean named = bases.containsKey(pair);
        double weight = named ? 2 * (tuples - STILL_STANDS_OUT * mean) : tuples - STANDS_OUT * mean;
        if (weight > 0) {
            most.add(new Ranked(pair, weight));
        }
        if (most.size() > MOST_NAMED) {
            most.remove();
        }
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

package nstorm.load;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.Set;
import java.util.concurrent.TimeUnit;
import nstorm.load.TrafficFigures.Figures;
import nstorm.wire.ExecutorId;
import nstorm.wire.Slot;
import nstorm.wire.report.ExecutorLoad;
import nstorm.wire.report.WorkerLoad;
import org.junit.jupiter.api.Test;

class TrafficFiguresTest {

    /** Destinations by task: half of them of each component; sources are tasks 0, 1, … too. */
    private final class World {
        final long[][] counters;
        final TrafficFigures figures;
        final Map<String, Long> last = new HashMap<>();
        Set<String> named = Set.of();
        long lost;
        int seconds;

        World(int sources, int tasks) {
            counters = new long[tasks + 1][];
            for (int source = 1; source <= sources; source++) {
                counters[source] = new long[tasks + 1];
            }
            String[] components = new String[tasks];
            Arrays.fill(components, 0, tasks / 2, "left");
            Arrays.fill(components, tasks / 2, tasks, "right");
            figures = new TrafficFigures(counters, components, 0);
        }

        void count(int source, int destination, long tuples) {
            counters[source + 1][destination + 1] += tuples;
        }

        /** The next second; checks that no figure falls and that each tuple is in one of them. */
        Figures sample() {
            Figures told = figures.at(TimeUnit.SECONDS.toNanos(++seconds));
            Map<String, Long> all = new HashMap<>();
            told.named().forEach(row -> all.put(row[0] + ">" + row[1], row[2]));
            Set<String> namedNow = new HashSet<>(all.keySet());
            told.folded().forEach(rest -> all.put(rest.source() + ">" + rest.component(), rest.tuples()));
            assertEquals(told.named().size() + told.folded().size(), all.size(), "each once");
            for (String pair : named) {
                // It is un-named at the moment it is told for the first time without, with what it had by then.
                lost += namedNow.contains(pair) ? 0 : counters(pair) - base.get(pair);
            }
            for (String pair : namedNow) {
                if (!named.contains(pair)) {
                    base.put(pair, counters(pair) - all.get(pair));
                }
                assertEquals(counters(pair) - base.get(pair), all.get(pair), pair);
            }
            all.forEach((figure, total) -> assertTrue(
                    !last.containsKey(figure)
                            || total >= last.get(figure)
                            || namedNow.contains(figure) && !named.contains(figure),
                    figure + " fell"));
            last.putAll(all);
            named = namedNow;
            long counted = Arrays.stream(counters)
                    .filter(row -> row != null)
                    .flatMapToLong(Arrays::stream)
                    .sum();
            assertEquals(
                    counted,
                    lost + all.values().stream().mapToLong(Long::longValue).sum());
            return told;
        }

        final Map<String, Long> base = new HashMap<>();

        long counters(String pair) {
            String[] ends = pair.split(">");
            return counters[Integer.parseInt(ends[0]) + 1][Integer.parseInt(ends[1]) + 1];
        }
    }

    @Test
    void upToAHundredPairsAreAllNamed() {
        World world = new World(10, 100);
        for (int pair = 0; pair < 100; pair++) {
            world.count(pair / 10, pair % 10, 1 + pair);
            Figures told = world.sample();
            assertEquals(pair + 1, told.named().size());
            assertEquals(List.of(), told.folded());
        }
        assertEquals("[0, 0, 1]", Arrays.toString(world.sample().named().get(0)));
    }

    @Test
    void theRestIsFoldedIntoTheComponentsItGoesTo() {
        World world = new World(2, 100);
        for (int task = 0; task < 100; task++) {
            world.count(0, task, 5);
        }
        world.sample();
        world.count(1, 3, 7);
        world.count(1, 4, 7);
        world.count(1, 99, 1);
        Figures told = world.sample();
        assertEquals(100, told.named().size());
        assertEquals(
                "[FoldedTraffic[source=1, component=left, tuples=14], FoldedTraffic[source=1, component=right, tuples=1]]",
                told.folded().toString());
    }

    @Test
    void pairsThatAreAlikeAreFoldedAndThoseThatStandOutAreNamed() {
        World world = new World(3, 200);
        for (int second = 0; second < 15; second++) {
            for (int task = 0; task < 200; task++) {
                world.count(0, task, 100 + task % 3);
                // One key is frequent.
                world.count(1, task, task == 17 ? 400 : 100);
                // The shuffle prefers the tasks here, of one of the components.
                world.count(2, task, task < 10 ? 900 : task < 100 ? 0 : 100);
            }
            world.sample();
        }
        Figures told = world.sample();
        List<String> named =
                told.named().stream().map(row -> row[0] + ">" + row[1]).toList();
        List<String> expected = new ArrayList<>(List.of("1>17"));
        for (int task = 0; task < 10; task++) {
            expected.add("2>" + task);
        }
        assertEquals(expected, named);
        assertEquals(6, told.folded().size());
    }

    @Test
    void theNamesFollowTheHotPairs() {
        World world = new World(4, 1_000);
        for (int hot = 0; hot < 4; hot++) {
            for (int second = 0; second < 25; second++) {
                for (int task = 0; task < 1_000; task++) {
                    for (int source = 0; source < 4; source++) {
                        world.count(source, task, task % 4 == hot ? 50 : 1);
                    }
                }
                world.sample();
            }
            long rest = hot;
            Figures told = world.sample();
            assertEquals(1_000, told.named().size());
            assertTrue(told.named().stream().allMatch(row -> row[1] % 4 == rest), "tasks " + hot);
        }
    }

    @Test
    void nearlyEqualPairsKeepTheirPlaces() {
        World world = new World(4, 1_000);
        Random random = new Random(1);
        Set<String> named = null;
        for (int second = 0; second < 60; second++) {
            for (int task = 0; task < 1_000; task++) {
                for (int source = 0; source < 4; source++) {
                    // More stand out than can be named.
                    world.count(source, task, (task % 2 == 0 ? 1 : 20) * (10 + random.nextInt(5)));
                }
            }
            world.sample();
            assertTrue(second < 10 || named.equals(world.named), "after " + second + " s");
            named = world.named;
        }
        assertEquals(1_000, named.size());
    }

    @Test
    void noFigureFallsWhateverIsSent() {
        Random random = new Random(7);
        World world = new World(20, 400);
        for (int second = 0; second < 300; second++) {
            int focus = random.nextInt(400);
            for (int i = 0; i < 3_000; i++) {
                world.count(
                        random.nextInt(20),
                        (focus + (int) Math.abs(random.nextGaussian() * 20)) % 400,
                        random.nextInt(9));
            }
            world.sample();
        }
        assertTrue(world.lost > 0, "some pairs were un-named");
    }

    @Test
    void aCountThatWasWrittenBackOlderDoesNotFall() {
        World world = new World(1, 10);
        world.count(0, 1, 9);
        world.figures.at(1);
        world.count(0, 1, -2);
        assertEquals(9, world.figures.at(2).named().get(0)[2]);
    }

    /** Its executor has left; where it comes back it begins at 0. */
    @Test
    void whatATaskThatHasGoneHadSentIsForgotten() {
        for (int pairs : new int[] {1, 150}) {
            World world = new World(2, 200);
            world.count(1, 199, 3);
            for (int second = 0; second < 12; second++) {
                for (int task = 0; task < pairs; task++) {
                    world.count(0, task, 9);
                }
                world.sample();
            }
            world.counters[1] = null;
            world.figures.forget(0);
            Figures told = world.figures.at(TimeUnit.SECONDS.toNanos(13));
            assertTrue(told.named().stream().noneMatch(row -> row[0] == 0), "named of " + pairs);
            assertTrue(told.folded().stream().noneMatch(rest -> rest.source() == 0), "folded of " + pairs);
            world.counters[1] = new long[201];
            world.count(0, 5, 2);
            Figures back = world.figures.at(TimeUnit.SECONDS.toNanos(14));
            long named = back.named().stream()
                    .filter(row -> row[0] == 0)
                    .mapToLong(row -> row[2])
                    .sum();
            long folded = back.folded().stream()
                    .filter(rest -> rest.source() == 0)
                    .mapToLong(rest -> rest.tuples())
                    .sum();
            assertEquals(2, named + folded);
        }
    }

    @Test
    void aRowIsFreedOnceItsTaskHasNotBeenHereForLong() {
        Traffic.prepare(9);
        long beforeNanos = System.nanoTime();
        Traffic.addSource(3);
        Traffic.addSource(4);
        assertEquals(List.of(), Traffic.removeGone(beforeNanos));
        long sinceNanos = System.nanoTime();
        Traffic.addSource(4);
        assertEquals(List.of(3), Traffic.removeGone(sinceNanos));
        assertNull(Traffic.counters()[4]);
        assertNotNull(Traffic.counters()[5]);
        Traffic.addSource(3);
        assertNotNull(Traffic.counters()[4]);
    }

    @Test
    void aHundredExecutorsThatSendToFiveThousandTasks() {
        World world = new World(100, 5_000);
        List<ExecutorLoad> executors = new ArrayList<>();
        for (int source = 0; source < 100; source++) {
            executors.add(new ExecutorLoad(new ExecutorId(source, source), "a-component", 1L << 40, 1_000, null));
            for (int task = 0; task < 5_000; task++) {
                world.count(source, task, 1_000_000 + task);
            }
        }
        world.figures.at(0);
        long nanos = 0;
        int samples = 100;
        WorkerLoad load = null;
        for (int second = 1; second <= samples; second++) {
            for (int source = 0; source < 100; source++) {
                world.count(source, second, 500);
            }
            long start = System.nanoTime();
            Figures told = world.figures.at(TimeUnit.SECONDS.toNanos(second));
            nanos += System.nanoTime() - start;
            load = new WorkerLoad(
                    "wc-1-1700000000",
                    new Slot("0e9d9bd5-93a5-4f08-8c3e-7d1c8a6c9a10-127.0.0.2", 6700),
                    "4711-1700000000000",
                    0,
                    1L << 50,
                    executors,
                    told.named(),
                    told.folded(),
                    Map.of(),
                    List.of(),
                    List.of(),
                    Map.of());
        }
        assertFalse(load.folded().isEmpty());
        int bytes = load.toJson().length;
        System.out.println("load of 100 executors x 5,000 destinations: " + bytes + " bytes, " + nanos / samples / 1_000
                + " us a sample");
        assertTrue(bytes < 60_000, bytes + " bytes");
    }
}

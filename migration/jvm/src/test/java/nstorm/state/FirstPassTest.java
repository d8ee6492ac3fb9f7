package nstorm.state;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicLong;
import org.junit.jupiter.api.Test;

class FirstPassTest {
    private static final Set<String> FIELDS = Set.of("counts", "same", "other", "own");
    private static final int ENTRIES = 20_000;

    static final class Keeper {
        private Map<Object, Object> counts = new HashMap<>();
        private Object same;
        private Map<Object, Object> other = new ConcurrentHashMap<>();
        /** Its type lets such a map travel in the others. */
        private Own own;
    }

    /** As a user's own. */
    static final class Own extends HashMap<Object, Object> {
        private static final long serialVersionUID = 1L;
    }

    private static Map<Object, Object> fill(Map<Object, Object> map, int entries) {
        for (long i = 0; i < entries; i++) {
            map.put("word-" + i, i);
        }
        return map;
    }

    private static Keeper keeper() {
        Keeper keeper = new Keeper();
        fill(keeper.counts, ENTRIES);
        keeper.same = new ArrayList<>(List.of(keeper.counts));
        fill(keeper.other, ENTRIES);
        return keeper;
    }

    private static void assertSameState(Keeper expected, Keeper actual) {
        assertTrue(expected.counts.equals(actual.counts), "counts"); // not shown: they are large
        assertSame(expected.counts.getClass(), actual.counts.getClass());
        assertTrue(expected.other.equals(actual.other), "other");
        assertSame(expected.other.getClass(), actual.other.getClass());
        if (expected.same instanceof List<?>) {
            assertSame(actual.counts, ((List<?>) actual.same).get(0));
        } else if (expected.same == expected.other) {
            assertSame(actual.other, actual.same);
        }
    }

    private static byte[] inOnePass(Keeper keeper) throws IOException {
        byte[] state = Whole.of(Whole.save(List.of(keeper), FIELDS, null));
        Keeper loaded = new Keeper();
        Whole.load(state, List.of(loaded), null);
        assertSameState(keeper, loaded);
        return state;
    }

    /** Writes a first pass, lets the bolt go on, and loads both. */
    private static byte[] inTwoPasses(Keeper keeper, Runnable goesOn) throws IOException {
        FirstPass first = FirstPass.of(List.of(keeper), FIELDS);
        byte[] before = Whole.of(first.write());
        goesOn.run();
        byte[] state = Whole.of(Whole.save(List.of(keeper), FIELDS, first));
        Keeper loaded = new Keeper();
        Whole.load(state, List.of(loaded), FirstMaps.orNull(before));
        assertSameState(keeper, loaded);
        return state;
    }

    @Test
    void aLargeMapGoesInOnePass() throws IOException {
        byte[] state = inOnePass(keeper());
        assertTrue(state.length < 2 * ENTRIES * 20, state.length + " bytes");
    }

    @Test
    void afterAFirstPassOnlyWhatHasChangedGoes() throws IOException {
        Keeper keeper = keeper();
        byte[] state = inTwoPasses(keeper, () -> {
            keeper.counts.put("word-7", 1L);
            keeper.counts.put("new", 2L);
            keeper.counts.remove("word-8");
            keeper.other.merge("word-9", 1L, (one, two) -> -1L);
        });
        assertTrue(state.length < 1000, state.length + " bytes");
    }

    @Test
    void whatTheBoltDoesWhileTheFirstPassIsWrittenIsInTheSecond() throws IOException {
        Keeper keeper = keeper();
        FirstPass first = FirstPass.of(List.of(keeper), FIELDS);
        fill(keeper.counts, 3 * ENTRIES);
        keeper.other.clear();
        byte[] before = Whole.of(first.write());
        Keeper loaded = new Keeper();
        Whole.load(Whole.of(Whole.save(List.of(keeper), FIELDS, first)), List.of(loaded), FirstMaps.orNull(before));
        assertSameState(keeper, loaded);
    }

    @Test
    void aKeyThatWasRemovedAndPutAgainIsThere() throws IOException {
        Keeper keeper = keeper();
        keeper.counts.put(null, null);
        inTwoPasses(keeper, () -> {
            for (int i = 0; i < 100; i++) {
                keeper.counts.remove("word-" + i);
                keeper.counts.put("word-" + i, (long) i);
            }
            keeper.counts.remove(null);
            keeper.counts.put(null, 5);
        });
    }

    /** Its entries stand in another order then, which a bolt must not wait for. */
    @Test
    void aMapThatHasGrownIsNotSentAgain() throws IOException {
        for (Map<Object, Object> map :
                List.of(new HashMap<Object, Object>(), new ConcurrentHashMap<Object, Object>())) {
            Random random = new Random(4);
            Keeper keeper = new Keeper();
            keeper.counts = map;
            putNew(map, 24_000, random);
            byte[] state = inTwoPasses(keeper, () -> putNew(map, 1000, random));
            int whole = inOnePass(keeper).length;
            assertTrue(state.length < whole / 4, map.getClass() + ": " + state.length + " of " + whole + " bytes");
        }
    }

    private static void putNew(Map<Object, Object> map, int entries, Random random) {
        for (long i = 0; i < entries; i++) {
            map.put(Long.toHexString(random.nextLong()), i);
        }
    }

    @Test
    void aMapThatWasClearedGoesWhole() throws IOException {
        Keeper keeper = keeper();
        byte[] state = inTwoPasses(keeper, () -> {
            keeper.counts.clear();
            keeper.other.clear();
            fill(keeper.other, PlainMaps.LARGE_ENTRIES);
        });
        assertTrue(state.length < PlainMaps.LARGE_ENTRIES * 20, state.length + " bytes");
    }

    @Test
    void aMapThatIsAnotherObjectNowGoesWhole() throws IOException {
        Keeper keeper = keeper();
        inTwoPasses(keeper, () -> {
            keeper.counts = fill(new HashMap<>(), ENTRIES / 2);
            keeper.same = keeper.other;
        });
    }

    @Test
    @SuppressWarnings("unchecked")
    void aMapThatGetsAValueThatCanChangeGoesWhole() throws IOException {
        Keeper keeper = keeper();
        byte[] before = Whole.of(FirstPass.of(List.of(keeper), FIELDS).write());
        keeper.counts.put("list", new ArrayList<>(List.of("a")));
        byte[] state = inTwoPasses(keeper, () -> ((List<Object>) keeper.same).add("b"));
        assertTrue(state.length > before.length / 3, state.length + " bytes");
        for (String key : List.of("new", "word-7")) {
            keeper.counts.remove("list");
            state = inTwoPasses(keeper, () -> keeper.counts.put(key, new ArrayList<>(List.of("a"))));
            assertTrue(state.length > before.length / 3, state.length + " bytes");
            keeper.counts.remove(key);
        }
    }

    @Test
    void mapsThatCannotTellHaveNoFirstPass() {
        Keeper keeper = new Keeper();
        assertNull(FirstPass.of(List.of(keeper), FIELDS));
        fill(keeper.counts, PlainMaps.LARGE_ENTRIES - 1);
        assertNull(FirstPass.of(List.of(keeper), FIELDS));
        for (Map<Object, Object> map : List.of(new Own(), new LinkedHashMap<>())) {
            keeper.counts = fill(map, ENTRIES);
            assertNull(FirstPass.of(List.of(keeper), FIELDS));
        }
        for (Object value : List.of(new byte[1], new AtomicLong(), List.of(1))) {
            keeper.counts = fill(new HashMap<>(), ENTRIES);
            keeper.counts.replaceAll((key, old) -> value);
            assertNull(FirstPass.of(List.of(keeper), FIELDS));
        }
        fill(keeper.counts, PlainMaps.LARGE_ENTRIES);
        keeper.counts = fill(new HashMap<>(), PlainMaps.LARGE_ENTRIES);
        assertNotNull(FirstPass.of(List.of(keeper), FIELDS));
    }

    @Test
    void mapsThatCannotTellGoAsTheyAre() throws IOException {
        for (Map<Object, Object> map : List.of(new Own(), new LinkedHashMap<>())) {
            Keeper keeper = keeper();
            keeper.counts = fill(map, ENTRIES);
            keeper.same = List.of(map);
            inOnePass(keeper);
            inTwoPasses(keeper, () -> map.put("word-7", 1L));
        }
    }

    @Test
    void aValueThatIsSharedIsSharedAfterwards() throws IOException {
        Keeper keeper = keeper();
        List<Object> shared = new ArrayList<>(List.of("a"));
        keeper.counts.put("list", shared);
        keeper.same = new ArrayList<>(List.of(keeper.counts, shared));
        Keeper loaded = new Keeper();
        Whole.load(Whole.of(Whole.save(List.of(keeper), FIELDS, null)), List.of(loaded), null);
        assertSame(loaded.counts.get("list"), ((List<?>) loaded.same).get(1));
    }

    @Test
    void aFirstPassThatWasNotWrittenIsNotNeeded() throws IOException {
        Keeper keeper = keeper();
        FirstPass first = FirstPass.of(List.of(keeper), FIELDS);
        Keeper loaded = new Keeper();
        Whole.load(Whole.of(Whole.save(List.of(keeper), FIELDS, first)), List.of(loaded), null);
        assertSameState(keeper, loaded);
        first.write();
        Whole.load(
                Whole.of(Whole.save(List.of(keeper), FIELDS, null)),
                List.of(loaded),
                FirstMaps.orNull(Whole.of(first.write())));
        assertSameState(keeper, loaded);
    }

    @Test
    void withoutItsOwnFirstPassAStateChangesNothing() throws IOException {
        Keeper keeper = keeper();
        FirstPass first = FirstPass.of(List.of(keeper), FIELDS);
        FirstMaps maps = FirstMaps.orNull(Whole.of(first.write()));
        FirstMaps ofAnother =
                FirstMaps.orNull(Whole.of(FirstPass.of(List.of(keeper), FIELDS).write()));
        byte[] state = Whole.of(Whole.save(List.of(keeper), FIELDS, first));
        Keeper loaded = new Keeper();
        Object before = loaded.counts;
        assertThrows(IOException.class, () -> Whole.load(state, List.of(loaded), null));
        assertThrows(IOException.class, () -> Whole.load(state, List.of(loaded), ofAnother));
        assertThrows(
                IOException.class, () -> Whole.load(Arrays.copyOf(state, state.length - 3), List.of(loaded), maps));
        // That has taken its maps.
        assertThrows(IOException.class, () -> Whole.load(state, List.of(loaded), maps));
        assertSame(before, loaded.counts);
        assertTrue(loaded.counts.isEmpty() && loaded.other.isEmpty() && loaded.same == null);
    }

    @Test
    void bytesOfSomethingElseAreNoFirstPass() throws IOException {
        byte[] first = Whole.of(FirstPass.of(List.of(keeper()), FIELDS).write());
        assertThrows(IOException.class, () -> FirstMaps.orNull(new byte[] {1, 2, 3}));
        assertThrows(IOException.class, () -> FirstMaps.orNull(Arrays.copyOf(first, first.length - 1)));
        assertThrows(IOException.class, () -> FirstMaps.orNull(Arrays.copyOf(first, first.length + 1)));
        Random random = new Random(3);
        for (int i = 0; i < 200; i++) {
            byte[] damaged = first.clone();
            damaged[random.nextInt(i < 100 ? 100 : damaged.length)] ^= (byte) (1 + random.nextInt(255));
            try {
                FirstMaps.orNull(damaged);
            } catch (IOException e) {
                assertNotNull(e);
            }
        }
    }

    @Test
    void nothingAndZerosAreNoFirstPass() throws IOException {
        assertNull(FirstMaps.orNull(new byte[0]));
        assertNull(FirstMaps.orNull(new byte[1000]));
    }

    /** A few bytes that say they were a large map would take all of the heap. */
    @Test
    void aMapThatTheBytesCannotHoldIsNotMade() throws IOException {
        Keeper keeper = new Keeper();
        fill(keeper.counts, ENTRIES);
        byte[] first = Whole.of(FirstPass.of(List.of(keeper), FIELDS).write());
        byte[] state = Whole.of(Whole.save(List.of(keeper), FIELDS, null));
        lie(first);
        lie(state);
        assertEquals(
                "fewer bytes than entries",
                assertThrows(IOException.class, () -> FirstMaps.orNull(first)).getMessage());
        assertEquals(
                "fewer bytes than entries",
                assertThrows(IOException.class, () -> Whole.load(state, List.of(new Keeper()), null))
                        .getMessage());
    }

    /** 20,000 entries become 2,000,000. */
    private static void lie(byte[] bytes) {
        byte[] entries = {(byte) 0xa0, (byte) 0x9c, 0x01};
        int at = 0;
        while (!Arrays.equals(entries, Arrays.copyOfRange(bytes, at, at + 3))) {
            at++;
        }
        ByteBuffer.wrap(bytes).put(at, new byte[] {(byte) 0x80, (byte) 0x89, 0x7a});
    }

    @Test
    void whatIsTooMuchIsRefused() {
        Keeper keeper = keeper();
        keeper.counts.put("much", "a".repeat(BoltState.SIZE_MAX_BYTES));
        assertEquals(
                "its state is larger than 100 MB",
                assertThrows(
                                IOException.class,
                                () -> FirstPass.of(List.of(keeper), FIELDS).write())
                        .getMessage());
    }

    /** Whatever bolts do between the passes. */
    @Test
    void afterAnyChangesBothPassesAreTheState() throws IOException {
        for (int seed = 0; seed < 25; seed++) {
            Random random = new Random(seed);
            List<Object> bolts = new ArrayList<>();
            List<Object> loaded = new ArrayList<>();
            for (int i = 0; i < 1 + random.nextInt(3); i++) {
                bolts.add(anyKeeper(random));
                loaded.add(new Keeper());
            }
            FirstPass first = FirstPass.of(bolts, FIELDS);
            boolean early = random.nextBoolean();
            byte[] before = early ? Whole.of(first.write()) : null;
            bolts.forEach(bolt -> goOn((Keeper) bolt, random));
            before = early ? before : Whole.of(first.write());
            FirstMaps maps = FirstMaps.orNull(before);
            Whole.load(Whole.of(Whole.save(bolts, FIELDS, first)), loaded, maps);
            for (int i = 0; i < bolts.size(); i++) {
                assertSameState((Keeper) bolts.get(i), (Keeper) loaded.get(i));
            }
            assertArrayEquals(before, Whole.of(first.write()));
        }
    }

    private static Keeper anyKeeper(Random random) {
        Keeper keeper = new Keeper();
        keeper.counts = random.nextInt(4) == 0 ? new ConcurrentHashMap<>() : new HashMap<>(random.nextInt(100_000));
        fill(keeper.counts, PlainMaps.LARGE_ENTRIES + random.nextInt(ENTRIES));
        change(keeper.counts, random, 1000);
        change(keeper.other, random, random.nextInt(2) * ENTRIES);
        keeper.same = random.nextInt(3) == 0 ? keeper.other : new ArrayList<>(List.of(keeper.counts));
        return keeper;
    }

    private static void goOn(Keeper keeper, Random random) {
        change(keeper.counts, random, random.nextInt(2) * random.nextInt(2 * ENTRIES));
        change(keeper.other, random, random.nextInt(2 * ENTRIES));
        switch (random.nextInt(12)) {
            case 0 -> keeper.counts.clear();
            case 1 -> keeper.counts.put("word-" + random.nextInt(2 * ENTRIES), new ArrayList<>(List.of("can change")));
            case 2 -> {
                keeper.counts = new HashMap<>(keeper.counts);
                keeper.same = null;
            }
            case 3 -> keeper.counts.keySet().removeIf(key -> random.nextInt(10) > 0);
            case 4 -> keeper.counts.replaceAll((key, value) -> String.valueOf(value));
            case 5 -> {
                Map<Object, Object> all = new HashMap<>(keeper.counts);
                keeper.counts.clear();
                keeper.counts.putAll(all);
            }
            default -> {}
        }
        change(keeper.counts, random, random.nextInt(100));
    }

    private static void change(Map<Object, Object> map, Random random, int times) {
        for (int i = 0; i < times; i++) {
            Object key = anyKey(map, random);
            switch (random.nextInt(4)) {
                case 0 -> map.remove(key);
                case 1 -> {
                    Object value = map.remove(key);
                    map.put(key, value == null ? "none" : value);
                }
                default -> map.put(key, anyValue(map, random));
            }
        }
    }

    private static Object anyKey(Map<Object, Object> map, Random random) {
        int number = random.nextInt(2 * ENTRIES);
        return switch (random.nextInt(6)) {
            case 0 -> number;
            case 1 -> random.nextInt(10) == 0 && map instanceof HashMap ? null : (double) number;
            // All with one hash: such keys make trees.
            case 2 ->
                Integer.toBinaryString(number % 512 + 512)
                        .substring(1)
                        .replace("0", "Aa")
                        .replace("1", "BB");
            default -> "word-" + number;
        };
    }

    private static Object anyValue(Map<Object, Object> map, Random random) {
        return switch (random.nextInt(5)) {
            case 0 -> random.nextLong();
            case 1 -> map instanceof HashMap ? null : 'n';
            case 2 -> "text \u20ac" + random.nextInt(100);
            case 3 -> random.nextBoolean();
            default -> random.nextDouble();
        };
    }
}

package nstorm.state;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.io.ObjectOutputStream;
import java.io.Serializable;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.HashMap;
import java.util.Iterator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.junit.jupiter.api.Test;

class StateSizeTest {
    static final class Keeper {
        private Object kept;

        Keeper(Object kept) {
            this.kept = kept;
        }
    }

    /** To write it or to go through it changes it. */
    static final class Touched extends ArrayList<Object> implements Serializable {
        private static final long serialVersionUID = 1L;
        static int calls;
        long number;

        @Override
        public Iterator<Object> iterator() {
            calls++;
            return super.iterator();
        }

        @Override
        public int hashCode() {
            return ++calls;
        }

        private void writeObject(ObjectOutputStream out) throws IOException {
            calls++;
            out.defaultWriteObject();
        }

        private Object writeReplace() {
            return ++calls;
        }
    }

    record User(String name, List<Object> events) implements Serializable {}

    private static long about(Object kept) throws IOException {
        return StateSize.aboutBytes(List.of(new Keeper(kept)), Set.of("kept"));
    }

    private static void isAbout(Object kept) throws IOException {
        double written =
                Whole.save(List.of(new Keeper(kept)), Set.of("kept"), null).size();
        assertEquals(1, about(kept) / written, 0.25, kept.getClass() + " of " + written);
    }

    private static Map<String, Long> words(Map<String, Long> map) {
        for (long i = 0; i < 100_000; i++) {
            map.put("word-" + i, 1000 + i);
        }
        return map;
    }

    @Test
    void itIsAboutWhatIsWritten() throws IOException {
        isAbout(words(new HashMap<>()));
        List<byte[]> arrays = new ArrayList<>();
        List<List<String>> lists = new ArrayList<>();
        for (int i = 0; i < 1000; i++) {
            arrays.add(new byte[10_000]);
            lists.add(new ArrayList<>(List.of("a-" + i, "b-" + i, "c-" + i)));
        }
        isAbout(arrays);
        isAbout(arrays.toArray());
        isAbout(lists);
        isAbout(new double[100_000]);
        isAbout("x".repeat(100_000));
    }

    /** What only looks at a state each minute may not change it. */
    @Test
    void noCodeOfTheUsersRuns() throws IOException {
        Touched touched = new Touched();
        touched.add("x");
        for (Object kept : List.of(
                touched,
                new ArrayList<>(List.of(touched)),
                Collections.unmodifiableList(touched),
                Collections.synchronizedCollection(Collections.unmodifiableCollection(touched)),
                new HashMap<>(Map.of("x", touched)),
                new User("x", touched))) {
            Touched.calls = 0;
            assertTrue(about(kept) > 8, kept.getClass().getName());
            assertEquals(0, Touched.calls, kept.getClass().getName());
        }
    }

    /** The key that has been there for longest is often the one with most. */
    @Test
    void oneFarLargerThanTheOthersCountsOnce() throws IOException {
        Map<String, List<Object>> users = new LinkedHashMap<>();
        for (int i = 0; i < 50_000; i++) {
            Object[] events = new Object[i == 3 ? 60_000 : 1];
            Arrays.fill(events, "e");
            users.put("user-" + i, new ArrayList<>(List.of(events)));
        }
        isAbout(users);
        isAbout(Collections.synchronizedMap(users));
    }

    @Test
    void nothingIsNothing() throws IOException {
        assertEquals(0, about(new ArrayList<>()));
        assertTrue(about(null) < 10);
    }

    /** Its bolt stands still meanwhile. */
    @Test
    void ofWhatIsNestedItLooksAtLittle() throws IOException {
        long bytes = about(new ArrayList<>(List.of(words(new LinkedHashMap<>()))));
        assertTrue(bytes >= StateSize.LOOKED_AT_BYTES && bytes < 2 * StateSize.LOOKED_AT_BYTES, Long.toString(bytes));
    }

    @Test
    void whatCannotTravelIsSaid() {
        assertThrows(IOException.class, () -> about(new ArrayList<>(List.of(new Object()))));
    }
}

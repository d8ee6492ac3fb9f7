package nstorm.state;

import java.io.IOException;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Spliterator;
import java.util.concurrent.ConcurrentHashMap;
import java.util.stream.Stream;

/** Large maps of {@link Plain} keys and values. Of a smaller one an object stream is quick enough. */
final class PlainMaps {
    static final int LARGE_ENTRIES = 5000;
    private static final int HASH = 0;
    private static final int CONCURRENT = 1;
    /** What is read of a part stays in a core's cache until it is read again. */
    private static final int PART_ENTRIES = 2048;

    private PlainMaps() {}

    /** The value, if it is a large map of the JDK's own kind; it need not be plain. A subclass may do anything. */
    @SuppressWarnings("unchecked")
    static Map<Object, Object> largeOrNull(Object value) {
        boolean known =
                value != null && (value.getClass() == HashMap.class || value.getClass() == ConcurrentHashMap.class);
        return known && ((Map<?, ?>) value).size() >= LARGE_ENTRIES ? (Map<Object, Object>) value : null;
    }

    /** Whether the first {@code entries} entries are plain. */
    static boolean isPlain(Map<Object, Object> map, int entries) {
        int left = entries;
        for (Map.Entry<Object, Object> entry : map.entrySet()) {
            if (left == 0) {
                break;
            }
            if (!Plain.is(entry.getKey()) || !Plain.is(entry.getValue())) {
                return false;
            }
            left--;
        }
        return true;
    }

    /** How often to halve a map of {@code entries} entries until its parts are small. */
    static int splits(int entries) {
        return Integer.SIZE - Integer.numberOfLeadingZeros(entries / PART_ENTRIES);
    }

    /** All entries in the map's order, split always alike, but for a map that has grown. */
    static List<Spliterator<Map.Entry<Object, Object>>> parts(Map<Object, Object> map, int splits) {
        List<Spliterator<Map.Entry<Object, Object>>> parts =
                List.of(map.entrySet().spliterator());
        for (int i = 0; i < splits; i++) {
            parts = halves(parts, map instanceof ConcurrentHashMap);
        }
        return parts;
    }

    private static List<Spliterator<Map.Entry<Object, Object>>> halves(
            List<Spliterator<Map.Entry<Object, Object>>> parts, boolean laterFirst) {
        List<Spliterator<Map.Entry<Object, Object>>> halves = new ArrayList<>();
        for (Spliterator<Map.Entry<Object, Object>> part : parts) {
            // A HashMap's gives away the half that comes first in its order, a ConcurrentHashMap's the other one.
            Spliterator<Map.Entry<Object, Object>> half = part.trySplit();
            Stream.of(laterFirst ? part : half, laterFirst ? half : part)
                    .filter(Objects::nonNull)
                    .forEach(halves::add);
        }
        return halves;
    }

    static void write(Map<Object, Object> map, PlainOutput out) throws IOException {
        // Other threads may change one that is made for that, and its size stands before it.
        Map<Object, Object> quiet = map instanceof ConcurrentHashMap ? new HashMap<>(map) : map;
        writeHead(map, quiet.size(), out);
        for (Map.Entry<Object, Object> entry : quiet.entrySet()) {
            out.value(entry.getKey());
            out.value(entry.getValue());
        }
    }

    /** What stands before the entries of a map of this class. */
    static void writeHead(Map<Object, Object> like, int entries, PlainOutput out) throws IOException {
        out.oneByte(like.getClass() == HashMap.class ? HASH : CONCURRENT);
        out.number(entries);
    }

    /**
     * Reads a map.
     *
     * @return it, and its keys in the order in which they stand there
     */
    static FirstMap read(PlainInput in) throws IOException {
        int kind = in.oneByte();
        int entries = in.entries();
        if (kind != HASH && kind != CONCURRENT) {
            throw new IOException("no kind of map: " + kind);
        }
        Map<Object, Object> map = kind == HASH
                ? new HashMap<>((int) Math.min(Integer.MAX_VALUE, entries / 0.75 + 1))
                : new ConcurrentHashMap<>(entries);
        Object[] keys = new Object[entries];
        for (int i = 0; i < entries; i++) {
            keys[i] = in.value();
            map.put(keys[i], in.value());
        }
        return new FirstMap(map, keys);
    }
}

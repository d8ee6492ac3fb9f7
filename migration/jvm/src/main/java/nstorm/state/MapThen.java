package nstorm.state;

import java.io.IOException;
import java.util.Arrays;
import java.util.ConcurrentModificationException;
import java.util.List;
import java.util.Map;
import java.util.Spliterator;

/** A map at the source as it was at a moment. It holds the objects, not copies: it is made in a pause of the executor. */
final class MapThen {
    /** A map of other things mostly has one among its first; all are looked at in {@link #isPlain}, which waits for nobody. */
    private static final int LOOKED_AT = 100;

    /** Parts are about as large, with hashed keys within a few per cent. */
    private static final int SLACK = 16;

    /** The entries of a part of the map, in its order. */
    static final class Part {
        Object[] keys;
        Object[] values;
        int entries;

        private Part(Spliterator<Map.Entry<Object, Object>> now) {
            int about = (int) Math.min(now.estimateSize(), Integer.MAX_VALUE / 2);
            keys = new Object[about + about / SLACK + 8];
            values = new Object[keys.length];
            now.forEachRemaining(this::add);
        }

        private Part(List<Part> parts) {
            int all = parts.stream().mapToInt(part -> part.entries).sum();
            keys = new Object[all];
            values = new Object[all];
            for (Part part : parts) {
                System.arraycopy(part.keys, 0, keys, entries, part.entries);
                System.arraycopy(part.values, 0, values, entries, part.entries);
                entries += part.entries;
            }
        }

        private void add(Map.Entry<Object, Object> entry) {
            if (entries == keys.length) {
                keys = Arrays.copyOf(keys, entries + entries / 2);
                values = Arrays.copyOf(values, keys.length);
            }
            keys[entries] = entry.getKey();
            values[entries++] = entry.getValue();
        }

        private boolean isPlain() {
            for (int i = 0; i < entries; i++) {
                if (!Plain.is(keys[i]) || !Plain.is(values[i])) {
                    return false;
                }
            }
            return true;
        }
    }

    final Map<Object, Object> map;
    final List<Part> parts;

    private MapThen(Map<Object, Object> map, List<Part> parts) {
        this.map = map;
        this.parts = parts;
    }

    /** Null if the map is seen not to be plain, or is changed meanwhile. */
    static MapThen orNull(Map<Object, Object> map) {
        try {
            if (!PlainMaps.isPlain(map, LOOKED_AT)) {
                return null;
            }
            int entries = map.size();
            MapThen then = new MapThen(map, PlainMaps.parts(map).parallelStream().map(Part::new).toList());
            return then.entries() == entries ? then : null;
        } catch (ConcurrentModificationException e) {
            return null;
        }
    }

    int entries() {
        return parts.stream().mapToInt(part -> part.entries).sum();
    }

    /** All in one part. */
    MapThen joined() {
        return new MapThen(map, List.of(new Part(parts)));
    }

    boolean isPlain() {
        return parts.stream().allMatch(Part::isPlain);
    }

    void write(PlainOutput out) throws IOException {
        PlainMaps.writeHead(map, entries(), out);
        for (Part part : parts) {
            for (int i = 0; i < part.entries; i++) {
                out.value(part.keys[i]);
                out.value(part.values[i]);
            }
        }
    }
}

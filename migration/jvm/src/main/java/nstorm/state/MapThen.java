package nstorm.state;

import java.io.IOException;
import java.util.Arrays;
import java.util.ConcurrentModificationException;
import java.util.List;
import java.util.Map;
import java.util.Spliterator;

/** A map at the source as it was at a moment. It holds the objects, not copies: it is made in a pause of the executor. */
final class MapThen {
    /** A map of other things has one among its first in most cases. {@link #isPlain} looks at all, and waits for nobody. */
    private static final int LOOKED_AT = 100;

    /** Parts are about as large, with hashed keys within a few per cent. */
    private static final int SLACK = 16;

    /** The entries of a part of the map, in its order. */
    static final class Part {
        /**
         * A HashMap's are its own objects, and have their value of now. A ConcurrentHashMap makes them, and they have the value of then.
         */
        private Map.Entry<Object, Object>[] nodes;

        private Object[] values;
        private int entries;

        private Part(Spliterator<Map.Entry<Object, Object>> now) {
            int about = (int) Math.min(now.estimateSize(), Integer.MAX_VALUE / 2);
            makeRoom(about + about / SLACK + 8);
            now.forEachRemaining(this::add);
        }

        private Part(List<Part> parts) {
            makeRoom(parts.stream().mapToInt(part -> part.entries).sum());
            for (Part part : parts) {
                System.arraycopy(part.nodes, 0, nodes, entries, part.entries);
                System.arraycopy(part.values, 0, values, entries, part.entries);
                entries += part.entries;
            }
        }

        @SuppressWarnings({"unchecked", "rawtypes"})
        private void makeRoom(int most) {
            nodes = new Map.Entry[most];
            values = new Object[most];
        }

        private void add(Map.Entry<Object, Object> node) {
            if (entries == nodes.length) {
                nodes = Arrays.copyOf(nodes, entries + entries / 2);
                values = Arrays.copyOf(values, nodes.length);
            }
            nodes[entries] = node;
            values[entries++] = node.getValue();
        }

        int entries() {
            return entries;
        }

        Object key(int place) {
            return nodes[place].getKey();
        }

        Object value(int place) {
            return values[place];
        }

        /**
         * How many of its nodes have another value now. To ask each node is quicker than to walk the map, where each node leads to the
         * next: memory answers several at once. It also makes the walk quick, since a cache has the nodes then.
         */
        int changedNodes() {
            int changed = 0;
            for (int i = 0; i < entries; i++) {
                if (nodes[i].getValue() != values[i]) {
                    changed++;
                }
            }
            return changed;
        }

        private boolean isPlain() {
            for (int i = 0; i < entries; i++) {
                if (!Plain.is(key(i)) || !Plain.is(values[i])) {
                    return false;
                }
            }
            return true;
        }
    }

    final Map<Object, Object> map;
    final List<Part> parts;
    private final int splits;

    private MapThen(Map<Object, Object> map, int splits, List<Part> parts) {
        this.map = map;
        this.splits = splits;
        this.parts = parts;
    }

    /** Null if the map is seen not to be plain, or changes during the copy. */
    static MapThen orNull(Map<Object, Object> map) {
        try {
            if (!PlainMaps.isPlain(map, LOOKED_AT)) {
                return null;
            }
            int entries = map.size();
            int splits = PlainMaps.splits(entries);
            MapThen then = new MapThen(
                    map,
                    splits,
                    PlainMaps.parts(map, splits).parallelStream().map(Part::new).toList());
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
        return new MapThen(map, 0, List.of(new Part(parts)));
    }

    /** The parts of the map as it is now, each to be compared with that of then. */
    List<Spliterator<Map.Entry<Object, Object>>> partsNow() {
        return PlainMaps.parts(map, splits);
    }

    boolean isPlain() {
        return parts.stream().allMatch(Part::isPlain);
    }

    void write(PlainOutput out) throws IOException {
        PlainMaps.writeHead(map, entries(), out);
        for (Part part : parts) {
            for (int i = 0; i < part.entries; i++) {
                out.value(part.key(i));
                out.value(part.values[i]);
            }
        }
    }
}

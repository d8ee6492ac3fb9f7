package nstorm.state;

import java.io.IOException;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.Spliterator;
import java.util.stream.IntStream;

/**
 * What has changed in a map since a moment. Entries are compared by the reference alone. An equal value that was written again counts as
 * changed. Nothing of an unchanged entry is touched, for that would lengthen the pause. The comparison waits for memory, entry by entry, so
 * the parts of the map are compared in parallel.
 */
final class MapChange {
    /** What has changed in one part of the map; what has gone into another part is removed here, and put there. */
    private static final class Part {
        /** So far is a key looked for among those that come next: between two of them others may have been removed. */
        private static final int AHEAD = 32;

        private final MapThen.Part then;
        /**
         * For each place the next place whose key was not found yet, as a ring whose start has its own place. A map that has grown has its
         * keys in the old order, several times over, each time others of them.
         */
        private final int[] following;

        private int before;
        private int removed;
        private int[] changedPlaces;
        private final List<Object> changedValues = new ArrayList<>();
        private final List<Object> put = new ArrayList<>();
        private boolean plain = true;

        private Part(MapThen.Part then, Spliterator<Map.Entry<Object, Object>> now) {
            this.then = then;
            int start = then.entries();
            changedPlaces = new int[then.changedNodes()];
            before = start;
            removed = start;
            following = new int[start + 1];
            for (int i = 0; i < start; i++) {
                following[i] = i + 1;
            }
            now.forEachRemaining(this::compare);
        }

        private void compare(Map.Entry<Object, Object> entry) {
            Object key = entry.getKey();
            Object value = entry.getValue();
            int place = find(key);
            if (place == then.entries()) {
                plain &= Plain.is(key) && Plain.is(value);
                put.add(key);
                put.add(value);
            } else if (then.value(place) != value) {
                plain &= Plain.is(value);
                change(place, value);
            }
        }

        /** The place of the key among the old ones, each of which is found once; that of the start if it is not near. */
        private int find(Object key) {
            int start = then.entries();
            int last = before;
            for (int i = 0; i < AHEAD; i++) {
                int place = following[last];
                if (place != start && then.key(place) == key) {
                    following[last] = following[place];
                    before = last;
                    removed--;
                    return place;
                }
                last = place;
            }
            return start;
        }

        private void change(int place, Object value) {
            if (changedValues.size() == changedPlaces.length) {
                changedPlaces = Arrays.copyOf(changedPlaces, 2 * changedPlaces.length + 8);
            }
            changedPlaces[changedValues.size()] = place;
            changedValues.add(value);
        }
    }

    private final List<Part> parts;

    private MapChange(MapThen then, List<Spliterator<Map.Entry<Object, Object>>> now) {
        parts = IntStream.range(0, now.size())
                .parallel()
                .mapToObj(i -> new Part(then.parts.get(i), now.get(i)))
                .toList();
    }

    /** Null if the map has something now that is not plain, or has changed so much that it is less to send all of it. */
    static MapChange orNull(MapThen then) {
        List<Spliterator<Map.Entry<Object, Object>>> now = then.partsNow();
        MapChange change = now.size() == then.parts.size() ? new MapChange(then, now) : null;
        if (change == null || change.changes() > then.map.size() / 2) {
            // In a map that has grown the parts have other keys than before.
            MapThen joined = then.joined();
            change = new MapChange(joined, joined.partsNow());
        }
        return change.parts.stream().allMatch(part -> part.plain) && change.changes() < then.map.size() ? change : null;
    }

    private int changes() {
        return parts.stream()
                .mapToInt(part -> part.removed + part.changedValues.size() + part.put.size() / 2)
                .sum();
    }

    /** As {@link FirstMap#change} reads it. */
    void write(PlainOutput out) throws IOException {
        out.number(parts.stream().mapToInt(part -> part.removed).sum());
        int first = 0;
        int last = 0;
        for (Part part : parts) {
            int start = part.then.entries();
            for (int place = part.following[start]; place != start; place = part.following[place]) {
                out.number(first + place - last);
                last = first + place;
            }
            first += start;
        }
        out.number(parts.stream().mapToInt(part -> part.changedValues.size()).sum());
        first = 0;
        for (Part part : parts) {
            for (int i = 0; i < part.changedValues.size(); i++) {
                out.number(first + part.changedPlaces[i]);
                out.value(part.changedValues.get(i));
            }
            first += part.then.entries();
        }
        out.number(parts.stream().mapToInt(part -> part.put.size() / 2).sum());
        for (Part part : parts) {
            for (Object one : part.put) {
                out.value(one);
            }
        }
    }
}

package nstorm.state;

import java.io.IOException;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;

/**
 * What has changed in a map since a moment. Entries are compared by the reference alone: an equal value that was written
 * anew counts as changed, and nothing of an entry that was not is touched, which a pause would pay for.
 */
final class MapChange {
    /** So far is a key looked for among those that come next: between two of them others may have been removed. */
    private static final int AHEAD = 32;

    private final MapThen then;
    /**
     * After each place that with the next key that was not found yet, as a ring with a place of its own for its start: a map that has
     * grown has its keys in the old order, several times over, each time others of them.
     */
    private final int[] following;
    private int before;
    private int removed;
    private int[] changedPlaces = new int[64];
    private final List<Object> changedValues = new ArrayList<>();
    private final List<Object> put = new ArrayList<>();
    private boolean plain = true;

    private MapChange(MapThen then) {
        this.then = then;
        int start = then.keys.length;
        before = start;
        removed = start;
        following = new int[start + 1];
        for (int i = 0; i < start; i++) {
            following[i] = i + 1;
        }
    }

    /** Null if the map has something now that is not plain, or has changed so much that it is less to send all of it. */
    static MapChange orNull(MapThen then) {
        MapChange change = new MapChange(then);
        then.map.forEach(change::compare);
        int changes = change.removed + change.changedValues.size() + change.put.size() / 2;
        return change.plain && changes < then.map.size() ? change : null;
    }

    private void compare(Object key, Object value) {
        int place = find(key);
        if (place == then.keys.length) {
            plain &= Plain.is(key) && Plain.is(value);
            put.add(key);
            put.add(value);
        } else if (then.values[place] != value) {
            plain &= Plain.is(value);
            change(place, value);
        }
    }

    /** The place of the key among the old ones, each of which is found once; that of the start if it is not near. */
    private int find(Object key) {
        int start = then.keys.length;
        int last = before;
        for (int i = 0; i < AHEAD; i++) {
            int place = following[last];
            if (place != start && then.keys[place] == key) {
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
            changedPlaces = Arrays.copyOf(changedPlaces, 2 * changedPlaces.length);
        }
        changedPlaces[changedValues.size()] = place;
        changedValues.add(value);
    }

    /** As {@link FirstMap#change} reads it. */
    void write(PlainOutput out) throws IOException {
        out.number(removed);
        int start = then.keys.length;
        int last = 0;
        for (int place = following[start]; place != start; place = following[place]) {
            out.number(place - last);
            last = place;
        }
        out.number(changedValues.size());
        for (int i = 0; i < changedValues.size(); i++) {
            out.number(changedPlaces[i]);
            out.value(changedValues.get(i));
        }
        out.number(put.size() / 2);
        for (Object one : put) {
            out.value(one);
        }
    }
}

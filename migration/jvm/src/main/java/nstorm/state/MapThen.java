package nstorm.state;

import java.io.IOException;
import java.util.ConcurrentModificationException;
import java.util.Map;

/** A map at the source as it was at a moment. It holds the objects, not copies: it is made in a pause of the executor. */
final class MapThen {
    /** A map of other things mostly has one among its first; all are looked at in {@link #isPlain}, which waits for nobody. */
    private static final int LOOKED_AT = 100;

    final Map<Object, Object> map;
    final Object[] keys;
    final Object[] values;
    private int entries;

    private MapThen(Map<Object, Object> map, int entries) {
        this.map = map;
        keys = new Object[entries];
        values = new Object[entries];
    }

    /** Null if the map is seen not to be plain, or is changed meanwhile. */
    static MapThen orNull(Map<Object, Object> map) {
        try {
            if (!PlainMaps.isPlain(map, LOOKED_AT)) {
                return null;
            }
            MapThen then = new MapThen(map, map.size());
            map.forEach(then::add);
            return then.entries == then.keys.length ? then : null;
        } catch (ConcurrentModificationException | ArrayIndexOutOfBoundsException e) {
            return null;
        }
    }

    private void add(Object key, Object value) {
        keys[entries] = key;
        values[entries++] = value;
    }

    boolean isPlain() {
        for (int i = 0; i < keys.length; i++) {
            if (!Plain.is(keys[i]) || !Plain.is(values[i])) {
                return false;
            }
        }
        return true;
    }

    void write(PlainOutput out) throws IOException {
        PlainMaps.writeHead(map, keys.length, out);
        for (int i = 0; i < keys.length; i++) {
            out.value(keys[i]);
            out.value(values[i]);
        }
    }
}

package nstorm.state;

import java.io.IOException;
import java.util.Map;

/**
 * A map of a first pass, at the target.
 *
 * @param keys in the order in which the source has written them: it names them by their place later
 */
record FirstMap(Map<Object, Object> map, Object[] keys) {
    /** Changes the map to what the source's has become, by a {@link MapChange}. */
    void change(PlainInput in) throws IOException {
        // At first: a key that was removed may have been put again.
        int place = 0;
        for (int left = in.number(); left > 0; left--) {
            place += in.number();
            map.remove(keys[place]);
        }
        for (int left = in.number(); left > 0; left--) {
            Object key = keys[in.number()];
            map.put(key, in.value());
        }
        for (int left = in.number(); left > 0; left--) {
            Object key = in.value();
            map.put(key, in.value());
        }
    }
}

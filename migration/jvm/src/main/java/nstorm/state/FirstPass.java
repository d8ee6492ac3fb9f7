package nstorm.state;

import java.io.IOException;
import java.lang.reflect.Field;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ThreadLocalRandom;
import nstorm.memory.BoltFields;

/**
 * The large maps of an executor's bolts at one moment, to be sent while the bolts go on. When the bolts have stopped, their fields are sent
 * without what these maps had already. In a map of values that nobody can change, references show what it had.
 */
public final class FirstPass {
    static final long NONE = 0;
    /** An entry takes about as many at least: of more the references would take much heap, and could not travel. */
    private static final int ENTRY_MIN_BYTES = 4;

    /** Another try of the same move has another. */
    private final long id = ThreadLocalRandom.current().nextLong() | 1;

    private final List<MapThen> seen;
    private volatile List<MapThen> written = List.of();

    private FirstPass(List<MapThen> seen) {
        this.seen = seen;
    }

    /**
     * Looks at the maps, which takes some 30 ms of CPU for a million entries. To be called where nothing else touches the bolts.
     *
     * @return null if there is nothing to send before
     */
    public static FirstPass of(List<Object> bolts, Set<String> fields) {
        List<Map<Object, Object>> maps = maps(bolts, fields);
        long entries = maps.stream().mapToLong(Map::size).sum();
        if (entries > BoltState.SIZE_MAX_BYTES / ENTRY_MIN_BYTES) {
            return null;
        }
        List<MapThen> seen = new ArrayList<>();
        for (Map<Object, Object> map : maps) {
            MapThen then = MapThen.orNull(map);
            if (then != null) {
                seen.add(then);
            }
        }
        return seen.isEmpty() ? null : new FirstPass(seen);
    }

    private static List<Map<Object, Object>> maps(List<Object> bolts, Set<String> fields) {
        List<Map<Object, Object>> maps = new ArrayList<>();
        for (Object bolt : bolts) {
            for (Field field : BoltFields.named(bolt, fields)) {
                Map<Object, Object> map = PlainMaps.largeOrNull(BoltFields.get(field, bolt));
                if (map != null && maps.stream().noneMatch(one -> one == map)) {
                    maps.add(map);
                }
            }
        }
        return maps;
    }

    /**
     * Writes the maps, on any thread, while the bolts go on. Until it has returned, {@link BoltState#save} sends all of them.
     *
     * @throws IOException if it is too much
     */
    public StateBytes write() throws IOException {
        List<MapThen> plain = seen.stream().filter(MapThen::isPlain).toList();
        StateBytes bytes = new StateBytes();
        try {
            PlainOutput out = new PlainOutput(bytes);
            out.eightBytes(id);
            out.number(plain.size());
            for (MapThen then : plain) {
                then.write(out);
            }
            out.flush();
        } catch (RuntimeException e) {
            throw new IOException(e.getMessage(), e);
        }
        written = plain;
        return bytes;
    }

    /** None if nothing of it was written. */
    long id() {
        return written.isEmpty() ? NONE : id;
    }

    /** The place of the map among those that were written, or -1. */
    int place(Map<Object, Object> map) {
        List<MapThen> all = written;
        for (int i = 0; i < all.size(); i++) {
            if (all.get(i).map == map) {
                return i;
            }
        }
        return -1;
    }

    MapThen at(int place) {
        return written.get(place);
    }
}

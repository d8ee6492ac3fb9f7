package nstorm.state;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.util.List;
import java.util.Map;
import java.util.Set;
import nstorm.memory.Declared;

/** A state as it stands at its target, in one array, of bolts for which nothing is declared and which held nothing when they had been prepared. */
public final class Whole {
    private Whole() {}

    public static byte[] of(StateBytes state) {
        ByteBuffer all = ByteBuffer.allocate(state.size());
        for (int i = 0; i < state.pieces(); i++) {
            all.put(state.piece(i));
        }
        return all.array();
    }

    static StateClasses undeclared() {
        return new StateClasses(Set.of(), Declared.of(Map.of()));
    }

    public static StateBytes save(List<Object> bolts, Set<String> fields, FirstPass firstOrNull) throws IOException {
        return BoltState.save(bolts, fields, firstOrNull, null, undeclared());
    }

    public static void load(byte[] state, List<Object> bolts, FirstMaps firstOrNull) throws IOException {
        BoltState.load(state, bolts, undeclared(), firstOrNull);
    }
}

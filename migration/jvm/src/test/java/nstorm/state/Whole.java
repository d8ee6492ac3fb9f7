package nstorm.state;

import java.nio.ByteBuffer;

/** A state as it stands at its target: in one array. */
public final class Whole {
    private Whole() {
    }

    public static byte[] of(StateBytes state) {
        ByteBuffer all = ByteBuffer.allocate(state.size());
        for (int i = 0; i < state.pieces(); i++) {
            all.put(state.piece(i));
        }
        return all.array();
    }
}

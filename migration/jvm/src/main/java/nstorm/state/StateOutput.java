package nstorm.state;

import java.io.IOException;
import java.io.ObjectOutputStream;
import java.io.OutputStream;

/** Writes a state, its large maps as {@link SentMap}. */
final class StateOutput extends ObjectOutputStream {
    private final FirstPass firstOrNull;

    StateOutput(OutputStream out, FirstPass firstOrNull) throws IOException {
        super(out);
        this.firstOrNull = firstOrNull;
        enableReplaceObject(true);
    }

    @Override
    protected Object replaceObject(Object value) {
        return SentMap.of(value, firstOrNull);
    }
}

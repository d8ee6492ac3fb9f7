package nstorm.state;

import java.io.IOException;
import java.io.ObjectOutputStream;
import java.io.OutputStream;

/** Writes a state, its large maps as {@link SentMap}. */
final class StateOutput extends ObjectOutputStream {
    private final Travelling travelling;
    private final FirstPass firstOrNull;

    StateOutput(OutputStream out, Travelling travelling, FirstPass firstOrNull) throws IOException {
        super(out);
        this.travelling = travelling;
        this.firstOrNull = firstOrNull;
        enableReplaceObject(true);
    }

    @Override
    protected Object replaceObject(Object value) throws IOException {
        travelling.check(value);
        return SentMap.of(value, firstOrNull);
    }
}

package nstorm.state;

import java.io.IOException;
import java.io.ObjectOutputStream;
import java.io.OutputStream;

/** Writes a state, its large maps as {@link SentMap}. */
final class StateOutput extends ObjectOutputStream {
    private final Travelling rulesOrNull;
    private final FirstPass firstOrNull;

    StateOutput(OutputStream out, Travelling rulesOrNull, FirstPass firstOrNull) throws IOException {
        super(out);
        this.rulesOrNull = rulesOrNull;
        this.firstOrNull = firstOrNull;
        enableReplaceObject(true);
    }

    @Override
    protected Object replaceObject(Object value) throws IOException {
        if (rulesOrNull != null) {
            rulesOrNull.check(value);
        }
        return SentMap.of(value, firstOrNull);
    }
}

package nstorm.state;

import java.io.IOException;
import java.io.ObjectOutputStream;
import java.io.ObjectStreamException;
import java.io.OutputStream;

/** Writes a state, its large maps as {@link SentMap}. */
final class StateOutput extends ObjectOutputStream {
    private final Travelling rulesOrNull;
    private final StateClasses classes;
    private final FirstPass firstOrNull;
    private boolean ended;

    StateOutput(OutputStream out, Travelling rulesOrNull, StateClasses classes, FirstPass firstOrNull)
            throws IOException {
        super(out);
        this.rulesOrNull = rulesOrNull;
        this.classes = classes;
        this.firstOrNull = firstOrNull;
        enableReplaceObject(true);
    }

    @Override
    protected Object replaceObject(Object value) throws IOException {
        // What ends the writing is written itself.
        ended |= value instanceof ObjectStreamException;
        if (value != null && !ended) {
            if (rulesOrNull != null) {
                rulesOrNull.check(value);
            }
            classes.check(value.getClass());
        }
        return SentMap.of(value, firstOrNull);
    }
}

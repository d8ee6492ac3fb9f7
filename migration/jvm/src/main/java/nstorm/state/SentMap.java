package nstorm.state;

import java.io.Externalizable;
import java.io.IOException;
import java.io.InputStream;
import java.io.ObjectInput;
import java.io.ObjectOutput;
import java.io.OutputStream;
import java.util.Map;

/** Stands for a large map in the object stream of a state: all of it, or what has changed since the first pass. */
final class SentMap implements Externalizable {
    private static final long serialVersionUID = 1L;
    private static final int WHOLE = 0;

    private transient Map<Object, Object> map;
    private transient int place;
    private transient MapChange changeOrNull;

    /** For the object stream. */
    public SentMap() {}

    private SentMap(Map<Object, Object> map, int place, MapChange changeOrNull) {
        this.map = map;
        this.place = place;
        this.changeOrNull = changeOrNull;
    }

    /** What is to be sent instead of this object of the state: in most cases the object. */
    static Object of(Object value, FirstPass firstOrNull) {
        Map<Object, Object> map = PlainMaps.largeOrNull(value);
        if (map == null) {
            return value;
        }
        int place = firstOrNull == null ? -1 : firstOrNull.place(map);
        MapChange change = place < 0 ? null : MapChange.orNull(firstOrNull.at(place));
        return change != null || PlainMaps.isPlain(map, Integer.MAX_VALUE) ? new SentMap(map, place, change) : value;
    }

    @Override
    public void writeExternal(ObjectOutput to) throws IOException {
        PlainOutput out = new PlainOutput((OutputStream) to);
        if (changeOrNull == null) {
            out.number(WHOLE);
            PlainMaps.write(map, out);
        } else {
            out.number(place + 1);
            changeOrNull.write(out);
        }
        out.flush();
    }

    @Override
    public void readExternal(ObjectInput from) throws IOException {
        StateInput state = (StateInput) from;
        PlainInput in = new PlainInput((InputStream) from, state.leftBytes());
        int number = in.number();
        if (number == WHOLE) {
            map = PlainMaps.read(in).map();
        } else {
            FirstMap first = state.takeFirst(number - 1);
            first.change(in);
            map = first.map();
        }
        state.plain(map);
    }

    private Object readResolve() {
        return map;
    }
}

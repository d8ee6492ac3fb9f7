package nstorm.state;

import java.io.ByteArrayInputStream;
import java.io.IOException;
import java.io.ObjectInputFilter;
import java.io.ObjectInputStream;
import java.io.ObjectStreamClass;

/** Reads a state: finds the user's classes where the topology's are, and maps in the first pass. */
final class StateInput extends ObjectInputStream {
    /** Nested deeper, the stack of an executor's thread may not be enough. */
    private static final int DEPTH_MAX = 2000;

    private final ByteArrayInputStream bytes;
    private final ClassLoader loader;
    private final FirstMaps firstOrNull;

    StateInput(byte[] state, ClassLoader loader, FirstMaps firstOrNull) throws IOException {
        this(new ByteArrayInputStream(state), loader, firstOrNull);
        // Each element and each reference takes a byte at least: more would be a lie that costs heap.
        ObjectInputFilter limits = ObjectInputFilter.Config.createFilter(String.format(
                "maxarray=%1$d;maxrefs=%1$d;maxbytes=%1$d;maxdepth=%2$d", state.length, DEPTH_MAX));
        setObjectInputFilter(ObjectInputFilter.merge(limits, getObjectInputFilter()));
    }

    private StateInput(ByteArrayInputStream bytes, ClassLoader loader, FirstMaps firstOrNull) throws IOException {
        super(bytes);
        this.bytes = bytes;
        this.loader = loader;
        this.firstOrNull = firstOrNull;
    }

    /** Without the few that this stream has read ahead; a large map takes more. */
    int leftBytes() {
        return bytes.available();
    }

    FirstMap takeFirst(int place) throws IOException {
        if (firstOrNull == null) {
            throw new IOException("it needs a first pass");
        }
        return firstOrNull.take(place);
    }

    @Override
    protected Class<?> resolveClass(ObjectStreamClass type) throws IOException, ClassNotFoundException {
        if (type.getName().equals(SentMap.class.getName())) {
            return SentMap.class; // ours, whatever the topology brings
        }
        try {
            return Class.forName(type.getName(), false, loader);
        } catch (ClassNotFoundException e) {
            return super.resolveClass(type);
        }
    }
}

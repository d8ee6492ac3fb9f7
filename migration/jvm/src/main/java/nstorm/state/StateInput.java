package nstorm.state;

import java.io.ByteArrayInputStream;
import java.io.IOException;
import java.io.ObjectInputFilter;
import java.io.ObjectInputStream;
import java.io.ObjectStreamClass;
import java.util.Map;
import java.util.concurrent.TimeUnit;

/**
 * Reads a state: finds the user's classes where the topology's are, and maps in the first pass. What a state may not hold it refuses before it
 * makes it.
 */
final class StateInput extends ObjectInputStream {
    /** Nested deeper, the stack of an executor's thread may not be enough. */
    private static final int DEPTH_MAX = 2000;
    /** So long a move waits for its state at most: then it is undone. */
    static final long LIMIT_NANOS = TimeUnit.SECONDS.toNanos(20);
    /** Objects between two looks at the clock. */
    private static final int BETWEEN_LOOKS = 16;
    /** In addition to two a byte: less than a second's work. */
    private static final long HASHED_MAX = 10_000_000;

    private final ByteArrayInputStream bytes;
    private final ClassLoader loader;
    private final StateClasses classes;
    private final FirstMaps firstOrNull;
    private final int length;
    private final long limitNanos;
    private final long begunNanos = System.nanoTime();
    private final HashCost hashed;
    private final HashTables tables = new HashTables();
    private int looks;
    private String refusal;

    StateInput(byte[] state, ClassLoader loader, StateClasses classes, FirstMaps firstOrNull, long limitNanos)
            throws IOException {
        this(new ByteArrayInputStream(state), state.length, loader, classes, firstOrNull, limitNanos);
        enableResolveObject(true);
        setObjectInputFilter(ObjectInputFilter.merge(this::filter, getObjectInputFilter()));
    }

    private StateInput(
            ByteArrayInputStream bytes,
            int length,
            ClassLoader loader,
            StateClasses classes,
            FirstMaps firstOrNull,
            long limitNanos)
            throws IOException {
        super(bytes);
        this.bytes = bytes;
        this.loader = loader;
        this.classes = classes;
        this.firstOrNull = firstOrNull;
        this.length = length;
        this.limitNanos = limitNanos;
        hashed = new HashCost(HASHED_MAX + 2L * length);
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

    void plain(Map<Object, Object> map) {
        hashed.plain(map);
    }

    /** Throws the reason why it may not be read, if it may not, whatever has become of the exception that first had it. */
    void throwRefusal(Throwable causeOrNull) throws IOException {
        if (refusal != null) {
            throw new IOException(refusal, causeOrNull);
        }
    }

    /** To be called once all is read. */
    void checkTables() throws IOException {
        tables.check();
    }

    private ObjectInputFilter.Status filter(ObjectInputFilter.FilterInfo next) {
        if (refusal == null) {
            refusal = tooMuch(next);
        }
        if (refusal == null && next.serialClass() != null) {
            try {
                classes.check(next.serialClass());
            } catch (IOException e) {
                refusal = e.getMessage();
            }
        }
        return refusal == null ? ObjectInputFilter.Status.UNDECIDED : ObjectInputFilter.Status.REJECTED;
    }

    /** Each element and each reference takes a byte at least: more would be a lie that costs heap. */
    private String tooMuch(ObjectInputFilter.FilterInfo next) {
        if (next.depth() > DEPTH_MAX) {
            return "it is nested more than " + DEPTH_MAX + " deep";
        } else if (next.references() > length) {
            return "it has more objects than bytes";
        } else if (next.arrayLength() > length) {
            return "it has an array of " + next.arrayLength() + " elements in " + length + " bytes";
        }
        return looks++ % BETWEEN_LOOKS != 0 || System.nanoTime() - begunNanos < limitNanos
                ? null
                : "to read it takes more than " + TimeUnit.NANOSECONDS.toSeconds(limitNanos) + " s";
    }

    @Override
    protected Object resolveObject(Object read) throws IOException {
        try {
            if (hashed.read(read)) {
                tables.read(read);
            }
        } catch (IOException e) {
            refusal = e.getMessage();
            throw e;
        }
        return common(read);
    }

    /** The JVM's own object of a small number or a truth value: those that were the same object still are. */
    private static Object common(Object read) {
        if (read instanceof Boolean value) {
            return Boolean.valueOf(value);
        } else if (read instanceof Integer value) {
            return isShared(value) ? Integer.valueOf(value) : read;
        } else if (read instanceof Long value) {
            return isShared(value) ? Long.valueOf(value) : read;
        } else if (read instanceof Short value) {
            return isShared(value) ? Short.valueOf(value) : read;
        } else if (read instanceof Byte value) {
            return Byte.valueOf(value);
        }
        return read instanceof Character value && isShared(value) ? Character.valueOf(value) : read;
    }

    /** Of others each is an object of its own anyway, and the stream would ask its filter about one more. */
    private static boolean isShared(long value) {
        return value >= Byte.MIN_VALUE && value <= Byte.MAX_VALUE;
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

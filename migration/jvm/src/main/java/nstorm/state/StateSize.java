package nstorm.state;

import java.io.IOException;
import java.io.ObjectOutputStream;
import java.io.OutputStream;
import java.lang.reflect.Array;
import java.lang.reflect.Field;
import java.util.Arrays;
import java.util.Collection;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import java.util.Set;
import nstorm.memory.BoltFields;

/**
 * About how many bytes a state will be, estimated from the first few elements of what the fields hold. Of what is
 * nested in those it sees no more than {@link #LOOKED_AT_BYTES}, so it is rather too low. Takes a few milliseconds,
 * whatever the size.
 */
public final class StateSize {
    private static final int LOOKED_AT = 64;
    static final int LOOKED_AT_BYTES = 1 << 18;

    private StateSize() {}

    /**
     * Looks at the fields of each bolt; to be called where nothing else touches the bolts.
     *
     * @throws IOException if something cannot travel
     */
    public static long aboutBytes(List<Object> bolts, Set<String> fields) throws IOException {
        long bytes = 0;
        for (Object bolt : bolts) {
            for (Field field : BoltFields.named(bolt, fields)) {
                bytes += of(BoltFields.get(field, bolt));
            }
        }
        return bytes;
    }

    private static long of(Object value) throws IOException {
        if (value instanceof Map<?, ?> map) {
            return map.size()
                    * (mean(map.keySet().iterator()) + mean(map.values().iterator()));
        } else if (value instanceof Collection<?> many) {
            return many.size() * mean(many.iterator());
        } else if (value instanceof Object[] array) {
            return array.length * mean(Arrays.asList(array).iterator());
        }
        return mean(List.of(value == null ? "" : value).iterator());
    }

    private static long mean(Iterator<?> elements) throws IOException {
        Counted counted = new Counted();
        PlainOutput plain = new PlainOutput(counted);
        ObjectOutputStream objects = new ObjectOutputStream(counted);
        objects.flush();
        counted.bytes = 0;
        int looked = 0;
        while (elements.hasNext() && looked < LOOKED_AT && counted.bytes < LOOKED_AT_BYTES) {
            Object element = elements.next();
            looked++;
            int width = width(element);
            if (width > 0) {
                counted.bytes += (long) width * Array.getLength(element);
            } else if (Plain.is(element)) {
                plain.value(element);
                plain.flush();
            } else {
                write(element, objects, counted);
            }
        }
        return looked == 0 ? 0 : (counted.bytes + looked - 1) / looked;
    }

    private static void write(Object element, ObjectOutputStream objects, Counted counted) throws IOException {
        counted.most = counted.bytes + LOOKED_AT_BYTES;
        try {
            objects.writeObject(element);
            objects.flush();
        } catch (Enough e) {
            counted.bytes = counted.most;
        }
        counted.most = Long.MAX_VALUE;
    }

    /** Of an element of an array of primitives; else 0. */
    private static int width(Object value) {
        Class<?> type = value == null || !value.getClass().isArray()
                ? Object.class
                : value.getClass().getComponentType();
        if (type == long.class || type == double.class) {
            return Long.BYTES;
        } else if (type == int.class || type == float.class) {
            return Integer.BYTES;
        } else if (type == short.class || type == char.class) {
            return Short.BYTES;
        }
        return type == byte.class || type == boolean.class ? 1 : 0;
    }

    private static final class Enough extends IOException {
        private static final long serialVersionUID = 1L;
    }

    /** Counts what is written, and keeps nothing. */
    private static final class Counted extends OutputStream {
        private long bytes;
        private long most = Long.MAX_VALUE;

        @Override
        public void write(int b) throws IOException {
            count(1);
        }

        @Override
        public void write(byte[] b, int off, int len) throws IOException {
            count(len);
        }

        private void count(int more) throws IOException {
            bytes += more;
            if (bytes > most) {
                throw new Enough();
            }
        }
    }
}

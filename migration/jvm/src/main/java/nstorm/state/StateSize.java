package nstorm.state;

import java.io.IOException;
import java.io.NotSerializableException;
import java.io.OutputStream;
import java.io.Serializable;
import java.lang.reflect.Array;
import java.lang.reflect.Field;
import java.lang.reflect.Modifier;
import java.util.ArrayDeque;
import java.util.Arrays;
import java.util.Collection;
import java.util.Collections;
import java.util.Deque;
import java.util.HashMap;
import java.util.IdentityHashMap;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import java.util.Set;
import nstorm.memory.BoltFields;
import nstorm.memory.ObjectFields;

/**
 * About how many bytes a state will be, estimated from the first few elements of what the fields hold. Of what is
 * nested in those it sees no more than {@link #LOOKED_AT_BYTES}, so it is rather too low. Takes a few milliseconds,
 * whatever the size.
 *
 * <p>Fields are read by reflection, and exact classes of the JDK give their elements. No code of the user's runs: some of it
 * changes what it writes.
 */
public final class StateSize {
    private static final int LOOKED_AT = 64;
    static final int LOOKED_AT_BYTES = 1 << 18;

    /** What an object stream has of an object that is there already, and of one before its fields. */
    private static final int HANDLE_BYTES = 5;

    private static final int OBJECT_BYTES = 1 + HANDLE_BYTES;
    /** Of a text or an array before its content, and of a collection. */
    private static final int TEXT_BYTES = 3;

    private static final int ARRAY_BYTES = 10;
    private static final int COLLECTION_BYTES = 20;

    private final Map<Class<?>, List<Field>> fields = new HashMap<>();
    private final Set<Object> seen = Collections.newSetFromMap(new IdentityHashMap<>());
    private final Counted counted = new Counted();
    private final PlainOutput plain = new PlainOutput(counted);

    private StateSize() {}

    /**
     * Looks at the fields of each bolt; to be called where nothing else touches the bolts.
     *
     * @throws IOException if something cannot travel
     */
    public static long aboutBytes(List<Object> bolts, Set<String> fields) throws IOException {
        StateSize size = new StateSize();
        long bytes = 0;
        for (Object bolt : bolts) {
            for (Field field : BoltFields.named(bolt, fields)) {
                bytes += size.of(BoltFields.get(field, bolt));
            }
        }
        return bytes;
    }

    private long of(Object value) throws IOException {
        Object held = behind(value);
        if (held instanceof Map<?, ?> map && isKnown(map)) {
            return of(map.size(), map.keySet().iterator())
                    + of(map.size(), map.values().iterator());
        } else if (held instanceof Collection<?> many && isKnown(many)) {
            return of(many.size(), many.iterator());
        } else if (held instanceof Object[] array) {
            return of(array.length, Arrays.asList(array).iterator());
        }
        return of(1, Collections.singletonList(held).iterator());
    }

    /** A view of the JDK's asks what it is over, which may be the user's: that is looked at in its place. */
    private Object behind(Object value) {
        Object held = value;
        while (held != null && isView(held.getClass())) {
            Object view = held;
            held = fields(view.getClass()).stream()
                    .map(field -> BoltFields.read(field, view))
                    .filter(one -> one instanceof Collection<?> || one instanceof Map<?, ?>)
                    .findFirst()
                    .orElse(null);
            if (held == null) {
                return view;
            }
        }
        return held;
    }

    private static boolean isView(Class<?> type) {
        return type.getName().startsWith("java.util.Collections$");
    }

    private static boolean isKnown(Object object) {
        return JdkClasses.has(object.getClass().getName()) && !isView(object.getClass());
    }

    /** One of the elements that is far larger than the others is no measure of those that are not looked at. */
    private long of(int size, Iterator<?> elements) throws IOException {
        long bytes = 0;
        long largest = 0;
        int looked = 0;
        while (elements.hasNext() && looked < LOOKED_AT && bytes - largest < LOOKED_AT_BYTES) {
            long one = element(elements.next());
            bytes += one;
            largest = Math.max(largest, one);
            looked++;
        }
        int others = Math.max(looked - 1, 1);
        return bytes + Math.max(size - looked, 0) * ((bytes - largest + others - 1) / others);
    }

    private long element(Object element) throws IOException {
        int width = width(element);
        if (width > 0) {
            return (long) width * Array.getLength(element);
        } else if (Plain.is(element)) {
            counted.bytes = 0;
            plain.value(element);
            plain.flush();
            return counted.bytes;
        }
        return nested(element);
    }

    /** What an object stream would have of it and of all that it leads to. */
    private long nested(Object root) throws IOException {
        Deque<Object> open = new ArrayDeque<>(List.of(root));
        long bytes = 0;
        while (!open.isEmpty() && bytes < LOOKED_AT_BYTES) {
            Object next = open.pop();
            int width = width(next);
            if (!seen.add(next)) {
                bytes += HANDLE_BYTES;
            } else if (next instanceof String text) {
                bytes += TEXT_BYTES + text.length();
            } else if (next instanceof Number && Plain.is(next)) {
                bytes += OBJECT_BYTES + (next instanceof Integer ? Integer.BYTES : Long.BYTES);
            } else if (next instanceof Enum<?>) {
                bytes += OBJECT_BYTES + HANDLE_BYTES;
            } else if (width > 0) {
                bytes += ARRAY_BYTES + (long) width * Array.getLength(next);
            } else if (next instanceof Object[] array) {
                bytes += ARRAY_BYTES + follow(Arrays.asList(array), open);
            } else if (next instanceof Map<?, ?> map && isKnown(map)) {
                bytes += COLLECTION_BYTES + follow(map.keySet(), open) + follow(map.values(), open);
            } else if (next instanceof Collection<?> many && isKnown(many)) {
                bytes += COLLECTION_BYTES + follow(many, open);
            } else if (next instanceof Serializable) {
                bytes += OBJECT_BYTES + fields(next, open);
            } else {
                throw new NotSerializableException(next.getClass().getName());
            }
        }
        return Math.min(bytes, LOOKED_AT_BYTES);
    }

    /** Takes no more of them than would be looked at; the bytes of those that are null. */
    private static long follow(Collection<?> elements, Deque<Object> open) {
        long nulls = 0;
        int left = LOOKED_AT_BYTES;
        for (Iterator<?> all = elements.iterator(); all.hasNext() && left > 0 && open.size() < left; left--) {
            nulls += follow(all.next(), open);
        }
        return nulls;
    }

    private static long follow(Object value, Deque<Object> open) {
        if (value == null) {
            return 1;
        }
        open.push(value);
        return 0;
    }

    private long fields(Object object, Deque<Object> open) {
        long bytes = 0;
        for (Field field : fields(object.getClass())) {
            bytes += field.getType().isPrimitive()
                    ? width(field.getType())
                    : follow(BoltFields.read(field, object), open);
        }
        return bytes;
    }

    /** What an object stream has of such an object; what nobody may read counts as nothing. */
    private List<Field> fields(Class<?> type) {
        return fields.computeIfAbsent(
                type,
                one -> ObjectFields.of(one).stream()
                        .filter(field -> !Modifier.isTransient(field.getModifiers()) && field.trySetAccessible())
                        .toList());
    }

    /** Of an element of an array of primitives; else 0. */
    private static int width(Object value) {
        return value == null || !value.getClass().isArray()
                ? 0
                : width(value.getClass().getComponentType());
    }

    private static int width(Class<?> type) {
        if (type == long.class || type == double.class) {
            return Long.BYTES;
        } else if (type == int.class || type == float.class) {
            return Integer.BYTES;
        } else if (type == short.class || type == char.class) {
            return Short.BYTES;
        }
        return type == byte.class || type == boolean.class ? 1 : 0;
    }

    /** Counts what is written, and keeps nothing. */
    private static final class Counted extends OutputStream {
        private long bytes;

        @Override
        public void write(int b) {
            bytes++;
        }

        @Override
        public void write(byte[] b, int off, int len) {
            bytes += len;
        }
    }
}

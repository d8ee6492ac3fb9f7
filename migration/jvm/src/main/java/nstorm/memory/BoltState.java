package nstorm.memory;

import java.io.IOException;
import java.io.ObjectInputStream;
import java.io.ObjectOutputStream;
import java.lang.invoke.MethodType;
import java.lang.reflect.Field;
import java.lang.reflect.Modifier;
import java.util.ArrayList;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Set;

/**
 * What the fields of an executor's bolts hold, as bytes: all in one object stream, so that what two fields share they
 * share afterwards. To be called where nothing else touches the bolts.
 */
public final class BoltState {
    /** The bytes stand in memory up to three times at an end, beside the state itself, so no more than a share of its heap. */
    public static final int SIZE_MAX_BYTES = (int) Math.min(100L << 20, Runtime.getRuntime().maxMemory() / 16);

    private BoltState() {
    }

    /** Writes all of the fields of each bolt in one pass. */
    public static byte[] save(List<Object> bolts, Set<String> fields) throws IOException {
        return save(bolts, fields, null);
    }

    /**
     * Writes the fields of each bolt, without what a first pass of theirs has written already.
     *
     * @throws IOException if a value cannot travel, or it is too much
     */
    public static byte[] save(List<Object> bolts, Set<String> fields, FirstPass firstOrNull) throws IOException {
        long firstId = firstOrNull == null ? FirstPass.NONE : firstOrNull.id();
        Bounded bytes = new Bounded();
        try (ObjectOutputStream out = new StateOutput(bytes, firstId == FirstPass.NONE ? null : firstOrNull)) {
            List<Object> values = new ArrayList<>();
            for (Object bolt : bolts) {
                for (Field field : fields(bolt, fields)) {
                    values.add(get(field, bolt));
                }
            }
            out.writeLong(firstId);
            out.writeObject(fields.toArray(new String[0]));
            out.writeObject(values.toArray());
        } catch (RuntimeException e) {
            throw new IOException(e.getMessage(), e);
        }
        return bytes.toByteArray();
    }

    /** Loads what was saved in one pass. */
    public static void load(byte[] state, List<Object> bolts) throws IOException {
        load(state, bolts, null);
    }

    /**
     * Sets the fields of each bolt to what {@link #save} has written of bolts of the same classes; of all of them, or of none.
     *
     * @param firstOrNull what came of the state before, and is used up by this
     * @throws IOException if the bytes are not of such, or need another first pass
     */
    public static void load(byte[] state, List<Object> bolts, FirstMaps firstOrNull) throws IOException {
        ClassLoader loader = BoltMemory.user(bolts.get(0)).getClass().getClassLoader();
        try (ObjectInputStream in = new StateInput(state, loader, firstOrNull)) {
            long first = in.readLong();
            if (first != FirstPass.NONE && (firstOrNull == null || firstOrNull.id() != first)) {
                throw new IOException("what came of it before is not what it needs");
            }
            Set<String> names = new LinkedHashSet<>(List.of((String[]) in.readObject()));
            set(bolts, names, (Object[]) in.readObject());
        } catch (ReflectiveOperationException | RuntimeException e) {
            throw new IOException(e);
        }
    }

    private static void set(List<Object> bolts, Set<String> names, Object[] values) throws IOException, IllegalAccessException {
        if (values.length != bolts.size() * names.size()) {
            throw new IOException("it is of another number of bolts");
        }
        List<Field> fields = new ArrayList<>();
        for (Object bolt : bolts) {
            fields.addAll(fields(bolt, names));
        }
        for (int i = 0; i < values.length; i++) {
            Class<?> type = MethodType.methodType(fields.get(i).getType()).wrap().returnType();
            if (values[i] == null ? fields.get(i).getType().isPrimitive() : !type.isInstance(values[i])) {
                throw new IOException("it has something else for " + fields.get(i));
            }
        }
        for (int i = 0; i < values.length; i++) {
            fields.get(i).set(BoltMemory.user(bolts.get(i / names.size())), values[i]);
        }
    }

    static Object get(Field field, Object bolt) {
        try {
            return field.get(BoltMemory.user(bolt));
        } catch (IllegalAccessException e) {
            throw new IllegalStateException("cannot read " + field, e);
        }
    }

    /** The fields by name, where the class of the bolt or one above it has them; a missing one is named. */
    static List<Field> fields(Object bolt, Set<String> names) {
        List<Field> found = new ArrayList<>();
        for (String name : names) {
            Field field = null;
            for (Class<?> at = BoltMemory.user(bolt).getClass(); at != null && field == null; at = at.getSuperclass()) {
                for (Field one : at.getDeclaredFields()) {
                    field = one.getName().equals(name) && !Modifier.isStatic(one.getModifiers()) ? one : field;
                }
            }
            if (field == null) {
                throw new Undecided("has no field " + name);
            }
            field.setAccessible(true);
            found.add(field);
        }
        return found;
    }
}

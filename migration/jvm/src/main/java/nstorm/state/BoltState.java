package nstorm.state;

import java.io.IOException;
import java.io.ObjectOutputStream;
import java.io.OutputStream;
import java.lang.invoke.MethodType;
import java.lang.reflect.Field;
import java.util.ArrayList;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Set;
import nstorm.memory.BoltFields;
import nstorm.memory.BoltMemory;

/**
 * What the fields of an executor's bolts hold, as bytes: all in one object stream, so that what two fields share they
 * share afterwards. To be called where nothing else touches the bolts.
 */
public final class BoltState {
    /**
     * An end of the move has the bytes in memory up to five times, in addition to the state itself. So they may be no more than a share of
     * its heap.
     */
    public static final int SIZE_MAX_BYTES =
            (int) Math.min(100L << 20, Runtime.getRuntime().maxMemory() / 16);

    private BoltState() {}

    /**
     * Writes the fields of each bolt, without what a first pass of theirs has written already.
     *
     * @param rulesOrNull in which form objects may be written; null if any will do
     * @param classes of which classes objects may be written
     * @throws IOException if a value cannot travel, or it is too much
     */
    public static StateBytes save(
            List<Object> bolts, Set<String> names, FirstPass firstOrNull, Travelling rulesOrNull, StateClasses classes)
            throws IOException {
        long firstId = firstOrNull == null ? FirstPass.NONE : firstOrNull.id();
        StateBytes bytes = new StateBytes();
        try (ObjectOutputStream out =
                new StateOutput(bytes, rulesOrNull, classes, firstId == FirstPass.NONE ? null : firstOrNull)) {
            List<Object> values = new ArrayList<>();
            List<Field> fields = fields(bolts, names);
            for (int i = 0; i < fields.size(); i++) {
                values.add(BoltFields.get(fields.get(i), bolts.get(i / names.size())));
            }
            classes.from(BoltMemory.user(bolts.get(0)).getClass(), fields);
            out.writeLong(firstId);
            out.writeObject(names.toArray(new String[0]));
            out.writeObject(values.toArray());
        } catch (StateClasses.Undeclared e) {
            throw named(e, bolts, names, classes);
        } catch (RuntimeException e) {
            throw new IOException(e.getMessage(), e);
        }
        return bytes;
    }

    private static List<Field> fields(List<Object> bolts, Set<String> names) {
        List<Field> fields = new ArrayList<>();
        for (Object bolt : bolts) {
            fields.addAll(BoltFields.named(bolt, names));
        }
        return fields;
    }

    /** The same with the field that holds it: the first that cannot be written alone. */
    private static IOException named(
            StateClasses.Undeclared undeclared, List<Object> bolts, Set<String> names, StateClasses classes)
            throws IOException {
        for (Object bolt : bolts) {
            for (Field field : BoltFields.named(bolt, names)) {
                try (ObjectOutputStream out = new StateOutput(OutputStream.nullOutputStream(), null, classes, null)) {
                    out.writeObject(BoltFields.get(field, bolt));
                } catch (StateClasses.Undeclared e) {
                    return e.in(field);
                }
            }
        }
        return undeclared;
    }

    /**
     * Sets the fields of each bolt to what {@link #save} has written of bolts of the same classes; of all of them, or of none.
     *
     * @param classes of which classes objects may be made
     * @param firstOrNull what came of the state before, and is used up by this
     * @return the names of the fields
     * @throws IOException if the bytes are not of such, or need another first pass
     */
    public static Set<String> load(byte[] state, List<Object> bolts, StateClasses classes, FirstMaps firstOrNull)
            throws IOException {
        return load(state, bolts, classes, firstOrNull, StateInput.LIMIT_NANOS);
    }

    static Set<String> load(
            byte[] state, List<Object> bolts, StateClasses classes, FirstMaps firstOrNull, long limitNanos)
            throws IOException {
        ClassLoader loader = BoltMemory.user(bolts.get(0)).getClass().getClassLoader();
        try (StateInput in = new StateInput(state, loader, classes, firstOrNull, limitNanos)) {
            Set<String> names = new LinkedHashSet<>();
            Object[] values = read(in, bolts, names, classes, firstOrNull);
            set(bolts, names, values);
            return names;
        } catch (RuntimeException | IllegalAccessException e) {
            throw new IOException(e);
        }
    }

    private static Object[] read(
            StateInput in, List<Object> bolts, Set<String> names, StateClasses classes, FirstMaps firstOrNull)
            throws IOException {
        try {
            long first = in.readLong();
            if (first != FirstPass.NONE && (firstOrNull == null || firstOrNull.id() != first)) {
                throw new IOException("what came of it before is not what it needs");
            }
            names.addAll(List.of((String[]) in.readObject()));
            classes.from(BoltMemory.user(bolts.get(0)).getClass(), fields(bolts, names));
            Object[] values = (Object[]) in.readObject();
            in.throwRefusal(null);
            in.checkTables();
            return values;
        } catch (ReflectiveOperationException | IOException | RuntimeException | StackOverflowError e) {
            in.throwRefusal(e);
            throw e instanceof IOException known ? known : new IOException(e);
        }
    }

    private static void set(List<Object> bolts, Set<String> names, Object[] values)
            throws IOException, IllegalAccessException {
        if (values.length != bolts.size() * names.size()) {
            throw new IOException("it is of another number of bolts");
        }
        List<Field> fields = fields(bolts, names);
        for (int i = 0; i < values.length; i++) {
            Class<?> type =
                    MethodType.methodType(fields.get(i).getType()).wrap().returnType();
            if (values[i] == null ? fields.get(i).getType().isPrimitive() : !type.isInstance(values[i])) {
                throw new IOException("it has something else for " + fields.get(i));
            }
        }
        for (int i = 0; i < values.length; i++) {
            fields.get(i).set(BoltMemory.user(bolts.get(i / names.size())), values[i]);
        }
    }
}

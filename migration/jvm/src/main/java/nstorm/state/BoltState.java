package nstorm.state;

import java.io.IOException;
import java.io.ObjectInputStream;
import java.io.ObjectOutputStream;
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
    /** The bytes stand in memory up to five times at an end, beside the state itself, so no more than a share of its heap. */
    public static final int SIZE_MAX_BYTES = (int) Math.min(100L << 20, Runtime.getRuntime().maxMemory() / 16);

    private BoltState() {
    }

    /** Writes the fields of each bolt, whatever form their classes give them. */
    public static StateBytes save(List<Object> bolts, Set<String> fields, FirstPass firstOrNull) throws IOException {
        return save(bolts, fields, firstOrNull, null);
    }

    /**
     * Writes the fields of each bolt, without what a first pass of theirs has written already.
     *
     * @param rulesOrNull which objects may be written
     * @throws IOException if a value cannot travel, or it is too much
     */
    public static StateBytes save(List<Object> bolts, Set<String> fields, FirstPass firstOrNull, Travelling rulesOrNull) throws IOException {
        long firstId = firstOrNull == null ? FirstPass.NONE : firstOrNull.id();
        StateBytes bytes = new StateBytes();
        try (ObjectOutputStream out = new StateOutput(bytes, rulesOrNull, firstId == FirstPass.NONE ? null : firstOrNull)) {
            List<Object> values = new ArrayList<>();
            for (Object bolt : bolts) {
                for (Field field : BoltFields.named(bolt, fields)) {
                    values.add(BoltFields.get(field, bolt));
                }
            }
            out.writeLong(firstId);
            out.writeObject(fields.toArray(new String[0]));
            out.writeObject(values.toArray());
        } catch (RuntimeException e) {
            throw new IOException(e.getMessage(), e);
        }
        return bytes;
    }

    /**
     * Sets the fields of each bolt to what {@link #save} has written of bolts of the same classes; of all of them, or of none.
     *
     * @param firstOrNull what came of the state before, and is used up by this
     * @return the names of the fields
     * @throws IOException if the bytes are not of such, or need another first pass
     */
    public static Set<String> load(byte[] state, List<Object> bolts, FirstMaps firstOrNull) throws IOException {
        ClassLoader loader = BoltMemory.user(bolts.get(0)).getClass().getClassLoader();
        try (ObjectInputStream in = new StateInput(state, loader, firstOrNull)) {
            long first = in.readLong();
            if (first != FirstPass.NONE && (firstOrNull == null || firstOrNull.id() != first)) {
                throw new IOException("what came of it before is not what it needs");
            }
            Set<String> names = new LinkedHashSet<>(List.of((String[]) in.readObject()));
            set(bolts, names, (Object[]) in.readObject());
            return names;
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
            fields.addAll(BoltFields.named(bolt, names));
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
}

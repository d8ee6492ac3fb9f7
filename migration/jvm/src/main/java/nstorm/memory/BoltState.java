package nstorm.memory;

import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.InputStream;
import java.io.ObjectInputFilter;
import java.io.ObjectInputStream;
import java.io.ObjectOutputStream;
import java.io.ObjectStreamClass;
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

    /** Nested deeper, the stack of an executor's thread may not be enough. */
    private static final int DEPTH_MAX = 2000;

    private BoltState() {
    }

    /**
     * Writes the fields of each bolt.
     *
     * @throws IOException if a value cannot travel, or it is too much
     */
    public static byte[] save(List<Object> bolts, Set<String> fields) throws IOException {
        Bounded bytes = new Bounded();
        try (ObjectOutputStream out = new ObjectOutputStream(bytes)) {
            List<Object> values = new ArrayList<>();
            for (Object bolt : bolts) {
                for (Field field : fields(bolt, fields)) {
                    values.add(field.get(BoltMemory.user(bolt)));
                }
            }
            out.writeObject(fields.toArray(new String[0]));
            out.writeObject(values.toArray());
        } catch (IllegalAccessException | RuntimeException e) {
            throw new IOException(e.getMessage(), e);
        }
        return bytes.toByteArray();
    }

    /**
     * Sets the fields of each bolt to what {@link #save} has written of bolts of the same classes; of all of them, or of none.
     *
     * @throws IOException if the bytes are not of such
     */
    public static void load(byte[] state, List<Object> bolts) throws IOException {
        ClassLoader loader = BoltMemory.user(bolts.get(0)).getClass().getClassLoader();
        try (ObjectInputStream in = new OfLoader(new ByteArrayInputStream(state), loader)) {
            // Each element and each reference takes a byte at least: more would be a lie that costs heap.
            ObjectInputFilter limits = ObjectInputFilter.Config.createFilter(String.format(
                    "maxarray=%1$d;maxrefs=%1$d;maxbytes=%1$d;maxdepth=%2$d", state.length, DEPTH_MAX));
            in.setObjectInputFilter(ObjectInputFilter.merge(limits, in.getObjectInputFilter()));
            Set<String> fields = new LinkedHashSet<>(List.of((String[]) in.readObject()));
            Object[] values = (Object[]) in.readObject();
            if (values.length != bolts.size() * fields.size()) {
                throw new IOException("it is of another number of bolts");
            }
            int next = 0;
            for (Object bolt : bolts) {
                for (Field field : fields(bolt, fields)) {
                    field.set(BoltMemory.user(bolt), values[next++]);
                }
            }
        } catch (ReflectiveOperationException | RuntimeException e) {
            throw new IOException(e);
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

    private static final class Bounded extends ByteArrayOutputStream {
        @Override
        public synchronized void write(int b) {
            check(1);
            super.write(b);
        }

        @Override
        public synchronized void write(byte[] b, int off, int len) {
            check(len);
            super.write(b, off, len);
        }

        private void check(int more) {
            if (count + more > SIZE_MAX_BYTES) {
                throw new IllegalStateException("its state is larger than " + (SIZE_MAX_BYTES >> 20) + " MB");
            }
        }
    }

    /** Finds the user's classes where the topology's are. */
    private static final class OfLoader extends ObjectInputStream {
        private final ClassLoader loader;

        OfLoader(InputStream in, ClassLoader loader) throws IOException {
            super(in);
            this.loader = loader;
        }

        @Override
        protected Class<?> resolveClass(ObjectStreamClass type) throws IOException, ClassNotFoundException {
            try {
                return Class.forName(type.getName(), false, loader);
            } catch (ClassNotFoundException e) {
                return super.resolveClass(type);
            }
        }
    }
}

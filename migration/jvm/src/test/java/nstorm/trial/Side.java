package nstorm.trial;

import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.InputStream;
import java.io.ObjectInputStream;
import java.io.ObjectOutputStream;
import java.io.ObjectStreamClass;
import java.io.UncheckedIOException;
import java.util.List;
import java.util.Map;

/**
 * Has the users' classes for itself, as a JVM of its own would: their static fields and enum constants are others than on any other
 * side.
 */
final class Side extends ClassLoader {
    private static final List<String> USERS = List.of("nstorm.trial.bolts.", "made.");

    private final Map<String, byte[]> made;

    /** @param made the code of classes that are in no file, by name */
    Side(Map<String, byte[]> made) {
        super(Side.class.getClassLoader());
        this.made = made;
    }

    @Override
    protected Class<?> loadClass(String name, boolean resolve) throws ClassNotFoundException {
        if (USERS.stream().noneMatch(name::startsWith)) {
            return super.loadClass(name, resolve);
        }
        synchronized (getClassLoadingLock(name)) {
            Class<?> loaded = findLoadedClass(name);
            return loaded == null ? define(name) : loaded;
        }
    }

    private Class<?> define(String name) throws ClassNotFoundException {
        try (InputStream in = getResourceAsStream(name.replace('.', '/') + ".class")) {
            if (in == null) {
                throw new ClassNotFoundException(name);
            }
            byte[] code = in.readAllBytes();
            return defineClass(name, code, 0, code.length);
        } catch (IOException e) {
            throw new ClassNotFoundException(name, e);
        }
    }

    @Override
    public InputStream getResourceAsStream(String file) {
        byte[] code = made.get(file.replaceFirst("\\.class$", "").replace('/', '.'));
        return code == null ? super.getResourceAsStream(file) : new ByteArrayInputStream(code);
    }

    /** As a topology's jar and its serialised bolts come from the client. */
    byte[] submitted(String type) {
        ByteArrayOutputStream bytes = new ByteArrayOutputStream();
        try {
            var constructor = loadClass(type).getDeclaredConstructor();
            constructor.setAccessible(true);
            new ObjectOutputStream(bytes).writeObject(constructor.newInstance());
        } catch (ReflectiveOperationException | IOException e) {
            throw new IllegalStateException(type, e);
        }
        return bytes.toByteArray();
    }

    Object read(byte[] object) {
        try (ObjectInputStream in = new ObjectInputStream(new ByteArrayInputStream(object)) {
            @Override
            protected Class<?> resolveClass(ObjectStreamClass type) throws ClassNotFoundException {
                return Class.forName(type.getName(), false, Side.this);
            }
        }) {
            return in.readObject();
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        } catch (ClassNotFoundException e) {
            throw new IllegalStateException(e);
        }
    }
}

package nstorm.store;

import java.io.IOException;
import java.io.InputStream;
import java.net.URL;
import java.nio.file.Path;
import java.util.function.BiConsumer;
import org.objectweb.asm.ClassVisitor;

/**
 * Loads lmdbjava, and the one class of ours that uses it, apart from everything else in the JVM.
 *
 * <p>Its parent is the platform loader and its class files lie under {@code lmdb/} in the hooks' jar. So it does not
 * see the user's versions of these libraries, nor does the user see ours. They cannot be relocated instead: jffi's
 * native code names its Java classes. ASM, which jnr-ffi needs too, is relocated, also within jnr-ffi.
 */
final class LmdbLoader extends ClassLoader {

    private static final String EXTRACT_DIR = "lmdbjava.extract.dir";
    private static final String ENV = "nstorm.store.LmdbEnv";
    private static final String ASM = ClassVisitor.class.getPackageName();

    private static LmdbLoader loader;

    private LmdbLoader() {
        super("nstorm-lmdb", getPlatformClassLoader());
    }

    /** Opens an environment for writing; what it returns stores values, and is closeable. */
    @SuppressWarnings("unchecked")
    static synchronized BiConsumer<String, byte[]> open(Path dir) throws ReflectiveOperationException {
        if (loader == null) {
            loader = new LmdbLoader();
        }
        // A killed JVM leaves the extracted library behind: in its own directory, the agent removes it.
        String before = System.getProperty(EXTRACT_DIR);
        System.setProperty(EXTRACT_DIR, dir.toString());
        // lmdbjava looks for its native library through the thread's context loader.
        Thread thread = Thread.currentThread();
        ClassLoader context = thread.getContextClassLoader();
        thread.setContextClassLoader(loader);
        try {
            Object env = loader.loadClass(ENV).getConstructor(Path.class).newInstance(dir);
            return (BiConsumer<String, byte[]>) env;
        } finally {
            thread.setContextClassLoader(context);
            if (before == null) {
                System.clearProperty(EXTRACT_DIR);
            } else {
                System.setProperty(EXTRACT_DIR, before);
            }
        }
    }

    @Override
    protected Class<?> findClass(String name) throws ClassNotFoundException {
        String file = name.replace('.', '/') + ".class";
        boolean outside = name.equals(ENV) || name.startsWith(ASM);
        try (InputStream in = LmdbLoader.class.getResourceAsStream((outside ? "/" : "/lmdb/") + file)) {
            if (in == null) {
                throw new ClassNotFoundException(name);
            }
            byte[] bytes = in.readAllBytes();
            return defineClass(name, bytes, 0, bytes.length);
        } catch (IOException e) {
            throw new ClassNotFoundException(name, e);
        }
    }

    @Override
    protected URL findResource(String name) {
        return LmdbLoader.class.getResource("/lmdb/" + name);
    }
}

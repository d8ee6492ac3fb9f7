package nstorm.store;

import java.io.Closeable;
import java.io.File;
import java.io.IOException;
import java.nio.file.Path;
import java.util.function.BiConsumer;

/**
 * LMDB's environment of this JVM, which alone writes it.
 *
 * <p>The native library maps the data file and the lock file. If one of them is truncated, the next access past its end
 * raises SIGBUS and ends the JVM. So each access comes after a look at both lengths. What remains is a truncation
 * between that look and the end of the access.
 */
final class LmdbSamples implements BiConsumer<String, byte[]>, Closeable {

    private final BiConsumer<String, byte[]> env;
    private final File data;
    private final File locks;
    private final long lockBytes;
    private long dataBytes;

    LmdbSamples(Path dir) throws ReflectiveOperationException {
        env = LmdbLoader.open(dir);
        data = dir.resolve("data.mdb").toFile();
        locks = dir.resolve("lock.mdb").toFile();
        lockBytes = locks.length();
        dataBytes = data.length();
    }

    /**
     * False once a file is shorter than LMDB left it, or gone. The environment may not be touched then, nor closed:
     * to close it, LMDB writes to the mapped lock file.
     */
    boolean isWhole() {
        return data.length() >= dataBytes && locks.length() >= lockBytes;
    }

    @Override
    public void accept(String key, byte[] value) {
        env.accept(key, value);
        dataBytes = Math.max(dataBytes, data.length());
    }

    @Override
    public void close() throws IOException {
        ((Closeable) env).close();
    }
}

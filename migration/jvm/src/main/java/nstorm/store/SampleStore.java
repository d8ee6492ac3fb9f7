package nstorm.store;

import java.io.Closeable;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.function.BiConsumer;

/** Where this JVM leaves its acks and samples for the node's agent: an LMDB environment of its own. */
public final class SampleStore implements Closeable {

    private final BiConsumer<String, byte[]> backend;
    private long version;

    private SampleStore(BiConsumer<String, byte[]> backend) {
        this.backend = backend;
    }

    /**
     * Creates the environment; where LMDB's native library cannot be loaded, plain files take its place.
     *
     * @param dir a directory that no other writer has opened
     */
    public static SampleStore open(Path dir) throws IOException {
        Files.createDirectories(dir);
        try {
            return new SampleStore(LmdbLoader.open(dir));
        } catch (ReflectiveOperationException | LinkageError | RuntimeException e) {
            Throwable cause = e.getCause() == null ? e : e.getCause();
            System.err.println("nstorm: LMDB cannot be used, samples go to files in " + dir + ": " + cause);
            return new SampleStore(new SampleFiles(dir));
        }
    }

    /**
     * Puts a value in its envelope and stores it.
     *
     * @throws RuntimeException if it cannot be stored; the last value then stays
     */
    public synchronized void put(String key, byte[] payload) {
        backend.accept(key, new Envelope(++version, payload).toBytes());
    }

    @Override
    public synchronized void close() throws IOException {
        if (backend instanceof Closeable closeable) {
            closeable.close();
        }
    }
}

package nstorm.store;

import java.io.Closeable;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.function.BiConsumer;

/** Where this JVM leaves its acks and samples for the node's agent: an LMDB environment of its own. */
public final class SampleStore implements Closeable {

    /** As long as LMDB makes it, for 126 readers. */
    private static final int LOCK_BYTES = 8192;

    private final Path dir;
    private BiConsumer<String, byte[]> backend;
    private long version;

    SampleStore(Path dir, BiConsumer<String, byte[]> backend) {
        this.dir = dir;
        this.backend = backend;
    }

    /**
     * Creates the environment; where LMDB's native library cannot be loaded, plain files take its place.
     *
     * @param dir a directory that no other writer has opened
     */
    public static SampleStore open(Path dir) throws IOException {
        Files.createDirectories(dir);
        takeRoom(dir.resolve("lock.mdb"));
        try {
            return new SampleStore(dir, new LmdbSamples(dir));
        } catch (ReflectiveOperationException | LinkageError | RuntimeException e) {
            Throwable cause = e.getCause() == null ? e : e.getCause();
            System.err.println("nstorm: LMDB cannot be used, samples go to files in " + dir + ": " + cause);
            return new SampleStore(dir, new SampleFiles(dir, ""));
        }
    }

    /**
     * Writes LMDB's lock file before LMDB maps it. LMDB writes no byte of it. On a full disk its first touch would end the JVM with
     * SIGBUS.
     */
    private static void takeRoom(Path lock) throws IOException {
        // A disk that was full has left a part of it.
        if (Files.notExists(lock) || Files.size(lock) < LOCK_BYTES) {
            Files.write(lock, new byte[LOCK_BYTES]);
        }
    }

    /**
     * Writes files into the folder of this JVM's user; their modes are by its umask, which Storm's worker-launcher sets.
     *
     * @throws IOException while the supervisor has not made the folder
     */
    public static SampleStore ofUser(Path storeDir, String worker) throws IOException {
        Path dir = UserFolders.own(storeDir);
        if (!Files.isWritable(dir)) {
            throw new IOException(dir + " is not there, or is not writable: this node's supervisor makes it");
        }
        return new SampleStore(dir, new SampleFiles(dir, worker + "."));
    }

    /**
     * Puts a value in its envelope and stores it.
     *
     * @throws RuntimeException if it cannot be stored; the last value then stays
     */
    public synchronized void put(String key, byte[] payload) {
        // The time, so that a JVM that comes to the folder of a dead one goes on above its versions.
        version = Math.max(version + 1, System.currentTimeMillis());
        usable().accept(key, new Envelope(version, payload).toBytes());
    }

    private BiConsumer<String, byte[]> usable() {
        if (backend instanceof LmdbSamples lmdb && !lmdb.isWhole()) {
            System.err.println("nstorm: the LMDB environment " + dir + " is shorter than this JVM has written it; "
                    + "from now on samples go to files there");
            backend = new SampleFiles(dir, "");
        }
        return backend;
    }

    @Override
    public synchronized void close() throws IOException {
        if (usable() instanceof Closeable closeable) {
            closeable.close();
        }
    }
}

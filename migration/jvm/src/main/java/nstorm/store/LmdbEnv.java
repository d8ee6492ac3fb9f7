package nstorm.store;

import java.io.Closeable;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.function.BiConsumer;
import org.lmdbjava.ByteArrayProxy;
import org.lmdbjava.Dbi;
import org.lmdbjava.DbiFlags;
import org.lmdbjava.Env;
import org.lmdbjava.EnvFlags;

/** The only code that touches lmdbjava; {@link LmdbLoader} alone may load it, hence no reference to ours. */
public final class LmdbEnv implements BiConsumer<String, byte[]>, Closeable {

    /** Sized once and sparse: to grow it, every process would have to open it again. */
    private static final long MAP_BYTES = 16L << 20;

    private final Env<byte[]> env;
    private final Dbi<byte[]> main;

    public LmdbEnv(Path dir) {
        // PROXY_BA: the others need JVM flags from Java 17 on. NOSYNC: samples need not outlive the machine.
        env = Env.create(ByteArrayProxy.PROXY_BA).setMapSize(MAP_BYTES).open(dir.toFile(), EnvFlags.MDB_NOSYNC);
        main = env.openDbi((byte[]) null, new DbiFlags[0]);
    }

    @Override
    public void accept(String key, byte[] value) {
        byte[] named = key.getBytes(StandardCharsets.UTF_8);
        try {
            main.put(named, value);
        } catch (Env.MapFullException e) {
            env.readerCheck(); // an agent that was killed while it read keeps all pages since
            main.put(named, value);
        }
    }

    @Override
    public void close() {
        env.close();
    }
}

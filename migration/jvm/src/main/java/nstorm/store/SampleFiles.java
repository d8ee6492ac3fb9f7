package nstorm.store;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.util.function.BiConsumer;

/** One file a key, replaced atomically: for workers of other users, and where LMDB cannot be used. */
final class SampleFiles implements BiConsumer<String, byte[]> {

    private final Path dir;
    private final String prefix;

    /**
     * Writes files into a folder.
     *
     * @param prefix what the name of each begins with
     */
    SampleFiles(Path dir, String prefix) {
        this.dir = dir;
        this.prefix = prefix;
    }

    @Override
    public void accept(String key, byte[] value) {
        try {
            Files.createDirectories(dir);
            Path next = Files.write(dir.resolve(prefix + key + ".tmp"), value);
            Files.move(next, dir.resolve(prefix + key + ".bin"), StandardCopyOption.ATOMIC_MOVE);
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }
}

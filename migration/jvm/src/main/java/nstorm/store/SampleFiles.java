package nstorm.store;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.util.function.BiConsumer;

/** One file a key, replaced atomically: what is left where LMDB cannot be used. */
final class SampleFiles implements BiConsumer<String, byte[]> {

    private final Path dir;

    SampleFiles(Path dir) {
        this.dir = dir;
    }

    @Override
    public void accept(String key, byte[] value) {
        try {
            Files.createDirectories(dir);
            Path next = Files.write(dir.resolve(key + ".tmp"), value);
            Files.move(next, dir.resolve(key + ".bin"), StandardCopyOption.ATOMIC_MOVE);
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }
}

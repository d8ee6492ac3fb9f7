package nstorm.store;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.BasicFileAttributes;
import java.nio.file.attribute.FileTime;

/** A file that is replaced as a whole: what a worker of another user reads. */
final class WholeFile implements PlanFile {

    private final Path path;
    private Object fileKey;
    private FileTime changed;
    private long changes;

    WholeFile(Path path) {
        this.path = path;
    }

    @Override
    public long newest() throws IOException {
        BasicFileAttributes found = Files.readAttributes(path, BasicFileAttributes.class);
        // The file system may give the number of a file that was replaced to the next one.
        if (!found.fileKey().equals(fileKey) || !found.lastModifiedTime().equals(changed)) {
            fileKey = found.fileKey();
            changed = found.lastModifiedTime();
            changes++;
        }
        return changes;
    }

    @Override
    public Read read(String key) throws IOException {
        // What replaces it after that look is read once more.
        return new Read(newest(), Files.readAllBytes(path));
    }

    @Override
    public void close() {}
}

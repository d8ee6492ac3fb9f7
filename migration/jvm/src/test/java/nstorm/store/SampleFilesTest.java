package nstorm.store;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;

import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class SampleFilesTest {

    @Test
    void replacesAFileAKey(@TempDir Path dir) throws Exception {
        SampleFiles files = new SampleFiles(dir);
        files.accept("ack", new byte[] {1});
        files.accept("ack", new byte[] {2, 3});
        assertArrayEquals(new byte[] {2, 3}, Files.readAllBytes(dir.resolve("ack.bin")));
        try (var left = Files.list(dir)) {
            assertEquals(List.of(dir.resolve("ack.bin")), left.toList());
        }
    }
}

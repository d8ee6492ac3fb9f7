package nstorm.store;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class SampleFilesTest {

    @Test
    void aWorkerOfAnotherUserWaitsForItsFolder(@TempDir Path store) throws Exception {
        assertThrows(IOException.class, () -> SampleStore.ofUser(store, "6700-1"));
        Path folder = Files.createDirectories(UserFolders.own(store));
        try (SampleStore samples = SampleStore.ofUser(store, "6700-1")) {
            samples.put("ack", new byte[] {7});
        }
        Envelope read = Envelope.parse(Files.readAllBytes(folder.resolve("6700-1.ack.bin")));
        assertArrayEquals(new byte[] {7}, read.payload());
    }

    @Test
    void replacesAFileAKey(@TempDir Path dir) throws Exception {
        SampleFiles files = new SampleFiles(dir, "6700-1.");
        files.accept("ack", new byte[] {1});
        files.accept("ack", new byte[] {2, 3});
        assertArrayEquals(new byte[] {2, 3}, Files.readAllBytes(dir.resolve("6700-1.ack.bin")));
        try (var left = Files.list(dir)) {
            assertEquals(List.of(dir.resolve("6700-1.ack.bin")), left.toList());
        }
    }
}

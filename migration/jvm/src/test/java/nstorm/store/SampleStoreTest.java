package nstorm.store;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.file.Files;
import java.nio.file.Path;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Over files; SampleStoreIT has LMDB. */
class SampleStoreTest {

    private static long version(Path dir) throws Exception {
        return Envelope.parse(Files.readAllBytes(dir.resolve("ack.bin"))).version();
    }

    private static SampleStore opened(Path dir) {
        return new SampleStore(dir, new SampleFiles(dir, ""));
    }

    private static void put(Path dir, int times) {
        SampleStore store = opened(dir);
        for (int i = 0; i < times; i++) {
            store.put("ack", new byte[0]);
        }
    }

    @Test
    void versionsRiseOverARestartInTheSameFolder(@TempDir Path dir) throws Exception {
        put(dir, 10);
        long before = version(dir);
        Thread.sleep(50);
        put(dir, 1);
        assertTrue(version(dir) > before, version(dir) + " came after " + before);
    }

    @Test
    void versionsRiseWithinAMillisecond(@TempDir Path dir) throws Exception {
        long startMs = System.currentTimeMillis();
        put(dir, 1000);
        assertTrue(version(dir) >= startMs + 999, version(dir) + " after 1000 writes since " + startMs);
    }

    @Test
    void aFolderThatIsGoneIsMadeAnew(@TempDir Path dir) throws Exception {
        Path folder = dir.resolve("w/6700-1");
        SampleStore store = opened(folder);
        store.put("ack", new byte[1]);
        Files.delete(folder.resolve("ack.bin"));
        Files.delete(folder);
        store.put("ack", new byte[2]);
        assertEquals(
                2, Envelope.parse(Files.readAllBytes(folder.resolve("ack.bin"))).payload().length);
    }
}

package nstorm.store;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertSame;

import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class LateSampleStoreTest {
    private static final long SECOND = TimeUnit.SECONDS.toNanos(1);

    private final List<Exception> failures = new ArrayList<>();
    /** Near the end of what a long holds: the clock's zero is anywhere. */
    private final long startNanos = Long.MAX_VALUE - SECOND;

    @Test
    void isTriedAgainUntilItOpens(@TempDir Path dir) throws Exception {
        Path inTheWay = Files.createFile(dir.resolve("w"));
        LateSampleStore late = new LateSampleStore(() -> SampleStore.open(inTheWay.resolve("6700-1")), failures::add);
        assertNull(late.get(startNanos));
        assertNull(late.get(startNanos + 2 * SECOND));
        assertEquals(1, failures.size(), "each second would fill the log");
        Files.delete(inTheWay);
        assertNull(late.get(startNanos + 2 * SECOND + 1), "not at each pass");
        try (SampleStore opened = late.get(startNanos + 4 * SECOND)) {
            assertNotNull(opened);
            opened.put("ack", new byte[] {1});
            assertSame(opened, late.get(startNanos + 9 * SECOND));
        }
        assertEquals(1, failures.size());
    }

    @Test
    void isThereAtOnceWhereNothingIsInTheWay(@TempDir Path dir) throws Exception {
        try (SampleStore opened =
                new LateSampleStore(() -> SampleStore.open(dir.resolve("6700-1")), failures::add).get(startNanos)) {
            assertNotNull(opened);
        }
        assertEquals(List.of(), failures);
    }
}

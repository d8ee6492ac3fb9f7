package nstorm.store;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.concurrent.TimeUnit;

/**
 * Whether the hooks of this node are switched off: by a file in its store, from a person or from the agent.
 *
 * <p>A file, for it has to work where the agent, ZooKeeper or the store itself does not. From any thread.
 */
public final class OffSwitch {

    private static final long LOOK_NANOS = TimeUnit.MILLISECONDS.toNanos(500);
    private static final int LONGEST = 200;

    private final List<Path> files;
    private String reason;
    private long untilNanos = System.nanoTime();

    OffSwitch(Path storeDir) {
        files = List.of(storeDir.resolve("off"), storeDir.resolve("off.cluster"));
    }

    /** Why they are off, null while they are on; looked at twice a second. */
    synchronized String reason() {
        long now = System.nanoTime();
        if (now - untilNanos >= 0) {
            untilNanos = now + LOOK_NANOS;
            reason = files.stream()
                    .filter(Files::exists)
                    .findFirst()
                    .map(OffSwitch::text)
                    .orElse(null);
        }
        return reason;
    }

    private static String text(Path file) {
        try {
            return oneLine(Files.readAllBytes(file));
        } catch (IOException | RuntimeException e) {
            return oneLine(new byte[0]);
        }
    }

    /** The first line of what a person has typed. */
    public static String oneLine(byte[] text) {
        String line = new String(text, StandardCharsets.UTF_8)
                .strip()
                .lines()
                .findFirst()
                .orElse("no reason given")
                .replaceAll("\\p{Cntrl}", "?");
        return line.substring(0, Math.min(line.length(), LONGEST));
    }
}

package nstorm.store;

import java.io.RandomAccessFile;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;

/** The program of a child JVM: truncates its own stores from outside of LMDB, in many ways, and goes on. */
final class TruncatedStores {

    static final int ROUNDS = 60;

    private TruncatedStores() {}

    public static void main(String[] args) throws Exception {
        for (int round = 0; round < ROUNDS; round++) {
            Path dir = Path.of(args[0], Integer.toString(round));
            try (SampleStore store = SampleStore.open(dir)) {
                for (int i = 0; i <= round; i++) {
                    store.put("load", new byte[i * 700]);
                    store.put("ack", new byte[i * 50]);
                }
                truncate(dir, round);
                store.put("load", new byte[1000]);
                store.put("ack", ("after " + round).getBytes(StandardCharsets.UTF_8));
            }
        }
    }

    /** To nothing, to the two meta pages, or by one byte: the data, the locks, or the whole folder. */
    private static void truncate(Path dir, int round) throws Exception {
        if (round % 10 == 9) {
            Files.delete(dir.resolve("data.mdb"));
            Files.delete(dir.resolve("lock.mdb"));
            return;
        }
        Path victim = dir.resolve(round % 10 == 8 ? "lock.mdb" : "data.mdb");
        try (RandomAccessFile file = new RandomAccessFile(victim.toFile(), "rw")) {
            long[] lengths = {0, 8192, file.length() - 1};
            file.setLength(victim.endsWith("lock.mdb") ? 0 : lengths[round % 3]);
        }
    }
}

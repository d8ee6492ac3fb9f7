package nstorm.memory;

import java.io.IOException;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;

/** Measures what it takes to write and read the state of a counter; docs/measured.md has the command. */
final class StateSizes {
    private static final int ENTRIES_PER_MB = 38_000;
    private static final int TIMES = 3;

    private StateSizes() {
    }

    static final class Counter {
        private Map<String, Long> counts = new HashMap<>();
    }

    public static void main(String[] arguments) throws IOException {
        for (int mb : new int[] {1, 1, 10, 10, 90}) {
            Counter full = new Counter();
            for (long i = 0; i < (long) mb * ENTRIES_PER_MB; i++) {
                full.counts.put("word-" + i, i);
            }
            for (int i = 0; i < TIMES; i++) {
                measure(full);
            }
        }
    }

    private static void measure(Counter full) throws IOException {
        long begun = Walk.cpuNanos();
        byte[] state = BoltState.save(List.of(full), Set.of("counts"));
        long written = Walk.cpuNanos();
        Counter empty = new Counter();
        BoltState.load(state, List.of(empty));
        long read = Walk.cpuNanos();
        if (!empty.counts.equals(full.counts)) {
            throw new IllegalStateException("not what was written");
        }
        System.out.printf("%.1f MB: written in %d ms of CPU, read in %d%n", state.length / 1048576.0,
                (written - begun) / 1_000_000, (read - written) / 1_000_000);
    }
}

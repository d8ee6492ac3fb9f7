package nstorm.worker.state;

import java.io.IOException;
import java.lang.management.ManagementFactory;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import nstorm.state.FirstMaps;
import nstorm.state.FirstPass;
import nstorm.state.StateBytes;
import nstorm.state.Whole;

/** Measures what it takes to write, send and read the state of a bolt, without a network; docs/measurements/state.md has the command. */
final class StateSizes {
    private static final int ENTRIES_PER_MB = 38_000;
    private static final int ARRAY_BYTES = 65_536;
    private static final long PRIME = 2_654_435_761L;
    private static final int TIMES = 3;
    private static final int CHANGED_ENTRIES = 10_000;
    private static final Set<String> FIELDS = Set.of("kept");
    private static final byte[] KEY = new byte[100];

    private StateSizes() {}

    static final class Keeper {
        private Object kept;
    }

    public static void main(String[] arguments) throws IOException {
        for (int mb : new int[] {1, 1, 10, 10, 90}) {
            Map<String, Long> counts = new HashMap<>();
            long entries = (long) mb * ENTRIES_PER_MB;
            for (long i = 0; i < entries; i++) {
                // In no order, as a bolt does: memory is slower then.
                counts.put("word-" + i * PRIME % entries, i);
            }
            measure("HashMap", counts);
            for (int i = 0; i < TIMES; i++) {
                measureTwoPasses(counts, i);
            }
            List<byte[]> arrays = new ArrayList<>();
            for (int i = 0; i < mb * ((1 << 20) / ARRAY_BYTES); i++) {
                arrays.add(new byte[ARRAY_BYTES]);
            }
            measure("arrays", arrays);
        }
    }

    private static void measure(String name, Object kept) throws IOException {
        for (int i = 0; i < TIMES; i++) {
            measureOnce(name, kept);
        }
    }

    private static void measureOnce(String name, Object kept) throws IOException {
        Keeper full = new Keeper();
        full.kept = kept;
        long begun = cpuNanos();
        StateBytes state = Whole.save(List.of(full), FIELDS, null);
        long written = cpuNanos();
        long crc = state.crc();
        List<byte[]> pieces = new ArrayList<>();
        for (int i = 0; i < state.pieces(); i++) {
            pieces.add(StateArrivals.piece("m1", KEY, state, crc, i));
        }
        long cut = cpuNanos();
        StateArrivals arrivals = new StateArrivals();
        arrivals.await(Map.of("m1", KEY));
        for (byte[] piece : pieces) {
            arrivals.take(piece);
        }
        byte[] arrived = arrivals.whole("m1");
        long taken = cpuNanos();
        Keeper empty = new Keeper();
        Whole.load(arrived, List.of(empty), null);
        long read = cpuNanos();
        if (kept instanceof Map && !empty.kept.equals(kept)) {
            throw new IllegalStateException("not what was written");
        }
        System.out.printf(
                "%s %.1f MB: CPU to write %d ms, to cut %d, to take %d, to read %d%n",
                name,
                state.size() / 1048576.0,
                (written - begun) / 1_000_000,
                (cut - written) / 1_000_000,
                (taken - cut) / 1_000_000,
                (read - taken) / 1_000_000);
    }

    /** The pause has what is done while the bolt holds still: all but to write and to read the first pass. */
    private static void measureTwoPasses(Map<String, Long> counts, int time) throws IOException {
        Keeper full = new Keeper();
        full.kept = counts;
        long begun = cpuNanos();
        FirstPass first = FirstPass.of(List.of(full), FIELDS);
        long seen = cpuNanos();
        byte[] firstBytes = Whole.of(first.write());
        long written = cpuNanos();
        FirstMaps maps = FirstMaps.orNull(firstBytes);
        long read = cpuNanos();
        for (long i = 0; i < CHANGED_ENTRIES; i++) {
            counts.merge("word-" + i * counts.size() / CHANGED_ENTRIES, 1000L + time, Long::sum);
        }
        long changed = cpuNanos();
        byte[] state = Whole.of(Whole.save(List.of(full), FIELDS, first));
        long saved = cpuNanos();
        Keeper empty = new Keeper();
        Whole.load(state, List.of(empty), maps);
        long loaded = cpuNanos();
        if (!empty.kept.equals(counts)) {
            throw new IllegalStateException("not what was written");
        }
        System.out.printf(
                "HashMap in two passes, %.1f MB and %d kB: CPU to write the first %d ms, to read it %d; to look at it %d, "
                        + "to write the second %d, to read it %d, together %d%n",
                firstBytes.length / 1048576.0,
                state.length >> 10,
                (written - seen) / 1_000_000,
                (read - written) / 1_000_000,
                (seen - begun) / 1_000_000,
                (saved - changed) / 1_000_000,
                (loaded - saved) / 1_000_000,
                (seen - begun + loaded - changed) / 1_000_000);
    }

    private static long cpuNanos() {
        return ManagementFactory.getThreadMXBean().getCurrentThreadCpuTime();
    }
}

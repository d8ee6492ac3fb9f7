package nstorm.proof;

import java.io.IOException;
import java.lang.management.ManagementFactory;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import nstorm.memory.Declared;
import nstorm.proof.MemoryTest.Holder;
import nstorm.proof.MemoryTest.Pair;

/** Measures what it takes to look at what bolts remember, without a cluster; docs/measurements/state.md has the command. */
final class ProofTimes {
    private static final long PRIME = 2_654_435_761L;
    private static final int TIMES = 6;

    private ProofTimes() {}

    public static void main(String[] arguments) throws IOException {
        Map<String, Object> conf = new HashMap<>();
        for (int i = 0; i < 300; i++) {
            conf.put("topology.key." + i, List.of(i, "value"));
        }
        measure("no state", new Pair(conf, new Pair("a", new int[16])));
        for (int entries : new int[] {38_000, 1_000_000, 3_420_000}) {
            Map<String, Long> counts = new HashMap<>();
            for (long i = 0; i < entries; i++) {
                // In no order, as a bolt does: memory is slower then.
                counts.put("word-" + i * PRIME % entries, i);
            }
            measure("HashMap of " + entries, counts);
        }
        List<Pair> objects = new ArrayList<>();
        for (int i = 0; i < 1_000_000; i++) {
            objects.add(new Pair(i, null));
        }
        measure("list of 1000000 objects", objects);
        measure("array of 90 MB", new byte[90 << 20]);
    }

    private static void measure(String name, Object kept) {
        StringBuilder times = new StringBuilder();
        for (int i = 0; i < TIMES; i++) {
            Holder holder = new Holder();
            holder.one = kept;
            Memory memory = new Memory("count", List.of(holder), List.of(), Declared.of(Map.of()));
            long begun = cpuNanos();
            memory.prepared();
            long prepared = cpuNanos();
            String changed = memory.changedSincePrepared();
            long looked = cpuNanos();
            TravelProof proof = TravelProof.of(Subject.of(List.of(holder), List.of()), Set.of("one"), null);
            long proved = cpuNanos();
            times.append(String.format(
                    " %.2f/%.2f/%.2f", (prepared - begun) / 1e6, (looked - prepared) / 1e6, (proved - looked) / 1e6));
            if (changed != null || proof.obstacle() != null) {
                times.append(changed == null ? " (" + proof.obstacle() + ")" : " (" + changed + ")");
            }
        }
        System.out.println(name + ": ms of CPU after prepare/at the move/for what travels" + times);
    }

    private static long cpuNanos() {
        return ManagementFactory.getThreadMXBean().getCurrentThreadCpuTime();
    }
}

package nstorm.bench;

import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import java.nio.file.Path;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import nstorm.store.PlanStore;
import nstorm.wire.LocalPlan;
import org.openjdk.jmh.annotations.Benchmark;
import org.openjdk.jmh.annotations.BenchmarkMode;
import org.openjdk.jmh.annotations.Mode;
import org.openjdk.jmh.annotations.OutputTimeUnit;
import org.openjdk.jmh.annotations.Param;
import org.openjdk.jmh.annotations.Scope;
import org.openjdk.jmh.annotations.Setup;
import org.openjdk.jmh.annotations.State;

/** A worker's look at the plan that the agent's writer has stored in {@code dir/<entries>}. */
@State(Scope.Benchmark)
@BenchmarkMode(Mode.AverageTime)
@OutputTimeUnit(TimeUnit.NANOSECONDS)
public class PlanRead {
    @Param("")
    private String dir;

    @Param({"1", "100"})
    private int entries;

    private PlanStore store;
    private VarHandle seen;
    private Map<?, ?> decoded;

    @Setup
    public void open() throws ReflectiveOperationException {
        store = PlanStore.of(Path.of(dir, String.valueOf(entries)), "bench-1-1700000000");
        MethodHandles.Lookup inside = MethodHandles.privateLookupIn(PlanStore.class, MethodHandles.lookup());
        seen = inside.findVarHandle(PlanStore.class, "seen", long.class);
        decoded = (Map<?, ?>)
                inside.findVarHandle(PlanStore.class, "decoded", Map.class).get(store);
        LocalPlan plan = store.poll();
        if (plan == null || plan.plans().get(0).entries().size() != entries || store.lastError() != null) {
            throw new IllegalStateException("no plan of " + entries + " entries: " + store.lastError());
        }
    }

    /** Nothing was written since the last look. */
    @Benchmark
    public LocalPlan unchanged(CpuTime cpu) {
        cpu.operations++;
        return store.poll();
    }

    /** Another topology's plan has changed: found, copied, checked, and its own plan compared. */
    @Benchmark
    public LocalPlan anotherChanged(CpuTime cpu) {
        seen.set(store, -1L);
        cpu.operations++;
        return store.poll();
    }

    /** A newer snapshot is there: found, copied, checked, parsed and merged. */
    @Benchmark
    public LocalPlan changed(CpuTime cpu) {
        seen.set(store, -1L);
        decoded.clear();
        cpu.operations++;
        return store.poll();
    }
}

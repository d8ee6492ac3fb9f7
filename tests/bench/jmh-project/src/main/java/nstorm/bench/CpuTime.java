package nstorm.bench;

import java.lang.management.ManagementFactory;
import java.lang.management.ThreadMXBean;
import org.openjdk.jmh.annotations.AuxCounters;
import org.openjdk.jmh.annotations.Level;
import org.openjdk.jmh.annotations.Scope;
import org.openjdk.jmh.annotations.Setup;
import org.openjdk.jmh.annotations.State;
import org.openjdk.jmh.annotations.TearDown;

/**
 * CPU time of the measuring thread beside JMH's wall time: on a machine that is busy otherwise, wall time
 * counts what others use. Per iteration: {@code cpuNs} spent for {@code operations}.
 */
@State(Scope.Thread)
@AuxCounters(AuxCounters.Type.EVENTS)
public class CpuTime {
    public long cpuNs;
    public long operations;

    private final ThreadMXBean threads = ManagementFactory.getThreadMXBean();
    private long beganNs;

    @Setup(Level.Iteration)
    public void begin() {
        beganNs = threads.getCurrentThreadCpuTime();
    }

    @TearDown(Level.Iteration)
    public void end() {
        cpuNs = threads.getCurrentThreadCpuTime() - beganNs;
    }
}

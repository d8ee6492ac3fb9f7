package nstorm.nimbus;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.Map;
import java.util.Set;
import org.apache.storm.generated.SupervisorInfo;
import org.apache.storm.metric.StormMetricsRegistry;
import org.apache.storm.scheduler.Cluster;
import org.apache.storm.scheduler.DefaultScheduler;
import org.apache.storm.scheduler.EvenScheduler;
import org.apache.storm.scheduler.IScheduler;
import org.apache.storm.scheduler.Topologies;
import org.apache.storm.scheduler.resource.ResourceAwareScheduler;
import org.junit.jupiter.api.Test;

class StormPassesTest {

    /** A user's own. */
    private static final class Own implements IScheduler {
        @Override
        public void prepare(Map<String, Object> conf, StormMetricsRegistry registry) {}

        @Override
        public void schedule(Topologies topologies, Cluster cluster) {}

        @Override
        public Map<?, ?> config() {
            return Map.of();
        }
    }

    private static String undoes(IScheduler stock, boolean idlePass) {
        return new StormPasses(stock, Map.of(StormPasses.IDLE_PASS, idlePass), Set.of()).undoes("wc");
    }

    @Test
    void theIdlePassIsNamedUnderASchedulerThatMayHaveIt() {
        for (IScheduler kept :
                new IScheduler[] {new DefaultScheduler(), new EvenScheduler(), new ResourceAwareScheduler()}) {
            assertNull(undoes(kept, true));
        }
        assertNull(undoes(new Own(), false));
        assertTrue(undoes(new Own(), true).startsWith(StormPasses.IDLE_PASS + " is true, and " + Own.class.getName()));
    }

    @Test
    void aSupervisorThatHasJustComeIsClosedUntilItIsStable() {
        StormPasses passes = new StormPasses(new Own(), Map.of("nimbus.monitor.freq.secs", 4), Set.of("bad"));
        SupervisorInfo supervisor = new SupervisorInfo(1, "host1");
        assertNull(passes.closes(supervisor, true));
        supervisor.set_uptime_secs(11);
        assertEquals("its supervisor has come less than 12 s ago", passes.closes(supervisor, true));
        assertNull(passes.closes(supervisor, false), "Storm has workers there");
        supervisor.set_uptime_secs(12);
        assertNull(passes.closes(supervisor, true));
        supervisor.set_hostname("bad");
        assertTrue(passes.closes(supervisor, false).contains("blacklisted"));
    }
}

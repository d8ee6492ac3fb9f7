package nstorm.nimbus;

import java.util.Map;
import java.util.Set;
import org.apache.storm.DaemonConfig;
import org.apache.storm.generated.SupervisorInfo;
import org.apache.storm.scheduler.DefaultScheduler;
import org.apache.storm.scheduler.EvenScheduler;
import org.apache.storm.scheduler.IScheduler;
import org.apache.storm.scheduler.IsolationScheduler;
import org.apache.storm.scheduler.resource.ResourceAwareScheduler;
import org.apache.storm.utils.ObjectReader;

/**
 * What Storm's own passes over running workers mean for moves.
 *
 * @param conf     of Nimbus
 * @param heldBack the hosts on which the last round would have placed nothing new
 */
record StormPasses(IScheduler stock, Map<String, Object> conf, Set<String> heldBack) {

    /** Storm 3: a worker of a topology restarts on a supervisor that has none, in any round. */
    static final String IDLE_PASS = "nimbus.even.rebalance.idle.supervisor.enabled";

    /** As many rounds Storm 3 waits for an idle supervisor to be stable. */
    private static final int STABLE_ROUNDS = 3;

    String stockName() {
        return stock.getClass().getName();
    }

    /** True if the scheduler passes over the topologies that it is given, and needs no others for its answer. */
    static boolean mayMiss(IScheduler stock) {
        return stock instanceof DefaultScheduler || stock instanceof EvenScheduler;
    }

    /** True if the scheduler places by the memory that components declare and supervisors have. */
    boolean countsMemory() {
        return stock instanceof ResourceAwareScheduler;
    }

    /** Why Storm would undo moves of a topology, or null. */
    String undoes(String topologyName) {
        if (stock instanceof IsolationScheduler
                && conf.get(DaemonConfig.ISOLATION_SCHEDULER_MACHINES) instanceof Map<?, ?> machines
                && machines.containsKey(topologyName)) {
            return "IsolationScheduler has it alone on its machines, and would place it again";
        }
        boolean idlePass = ObjectReader.getBoolean(conf.get(IDLE_PASS), false);
        if (idlePass && !mayMiss(stock) && !(stock instanceof ResourceAwareScheduler)) {
            return IDLE_PASS + " is true, and " + stockName() + " may restart its workers on idle supervisors";
        }
        return null;
    }

    /** Why nothing may come to a host, or null. */
    String closes(SupervisorInfo supervisor, boolean isIdle) {
        if (heldBack.contains(supervisor.get_hostname())) {
            return "Storm places nothing there: it has blacklisted the host, or isolated a topology on it";
        }
        long stableSecs =
                STABLE_ROUNDS * (long) ObjectReader.getInt(conf.get(DaemonConfig.NIMBUS_MONITOR_FREQ_SECS), 10);
        if (isIdle && supervisor.is_set_uptime_secs() && supervisor.get_uptime_secs() < stableSecs) {
            return "its supervisor has come less than " + stableSecs + " s ago";
        }
        return null;
    }
}

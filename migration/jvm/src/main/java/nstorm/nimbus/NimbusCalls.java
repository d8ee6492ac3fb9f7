package nstorm.nimbus;

import java.lang.reflect.Method;
import java.util.List;
import java.util.Map;
import nstorm.hook.HookStatus;
import org.apache.storm.StormTimer;
import org.apache.storm.cluster.IStormClusterState;
import org.apache.storm.daemon.nimbus.Nimbus;
import org.apache.storm.generated.Assignment;
import org.apache.storm.generated.NodeInfo;
import org.apache.storm.nimbus.ILeaderElector;
import org.apache.storm.scheduler.Cluster;
import org.apache.storm.scheduler.IScheduler;
import org.apache.storm.scheduler.Topologies;
import org.apache.storm.scheduler.TopologyDetails;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** What the advices in Nimbus call; whatever fails here, Nimbus goes on as stock. */
public final class NimbusCalls {

    private static final Logger LOG = LoggerFactory.getLogger(NimbusCalls.class);
    private static final long FIRST_READ_MS = 5_000;

    private static volatile PlanAwareScheduler scheduler;
    private static volatile PlanExchange exchange;
    /** Nimbus holds its scheduling lock from the beginning of a round to its end. */
    private static volatile SchedulingRound round;

    private static volatile Thread absorbing;

    private NimbusCalls() {}

    /** Nimbus puts its scheduler into the blacklist's: ours goes between. */
    public static IScheduler wrap(IScheduler stock) {
        if (!HookStatus.active()) {
            return stock;
        }
        HookStatus.log(LOG);
        scheduler = new PlanAwareScheduler(stock, () -> round);
        return scheduler;
    }

    /** A round begins; existing are Storm's assignments, without that of a topology being rebalanced. */
    public static void roundBegins(
            Nimbus nimbus,
            Map<String, Assignment> existing,
            Topologies topologies,
            Map<String, Object> conf,
            IStormClusterState state,
            ILeaderElector elector,
            StormTimer timer) {
        round = null;
        if (!HookStatus.active() || scheduler == null) {
            return;
        }
        try {
            boolean first = exchange == null;
            if (first) {
                HookStatus.configured(conf);
                if (Access.isMissing(conf)) {
                    LOG.error("nstorm: nstorm.secure is required, and Nimbus has no credentials: it is stock Storm");
                    HookStatus.refuse("nstorm.secure is required, and Nimbus has no credentials");
                    return;
                }
                exchange = start(new PlanExchange(conf, state, elector, () -> absorbSoon(nimbus, timer)));
            }
            exchange.roundBegins(topologies, () -> scheduler.passes(conf), first ? FIRST_READ_MS : 0);
            if (HookStatus.watching() == null) {
                begin(new SchedulingRound(existing, exchange));
            }
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        } catch (RuntimeException | LinkageError e) {
            LOG.error("nstorm: this round is stock", e);
        }
    }

    static void begin(SchedulingRound now) {
        round = now;
    }

    private static PlanExchange start(PlanExchange started) {
        Thread thread = new Thread(started, "nstorm-nimbus");
        thread.setDaemon(true);
        thread.start();
        return started;
    }

    /** A round at once, on Nimbus' own timer; what that thread throws would end Nimbus. */
    private static void absorbSoon(Nimbus nimbus, StormTimer timer) {
        if (HookStatus.watching() != null) {
            return;
        }
        timer.schedule(0, () -> {
            try {
                Method round = Nimbus.class.getDeclaredMethod(NimbusHooks.MAKE_ASSIGNMENTS);
                round.setAccessible(true);
                absorbing = Thread.currentThread();
                round.invoke(nimbus);
            } catch (Exception | LinkageError e) {
                LOG.warn("nstorm: extra round failed, the plan waits for the next one", e);
            } finally {
                absorbing = null;
            }
        });
    }

    /**
     * True if this is a round of ours, nothing needs Storm's scheduler, and the plans are absorbed.
     *
     * <p>Storm counts rounds to decide whom to blacklist, and its schedulers keep state: they run in Nimbus' own
     * rounds only, unless an executor is dead.
     */
    public static boolean absorbedAlone(Topologies topologies, Cluster cluster) {
        SchedulingRound now = round;
        if (absorbing != Thread.currentThread() || now == null) {
            return false;
        }
        try {
            for (TopologyDetails topology : topologies.getTopologies()) {
                if (!cluster.getUnassignedExecutors(topology).isEmpty()) {
                    return false;
                }
            }
            now.absorb(topologies, cluster);
            return true;
        } catch (RuntimeException | LinkageError e) {
            LOG.error("nstorm: plans not absorbed in an extra round", e);
            return false;
        }
    }

    /** Nimbus gives the executors of every changed slot new start times: what only followed the plan keeps them. */
    public static void keepStartTimes(
            Map<List<Long>, NodeInfo> before, Map<List<Long>, List<Object>> after, List<List<Long>> changed) {
        SchedulingRound now = round;
        try {
            if (now != null && before != null && after != null && !changed.isEmpty()) {
                now.keepStartTimes(before, after, changed);
            }
        } catch (RuntimeException | LinkageError e) {
            LOG.error("nstorm: start times are renewed as stock does", e);
        }
    }

    /** The round's assignments are written. */
    public static void roundEnded() {
        round = null;
        PlanExchange told = exchange;
        if (told != null) {
            told.roundEnded();
        }
    }
}

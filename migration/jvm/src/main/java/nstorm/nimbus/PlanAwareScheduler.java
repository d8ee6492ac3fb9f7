package nstorm.nimbus;

import java.util.Map;
import java.util.Set;
import java.util.function.Supplier;
import org.apache.storm.metric.StormMetricsRegistry;
import org.apache.storm.scheduler.Cluster;
import org.apache.storm.scheduler.IScheduler;
import org.apache.storm.scheduler.Topologies;
import org.apache.storm.scheduler.resource.ResourceAwareScheduler;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The user's scheduler, run exactly once a round, over a cluster in which managed topologies lack nothing.
 *
 * <p>The wanted placement is made before it runs, so that none of its choices can clash with ours. Its answer is
 * taken as it is. Storm 2 then touches only what needs scheduling. Storm 3 may also restart running workers on idle
 * supervisors, those of the topologies that its scheduler is given. So it is not given what lacks nothing.
 */
final class PlanAwareScheduler implements IScheduler {

    private static final Logger LOG = LoggerFactory.getLogger(PlanAwareScheduler.class);

    private final IScheduler stock;
    private final Supplier<SchedulingRound> round;
    private volatile Set<String> heldBack = Set.of();

    /**
     * Wraps a scheduler.
     *
     * @param round the round that runs now, null if it is to be stock
     */
    PlanAwareScheduler(IScheduler stock, Supplier<SchedulingRound> round) {
        this.stock = stock;
        this.round = round;
    }

    /** What Storm's own passes mean for moves, as of the last round. */
    StormPasses passes(Map<String, Object> conf) {
        return new StormPasses(stock, conf, heldBack);
    }

    @Override
    public void schedule(Topologies topologies, Cluster cluster) {
        SchedulingRound now = round.get();
        boolean frees = !(stock instanceof ResourceAwareScheduler);
        SchedulingRound.Prepared prepared = frees ? prepare(now, topologies, cluster) : null;
        Cluster shown = prepared == null ? cluster : prepared.cluster();
        if (prepared == null) {
            stock.schedule(topologies, shown);
        } else {
            stock.schedule(StormPasses.mayMiss(stock) ? prepared.lacking() : prepared.topologies(), shown);
        }
        // IsolationScheduler holds its machines back in the cluster that it was given.
        heldBack = Set.copyOf(shown.getBlacklistedHosts());
        if (prepared != null) {
            take(shown, cluster);
        } else if (!frees) {
            absorb(now, topologies, cluster);
        }
    }

    /** The resource-aware scheduler frees what runs only for a higher priority, and has limits on memory: only the plan is laid on. */
    private static void absorb(SchedulingRound now, Topologies topologies, Cluster cluster) {
        try {
            if (now != null) {
                now.absorb(topologies, cluster);
            }
        } catch (RuntimeException | LinkageError e) {
            LOG.error("nstorm: plans not absorbed in this round", e);
        }
    }

    private static SchedulingRound.Prepared prepare(SchedulingRound now, Topologies topologies, Cluster cluster) {
        try {
            return now == null ? null : now.prepare(topologies, cluster);
        } catch (RuntimeException | LinkageError e) {
            LOG.error("nstorm: this round is stock", e);
            return null;
        }
    }

    private static void take(Cluster answer, Cluster cluster) {
        try {
            cluster.updateFrom(answer);
        } catch (RuntimeException e) {
            LOG.error("nstorm: the scheduler's answer is taken slot by slot", e);
            cluster.setAssignments(answer.getAssignments(), true);
        }
    }

    @Override
    public void prepare(Map<String, Object> conf, StormMetricsRegistry metricsRegistry) {
        stock.prepare(conf, metricsRegistry);
    }

    @Override
    public Map<?, ?> config() {
        return stock.config();
    }

    @Override
    public void cleanup() {
        stock.cleanup();
    }

    @Override
    public void nodeAssignmentSent(String node, boolean successful) {
        stock.nodeAssignmentSent(node, successful);
    }
}

package nstorm.nimbus;

import java.util.Map;
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
 * <p>Storm's schedulers touch only what needs scheduling. So the wanted placement is made before they run, and their
 * answer is taken as it is. None of their choices can clash with ours.
 */
final class PlanAwareScheduler implements IScheduler {

    private static final Logger LOG = LoggerFactory.getLogger(PlanAwareScheduler.class);

    private final IScheduler stock;
    private final Supplier<SchedulingRound> round;

    /**
     * Wraps a scheduler.
     *
     * @param round the round that runs now, null if it is to be stock
     */
    PlanAwareScheduler(IScheduler stock, Supplier<SchedulingRound> round) {
        this.stock = stock;
        this.round = round;
    }

    String stockName() {
        return stock.getClass().getName();
    }

    @Override
    public void schedule(Topologies topologies, Cluster cluster) {
        SchedulingRound now = round.get();
        if (stock instanceof ResourceAwareScheduler) {
            stock.schedule(topologies, cluster);
            absorb(now, topologies, cluster);
            return;
        }
        SchedulingRound.Prepared prepared = prepare(now, topologies, cluster);
        if (prepared == null) {
            stock.schedule(topologies, cluster);
        } else {
            stock.schedule(prepared.topologies(), prepared.cluster());
            take(prepared.cluster(), cluster);
        }
    }

    /** It never frees a slot of its own accord, and we may not break its limits on memory: only the plan is laid on. */
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

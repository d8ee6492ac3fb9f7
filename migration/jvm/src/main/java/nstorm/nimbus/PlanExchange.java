package nstorm.nimbus;

import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.Semaphore;
import java.util.concurrent.TimeUnit;
import java.util.function.Supplier;
import nstorm.hook.Failures;
import nstorm.store.OffSwitch;
import nstorm.wire.Entry;
import nstorm.wire.Plan;
import nstorm.wire.json.WireException;
import org.apache.storm.cluster.IStormClusterState;
import org.apache.storm.generated.Assignment;
import org.apache.storm.generated.NodeInfo;
import org.apache.storm.nimbus.ILeaderElector;
import org.apache.storm.scheduler.Topologies;
import org.apache.storm.shade.org.apache.zookeeper.KeeperException.NoAuthException;
import org.apache.storm.shade.org.apache.zookeeper.Watcher;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Reads the plans and publishes the topologies, on one daemon thread of its own: the scheduling thread does no I/O
 * of ours. Only the leading Nimbus speaks.
 */
final class PlanExchange implements KnownPlans, Runnable {

    private static final Logger LOG = LoggerFactory.getLogger(PlanExchange.class);
    private static final String PLANS = "/nstorm/plans";
    private static final String EPOCH = "/nstorm/epoch";
    private static final String OFF = "/nstorm/off";
    private static final long PASS_MS = 5_000;
    /** In place of a write of a node that may not be read: it is tried again, for its rights may be mended. */
    private static final long CLOSED = -2;

    private static final long GONE_NANOS = TimeUnit.SECONDS.toNanos(15);

    private final Map<String, Object> conf;
    private final IStormClusterState state;
    private final ILeaderElector elector;
    private final Runnable absorbRound;
    private final Semaphore wake = new Semaphore(0);
    private final Watcher watcher = event -> wake.release();
    private final CountDownLatch firstRead = new CountDownLatch(1);
    private final Map<String, Long> goneSince = new HashMap<>();
    private final Set<Plan> demanded = new HashSet<>();
    private final Failures failures = new Failures();
    private final Map<String, PlanRead> reads = new HashMap<>();

    /** What a plan's node held after this write; null if there was no good plan, and none before. */
    private record PlanRead(long mzxid, Plan plan) {}

    private Znodes znodes;
    private Publisher publisher;
    private volatile Map<String, Plan> plans;
    /** Those whose plan has a node, readable or not; null until they were read. */
    private volatile Set<String> managed;

    /** Why everything is switched off; null while it is on. */
    private String off;

    /** Whether the plans were read since it was off. */
    private boolean latched;

    private volatile Topologies topologies;
    private volatile Supplier<StormPasses> passes;

    /**
     * Prepares the exchange; {@link #run} does the work.
     *
     * @param absorbRound asks Nimbus for a round at once; must return at once
     */
    PlanExchange(Map<String, Object> conf, IStormClusterState state, ILeaderElector elector, Runnable absorbRound) {
        this.conf = conf;
        this.state = state;
        this.elector = elector;
        this.absorbRound = absorbRound;
    }

    @Override
    public Plan of(String topologyId) {
        Map<String, Plan> read = plans;
        return read == null ? null : read.get(topologyId);
    }

    @Override
    public boolean manages(String topologyId) {
        Set<String> read = managed;
        return read == null || read.contains(topologyId);
    }

    /** A round begins; waits until the plans have been read once, at most this long. */
    void roundBegins(Topologies current, Supplier<StormPasses> ofStorm, long waitMs) throws InterruptedException {
        passes = ofStorm;
        topologies = current;
        if (!firstRead.await(waitMs, TimeUnit.MILLISECONDS)) {
            LOG.warn("nstorm: plans not read within {} ms, keeping every executor that lives where it is", waitMs);
        }
    }

    /** A round has ended and its assignments are written. */
    void roundEnded() {
        wake.release();
    }

    @Override
    public void run() {
        while (true) {
            try {
                if (elector.isLeader()) {
                    pass();
                } else {
                    // As they were when another Nimbus took over; the first round after that knows better.
                    topologies = null;
                    // Until they are read again every topology counts as managed.
                    managed = null;
                    plans = null;
                }
                failures.over();
            } catch (Exception | LinkageError e) {
                failed(e);
            }
            try {
                wake.tryAcquire(PASS_MS, TimeUnit.MILLISECONDS);
                wake.drainPermits();
            } catch (InterruptedException e) {
                close();
                return;
            }
        }
    }

    private void failed(Throwable e) {
        switch (failures.of(e, System.nanoTime())) {
            case TRACE ->
                LOG.warn("nstorm: a pass over the plans failed, the next one is in {} ms at the latest", PASS_MS, e);
            case SENTENCE -> LOG.warn("nstorm: each pass over the plans still fails: {}", e.toString());
            default -> {}
        }
    }

    private void close() {
        if (znodes != null) {
            znodes.close();
        }
    }

    private void pass() throws Exception {
        if (znodes == null) {
            znodes = new Znodes(conf);
            publisher = new Publisher(state, znodes, this, elector);
        }
        if (plans == null) {
            secure();
        }
        lookAtSwitch();
        Set<String> active = new HashSet<>(state.activeStorms());
        readPlans(active);
        demanded.removeIf(plan -> !plans.containsKey(plan.topology()));
        plans.values().forEach(this::demandRound);
        Topologies known = topologies;
        if (known != null) {
            boolean inert = off != null
                    && plans.values().stream().allMatch(plan -> plan.entries().isEmpty());
            publisher.publish(active, known, passes.get(), inert ? "the hooks are off: " + off : null);
        }
        removeGone(active);
    }

    /** Before the plans: they are then no older, so that each move that had begun when it was switched off is in them. */
    private void lookAtSwitch() throws Exception {
        byte[] text = znodes.read(OFF, watcher);
        if (text == null) {
            znodes.mzxid(OFF, watcher); // which also reports that it is made
        }
        String now = text == null || text.length == 0 ? null : OffSwitch.oneLine(text);
        if (off == null && now != null) {
            LOG.warn("nstorm: switched off: {}", now);
        } else if (off != null && now == null) {
            LOG.info("nstorm: switched on");
            reads.clear(); // what was passed over counts now
        }
        off = now;
        latched = latched && off != null;
    }

    /** Of a Nimbus that has just come to lead: nodes may be older than the credentials, or than the principals. */
    private void secure() throws Exception {
        if (!znodes.isSecured()) {
            return;
        }
        Znodes.Secured found = znodes.secure();
        if (!found.mended().isEmpty()) {
            LOG.warn("nstorm: mended who may use {}", found.mended());
        }
        if (!found.deleted().isEmpty()) {
            LOG.warn("nstorm: deleted what was closed to Nimbus: {}", found.deleted());
        }
        if (!found.closed().isEmpty()) {
            LOG.warn("nstorm: Nimbus may not mend who may use {}: delete these", found.closed());
        }
    }

    /** Looks at each plan's node of a topology that Storm has or had, and reads those that were written since. */
    private void readPlans(Set<String> active) throws Exception {
        if (plans == null) {
            reads.clear();
        }
        List<String> topologies = znodes.children(PLANS, watcher);
        reads.keySet().retainAll(topologies);
        Map<String, Plan> newest = new HashMap<>();
        for (String topology : topologies) {
            // Whoever may write plans may write ten thousand: of others they would hold up this pass.
            Plan plan = active.contains(topology) || reads.containsKey(topology) ? read(topology) : null;
            if (plan != null) {
                newest.put(topology, plan);
            }
        }
        plans = newest;
        latched = off != null;
        managed = Set.copyOf(topologies);
        firstRead.countDown();
    }

    private Plan read(String topology) throws Exception {
        String path = PLANS + "/" + topology;
        PlanRead last = reads.get(topology);
        long mzxid;
        byte[] bytes;
        try {
            // Watched before it is read: a write between the two is seen by its number in the next pass.
            mzxid = znodes.mzxid(path, watcher);
            if (last != null && last.mzxid == mzxid) {
                return last.plan;
            }
            bytes = znodes.read(path, null);
        } catch (NoAuthException e) {
            if (last == null || last.mzxid != CLOSED) {
                LOG.warn("nstorm: {} is closed to Nimbus, the last good plan stays: delete it", path);
            }
            Plan held = of(topology);
            reads.put(topology, new PlanRead(CLOSED, held));
            return held;
        }
        Plan plan = bytes == null ? null : newest(topology, bytes);
        reads.put(topology, new PlanRead(mzxid, plan));
        return plan;
    }

    private Plan newest(String topology, byte[] bytes) throws Exception {
        Plan held = of(topology);
        try {
            if (latched && plans != null && (held == null || held.entries().isEmpty())) {
                return held;
            }
            Plan plan = Plan.parse(bytes);
            if (!plan.topology().equals(topology)) {
                throw new WireException("topology is " + plan.topology());
            }
            // Read after the plan, so that it is no older. Else one write would lock out every leader.
            if (plan.epoch() > znodes.version(EPOCH)) {
                throw new WireException("no leader has had epoch " + plan.epoch());
            }
            boolean older = held != null
                    && held.cluster().equals(plan.cluster())
                    && held.newerThan(plan.epoch(), plan.version());
            return older ? held : plan.understood(held);
        } catch (WireException e) {
            LOG.warn("nstorm: {}/{} ignored, the last good plan stays: {}", PLANS, topology, e.getMessage());
            return held;
        }
    }

    /** One extra round a plan at the most: what it cannot absorb waits for Nimbus' own. */
    private void demandRound(Plan plan) {
        Assignment assignment = state.assignmentInfo(plan.topology(), null);
        if (assignment == null || demanded.contains(plan)) {
            return;
        }
        boolean due = plan.entries().stream().anyMatch(entry -> isUnabsorbed(entry, assignment));
        if (due) {
            demanded.removeIf(old -> old.topology().equals(plan.topology()));
            demanded.add(plan);
            absorbRound.run();
        }
    }

    private static boolean isUnabsorbed(Entry entry, Assignment assignment) {
        NodeInfo now = assignment.get_executor_node_port().get(entry.executor().toStorm());
        return entry.absorbable()
                && entry.voidReason() == null
                && now != null
                && !Placement.slot(now).equals(entry.to());
    }

    /** A topology that is not there for a while is gone, and so is what is ours of it. */
    private void removeGone(Set<String> active) throws Exception {
        Set<String> known = new HashSet<>(znodes.children(Publisher.TOPOLOGIES, null));
        known.addAll(plans.keySet());
        goneSince.keySet().retainAll(known);
        goneSince.keySet().removeAll(active);
        for (String topology : known) {
            if (!active.contains(topology)) {
                long since = goneSince.computeIfAbsent(topology, key -> System.nanoTime());
                if (System.nanoTime() - since > GONE_NANOS) {
                    publisher.delete(topology);
                    znodes.delete(PLANS + "/" + topology);
                }
            }
        }
    }
}

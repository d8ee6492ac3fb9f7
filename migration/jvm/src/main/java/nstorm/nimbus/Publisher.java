package nstorm.nimbus;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;
import java.util.concurrent.TimeUnit;
import nstorm.hook.HookStatus;
import nstorm.wire.json.Packing;
import nstorm.wire.report.NimbusReport;
import nstorm.wire.report.NimbusReport.Published;
import org.apache.storm.cluster.ClusterUtils;
import org.apache.storm.cluster.IStormClusterState;
import org.apache.storm.cluster.VersionedData;
import org.apache.storm.generated.Assignment;
import org.apache.storm.generated.StormBase;
import org.apache.storm.generated.SupervisorInfo;
import org.apache.storm.nimbus.ILeaderElector;
import org.apache.storm.scheduler.Topologies;
import org.apache.storm.scheduler.TopologyDetails;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Publishes what Storm knows: each topology, the nodes, and then its own report.
 *
 * <p>A reader of the NimbusReport takes everything published before it as true at its time. So ZooKeeper accepts it on
 * two conditions: Storm's state of each topology is still as published, and no other Nimbus has published in between.
 */
final class Publisher {

    static final String TOPOLOGIES = "/nstorm/topologies";
    static final String NODES = "/nstorm/nodes";
    static final String NIMBUS = "/nstorm/nimbus";

    private static final Logger LOG = LoggerFactory.getLogger(Publisher.class);
    private static final long SIGN_OF_LIFE_NANOS = TimeUnit.MILLISECONDS.toNanos(4_500);
    private static final int TRIES = 3;

    /** What a topology was published from, and why it could not be. */
    private record Outcome(int assignment, TopologyDetails details, StormBase base, String problem) {
        @SuppressWarnings("ReferenceEquality") // Nimbus makes another one when something has changed
        boolean isOf(int nowAssigned, TopologyDetails nowKnown, StormBase nowBase) {
            return assignment == nowAssigned && details == nowKnown && base.equals(nowBase);
        }
    }

    private final IStormClusterState state;
    private final Znodes znodes;
    private final KnownPlans plans;
    private final ILeaderElector elector;
    private final PublicationWriter writer;
    private final Map<String, VersionedData<Assignment>> assignments = new HashMap<>();
    private final Map<String, Outcome> outcomes = new HashMap<>();
    private Map<String, SupervisorInfo> supervisors = Map.of();
    private long supervisorsNanos;
    private boolean nodesTooLarge;
    private int spoken = -1;
    private byte[] lastWord = {};
    private Map<String, Integer> lastShown = Map.of();
    private long lastNanos;
    private String off;

    Publisher(IStormClusterState state, Znodes znodes, KnownPlans plans, ILeaderElector elector) {
        this.elector = elector;
        this.state = state;
        this.znodes = znodes;
        this.plans = plans;
        writer = new PublicationWriter(znodes);
    }

    /**
     * One pass over everything.
     *
     * @param offOrNull why no plan is followed until it is switched on
     */
    void publish(Set<String> active, Topologies known, StormPasses passes, String offOrNull) throws Exception {
        off = offOrNull;
        Set<String> found = new HashSet<>();
        znodes.children(TOPOLOGIES, null).forEach(topology -> found.add(path(topology)));
        if (znodes.version(NODES) >= 0) {
            found.add(NODES);
        }
        writer.found(found);
        assignments.keySet().retainAll(active);
        outcomes.keySet().retainAll(active);
        int tries = 0;
        while (elector.isLeader() && !pass(active, known, passes) && ++tries < TRIES) {
            LOG.debug("nstorm: something changed while it was published");
            writer.forgetChanged();
        }
    }

    /** What is left of a topology that is gone. */
    void delete(String topology) throws Exception {
        writer.delete(path(topology));
    }

    private static String path(String topology) {
        return TOPOLOGIES + "/" + topology;
    }

    /** False if Storm has changed something in between: the next pass shows it. */
    private boolean pass(Set<String> active, Topologies known, StormPasses passes) throws Exception {
        int last = znodes.version(NIMBUS);
        if (last != spoken) {
            writer.forgetContents();
            outcomes.clear();
            lastWord = new byte[0];
        }
        spoken = last;
        List<Published> topologies = new ArrayList<>();
        Map<String, Integer> shown = new HashMap<>();
        for (String topology : new TreeSet<>(active)) {
            // Not by `state`, whose session may lag behind: version and content belong together.
            VersionedData<byte[]> stored = znodes.readVersioned(ClusterUtils.stormPath(topology));
            StormBase base = stored == null ? null : ClusterUtils.maybeDeserialize(stored.getData(), StormBase.class);
            if (base != null) {
                shown.put(ClusterUtils.stormPath(topology), stored.getVersion());
                VersionedData<Assignment> assignment = assignment(topology);
                if (assignment != null) {
                    shown.put(ClusterUtils.assignmentPath(topology), assignment.getVersion());
                }
                String problem = problem(topology, known.getById(topology), base, assignment, passes);
                topologies.add(new Published(topology, plans.of(topology), problem, passes.undoes(base.get_name())));
            }
        }
        publishNodes(passes);
        shown.putAll(writer.versions());
        return speak(passes.stockName(), topologies, shown);
    }

    /** As ZooKeeper has it, not as this Nimbus remembers it: version and content belong together. */
    private VersionedData<Assignment> assignment(String topology) throws Exception {
        Integer version = state.assignmentVersion(topology, null);
        VersionedData<Assignment> held = assignments.get(topology);
        if (version == null || held == null || held.getVersion() != version) {
            held = version == null ? null : state.assignmentInfoWithVersion(topology, null);
            assignments.put(topology, held);
        }
        return held;
    }

    /** Publishes a topology; one that cannot be published stops neither the others nor the plans. */
    private String problem(
            String topology,
            TopologyDetails details,
            StormBase base,
            VersionedData<Assignment> assignment,
            StormPasses passes) {
        int version = assignment == null ? -1 : assignment.getVersion();
        Outcome last = outcomes.remove(topology);
        String before = last == null ? null : last.problem;
        if (last != null && last.isOf(version, details, base) && (before != null || writer.isOurs(path(topology)))) {
            outcomes.put(topology, last);
            return before;
        }
        String problem;
        try {
            problem = publish(topology, details, base, assignment, passes);
            outcomes.put(topology, new Outcome(version, details, base, problem));
            if (problem != null) {
                withdraw(topology);
            }
            if (problem != null && details != null && before == null) {
                LOG.error("nstorm: nstorm moves no executor of topology {}: {}", topology, problem);
            }
        } catch (Exception | LinkageError e) {
            problem = "it could not be published: "
                    + e.toString().lines().findFirst().orElse("");
            LOG.warn("nstorm: topology {} was not published, the next pass tries again", topology, e);
        }
        return problem;
    }

    private String publish(
            String topology,
            TopologyDetails details,
            StormBase base,
            VersionedData<Assignment> assignment,
            StormPasses passes)
            throws Exception {
        if (details == null) {
            return "Nimbus has not scheduled it yet";
        }
        Assignment assigned = assignment == null ? null : assignment.getData();
        int excess = writer.put(
                path(topology),
                new PublicationBuilder(details, assigned, passes)
                        .publication(base)
                        .toJson());
        // Nothing is published instead: what is left out (executors, edges) would look as if Storm did not have it.
        return excess == 0
                ? null
                : "its publication has " + (PublicationWriter.LARGEST_BYTES + excess) + " bytes, and no more than "
                        + PublicationWriter.LARGEST_BYTES + " are written";
    }

    /** Deletes a publication that is out of date. */
    private void withdraw(String topology) {
        try {
            writer.delete(path(topology));
        } catch (Exception e) {
            LOG.warn("nstorm: what was published of {} could not be removed, the next pass tries again", topology, e);
        }
    }

    private void publishNodes(StormPasses passes) throws Exception {
        long now = System.nanoTime();
        if (supervisors.isEmpty() || now - supervisorsNanos > SIGN_OF_LIFE_NANOS) {
            supervisors = state.allSupervisorInfo();
            supervisorsNanos = now;
        }
        int excess = writer.put(
                NODES,
                PublicationBuilder.nodes(state.assignmentsInfo().values(), supervisors, passes)
                        .toJson());
        if (excess > 0 && !nodesTooLarge) {
            LOG.error("nstorm: the nodes are not published: {} bytes too many", excess);
        }
        nodesTooLarge = excess > 0;
        if (nodesTooLarge) {
            writer.delete(NODES);
        }
    }

    private byte[] report(long timeMs, String scheduler, List<Published> topologies) {
        return new NimbusReport(
                        timeMs,
                        HookStatus.VERSION,
                        scheduler,
                        topologies,
                        HookStatus.storm(),
                        off == null ? HookStatus.watching() : off)
                .toJson();
    }

    private boolean speak(String scheduler, List<Published> topologies, Map<String, Integer> shown) throws Exception {
        byte[] word = report(0, scheduler, topologies);
        boolean same = Arrays.equals(word, lastWord) && shown.equals(lastShown);
        if (same && System.nanoTime() - lastNanos < SIGN_OF_LIFE_NANOS) {
            return true;
        }
        byte[] dated = report(System.currentTimeMillis(), scheduler, topologies);
        if (!znodes.writeIf(NIMBUS, Packing.pack(dated), spoken, shown)) {
            return false;
        }
        spoken++;
        lastWord = word;
        lastShown = shown;
        lastNanos = System.nanoTime();
        return true;
    }
}

package nstorm.workload;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.storm.metric.StormMetricsRegistry;
import org.apache.storm.scheduler.Cluster;
import org.apache.storm.scheduler.DefaultScheduler;
import org.apache.storm.scheduler.ExecutorDetails;
import org.apache.storm.scheduler.IScheduler;
import org.apache.storm.scheduler.Topologies;
import org.apache.storm.scheduler.TopologyDetails;
import org.apache.storm.scheduler.WorkerSlot;
import org.apache.storm.shade.net.minidev.json.JSONValue;

/**
 * Storm's own scheduler; but a topology is placed by the file "placements/NAME.json" in the lab's folder, if there is
 * one. Its "slot_of" is {"7-7": "SUPERVISOR:PORT", ...}. Its "running" is whether the file also counts for a topology
 * that runs, and not only for one that is being rebalanced. The file has to name as many workers as the topology asks
 * for, else Storm's scheduler goes on with it.
 */
public final class GivenScheduler implements IScheduler {
    private final IScheduler stock = new DefaultScheduler();

    @Override
    public void schedule(Topologies topologies, Cluster cluster) {
        for (TopologyDetails topology : topologies.getTopologies()) {
            Map<?, ?> given = given(topology.getName());
            boolean running = cluster.getAssignmentById(topology.getId()) != null;
            if (given != null && (!running || Boolean.TRUE.equals(given.get("running")))) {
                place(topology, (Map<?, ?>) given.get("slot_of"), cluster);
            }
        }
        stock.schedule(topologies, cluster);
    }

    /** The lab's placement of a topology; null if there is none, and if it cannot be read: Nimbus would end. */
    private static Map<?, ?> given(String name) {
        Path file = Path.of(System.getProperty("nstorm.lab"), "placements", name + ".json");
        try {
            return JSONValue.parse(Files.readString(file)) instanceof Map<?, ?> given ? given : null;
        } catch (NoSuchFileException e) {
            return null;
        } catch (IOException e) {
            System.err.println(file + " not read: " + e);
            return null;
        }
    }

    private static void place(TopologyDetails topology, Map<?, ?> slotOf, Cluster cluster) {
        Map<WorkerSlot, List<ExecutorDetails>> bySlot = new HashMap<>();
        for (ExecutorDetails executor : topology.getExecutors()) {
            String slot = (String) slotOf.get(executor.getStartTask() + "-" + executor.getEndTask());
            if (slot == null) {
                return;
            }
            int colon = slot.lastIndexOf(':');
            WorkerSlot worker = new WorkerSlot(slot.substring(0, colon), Integer.valueOf(slot.substring(colon + 1)));
            bySlot.computeIfAbsent(worker, key -> new ArrayList<>()).add(executor);
        }
        cluster.unassign(topology.getId());
        bySlot.forEach((worker, executors) -> cluster.assign(worker, topology.getId(), executors));
    }

    @Override
    public void prepare(Map<String, Object> conf, StormMetricsRegistry metricsRegistry) {
        stock.prepare(conf, metricsRegistry);
    }

    @Override
    public Map<?, ?> config() {
        return stock.config();
    }
}

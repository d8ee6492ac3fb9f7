package nstorm.nimbus;

import static org.junit.jupiter.api.Assertions.assertTrue;

import com.google.gson.JsonArray;
import com.google.gson.JsonElement;
import com.google.gson.JsonObject;
import com.google.gson.JsonParser;
import java.lang.reflect.Proxy;
import java.nio.charset.StandardCharsets;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.Callable;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.LongFunction;
import java.util.stream.Collectors;
import java.util.stream.LongStream;
import nstorm.Threads;
import nstorm.wire.json.Packing;
import org.apache.storm.cluster.ClusterStateContext;
import org.apache.storm.cluster.ClusterUtils;
import org.apache.storm.cluster.DaemonType;
import org.apache.storm.cluster.IStormClusterState;
import org.apache.storm.generated.Assignment;
import org.apache.storm.generated.NodeInfo;
import org.apache.storm.generated.StormBase;
import org.apache.storm.generated.SupervisorInfo;
import org.apache.storm.generated.TopologyStatus;
import org.apache.storm.nimbus.ILeaderElector;
import org.apache.storm.scheduler.EvenScheduler;
import org.apache.storm.scheduler.ExecutorDetails;
import org.apache.storm.scheduler.Topologies;
import org.apache.storm.scheduler.TopologyDetails;
import org.apache.storm.testing.TestWordCounter;
import org.apache.storm.testing.TestWordSpout;
import org.apache.storm.topology.TopologyBuilder;
import org.apache.storm.tuple.Fields;
import org.apache.storm.utils.Utils;

/** A Storm cluster as its own state in a real ZooKeeper shows it, and the exchange of its Nimbus at work. */
final class StormInZookeeper implements AutoCloseable {

    final AtomicInteger rounds = new AtomicInteger();
    final AtomicBoolean leader = new AtomicBoolean(true);
    final IStormClusterState state;
    final Znodes znodes;
    final PlanExchange exchange;
    final Map<String, Object> conf;
    /** The hosts on which Storm places nothing. */
    volatile Set<String> heldBack = Set.of();

    private final Map<String, TopologyDetails> submitted = new HashMap<>();
    private final Thread thread;

    /** The configuration of a client without credentials. */
    static Map<String, Object> conf(long zookeeperPort, String root) {
        Map<String, Object> conf = new HashMap<>(Utils.readDefaultConfig());
        conf.put("storm.zookeeper.servers", List.of("127.0.0.1"));
        conf.put("storm.zookeeper.port", (int) zookeeperPort);
        conf.put("storm.zookeeper.root", root);
        return conf;
    }

    StormInZookeeper(long zookeeperPort, String root) throws Exception {
        this(zookeeperPort, root, Map.of());
    }

    StormInZookeeper(long zookeeperPort, String root, Map<String, Object> keys) throws Exception {
        conf = conf(zookeeperPort, root);
        conf.putAll(keys);
        conf.put("topology.name", "wc");
        conf.put("topology.nstorm.mode", "approve");
        state = ClusterUtils.mkStormClusterState(conf, new ClusterStateContext(DaemonType.NIMBUS, conf));
        znodes = new Znodes(conf);
        lead();
        supervisor("s1", "host1");
        ILeaderElector elector = (ILeaderElector) Proxy.newProxyInstance(
                getClass().getClassLoader(),
                new Class<?>[] {ILeaderElector.class},
                (proxy, method, args) -> leader.get());
        exchange = new PlanExchange(conf, state, elector, rounds::incrementAndGet);
        thread = new Thread(exchange);
    }

    void supervisor(String id, String host) {
        SupervisorInfo supervisor = new SupervisorInfo(1, host);
        supervisor.set_meta(List.of(6700L, 6701L));
        supervisor.set_resources_map(new HashMap<>(Map.of("cpu.pcore.percent", 150.0)));
        state.supervisorHeartbeat(id, supervisor);
    }

    /** Submits topologies of this many executors; the first executor of each has a slot. */
    StormInZookeeper with(int executors, String... topologies) throws InterruptedException {
        for (String topology : topologies) {
            state.activateStorm(topology, new StormBase("wc", TopologyStatus.ACTIVE, 2), conf);
            assign(topology, 6700);
            submitted.put(topology, details(topology, executors));
        }
        if (!thread.isAlive()) {
            thread.start();
        }
        exchange.roundBegins(
                new Topologies(submitted), () -> new StormPasses(new EvenScheduler(), conf, heldBack), 20_000);
        return this;
    }

    /** Assigns the first executor. */
    void assign(String topology, long port) {
        assign(topology, 1, new NodeInfo("s1", Set.of(port)));
    }

    /** Assigns the executors of these first tasks. */
    void assign(String topology, long executors, NodeInfo slot) {
        assign(topology, executors, task -> slot);
    }

    void assign(String topology, long executors, LongFunction<NodeInfo> slots) {
        Assignment assignment = new Assignment("dir");
        List<List<Long>> first = LongStream.rangeClosed(1, executors)
                .mapToObj(task -> List.of(task, task))
                .toList();
        assignment.set_executor_node_port(
                first.stream().collect(Collectors.toMap(task -> task, task -> slots.apply(task.get(0)))));
        assignment.set_executor_start_time_secs(
                first.stream().collect(Collectors.toMap(task -> task, task -> 1_700_000_000L)));
        state.setAssignment(topology, assignment, conf);
    }

    private TopologyDetails details(String topology, int executors) {
        TopologyBuilder builder = new TopologyBuilder();
        builder.setSpout("words", new TestWordSpout());
        builder.setBolt("counts", new TestWordCounter()).fieldsGrouping("words", new Fields("word"));
        Map<ExecutorDetails, String> components = new HashMap<>();
        for (int task = 1; task <= executors; task++) {
            components.put(new ExecutorDetails(task, task), task == 2 ? "words" : task == 3 ? "__acker" : "counts");
        }
        return new TopologyDetails(topology, conf, builder.createTopology(), 2, components, 1, "user");
    }

    /** What is published of a topology; empty if nothing is. */
    JsonObject published(String topology) throws Exception {
        return json("/nstorm/topologies/" + topology);
    }

    /** What the sign of life says of a topology; null if nothing. */
    JsonObject told(String topology) throws Exception {
        JsonObject nimbus = json("/nstorm/nimbus");
        for (JsonElement told : nimbus.has("topologies") ? nimbus.getAsJsonArray("topologies") : new JsonArray()) {
            if (told.getAsJsonObject().get("topology").getAsString().equals(topology)) {
                return told.getAsJsonObject();
            }
        }
        return null;
    }

    /** A znode's content, compressed or not; empty if it is absent. */
    JsonObject json(String path) throws Exception {
        byte[] bytes = znodes.read(path, null);
        return bytes == null
                ? new JsonObject()
                : JsonParser.parseString(new String(Packing.unpack(bytes), StandardCharsets.UTF_8))
                        .getAsJsonObject();
    }

    /** A controller takes the next epoch; the first one is 1. */
    void lead() throws Exception {
        if (znodes.write("/nstorm/epoch", new byte[0]) == 0) {
            znodes.write("/nstorm/epoch", new byte[0]);
        }
    }

    void plan(String topology, long version, String phase) throws Exception {
        plan(topology, 1, version, phase);
    }

    void plan(String topology, long epoch, long version, String phase) throws Exception {
        znodes.write(
                "/nstorm/plans/" + topology,
                ("{\"cluster\":\"c\",\"epoch\":" + epoch + ",\"version\":" + version
                                + ",\"topology\":\"" + topology
                                + "\",\"entries\":[{\"id\":\"m\",\"executor\":[1,1],\"from\":\"s1:6700\","
                                + "\"to\":\"s1:6701\",\"phase\":\"" + phase
                                + "\",\"base\":[\"s1:6700\",1700000000],\"void\":null}]}")
                        .getBytes(StandardCharsets.UTF_8));
    }

    static void eventually(String what, Callable<Boolean> holds) throws Exception {
        long end = System.nanoTime() + 120_000_000_000L;
        while (!holds.call()) {
            assertTrue(System.nanoTime() < end, what);
            Thread.sleep(50);
        }
    }

    @Override
    public void close() throws Exception {
        Threads.end(thread);
        znodes.close();
        state.disconnect();
    }
}

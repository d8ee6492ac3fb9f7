package nstorm.nimbus.board;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

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
import org.apache.storm.scheduler.ExecutorDetails;
import org.apache.storm.scheduler.Topologies;
import org.apache.storm.scheduler.TopologyDetails;
import org.apache.storm.testing.InProcessZookeeper;
import org.apache.storm.testing.TestWordCounter;
import org.apache.storm.testing.TestWordSpout;
import org.apache.storm.topology.TopologyBuilder;
import org.apache.storm.tuple.Fields;
import org.apache.storm.utils.Utils;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/** A real ZooKeeper and Storm's own cluster state. */
class PlanBoardIT {

    private static final String PLAN = "/nstorm/plans/t";
    private static final String PUBLISHED = "/nstorm/topologies/t";

    private final AtomicInteger rounds = new AtomicInteger();
    private final AtomicBoolean leader = new AtomicBoolean(true);
    private final Map<String, Object> conf = new HashMap<>(Utils.readDefaultConfig());
    private InProcessZookeeper zookeeper;
    private IStormClusterState state;
    private Znodes znodes;
    private PlanBoard board;
    private Thread thread;

    @BeforeEach
    void start() throws Exception {
        zookeeper = new InProcessZookeeper();
        conf.put("storm.zookeeper.servers", List.of("127.0.0.1"));
        conf.put("storm.zookeeper.port", (int) zookeeper.getPort());
        state = ClusterUtils.mkStormClusterState(conf, new ClusterStateContext(DaemonType.NIMBUS, conf));
        znodes = new Znodes(conf);
        submit();
        ILeaderElector elector = (ILeaderElector) Proxy.newProxyInstance(getClass().getClassLoader(),
            new Class<?>[] {ILeaderElector.class}, (proxy, method, args) -> leader.get());
        board = new PlanBoard(conf, state, elector, rounds::incrementAndGet);
        thread = new Thread(board);
        thread.start();
        board.roundBegins(topologies(), "the.Scheduler", 20_000);
    }

    @AfterEach
    void stop() throws Exception {
        while (thread.isAlive()) {
            // Storm's classes swallow an interrupt in the middle of a pass.
            thread.interrupt();
            thread.join(100);
        }
        znodes.close();
        state.disconnect();
        zookeeper.close();
    }

    private void submit() {
        StormBase base = new StormBase("wc", TopologyStatus.ACTIVE, 2);
        state.activateStorm("t", base, conf);
        SupervisorInfo supervisor = new SupervisorInfo(1, "host1");
        supervisor.set_meta(List.of(6700L, 6701L));
        supervisor.set_resources_map(new HashMap<>(Map.of("cpu.pcore.percent", 150.0)));
        state.supervisorHeartbeat("s1", supervisor);
        assign(6700);
    }

    private void assign(long port) {
        Assignment assignment = new Assignment("dir");
        assignment.set_executor_node_port(Map.of(List.of(1L, 1L), new NodeInfo("s1", Set.of(port))));
        assignment.set_executor_start_time_secs(Map.of(List.of(1L, 1L), 100L));
        state.setAssignment("t", assignment, conf);
    }

    private Topologies topologies() {
        TopologyBuilder builder = new TopologyBuilder();
        builder.setSpout("words", new TestWordSpout());
        builder.setBolt("counts", new TestWordCounter()).fieldsGrouping("words", new Fields("word"));
        Map<ExecutorDetails, String> components = Map.of(new ExecutorDetails(1, 1), "counts",
            new ExecutorDetails(2, 2), "words", new ExecutorDetails(3, 3), "__acker");
        conf.put("topology.name", "wc");
        return new Topologies(Map.of("t",
            new TopologyDetails("t", conf, builder.createTopology(), 2, components, 1, "user")));
    }

    private static void eventually(String what, Callable<Boolean> holds) throws Exception {
        long end = System.nanoTime() + 40_000_000_000L;
        while (!holds.call()) {
            assertTrue(System.nanoTime() < end, what);
            Thread.sleep(50);
        }
    }

    private JsonObject published() throws Exception {
        byte[] bytes = znodes.read(PUBLISHED, null);
        return bytes == null ? new JsonObject()
            : JsonParser.parseString(new String(bytes, StandardCharsets.UTF_8)).getAsJsonObject();
    }

    private void plan(long version, String phase) throws Exception {
        znodes.write(PLAN, ("{\"cluster\":\"c\",\"epoch\":1,\"version\":" + version + ",\"topology\":\"t\","
            + "\"entries\":[{\"id\":\"m\",\"executor\":[1,1],\"from\":\"s1:6700\",\"to\":\"s1:6701\",\"phase\":\"" + phase
            + "\",\"base\":[\"s1:6700\",100],\"void\":null}]}").getBytes(StandardCharsets.UTF_8));
    }

    @Test
    void publishesWhatStormKnows() throws Exception {
        eventually("published", () -> published().has("topology"));
        JsonObject seen = published();
        assertEquals("wc", seen.get("name").getAsString());
        assertEquals("ACTIVE", seen.get("status").getAsString());
        assertEquals("the.Scheduler", seen.get("scheduler").getAsString());
        assertEquals("[{\"id\":\"__acker\",\"kind\":\"system\",\"parallelism\":1},"
            + "{\"id\":\"counts\",\"kind\":\"bolt\",\"parallelism\":1},"
            + "{\"id\":\"words\",\"kind\":\"spout\",\"parallelism\":1}]", seen.get("components").toString());
        assertEquals("[{\"from\":\"words\",\"to\":\"counts\",\"stream\":\"default\",\"grouping\":\"fields\"}]",
            seen.get("edges").toString());
        assertEquals("[{\"id\":\"s1\",\"host\":\"host1\",\"cpu_capacity\":150.0,\"slots\":[6700,6701],"
            + "\"slots_in_use\":1}]", seen.get("nodes").toString());
        assertEquals("[{\"executor\":[1,1],\"component\":\"counts\",\"slot\":\"s1:6700\",\"start_secs\":100},"
            + "{\"executor\":[2,2],\"component\":\"words\",\"slot\":null,\"start_secs\":null},"
            + "{\"executor\":[3,3],\"component\":\"__acker\",\"slot\":null,\"start_secs\":null}]",
            seen.get("executors").toString());
        long first = seen.get("time_ms").getAsLong();
        eventually("published again though nothing changed", () -> published().get("time_ms").getAsLong() > first);
        board.roundEnded();
        eventually("published after a round", () -> published().get("round").getAsLong() == 1);
    }

    @Test
    void readsPlansAtOnceAndDemandsOneRound() throws Exception {
        assertFalse(board.manages("t"));
        plan(1, "DRAIN");
        eventually("read", () -> board.manages("t"));
        assertEquals(0, rounds.get(), "nothing to absorb");
        plan(2, "STOP");
        eventually("demanded", () -> rounds.get() == 1);
        assertEquals(2, board.of("t").version());
        eventually("told", () -> published().get("plan").toString().equals("[1,2]"));
        board.roundEnded();
        Thread.sleep(500);
        assertEquals(1, rounds.get(), "once a plan");
        assign(6701);
        plan(3, "SETTLE");
        eventually("read", () -> board.of("t").version() == 3);
        assertEquals(1, rounds.get(), "it is absorbed");
    }

    @Test
    void keepsTheLastGoodPlan() throws Exception {
        plan(5, "DRAIN");
        eventually("read", () -> board.of("t") != null && board.of("t").version() == 5);
        znodes.write(PLAN, "garbage".getBytes(StandardCharsets.UTF_8));
        znodes.write("/nstorm/plans/other", "{}".getBytes(StandardCharsets.UTF_8));
        Thread.sleep(1000);
        assertEquals(5, board.of("t").version());
        assertNull(board.of("other"));
        plan(4, "STOP");
        Thread.sleep(1000);
        assertEquals(5, board.of("t").version(), "older");
        plan(6, "STOP");
        eventually("read", () -> board.of("t").version() == 6);
    }

    @Test
    void removesWhatIsGone() throws Exception {
        plan(1, "DRAIN");
        eventually("published", () -> published().has("topology"));
        state.removeStorm("t");
        eventually("both nodes gone",
            () -> znodes.read(PLAN, null) == null && znodes.read(PUBLISHED, null) == null);
    }

    @Test
    void onlyTheLeaderSpeaks() throws Exception {
        eventually("published", () -> published().has("topology"));
        leader.set(false);
        board.roundEnded();
        Thread.sleep(1000);
        znodes.delete(PUBLISHED);
        Thread.sleep(6000);
        assertNull(znodes.read(PUBLISHED, null));
        leader.set(true);
        eventually("published again", () -> znodes.read(PUBLISHED, null) != null);
    }
}

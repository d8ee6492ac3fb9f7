package nstorm.nimbus;

import static nstorm.nimbus.StormInZookeeper.eventually;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertNull;

import com.google.gson.JsonObject;
import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.apache.storm.cluster.DaemonType;
import org.apache.storm.generated.NodeInfo;
import org.apache.storm.shade.org.apache.curator.framework.CuratorFramework;
import org.apache.storm.testing.InProcessZookeeper;
import org.apache.storm.utils.Utils;
import org.apache.storm.zookeeper.ClientZookeeper;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/** A real ZooKeeper and Storm's own cluster state. */
class PlanExchangeIT {

    private static final String PLAN = "/nstorm/plans/t";
    private static final String PUBLISHED = "/nstorm/topologies/t";

    private InProcessZookeeper zookeeper;
    private StormInZookeeper storm;

    @BeforeEach
    void start() throws Exception {
        zookeeper = new InProcessZookeeper();
        storm = new StormInZookeeper(zookeeper.getPort(), "/storm").with(3, "t");
    }

    @AfterEach
    void stop() throws Exception {
        storm.close();
        zookeeper.close();
    }

    @Test
    void publishesWhatStormKnows() throws Exception {
        eventually("published", () -> storm.published("t").has("topology"));
        JsonObject seen = storm.published("t");
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
        assertEquals("[{\"executor\":[1,1],\"component\":\"counts\",\"slot\":\"s1:6700\",\"start_secs\":1700000000},"
            + "{\"executor\":[2,2],\"component\":\"words\",\"slot\":null,\"start_secs\":null},"
            + "{\"executor\":[3,3],\"component\":\"__acker\",\"slot\":null,\"start_secs\":null}]",
            seen.get("executors").toString());
        long first = seen.get("time_ms").getAsLong();
        eventually("published again though nothing changed", () -> storm.published("t").get("time_ms").getAsLong() > first);
        storm.exchange.roundEnded();
        eventually("published after a round", () -> storm.published("t").get("round").getAsLong() == 1);
    }

    @Test
    void readsPlansAtOnceAndDemandsOneRound() throws Exception {
        assertFalse(storm.exchange.manages("t"));
        storm.plan("t", 1, "DRAIN");
        eventually("read", () -> storm.exchange.manages("t"));
        assertEquals(0, storm.rounds.get(), "nothing to absorb");
        storm.plan("t", 2, "STOP");
        eventually("demanded", () -> storm.rounds.get() == 1);
        assertEquals(2, storm.exchange.of("t").version());
        eventually("told", () -> storm.published("t").get("plan").toString().equals("[1,2]"));
        storm.exchange.roundEnded();
        Thread.sleep(500);
        assertEquals(1, storm.rounds.get(), "once a plan");
        storm.assign("t", 6701);
        storm.plan("t", 3, "SETTLE");
        eventually("read", () -> storm.exchange.of("t").version() == 3);
        assertEquals(1, storm.rounds.get(), "it is absorbed");
    }

    @Test
    void keepsTheLastGoodPlan() throws Exception {
        storm.plan("t", 5, "DRAIN");
        eventually("read", () -> storm.exchange.of("t") != null && storm.exchange.of("t").version() == 5);
        storm.znodes.write(PLAN, "garbage".getBytes(StandardCharsets.UTF_8));
        storm.znodes.write("/nstorm/plans/other", "{}".getBytes(StandardCharsets.UTF_8));
        Thread.sleep(1000);
        assertEquals(5, storm.exchange.of("t").version());
        assertNull(storm.exchange.of("other"));
        storm.plan("t", 4, "STOP");
        Thread.sleep(1000);
        assertEquals(5, storm.exchange.of("t").version(), "older");
        storm.plan("t", 6, "STOP");
        eventually("read", () -> storm.exchange.of("t").version() == 6);
    }

    @Test
    void removesWhatIsGone() throws Exception {
        storm.plan("t", 1, "DRAIN");
        eventually("published", () -> storm.published("t").has("topology"));
        storm.state.removeStorm("t");
        eventually("both nodes gone",
            () -> storm.znodes.read(PLAN, null) == null && storm.znodes.read(PUBLISHED, null) == null);
    }

    @Test
    void onlyTheLeaderSpeaks() throws Exception {
        eventually("published", () -> storm.published("t").has("topology"));
        storm.leader.set(false);
        storm.exchange.roundEnded();
        Thread.sleep(1000);
        storm.znodes.delete(PUBLISHED);
        Thread.sleep(6000);
        assertNull(storm.znodes.read(PUBLISHED, null));
        storm.leader.set(true);
        eventually("published again", () -> storm.znodes.read(PUBLISHED, null) != null);
    }

    /** The names below a node, from the root of the ensemble. */
    private List<String> children(String path) throws Exception {
        Map<String, Object> conf = Utils.readDefaultConfig();
        try (CuratorFramework client = ClientZookeeper.mkClient(conf, List.of("127.0.0.1"), (int) zookeeper.getPort(), "",
            (state, type, changed) -> { }, conf, DaemonType.NIMBUS)) {
            return client.getChildren().forPath(path).stream().sorted().toList();
        }
    }

    @Test
    void keepsBelowItsOwnRoot() throws Exception {
        try (StormInZookeeper other = new StormInZookeeper(zookeeper.getPort(), "/other/storm").with(3, "u", "v");
             StormInZookeeper rootless = new StormInZookeeper(zookeeper.getPort(), "/").with(3, "w")) {
            storm.plan("t", 1, "DRAIN");
            other.plan("u", 1, "DRAIN");
            other.plan("v", 1, "DRAIN");
            rootless.plan("w", 1, "DRAIN");
            eventually("all published", () -> storm.published("t").has("topology")
                && other.published("u").has("topology") && other.published("v").has("topology")
                && rootless.published("w").has("topology"));
            other.state.removeStorm("v");
            eventually("what is gone is removed", () -> other.znodes.read("/nstorm/plans/v", null) == null);
            for (String what : List.of("topologies", "plans")) {
                assertEquals(List.of("t"), children("/storm/nstorm/" + what));
                assertEquals(List.of("u"), children("/other/storm/nstorm/" + what));
                assertEquals(List.of("w"), children("/nstorm/" + what));
            }
            assertNotNull(storm.exchange.of("t"));
            assertNull(storm.exchange.of("u"), "another cluster's plan");
        }
    }

    @Test
    void aTopologyThatIsTooLargeHindersNoOther() throws Exception {
        String[] small = {"a", "b", "c", "d", "e", "f"};
        eventually("published", () -> storm.published("t").has("topology"));
        // Their publications are of 1.1 MB, which ends a session with ZooKeeper.
        storm.with(3, small).with(8_000, "t", "large");
        NodeInfo slot = new NodeInfo("0e9d9bd5-93a5-4f08-8c3e-7d1c8a6c9a10-192.168.100.200", Set.of(6700L));
        storm.assign("t", 8_000, slot);
        storm.assign("large", 8_000, slot);
        storm.plan("a", 1, "STOP");
        for (String topology : small) {
            eventually(topology + " published", () -> storm.published(topology).has("topology"));
        }
        eventually("plans read", () -> storm.exchange.of("a") != null);
        storm.state.removeStorm("a");
        eventually("what is gone is removed", () -> storm.znodes.read("/nstorm/plans/a", null) == null);
        eventually("an old word of it is no word", () -> storm.znodes.read(PUBLISHED, null) == null);
        eventually("nor of the other", () -> storm.znodes.read("/nstorm/topologies/large", null) == null);
        storm.with(4, "t");
        eventually("published as soon as it fits", () -> storm.published("t").has("topology"));
        assertEquals(4, storm.published("t").get("executors").getAsJsonArray().size());
    }
}

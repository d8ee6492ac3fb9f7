package nstorm.nimbus;

import static nstorm.nimbus.StormInZookeeper.eventually;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.google.gson.JsonObject;
import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.Set;
import java.util.UUID;
import java.util.stream.IntStream;
import nstorm.wire.Phase;
import nstorm.wire.Plan;
import org.apache.storm.cluster.DaemonType;
import org.apache.storm.generated.NodeInfo;
import org.apache.storm.shade.org.apache.curator.framework.CuratorFramework;
import org.apache.storm.shade.org.apache.zookeeper.KeeperException.NoAuthException;
import org.apache.storm.shade.org.apache.zookeeper.ZooDefs;
import org.apache.storm.shade.org.apache.zookeeper.data.ACL;
import org.apache.storm.shade.org.apache.zookeeper.data.Id;
import org.apache.storm.shade.org.apache.zookeeper.server.auth.DigestAuthenticationProvider;
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
    private static final Map<String, Object> STORM =
            Map.of("storm.zookeeper.auth.scheme", "digest", "storm.zookeeper.auth.payload", "storm:secret");

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
        assertEquals("approve", seen.get("mode").getAsString());
        assertEquals(
                "[{\"id\":\"__acker\",\"kind\":\"system\",\"parallelism\":1},"
                        + "{\"id\":\"counts\",\"kind\":\"bolt\",\"parallelism\":1},"
                        + "{\"id\":\"words\",\"kind\":\"spout\",\"parallelism\":1}]",
                seen.get("components").toString());
        assertEquals(
                "[{\"from\":\"words\",\"to\":\"counts\",\"stream\":\"default\",\"grouping\":\"fields\"}]",
                seen.get("edges").toString());
        eventually("the nodes, too", () -> storm.json("/nstorm/nodes").has("nodes"));
        assertEquals(
                "[{\"id\":\"s1\",\"host\":\"host1\",\"cpu_capacity\":150.0,\"slots\":[6700,6701],"
                        + "\"slots_in_use\":1,\"closed\":null}]",
                storm.json("/nstorm/nodes").get("nodes").toString());
        assertEquals(
                "[{\"executor\":[2,2],\"component\":\"words\",\"slot\":null,\"start_secs\":null},"
                        + "{\"executor\":[3,3],\"component\":\"__acker\",\"slot\":null,\"start_secs\":null},"
                        + "{\"executor\":[1,1],\"component\":\"counts\",\"slot\":\"s1:6700\",\"start_secs\":1700000000}]",
                seen.get("executors").toString());
        eventually("a sign of life", () -> storm.told("t") != null);
        JsonObject alive = storm.json("/nstorm/nimbus");
        assertEquals(
                "org.apache.storm.scheduler.EvenScheduler",
                alive.get("scheduler").getAsString());
        assertEquals(
                "[{\"topology\":\"t\",\"plan\":null,\"problem\":null,\"undoes\":null}]",
                alive.get("topologies").toString());
        long first = alive.get("time_ms").getAsLong();
        eventually(
                "again though nothing changed",
                () -> storm.json("/nstorm/nimbus").get("time_ms").getAsLong() > first);
        assertEquals(0, storm.znodes.version(PUBLISHED), "what has not changed is not written");
        assertEquals(0, storm.znodes.version("/nstorm/nodes"));
    }

    /** A tree that is older than the credentials: whoever lacks them is shut out, and each role has its part. */
    @Test
    void aNimbusThatComesToLeadClosesWhatWasOpen() throws Exception {
        eventually("published", () -> storm.published("t").has("topology"));
        storm.close();
        Map<String, Object> keys = Map.of(
                "storm.zookeeper.auth.scheme",
                "digest",
                "storm.zookeeper.auth.payload",
                "storm:secret",
                "storm.zookeeper.superACL",
                "digest:" + digest("storm:secret"),
                "nstorm.acl.agent",
                List.of("digest:" + digest("agent:other")));
        storm = new StormInZookeeper(zookeeper.getPort(), "/storm", keys).with(3, "t");
        eventually("read", () -> !storm.exchange.manages("t"));
        Access access = Access.of(storm.conf);
        for (String path : List.of("/nstorm", "/nstorm/acks", PUBLISHED, "/nstorm/controls", "/nstorm/epoch")) {
            assertFalse(access.isWrong(path, storm.znodes.rights(path), Set.of()), path);
        }
        assertEquals(2, access.of("/nstorm/acks").size(), "Nimbus and agents");
        assertEquals(List.of(), storm.znodes.secure().mended(), "nothing is left");
        try (Znodes stranger = new Znodes(StormInZookeeper.conf(zookeeper.getPort(), "/storm"))) {
            assertThrows(NoAuthException.class, () -> stranger.write("/nstorm/epoch", new byte[0]));
        }
    }

    /** What an agent keeps to itself harms nobody: its own nodes go, others stay, and all else is read. */
    @Test
    void aClosedNodeHoldsUpNothing() throws Exception {
        eventually("published", () -> storm.published("t").has("topology"));
        storm.close();
        ACL agent = all("digest", digest("agent:other"));
        try (CuratorFramework client = client("/storm")) {
            for (String path : List.of("/nstorm/acks/mine", "/nstorm/load/mine", "/nstorm/commands/mine/below", PLAN)) {
                client.create().creatingParentsIfNeeded().forPath(path);
            }
            for (String path : List.of("/nstorm/acks/mine", "/nstorm/load/mine", "/nstorm/commands/mine", PLAN)) {
                client.setACL().withACL(List.of(agent)).forPath(path);
            }
        }
        storm = new StormInZookeeper(zookeeper.getPort(), "/storm", STORM).with(3, "t", "u");
        eventually("read", () -> !storm.exchange.manages("u"));
        assertTrue(storm.exchange.manages("t"), "what cannot be read may be a plan");
        eventually("published", () -> storm.published("u").has("topology"));
        assertEquals(List.of(), storm.znodes.children("/nstorm/acks", null));
        assertEquals(List.of(), storm.znodes.children("/nstorm/load", null));
        Znodes.Secured left = storm.znodes.secure();
        assertEquals(List.of(), left.deleted());
        assertEquals(Set.of("/nstorm/commands/mine", PLAN), Set.copyOf(left.closed()));
    }

    /** Whoever was let in before there were credentials may have named himself, or each address there is. */
    @Test
    void oneIdentityKeepsRightsForItselfAlone() throws Exception {
        eventually("published", () -> storm.published("t").has("topology"));
        storm.close();
        ACL own = all("digest", digest("storm:secret"));
        try (CuratorFramework client = client("/storm")) {
            client.setACL().withACL(List.of(own)).forPath(PUBLISHED);
            client.setACL().withACL(List.of(all("ip", "0.0.0.0/1"))).forPath("/nstorm/epoch");
            client.setACL()
                    .withACL(List.of(own, all("digest", digest("mallory:mine"))))
                    .forPath("/nstorm");
        }
        storm = new StormInZookeeper(zookeeper.getPort(), "/storm", STORM).with(3, "t");
        eventually("read", () -> !storm.exchange.manages("t"));
        for (String path : List.of("/nstorm", "/nstorm/acks", PUBLISHED, "/nstorm/controls", "/nstorm/epoch")) {
            assertEquals(List.of(own), storm.znodes.rights(path), path);
        }
        assertEquals(new Znodes.Secured(List.of(), List.of(), List.of()), storm.znodes.secure());
    }

    private static ACL all(String scheme, String id) {
        return new ACL(ZooDefs.Perms.ALL, new Id(scheme, id));
    }

    private static String digest(String userAndPassword) throws Exception {
        return DigestAuthenticationProvider.generateDigest(userAndPassword);
    }

    @Test
    void aNimbusWithoutCredentialsHasNoRights() {
        assertNull(Access.of(Map.of()));
        assertNull(Access.of(Map.of("storm.zookeeper.ssl.enable", true)));
        assertFalse(Access.isMissing(Map.of()));
        assertTrue(Access.isMissing(Map.of("nstorm.secure", "required")));
        assertFalse(Access.isMissing(Map.of(
                "nstorm.secure",
                "required",
                "storm.zookeeper.auth.scheme",
                "digest",
                "storm.zookeeper.auth.payload",
                "storm:secret")));
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
        eventually("told", () -> storm.told("t").get("plan").toString().equals("[1,2]"));
        storm.exchange.roundEnded();
        Thread.sleep(500);
        assertEquals(1, storm.rounds.get(), "once a plan");
        storm.assign("t", 6701);
        storm.plan("t", 3, "SETTLE");
        eventually("read", () -> storm.exchange.of("t").version() == 3);
        assertEquals(1, storm.rounds.get(), "it is absorbed");
    }

    /** A move that had begun is absorbed; after it nothing is taken, until it is switched on. */
    @Test
    void takesNoNewMovesWhileItIsOff() throws Exception {
        storm.plan("t", 1, "DRAIN");
        eventually("read", () -> version("t") == 1);
        storm.znodes.write("/nstorm/off", "a fault".getBytes(StandardCharsets.UTF_8));
        storm.plan("t", 2, "STOP");
        eventually("demanded", () -> storm.rounds.get() == 1);
        assertTrue(storm.json("/nstorm/nimbus").get("error").isJsonNull(), "a move is under way");
        storm.znodes.write(
                PLAN,
                "{\"cluster\":\"c\",\"epoch\":1,\"version\":3,\"topology\":\"t\",\"entries\":[]}"
                        .getBytes(StandardCharsets.UTF_8));
        eventually("inert", () -> !storm.json("/nstorm/nimbus").get("error").isJsonNull());
        assertEquals(
                "the hooks are off: a fault",
                storm.json("/nstorm/nimbus").get("error").getAsString());
        storm.plan("t", 4, "STOP");
        Thread.sleep(1000);
        assertEquals(3, version("t"));
        assertEquals(1, storm.rounds.get());
        assertTrue(storm.exchange.manages("t"), "what was moved stays where it is");
        storm.znodes.write("/nstorm/off", new byte[0]);
        eventually("what was passed over counts now", () -> version("t") == 4);
        eventually("demanded", () -> storm.rounds.get() == 2);
    }

    private long version(String topology) {
        Plan plan = storm.exchange.of(topology);
        return plan == null ? -1 : plan.version();
    }

    @Test
    void whoLeadsForTheSecondTimeTakesEveryTopologyForManaged() throws Exception {
        eventually("read", () -> !storm.exchange.manages("t"));
        storm.leader.set(false);
        eventually("forgotten", () -> storm.exchange.manages("t"));
        assertNull(storm.exchange.of("t"));
        storm.leader.set(true);
        eventually("read again", () -> !storm.exchange.manages("t"));
    }

    /** It has been moved, whatever its plan says: a spread would restart what was packed. */
    @Test
    void whoLeadsForTheFirstTimeKeepsATopologyWhosePlanCannotBeRead() throws Exception {
        storm.leader.set(false);
        eventually("forgotten", () -> storm.exchange.manages("u"));
        storm.znodes.write(PLAN, "garbage".getBytes(StandardCharsets.UTF_8));
        storm.leader.set(true);
        eventually("read", () -> !storm.exchange.manages("u"));
        assertTrue(storm.exchange.manages("t"));
        assertNull(storm.exchange.of("t"));
        storm.znodes.delete(PLAN);
        eventually("gone", () -> !storm.exchange.manages("t"));
    }

    @Test
    void whatAnotherOneHasWrittenIsWrittenAgain() throws Exception {
        eventually("a sign of life", () -> storm.told("t") != null);
        for (String path : List.of(PUBLISHED, "/nstorm/nodes")) {
            storm.znodes.write(path, "{\"topology\":\"of an older Nimbus\"}".getBytes(StandardCharsets.UTF_8));
            eventually("mended", () -> storm.json(path).has(path.equals(PUBLISHED) ? "executors" : "nodes"));
            storm.znodes.delete(path);
            eventually("made again", () -> storm.znodes.version(path) >= 0);
        }
        long mended = storm.json("/nstorm/nimbus").get("time_ms").getAsLong();
        eventually(
                "a later sign of life",
                () -> storm.json("/nstorm/nimbus").get("time_ms").getAsLong() > mended);
    }

    @Test
    void keepsTheLastGoodPlan() throws Exception {
        storm.plan("t", 5, "DRAIN");
        eventually(
                "read",
                () -> storm.exchange.of("t") != null && storm.exchange.of("t").version() == 5);
        storm.znodes.write(PLAN, "garbage".getBytes(StandardCharsets.UTF_8));
        storm.znodes.write("/nstorm/plans/other", "{}".getBytes(StandardCharsets.UTF_8));
        Thread.sleep(1000);
        assertEquals(5, storm.exchange.of("t").version());
        assertNull(storm.exchange.of("other"));
        storm.plan("t", 4, "STOP");
        Thread.sleep(1000);
        assertEquals(5, storm.exchange.of("t").version(), "older");
        storm.plan("t", Long.MAX_VALUE, 0, "STOP");
        storm.plan("other", 2, 0, "STOP");
        Thread.sleep(1000);
        assertEquals(5, storm.exchange.of("t").version(), "of no leader");
        assertNull(storm.exchange.of("other"));
        storm.plan("t", 6, "STOP");
        eventually("read", () -> storm.exchange.of("t").version() == 6);
        storm.lead();
        storm.plan("t", 2, 7, "STOP");
        eventually("of a new leader", () -> storm.exchange.of("t").epoch() == 2);
    }

    @Test
    void decodesOnlyThePlanThatHasChanged() throws Exception {
        storm.with(3, "u");
        storm.plan("t", 1, "DRAIN");
        storm.plan("u", 1, "DRAIN");
        eventually("read", () -> storm.exchange.of("t") != null && storm.exchange.of("u") != null);
        Plan first = storm.exchange.of("u");
        storm.plan("t", 2, "DRAIN");
        eventually("read", () -> storm.exchange.of("t").version() == 2);
        assertSame(first, storm.exchange.of("u"));
        storm.znodes.delete("/nstorm/plans/u");
        eventually("gone", () -> storm.exchange.of("u") == null);
        storm.plan("u", 1, "STOP");
        eventually("read anew", () -> storm.exchange.of("u") != null);
        assertEquals(Phase.STOP, storm.exchange.of("u").entries().get(0).phase());
    }

    /** Whoever may write plans may write ten thousand. */
    @Test
    void readsNoPlanOfATopologyThatStormHasNotGot() throws Exception {
        for (int i = 0; i < 100; i++) {
            storm.plan("x" + i, 1, "STOP");
        }
        storm.plan("t", 1, "DRAIN");
        eventually("read", () -> version("t") == 1);
        for (int i = 0; i < 100; i++) {
            assertNull(storm.exchange.of("x" + i));
        }
        storm.with(3, "x7");
        storm.exchange.roundEnded();
        eventually("read once Storm has it", () -> storm.exchange.of("x7") != null);
    }

    @Test
    void goesOnWithWhatItLastUnderstood() throws Exception {
        storm.plan("t", 1, "STOP");
        eventually("demanded", () -> storm.rounds.get() == 1);
        storm.plan("t", 2, "LEAP");
        eventually("read", () -> storm.exchange.of("t").version() == 2);
        assertEquals(Phase.STOP, storm.exchange.of("t").entries().get(0).phase());
        assertEquals(1, storm.exchange.of("t").notUnderstood().size());
        eventually("asked for again, as it is not absorbed", () -> storm.rounds.get() == 2);
    }

    @Test
    void removesWhatIsGone() throws Exception {
        storm.plan("t", 1, "DRAIN");
        eventually("published", () -> storm.published("t").has("topology"));
        storm.state.removeStorm("t");
        eventually(
                "both nodes gone",
                () -> storm.znodes.read(PLAN, null) == null && storm.znodes.read(PUBLISHED, null) == null);
    }

    @Test
    void onlyTheLeaderSpeaks() throws Exception {
        eventually("published", () -> storm.published("t").has("topology"));
        storm.leader.set(false);
        storm.exchange.roundEnded();
        Thread.sleep(1000);
        storm.znodes.delete(PUBLISHED);
        int silent = storm.znodes.version(Publisher.NIMBUS);
        Thread.sleep(6000);
        assertNull(storm.znodes.read(PUBLISHED, null));
        assertEquals(silent, storm.znodes.version(Publisher.NIMBUS));
        storm.leader.set(true);
        storm.with(3, "t");
        eventually("published again", () -> storm.znodes.read(PUBLISHED, null) != null);
    }

    private CuratorFramework client(String root) {
        Map<String, Object> conf = Utils.readDefaultConfig();
        return ClientZookeeper.mkClient(
                conf,
                List.of("127.0.0.1"),
                (int) zookeeper.getPort(),
                root,
                (state, type, changed) -> {},
                conf,
                DaemonType.NIMBUS);
    }

    /** The names below a node, from the root of the ensemble. */
    private List<String> children(String path) throws Exception {
        try (CuratorFramework client = client("")) {
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
            eventually(
                    "all published",
                    () -> storm.published("t").has("topology")
                            && other.published("u").has("topology")
                            && other.published("v").has("topology")
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

    /** Ids as Storm makes them: hardly anything of them is said twice, so hardly anything can be compressed. */
    private static String[] supervisors(int count) {
        Random random = new Random(1);
        return IntStream.range(0, count)
                .mapToObj(i -> new UUID(random.nextLong(), random.nextLong()) + "-192.168." + i / 250 + "." + i % 250)
                .toArray(String[]::new);
    }

    @Test
    void tenThousandExecutorsOnAThousandNodesFit() throws Exception {
        String[] supervisors = supervisors(1_000);
        for (String id : supervisors) {
            storm.supervisor(id, id.substring(37));
        }
        storm.with(10_000, "t");
        storm.assign(
                "t", 10_000, task -> new NodeInfo(supervisors[(int) (task % 1_000)], Set.of(6700L + task / 1_000 % 2)));
        eventually("assigned", () -> storm.published("t").toString().contains(supervisors[7]));
        assertEquals(
                10_000, storm.published("t").get("executors").getAsJsonArray().size());
        eventually(
                "all nodes",
                () -> storm.json("/nstorm/nodes").get("nodes").getAsJsonArray().size() == 1_001);
        for (String path : List.of(PUBLISHED, "/nstorm/nodes")) {
            int bytes = storm.znodes.read(path, null).length;
            System.out.println(path + " has " + bytes + " bytes");
            assertTrue(bytes < 262_144, path + " has " + bytes);
        }
    }

    @Test
    void aTopologyThatIsTooLargeHindersNoOther() throws Exception {
        String[] small = {"a", "b", "c", "d", "e", "f"};
        eventually("published", () -> storm.published("t").has("topology"));
        storm.with(3, small).with(12_000, "t", "large");
        String[] supervisors = supervisors(12_000);
        storm.assign("t", 12_000, task -> new NodeInfo(supervisors[(int) task - 1], Set.of(6700L)));
        storm.assign("large", 12_000, task -> new NodeInfo(supervisors[(int) task - 1], Set.of(6700L)));
        storm.plan("a", 1, "STOP");
        for (String topology : small) {
            eventually(topology + " published", () -> storm.published(topology).has("topology"));
        }
        eventually("plans read", () -> storm.exchange.of("a") != null);
        eventually("said", () -> storm.told("t").get("problem").toString().contains("no more than 262144"));
        assertTrue(storm.told("b").get("problem").isJsonNull());
        storm.state.removeStorm("a");
        eventually("what is gone is removed", () -> storm.znodes.read("/nstorm/plans/a", null) == null);
        assertNull(storm.znodes.read(PUBLISHED, null), "an old word of it is no word");
        assertNull(storm.znodes.read("/nstorm/topologies/large", null));
        storm.with(4, "t");
        eventually(
                "published as soon as it fits",
                () -> storm.published("t").has("executors")
                        && storm.published("t")
                                        .get("executors")
                                        .getAsJsonArray()
                                        .size()
                                == 4);
        eventually("said too", () -> storm.told("t").get("problem").isJsonNull());
    }

    /** Else the controller would take an assignment that it has not seen for one that it has. */
    @Test
    void noSignOfLifeIsNewerThanAnAssignmentThatIsNotShown() throws Exception {
        eventually("a sign of life", () -> storm.told("t") != null);
        int shown = 0;
        try (CuratorFramework client = client("/storm")) {
            for (int round = 1; round <= 50; round++) {
                storm.assign("t", 6700 + round % 2);
                storm.exchange.roundEnded();
                long assigned = client.checkExists().forPath("/assignments/t").getMzxid();
                String slot = "\"s1:" + (6700 + round % 2) + "\"";
                for (int look = 0; look < round; look++) {
                    long alive = client.checkExists().forPath(Publisher.NIMBUS).getMzxid();
                    boolean shows = storm.published("t").toString().contains(slot);
                    assertTrue(alive < assigned || shows, "a sign of life without " + slot);
                    shown += alive > assigned ? 1 : 0;
                }
            }
        }
        assertTrue(shown > 0, "never shown");
    }

    @Test
    void anotherNimbusThatHasSpokenMeansThatAllIsWrittenAnew() throws Exception {
        eventually("a sign of life", () -> storm.told("t") != null);
        storm.znodes.write(PUBLISHED, "{}".getBytes(StandardCharsets.UTF_8));
        Thread.sleep(1000);
        assertFalse(storm.published("t").has("topology"), "as far as this one knows nothing has changed");
        storm.znodes.write(Publisher.NIMBUS, "{}".getBytes(StandardCharsets.UTF_8));
        eventually("written anew", () -> storm.published("t").has("topology"));
        eventually("and spoken", () -> storm.told("t") != null);
    }
}

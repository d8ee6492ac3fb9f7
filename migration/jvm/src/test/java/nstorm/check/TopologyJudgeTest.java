package nstorm.check;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.Serializable;
import java.nio.charset.StandardCharsets;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.function.Consumer;
import java.util.stream.Collectors;
import nstorm.JdbcRows;
import nstorm.wire.json.JsonText;
import org.apache.storm.generated.ComponentObject;
import org.apache.storm.generated.ShellComponent;
import org.apache.storm.generated.StormTopology;
import org.apache.storm.task.OutputCollector;
import org.apache.storm.task.ShellBolt;
import org.apache.storm.task.TopologyContext;
import org.apache.storm.testing.TestWordSpout;
import org.apache.storm.topology.BasicOutputCollector;
import org.apache.storm.topology.IRichBolt;
import org.apache.storm.topology.OutputFieldsDeclarer;
import org.apache.storm.topology.TopologyBuilder;
import org.apache.storm.topology.base.BaseBasicBolt;
import org.apache.storm.topology.base.BaseRichBolt;
import org.apache.storm.topology.base.BaseWindowedBolt;
import org.apache.storm.trident.TridentTopology;
import org.apache.storm.trident.operation.builtin.Count;
import org.apache.storm.trident.testing.FixedBatchSpout;
import org.apache.storm.trident.testing.MemoryMapState;
import org.apache.storm.tuple.Fields;
import org.apache.storm.tuple.Tuple;
import org.apache.storm.tuple.Values;
import org.apache.storm.utils.Utils;
import org.apache.storm.windowing.TupleWindow;
import org.junit.jupiter.api.Test;

class TopologyJudgeTest {
    static final class Split extends BaseBasicBolt {
        @Override
        public void execute(Tuple tuple, BasicOutputCollector collector) {
            for (String word : tuple.getString(0).split(" ")) {
                collector.emit(new Values(word));
            }
        }

        @Override
        public void declareOutputFields(OutputFieldsDeclarer declarer) {
            declarer.declare(new Fields("word"));
        }
    }

    static class CountWords extends BaseRichBolt {
        /** Only prepare shows what it is. */
        private Map<String, Long> counts;

        @Override
        public void prepare(Map<String, Object> conf, TopologyContext context, OutputCollector collector) {
            counts = new HashMap<>();
        }

        @Override
        public void execute(Tuple tuple) {
            counts.merge(tuple.getString(0), 1L, Long::sum);
        }

        @Override
        public void declareOutputFields(OutputFieldsDeclarer declarer) {}
    }

    /** The types of its fields do not say what it keeps in them. */
    static final class KeepsSessions extends BaseRichBolt {
        record Session(List<Page> pages) implements Serializable {}

        record Page(String name) implements Serializable {}

        private final Map<String, Object> sessions = new HashMap<>();

        @Override
        public void prepare(Map<String, Object> conf, TopologyContext context, OutputCollector collector) {}

        @Override
        public void execute(Tuple tuple) {
            sessions.put(tuple.getString(0), new Session(List.of(new Page(tuple.getString(0)))));
        }

        @Override
        public void declareOutputFields(OutputFieldsDeclarer declarer) {}
    }

    static final class Fails extends CountWords {
        @Override
        public void prepare(Map<String, Object> conf, TopologyContext context, OutputCollector collector) {
            throw new IllegalStateException(context.getThisComponentId() + " of "
                    + context.getComponentTasks("words").size() + " tasks");
        }
    }

    static final class Window extends BaseWindowedBolt {
        @Override
        public void execute(TupleWindow window) {}
    }

    public static final class CountingSpout extends TestWordSpout {
        private long number;

        @Override
        public void nextTuple() {
            number++;
            super.nextTuple();
        }
    }

    private static Map<String, JudgedComponent> judge(
            StormTopology topology, Map<String, Object> conf, boolean prepare) {
        Map<String, Object> all = new HashMap<>(Utils.readStormConfig());
        all.putAll(conf);
        return new TopologyJudge(topology, all, prepare)
                .judge().stream().collect(Collectors.toMap(JudgedComponent::component, one -> one));
    }

    private static StormTopology topology(Consumer<TopologyBuilder> more) {
        TopologyBuilder builder = new TopologyBuilder();
        builder.setSpout("words", new TestWordSpout(), 2);
        more.accept(builder);
        return builder.createTopology();
    }

    private static JudgedComponent bolt(IRichBolt bolt, Map<String, Object> conf, boolean prepare) {
        return judge(topology(builder -> builder.setBolt("bolt", bolt, 3).shuffleGrouping("words")), conf, prepare)
                .get("bolt");
    }

    private static void assertStays(String why, JudgedComponent judged) {
        assertEquals("stays", judged.way(), judged.toString());
        assertTrue(judged.why().startsWith(why), judged.toString());
    }

    @Test
    void whatKeepsNothingMovesLiveAndASpoutByItsOwnWay() {
        Map<String, JudgedComponent> judged = judge(
                topology(builder -> builder.setBolt("split", new Split(), 3).shuffleGrouping("words")),
                Map.of(),
                false);
        assertEquals(
                new JudgedComponent("split", "bolt", Split.class.getName(), 3, "live", "keeps nothing", true),
                judged.get("split"));
        assertEquals(
                new JudgedComponent(
                        "words",
                        "spout",
                        TestWordSpout.class.getName(),
                        2,
                        "spout",
                        "unless it still remembers something once nothing is pending",
                        true),
                judged.get("words"));
    }

    @Test
    void aSpoutWhoseCodeCountsStaysUnlessItsSourceIsSaidToGiveAgain() {
        StormTopology topology = topology(builder -> builder.setSpout("numbers", new CountingSpout()));
        JudgedComponent judged = judge(topology, Map.of(), false).get("numbers");
        assertStays("keeps something in its field number; declare nstorm.move: {numbers: renew}", judged);
        assertTrue(judged.guess());
        assertEquals(
                "spout",
                judge(topology, Map.of("nstorm.move", Map.of("numbers", "renew")), false)
                        .get("numbers")
                        .way());
    }

    @Test
    void aBoltIsPreparedIfAsked() {
        JudgedComponent guessed = bolt(new CountWords(), Map.of(), false);
        assertTrue(guessed.guess());
        JudgedComponent prepared = bolt(new CountWords(), Map.of(), true);
        assertEquals(
                new JudgedComponent(
                        "bolt",
                        "bolt",
                        CountWords.class.getName(),
                        3,
                        "carry",
                        "keeps something in its field counts, which travels with it",
                        false),
                prepared);
    }

    @Test
    void aClassToWhichNoTypeLeadsIsToBeDeclared() {
        String page = KeepsSessions.Page.class.getName();
        String session = KeepsSessions.Session.class.getName();
        String why = "keeps something in its field sessions, which travels with it";
        for (boolean prepare : new boolean[] {false, true}) {
            assertEquals(
                    why + "; declare nstorm.state.classes: [" + page + ", " + session
                            + "] if they are part of the state",
                    bolt(new KeepsSessions(), Map.of(), prepare).why());
            assertEquals(
                    why,
                    bolt(new KeepsSessions(), Map.of("nstorm.state.classes", List.of(session)), prepare)
                            .why());
        }
    }

    @Test
    void aPrepareThatFailsIsNamed() {
        JudgedComponent judged = bolt(new Fails(), Map.of(), true);
        assertStays("its prepare threw java.lang.IllegalStateException: bolt of 2 tasks in ", judged);
        assertTrue(judged.why().contains("TopologyJudgeTest$Fails.prepare(TopologyJudgeTest.java:"), judged.why());
    }

    @Test
    void whatIsDeclaredCounts() {
        assertEquals(
                "live",
                bolt(new CountWords(), Map.of("nstorm.move", Map.of("bolt", "live")), true)
                        .way());
        assertStays(
                "nstorm.move is never", bolt(new CountWords(), Map.of("nstorm.move", Map.of("bolt", "never")), false));
    }

    @Test
    void aReviewedClassHasItsVerdictUnprepared() {
        JudgedComponent judged = bolt(JdbcRows.insertBolt(JdbcRows.hikari("jdbc:h2:mem:judged")), Map.of(), true);
        assertTrue(judged.why().startsWith("cleanup() closes its pool of connections"), judged.toString());
        assertEquals(false, judged.guess());
    }

    @Test
    @SuppressWarnings("unchecked")
    void windowsAndTridentStay() {
        assertStays(
                "windowed bolt",
                judge(
                                topology(builder -> builder.setBolt(
                                                "bolt", new Window().withTumblingWindow(BaseWindowedBolt.Count.of(5)))
                                        .shuffleGrouping("words")),
                                Map.of(),
                                false)
                        .get("bolt"));
        TridentTopology trident = new TridentTopology();
        trident.newStream("words", new FixedBatchSpout(new Fields("word"), 1, new Values("a")))
                .groupBy(new Fields("word"))
                .persistentAggregate(new MemoryMapState.Factory(), new Count(), new Fields("count"));
        judge(trident.build(), Map.of(), false).values().forEach(judged -> assertStays("", judged));
    }

    @Test
    void aShellBoltOfAThriftTopologyStays() {
        StormTopology topology =
                topology(builder -> builder.setBolt("bolt", new CountWords()).shuffleGrouping("words"));
        topology.get_bolts()
                .get("bolt")
                .set_bolt_object(ComponentObject.shell(new ShellComponent("python3", "split.py")));
        JudgedComponent judged = judge(topology, Map.of(), false).get("bolt");
        assertEquals(ShellBolt.class.getName(), judged.type());
        assertStays("", judged);
    }

    @Test
    void bytesThatAreNoBoltAreNamed() {
        StormTopology topology =
                topology(builder -> builder.setBolt("bolt", new CountWords()).shuffleGrouping("words"));
        topology.get_bolts().get("bolt").set_bolt_object(ComponentObject.serialized_java(new byte[] {1, 2}));
        assertStays(
                "it cannot be made from the topology's bytes (",
                judge(topology, Map.of(), false).get("bolt"));
    }

    @Test
    void theDocumentHasWhatToDeclareForItself() {
        JsonText text = new JsonText();
        new JudgedComponent("c", "bolt", "C", 2, "stays", "has threads; declare nstorm.move: {c: live} if so", true)
                .write(text);
        assertEquals(
                "{\"component\":\"c\",\"kind\":\"bolt\",\"class\":\"C\",\"executors\":2,\"way\":\"stays\",\"why\":\"has threads\","
                        + "\"declare\":\"nstorm.move: {c: live} if so\",\"guess\":true}",
                new String(text.bytes(), StandardCharsets.UTF_8));
    }
}

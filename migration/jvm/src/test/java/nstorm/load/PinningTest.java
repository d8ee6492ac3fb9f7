package nstorm.load;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;
import java.util.Collection;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.function.Consumer;
import nstorm.wire.Way;
import org.apache.storm.bolt.JoinBolt;
import org.apache.storm.daemon.Acker;
import org.apache.storm.drpc.KeyedFairBolt;
import org.apache.storm.drpc.LinearDRPCTopologyBuilder;
import org.apache.storm.generated.StormTopology;
import org.apache.storm.spout.CheckpointSpout;
import org.apache.storm.spout.SpoutOutputCollector;
import org.apache.storm.state.KeyValueState;
import org.apache.storm.streams.Pair;
import org.apache.storm.streams.PairStream;
import org.apache.storm.streams.Stream;
import org.apache.storm.streams.StreamBuilder;
import org.apache.storm.streams.operations.mappers.ValueMapper;
import org.apache.storm.streams.windowing.TumblingWindows;
import org.apache.storm.task.IBolt;
import org.apache.storm.task.OutputCollector;
import org.apache.storm.task.TopologyContext;
import org.apache.storm.topology.BasicBoltExecutor;
import org.apache.storm.topology.BasicOutputCollector;
import org.apache.storm.topology.OutputFieldsDeclarer;
import org.apache.storm.topology.TopologyBuilder;
import org.apache.storm.topology.base.BaseBasicBolt;
import org.apache.storm.topology.base.BaseRichBolt;
import org.apache.storm.topology.base.BaseRichSpout;
import org.apache.storm.topology.base.BaseStatefulBolt;
import org.apache.storm.topology.base.BaseWindowedBolt;
import org.apache.storm.trident.TridentTopology;
import org.apache.storm.trident.operation.builtin.Count;
import org.apache.storm.trident.spout.RichSpoutBatchTriggerer;
import org.apache.storm.trident.testing.FixedBatchSpout;
import org.apache.storm.tuple.Fields;
import org.apache.storm.tuple.Tuple;
import org.apache.storm.tuple.Values;
import org.apache.storm.utils.Utils;
import org.apache.storm.windowing.TupleWindow;
import org.junit.jupiter.api.Test;

/** Components as Storm's own builders make and ship them. */
class PinningTest {
    public static final class NoSpout extends BaseRichSpout {
        @Override
        public void open(Map<String, Object> conf, TopologyContext context, SpoutOutputCollector collector) {}

        @Override
        public void nextTuple() {}

        @Override
        public void declareOutputFields(OutputFieldsDeclarer declarer) {
            declarer.declare(new Fields("n"));
        }
    }

    public static class Basic extends BaseBasicBolt {
        @Override
        public void execute(Tuple tuple, BasicOutputCollector collector) {}

        @Override
        public void declareOutputFields(OutputFieldsDeclarer declarer) {
            declarer.declare(new Fields("id", "n"));
        }
    }

    /** A user's own wrapper around any bolt. */
    public static final class Wrapper extends BaseRichBolt {
        private final IBolt inner;
        private final Wrapper itself = this;

        Wrapper(IBolt inner) {
            this.inner = inner;
        }

        @Override
        public void prepare(Map<String, Object> conf, TopologyContext context, OutputCollector collector) {
            inner.prepare(conf, context, collector);
        }

        @Override
        public void execute(Tuple tuple) {
            inner.execute(tuple);
        }

        @Override
        public void declareOutputFields(OutputFieldsDeclarer declarer) {}
    }

    public static final class Windowed extends BaseWindowedBolt {
        @Override
        public void execute(TupleWindow window) {}
    }

    public static final class Stateful extends BaseStatefulBolt<KeyValueState<String, Long>> {
        @Override
        public void initState(KeyValueState<String, Long> state) {}

        @Override
        public void execute(Tuple tuple) {}

        @Override
        public void declareOutputFields(OutputFieldsDeclarer declarer) {}
    }

    /** Reason by component of what a worker would build of this topology; null as "may move". */
    private static Map<String, String> reasons(StormTopology topology) {
        Map<String, String> reasons = new TreeMap<>();
        topology.get_bolts().forEach((id, bolt) -> {
            String reason = Pinning.reason(id, false, Utils.getSetComponentObject(bolt.get_bolt_object()));
            reasons.put(id, reason == null ? "may move" : reason);
        });
        return reasons;
    }

    private static Collection<String> stream(Consumer<Stream<Integer>> body) {
        StreamBuilder builder = new StreamBuilder();
        body.accept(builder.newStream(new NoSpout(), new ValueMapper<Integer>(0)));
        return new TreeSet<>(reasons(builder.build()).values());
    }

    private static PairStream<Integer, Integer> pairs(Stream<Integer> stream) {
        return stream.mapToPair(n -> Pair.of(n, n));
    }

    private static String reason(Object bolt) {
        return Pinning.reason("b", false, bolt);
    }

    @Test
    void spoutsAndSystemComponentsStay() {
        assertEquals("spout", Pinning.reason("s", true, new NoSpout()));
        assertEquals("Storm's own spout (NoSpout)", Pinning.reason("$mastercoord-bg0", true, new NoSpout()));
        assertEquals("acker", Pinning.reason("__acker", false, new Wrapper(null)));
        assertEquals("system component", Pinning.reason("__system", false, new Wrapper(null)));
    }

    @Test
    void spoutsAndAckersMoveByWaysOfTheirOwn() {
        assertEquals(Way.SPOUT, Pinning.way("s", true, new NoSpout()));
        assertEquals(Way.ACKER, Pinning.way("__acker", false, new Acker()));
        assertEquals(Way.LIVE, Pinning.way("b", false, new Wrapper(null)));
        assertEquals(Way.LIVE, Pinning.way("__eventlogger", false, new Wrapper(null)));
    }

    @Test
    @SuppressWarnings("unchecked")
    void spoutsOfStormsOwnStay() {
        assertEquals(Way.LIVE, Pinning.way("$checkpointspout", true, new CheckpointSpout()));
        assertEquals(Way.LIVE, Pinning.way("__spout", true, new NoSpout()));
        assertEquals(Way.LIVE, Pinning.way("s", true, new RichSpoutBatchTriggerer(new NoSpout(), "x", "b")));
        TridentTopology trident = new TridentTopology();
        trident.newStream("words", new FixedBatchSpout(new Fields("n"), 3, new Values(1)))
                .groupBy(new Fields("n"))
                .aggregate(new Count(), new Fields("count"));
        trident.build()
                .get_spouts()
                .forEach((id, spout) -> assertEquals(
                        Way.LIVE, Pinning.way(id, true, Utils.getSetComponentObject(spout.get_spout_object())), id));
    }

    @Test
    void aUsersBoltMayMoveInWhateverItIsWrapped() {
        assertNull(reason(new BasicBoltExecutor(new Basic())));
        assertNull(reason(new Wrapper(new Wrapper(new BasicBoltExecutor(new Basic())))));
        assertNull(reason(new Wrapper(null)));
    }

    @Test
    void aWrapperIsLookedInto() {
        assertEquals("join bolt (JoinBolt)", reason(new JoinBolt("a", "n")));
        assertEquals("keyed-fair bolt (KeyedFairBolt)", reason(new BasicBoltExecutor(new Basic() {
            final Object inner = new Wrapper(new Wrapper(new KeyedFairBolt(new Wrapper(null))));
        })));
    }

    @Test
    void windowedAndStatefulBoltsStay() {
        TopologyBuilder builder = new TopologyBuilder();
        builder.setSpout("spout", new NoSpout());
        builder.setBolt("windowed", new Windowed().withTumblingWindow(BaseWindowedBolt.Count.of(3)))
                .shuffleGrouping("spout");
        builder.setBolt("basic", new Basic()).shuffleGrouping("spout");
        assertEquals(
                Map.of("windowed", "windowed bolt (WindowedBoltExecutor)", "basic", "may move"),
                reasons(builder.createTopology()));
        builder.setBolt("stateful", new Stateful()).shuffleGrouping("spout");
        assertEquals(
                "stateful bolt (BaseStatefulBoltExecutor)",
                reasons(builder.createTopology()).get("stateful"));
    }

    @Test
    @SuppressWarnings("unchecked")
    void allOfTridentStays() {
        TridentTopology trident = new TridentTopology();
        trident.newStream("words", new FixedBatchSpout(new Fields("n"), 3, new Values(1)))
                .groupBy(new Fields("n"))
                .aggregate(new Count(), new Fields("count"))
                .parallelismHint(2);
        Map<String, String> reasons = reasons(trident.build());
        assertTrue(reasons.containsKey("$spoutcoord-spout-words"), reasons.toString());
        assertEquals("Trident coordinator (TridentSpoutCoordinator)", reasons.remove("$spoutcoord-spout-words"));
        assertEquals(
                List.of("Trident bolt (TridentBoltExecutor)"),
                reasons.values().stream().distinct().toList());
        assertEquals(
                "Trident component (BasicBoltExecutor)",
                Pinning.reason("$anything", false, new BasicBoltExecutor(new Basic())));
    }

    @Test
    void theEndsOfDrpcStay() {
        LinearDRPCTopologyBuilder builder = new LinearDRPCTopologyBuilder("f");
        builder.addBolt(new Basic());
        Collection<String> reasons = reasons(builder.createRemoteTopology()).values();
        assertTrue(
                reasons.containsAll(List.of("DRPC join (JoinResult)", "DRPC return (ReturnResults)")),
                reasons.toString());
    }

    @Test
    void aStreamMayMoveWhileItKeepsNothing() {
        assertEquals(
                List.of("may move"),
                List.copyOf(stream(s -> s.map(n -> n + 1)
                        .filter(n -> n > 0)
                        .flatMap(List::of)
                        .peek(n -> {})
                        .forEach(n -> {}))));
        assertEquals(
                List.of("may move"),
                List.copyOf(stream(
                        s -> pairs(s).mapValues(n -> n).flatMapValues(List::of).forEach(n -> {}))));
    }

    @Test
    void aStreamThatKeepsSomethingStays() {
        assertEquals("stream with state (AggregateByKeyProcessor)", kept(s -> pairs(s).countByKey()));
        assertEquals("stream with state (ReduceByKeyProcessor)", kept(s -> pairs(s).reduceByKey((a, b) -> a + b)));
        assertEquals("stream with state (ReduceProcessor)", kept(s -> s.reduce((a, b) -> a + b)));
        assertEquals("stream with state (JoinProcessor)", kept(s -> pairs(s).join(pairs(s))));
        assertEquals(
                "stateful bolt (BaseStatefulBoltExecutor)",
                kept(s -> pairs(s).updateStateByKey(0L, (sum, n) -> sum + n)));
    }

    private static String kept(Consumer<Stream<Integer>> body) {
        return stream(body).stream()
                .filter(r -> !r.equals("may move"))
                .findFirst()
                .orElse("may move");
    }

    @Test
    void aStreamAfterAWindowCountsWhatItHasHeard() {
        Collection<String> reasons = stream(s -> s.window(TumblingWindows.of(BaseWindowedBolt.Count.of(3)))
                .map(n -> n)
                .repartition(2)
                .map(n -> n)
                .forEach(n -> {}));
        // The one that may move stands before the window.
        assertEquals(
                List.of("may move", "stream after a window (ProcessorBolt)", "windowed bolt (WindowedBoltExecutor)"),
                List.copyOf(reasons));
    }

    /** What {@link Unreadable} needs and its loader has not. */
    public static final class Missing {}

    public static final class Unreadable extends Basic {
        Missing missing;
    }

    @Test
    void whatCannotBeLookedIntoStays() throws Exception {
        ClassLoader withoutMissing = new ClassLoader(getClass().getClassLoader()) {
            @Override
            public Class<?> loadClass(String name) throws ClassNotFoundException {
                if (name.equals(Missing.class.getName())) {
                    throw new ClassNotFoundException(name);
                }
                return name.equals(Unreadable.class.getName()) ? defined(name) : super.loadClass(name);
            }

            private Class<?> defined(String name) {
                try (InputStream file = getResourceAsStream(name.replace('.', '/') + ".class")) {
                    byte[] code = file.readAllBytes();
                    return defineClass(name, code, 0, code.length);
                } catch (IOException e) {
                    throw new UncheckedIOException(e);
                }
            }
        };
        Object bolt = withoutMissing
                .loadClass(Unreadable.class.getName())
                .getConstructor()
                .newInstance();
        assertEquals(
                "cannot be looked into (" + Unreadable.class.getName() + "): java.lang.NoClassDefFoundError: "
                        + "nstorm/load/PinningTest$Missing",
                reason(bolt));
    }
}

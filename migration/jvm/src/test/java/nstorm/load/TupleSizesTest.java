package nstorm.load;

import static org.junit.jupiter.api.Assertions.assertEquals;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import nstorm.wire.report.TupleSize;
import org.apache.storm.Config;
import org.apache.storm.messaging.TaskMessage;
import org.apache.storm.serialization.KryoTupleSerializer;
import org.apache.storm.task.GeneralTopologyContext;
import org.apache.storm.testing.TestWordCounter;
import org.apache.storm.testing.TestWordSpout;
import org.apache.storm.topology.TopologyBuilder;
import org.apache.storm.tuple.Fields;
import org.apache.storm.tuple.MessageId;
import org.apache.storm.tuple.TupleImpl;
import org.apache.storm.tuple.Values;
import org.apache.storm.utils.Utils;
import org.junit.jupiter.api.Test;

class TupleSizesTest {
    /** Tasks of one, two and three bytes. */
    private static final Map<Integer, String> COMPONENT_OF =
            Map.of(1, "spout", 200, "spout", 20_000, "spout", 7, "count", 8, "count", 3, "__acker", -1, "__system");

    private final TupleSizes sizes = new TupleSizes(COMPONENT_OF);
    private final Map<Integer, ArrayList<TaskMessage>> bundles = new HashMap<>();
    private final GeneralTopologyContext context = context();
    private final KryoTupleSerializer serializer = new KryoTupleSerializer(conf(), context);

    private static Map<String, Object> conf() {
        Map<String, Object> conf = Utils.readDefaultConfig();
        conf.put(Config.TOPOLOGY_FALL_BACK_ON_JAVA_SERIALIZATION, false);
        return conf;
    }

    private static GeneralTopologyContext context() {
        TopologyBuilder topology = new TopologyBuilder();
        topology.setSpout("spout", new TestWordSpout());
        topology.setBolt("count", new TestWordCounter()).fieldsGrouping("spout", new Fields("word"));
        Map<String, List<Integer>> tasks = Map.of("spout", List.of(1, 200, 20_000), "count", List.of(7, 8));
        Map<String, Map<String, Fields>> fields = Map.of("spout", Map.of("default", new Fields("word")));
        return new GeneralTopologyContext(topology.createTopology(), conf(), COMPONENT_OF, tasks, fields, "wc-1-1");
    }

    private byte[] word(int source, int length) {
        Values values = new Values("w".repeat(length));
        return serializer.serialize(
                new TupleImpl(context, values, "spout", source, "default", MessageId.makeUnanchored()));
    }

    private void add(int destination, byte[]... messages) {
        for (byte[] message : messages) {
            bundles.computeIfAbsent(destination, task -> new ArrayList<>()).add(new TaskMessage(destination, message));
        }
    }

    private void send(int times) {
        for (int i = 0; i < times; i++) {
            sizes.sent(bundles);
        }
    }

    /** The first send that is looked at only shows which components send. */
    private List<TupleSize> afterSends(int looked) {
        send(TupleSizes.ONE_OF);
        assertEquals(List.of(), sizes.read());
        send(looked * TupleSizes.ONE_OF);
        return sizes.read();
    }

    @Test
    void aSerialisedTupleShowsItsSourceTask() {
        for (int task : List.of(1, 127, 128, 200, 16_383, 16_384, 20_000, Integer.MAX_VALUE)) {
            assertEquals(task, TupleSizes.sourceTask(word(task, 5)));
        }
        assertEquals(-1, TupleSizes.sourceTask(word(-1, 5)), "Storm itself");
    }

    @Test
    void bytesAreAddedUpByTheComponentsOfBothEnds() {
        byte[] small = word(1, 10);
        byte[] large = word(20_000, 1_000);
        add(7, small, large);
        add(8, word(200, 10));
        add(3, small);
        List<TupleSize> found = afterSends(2);
        long toCount = 2L * (2 * small.length + 1 + large.length + 3 * TupleSizes.FRAME_BYTES);
        assertEquals(
                Set.of(
                        new TupleSize("spout", "count", 6, toCount),
                        new TupleSize("spout", "__acker", 2, 2L * (small.length + TupleSizes.FRAME_BYTES))),
                Set.copyOf(found));
    }

    @Test
    void oneSendOfManyIsLookedAt() {
        add(7, word(1, 5));
        send(TupleSizes.ONE_OF);
        sizes.read();
        send(TupleSizes.ONE_OF - 1);
        assertEquals(List.of(), sizes.read());
        send(1);
        assertEquals(1, sizes.read().get(0).tuples());
    }

    @Test
    void whatIsNoTupleOfTheTopologyIsPassedOver() {
        byte[] good = word(1, 5);
        byte[] endless = {-1, -1, -1, -1, -1, 1};
        add(7, new byte[0], new byte[] {-1}, endless, word(-1, 5), word(2, 5), word(30_000, 5), good);
        add(2, good);
        add(-1, good);
        add(-1_000, good);
        add(30_000, good);
        bundles.put(8, new ArrayList<>());
        assertEquals(List.of(new TupleSize("spout", "count", 1, good.length + TupleSizes.FRAME_BYTES)), afterSends(1));
    }
}

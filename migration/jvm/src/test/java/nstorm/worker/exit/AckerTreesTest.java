package nstorm.worker.exit;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.lang.reflect.Proxy;
import java.util.ArrayList;
import java.util.Collections;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.function.BiConsumer;
import org.apache.storm.daemon.Acker;
import org.apache.storm.task.IOutputCollector;
import org.apache.storm.task.OutputCollector;
import org.apache.storm.tuple.Tuple;
import org.apache.storm.tuple.Values;
import org.junit.jupiter.api.Test;

/**
 * Storm's own acker, twice, as the two copies of a move: whatever either is told, in any order, and whenever one hands
 * its trees to the other, a tree completes when all its edges are acked, not before, and once.
 */
class AckerTreesTest {
    private static final int SEEDS = 3000;

    /** What an acker is told; {@code tree} is null for what one copy hands to the other. */
    private record Message(Tree tree, String stream, Values values, int copy) {}

    private static final class Tree {
        final long id;
        final int spoutTask;
        final List<Message> messages = new ArrayList<>();
        boolean fails;
        int told;
        String fate;

        Tree(Random random) {
            id = random.nextLong();
            spoutTask = random.nextInt(100);
            int edges = 1 + random.nextInt(3);
            long xor = 0;
            for (int i = 0; i < edges; i++) {
                long edge = random.nextLong();
                xor ^= edge;
                grow(random, edge, 3);
            }
            tell(random, Acker.ACKER_INIT_STREAM_ID, new Values(id, xor, spoutTask));
        }

        /** A bolt takes the tuple of this edge, and acks it with the edges of what it has emitted, or fails it. */
        private void grow(Random random, long edge, int depth) {
            if (random.nextInt(40) == 0) {
                fails = true;
                tell(random, Acker.ACKER_FAIL_STREAM_ID, new Values(id));
                return;
            }
            long xor = edge;
            for (int i = depth == 0 ? 0 : random.nextInt(3); i > 0; i--) {
                long child = random.nextLong();
                xor ^= child;
                grow(random, child, depth - 1);
            }
            tell(random, Acker.ACKER_ACK_STREAM_ID, new Values(id, xor));
        }

        private void tell(Random random, String stream, Values values) {
            messages.add(new Message(this, stream, values, random.nextInt(2)));
        }

        /** What an acker says of the tree must be true, and is said once. */
        void ends(int task, String stream) {
            assertNull(fate, "told twice");
            assertEquals(spoutTask, task);
            fate = stream;
            if (stream.equals(Acker.ACKER_ACK_STREAM_ID)) {
                assertEquals(messages.size(), told, "completed early");
            }
        }
    }

    private final Map<Long, Tree> trees = new HashMap<>();
    private final Acker[] copies = {acker(), acker()};

    private Acker acker() {
        Acker acker = new Acker();
        IOutputCollector out = (IOutputCollector) Proxy.newProxyInstance(
                getClass().getClassLoader(), new Class<?>[] {IOutputCollector.class}, (proxy, method, given) -> {
                    if (method.getName().equals("emitDirect")) {
                        trees.get(((List<?>) given[3]).get(0)).ends((Integer) given[0], (String) given[1]);
                    }
                    return null;
                });
        acker.prepare(Map.of(), null, new OutputCollector(out));
        return acker;
    }

    private static Tuple tuple(String stream, Values values) {
        return (Tuple) Proxy.newProxyInstance(
                AckerTreesTest.class.getClassLoader(),
                new Class<?>[] {Tuple.class},
                (proxy, method, given) -> switch (method.getName()) {
                    case "getSourceComponent" -> "split";
                    case "getSourceStreamId" -> stream;
                    case "getValue", "getLong", "getInteger" -> values.get((Integer) given[0]);
                    default -> throw new UnsupportedOperationException(method.getName());
                });
    }

    private void tell(Message message) {
        if (message.tree() != null) {
            message.tree().told++;
        }
        copies[message.copy()].execute(tuple(message.stream(), message.values()));
    }

    /** One copy hands over; its messages come to the other at any time later. */
    private void handOver(int from, List<Message> underWay, Random random) {
        handOver(
                copies[from],
                (stream, values) ->
                        underWay.add(random.nextInt(underWay.size() + 1), new Message(null, stream, values, 1 - from)));
    }

    private static void handOver(Acker acker, BiConsumer<String, Values> to) {
        AckerTrees.empty(acker).forEach(trees -> assertTrue(AckerTrees.tellSome(trees, () -> true, to)));
    }

    private void run(Random random) {
        List<Message> underWay = new ArrayList<>();
        for (int i = 1 + random.nextInt(8); i > 0; i--) {
            Tree tree = new Tree(random);
            trees.put(tree.id, tree);
            underWay.addAll(tree.messages);
        }
        Collections.shuffle(underWay, random);
        while (!underWay.isEmpty()) {
            tell(underWay.remove(underWay.size() - 1));
            if (random.nextInt(5) == 0) {
                handOver(random.nextInt(2), underWay, random);
            }
        }
        // The move ends, and nothing is left but what the source hands over.
        handOver(0, underWay, random);
        underWay.forEach(this::tell);
        for (Tree tree : trees.values()) {
            assertEquals(tree.fails ? Acker.ACKER_FAIL_STREAM_ID : Acker.ACKER_ACK_STREAM_ID, tree.fate);
        }
    }

    @Test
    void aTreeEndsExactlyOnceAndOnTimeWhereverItsMessagesGo() {
        for (int seed = 0; seed < SEEDS; seed++) {
            try {
                new AckerTreesTest().run(new Random(seed));
            } catch (AssertionError e) {
                throw new AssertionError("seed " + seed, e);
            }
        }
    }

    /** An acker that has handed over keeps nothing that a later hand-over would tell again. */
    @Test
    void anAckerIsEmptyAfterwards() {
        copies[0].execute(tuple(Acker.ACKER_INIT_STREAM_ID, new Values(1L, 5L, 3)));
        List<Values> told = new ArrayList<>();
        handOver(copies[0], (stream, values) -> told.add(values));
        handOver(copies[0], (stream, values) -> told.add(values));
        assertEquals(List.of(new Values(1L, 5L, 3)), told);
    }

    /** A million trees are a million small entries, and never a million messages at once. */
    @Test
    void messagesAreMadeOnlyWhileThereIsRoomForThem() {
        for (long id = 0; id < 1_000_000; id++) {
            copies[0].execute(tuple(Acker.ACKER_INIT_STREAM_ID, new Values(id, 5L, 3)));
        }
        List<Map<Object, Object>> taken = AckerTrees.empty(copies[0]);
        List<Values> told = new ArrayList<>();
        assertFalse(AckerTrees.tellSome(
                taken.get(taken.size() - 1), () -> told.size() < 10, (stream, values) -> told.add(values)));
        assertEquals(10, told.size());
        taken.forEach(
                trees -> assertTrue(AckerTrees.tellSome(trees, () -> true, (stream, values) -> told.add(values))));
        assertEquals(
                1_000_000, told.stream().map(values -> values.get(0)).distinct().count());
        assertEquals(1_000_000, told.size());
    }
}

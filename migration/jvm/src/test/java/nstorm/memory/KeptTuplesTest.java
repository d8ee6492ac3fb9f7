package nstorm.memory;

import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.lang.reflect.Proxy;
import java.nio.ByteBuffer;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.TimeUnit;
import org.apache.storm.topology.BasicBoltExecutor;
import org.apache.storm.tuple.Tuple;
import org.apache.storm.tuple.Values;
import org.apache.storm.utils.BatchHelper;
import org.junit.jupiter.api.Test;

class KeptTuplesTest {
    static final class Sink {
        private Object x;

        Sink(Object x) {
            this.x = x;
        }
    }

    private static boolean none(Object x) {
        return KeptTuples.none(List.of(new Sink(null), new Sink(x)), Set.of("x"));
    }

    @Test
    void emptyCollectionsOfAnyDepthKeepNothing() {
        assertTrue(none(null));
        assertTrue(none(new ArrayList<>()));
        assertTrue(none(new Object[3]));
        assertTrue(none(new HashMap<>(Map.of("a", new ArrayDeque<>(), "b", List.of(Map.of())))));
    }

    @Test
    void anythingElseIsKept() {
        Object tuple = new Object();
        assertFalse(none(tuple));
        assertFalse(none(List.of(tuple)));
        assertFalse(none(new Object[] {null, tuple}));
        assertFalse(none(Map.of("a", List.of(), "b", List.of(List.of(tuple)))));
        assertFalse(KeptTuples.none(List.of(new Sink(List.of(tuple)), new Sink(null)), Set.of("x")));
    }

    private record Key(String word, int number) {}

    private record Pending(Object tuple) {}

    private static Object tuple() {
        Class<?>[] types = {Tuple.class};
        return Proxy.newProxyInstance(KeptTuplesTest.class.getClassLoader(), types, (self, method, given) -> 1);
    }

    @Test
    void whatIsKeptAsAKeyIsKept() {
        List<String> none = List.of();
        assertTrue(none(new HashMap<>(Map.of("a", none, 2L, none, TimeUnit.DAYS, none, new Key("a", 1), none))));
        assertFalse(none(Map.of(tuple(), none)));
        assertFalse(none(Map.of(new Pending(tuple()), none)));
        assertFalse(none(Map.of(new Object[] {new Pending(tuple())}, none)));
        assertFalse(none(Map.of(Map.entry("a", List.of(tuple())), none)));
    }

    /** As of a group by fields of a tuple. */
    @Test
    void aKeyMayHaveParts() {
        List<String> none = List.of();
        assertTrue(none(new HashMap<>(Map.of(
                new Values("a", 1L),
                none,
                new Pending(2),
                none,
                Map.entry("a", new Key("b", 1)),
                none,
                ByteBuffer.allocate(2),
                none,
                List.of(new int[] {1}, List.of("a")),
                none))));
    }

    @Test
    void whatIsNestedTooDeepIsTakenForKept() {
        List<Object> deep = new ArrayList<>();
        deep.add(deep);
        assertFalse(none(Map.of(new Pending(deep), List.of())));
    }

    /** As the bolts of storm-mongodb, -hbase and -hive hold theirs. */
    @Test
    void aBatchOfStormsIsAsked() {
        BatchHelper batch = new BatchHelper(10, null);
        assertTrue(none(batch));
        Class<?>[] types = {Tuple.class};
        batch.addBatch(
                (Tuple) Proxy.newProxyInstance(getClass().getClassLoader(), types, (self, method, given) -> null));
        assertFalse(none(batch));
    }

    @Test
    void theUsersBoltIsLookedInto() {
        Keeping.Basic bolt = new Keeping.Basic();
        bolt.counts.put("a", 1L);
        assertFalse(KeptTuples.none(List.of(new BasicBoltExecutor(bolt)), Set.of("counts")));
    }

    @Test
    void aFieldThatIsNotThereIsNamed() {
        assertThrows(Undecided.class, () -> KeptTuples.none(List.of(new Sink(null)), Set.of("y")));
    }
}

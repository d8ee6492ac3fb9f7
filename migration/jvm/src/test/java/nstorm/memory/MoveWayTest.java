package nstorm.memory;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.ArrayList;
import java.util.Collections;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.apache.storm.tuple.Tuple;
import org.junit.jupiter.api.Test;

class MoveWayTest {
    private static final Declared NOTHING = Declared.of(Map.of());

    /** Each counts in x, and has something that does not travel with it. */
    static final class View extends Keeping.Bolt {
        private final Map<String, Long> x = new HashMap<>();
        private final Map<String, Long> view = Collections.unmodifiableMap(x);

        @Override
        public void execute(Tuple tuple) {
            x.merge(tuple.getString(0), 1L, Long::sum);
            collector.emit(List.of(view.size()));
        }
    }

    static final class Alias extends Keeping.Bolt {
        private final List<Object> x = new ArrayList<>();
        private final List<Object> same = x;

        @Override
        public void execute(Tuple tuple) {
            x.add(tuple.getString(0));
            collector.emit(List.of(same.size()));
        }
    }

    static final class Cache implements java.io.Serializable {
        private final transient Map<String, String> found = new HashMap<>();
    }

    static final class Loses extends Keeping.Bolt {
        private final Cache x = new Cache();

        @Override
        public void execute(Tuple tuple) {
            x.found.put(tuple.getString(0), "a");
        }
    }

    static final class Inner extends Keeping.Bolt {
        private final class Count implements java.io.Serializable {
            private long n;
        }

        private final Count x = new Count();

        @Override
        public void execute(Tuple tuple) {
            x.n++;
        }
    }

    private static MoveWay of(Object bolt, Declared declared) {
        return MoveWay.of("count", bolt, declared);
    }

    @Test
    void whatKeepsNothingMovesLive() {
        assertEquals(new MoveWay(null), of(new Keeping.Splits(), NOTHING));
    }

    @Test
    void plainStateTravels() {
        assertEquals(
                new MoveWay("keeps something in its field x, which travels with it", Set.of("x"), null),
                of(new Keeping.InMap(), NOTHING));
        assertEquals(Set.of("x"), of(new Keeping.InAtomic(), NOTHING).state());
        assertEquals(Set.of("x"), of(new Keeping.InHelper(), NOTHING).state());
        assertEquals(Set.of("x"), of(new Keeping.InLazyField(), NOTHING).state());
        assertEquals(Set.of("x"), of(new Keeping.Number(), NOTHING).state());
    }

    @Test
    void whatCannotTravelStaysWithTheFieldsName() {
        for (Object bolt : List.of(new Keeping.InThreadLocal(), new Keeping.InCursor(), new Loses(), new Inner())) {
            MoveWay way = of(bolt, NOTHING);
            assertNull(way.state(), bolt.toString());
            assertTrue(
                    way.pinned().startsWith("its field x holds ")
                            && way.pinned().contains(", which cannot travel; keeps"),
                    way.pinned());
        }
    }

    @Test
    void threadsStay() {
        assertNull(of(new Keeping.StartsThread(), NOTHING).state());
    }

    @Test
    void whatKeepsTuplesAloneIsDrainedOfThem() {
        assertEquals(
                new MoveWay("keeps tuples in its field x, which it has to ack first", null, Set.of("x")),
                of(new Keeping.CollectsTuples(), NOTHING));
        MoveWay more = of(new Keeping.CountsItsTuples(), NOTHING);
        assertNull(more.tuples());
        assertTrue(more.pinned().startsWith("keeps tuples in its field x, and something else; declare"), more.pinned());
    }

    @Test
    void whatIsDeclaredToRenewIsCleanedUpOnceItKeepsNoTuple() {
        Map<String, Object> move = Map.of("nstorm.move", Map.of("count", "renew"));
        String begin = "nstorm.move is renew: its source ";
        String end = "is cleaned up before its target is prepared";
        assertEquals(
                new MoveWay(begin + "acks what it keeps in its field x and " + end, null, Set.of("x"), true),
                of(new Keeping.CountsItsTuples(), Declared.of(move)));
        assertEquals(new MoveWay(begin + end, null, Set.of(), true), of(new Keeping.StartsThread(), Declared.of(move)));
        Map<String, Object> named = new HashMap<>(move);
        named.put("nstorm.state", Map.of("count", List.of("x")));
        assertEquals(
                Set.of("x"), of(new Keeping.HoldsTuples(), Declared.of(named)).tuples());
        named.put("nstorm.state", Map.of("count", List.of("y")));
        assertEquals(new MoveWay("has no field y"), of(new Keeping.HoldsTuples(), Declared.of(named)));
    }

    @Test
    void whatIsDeclaredToDrainIsDrained() {
        Map<String, Object> move = Map.of("nstorm.move", Map.of("count", "drain"));
        assertEquals(
                Set.of("x"),
                of(new Keeping.CountsItsTuples(), Declared.of(move)).tuples());
        Map<String, Object> named = new HashMap<>(move);
        named.put("nstorm.state", Map.of("count", List.of("x")));
        assertEquals(
                Set.of("x"), of(new Keeping.HoldsTuples(), Declared.of(named)).tuples());
        named.put("nstorm.state", Map.of("count", List.of("y")));
        assertEquals(new MoveWay("has no field y"), of(new Keeping.HoldsTuples(), Declared.of(named)));
        MoveWay none = of(new Keeping.InMap(), Declared.of(move));
        assertNull(none.tuples());
        assertTrue(none.pinned().endsWith("name the fields in nstorm.state"), none.pinned());
    }

    /** Tuples may be replayed if that is said; they cannot travel. */
    @Test
    void stateThatIsNamedDoesNotCarryTuples() {
        Declared state = Declared.of(Map.of("nstorm.state", Map.of("count", List.of("x"))));
        assertNull(of(new Keeping.CollectsTuples(), state).state());
        assertNull(of(new Keeping.CollectsTuples(), state).tuples());
    }

    @Test
    void whatIsDeclaredCounts() {
        Declared both = Declared.of(
                Map.of("nstorm.move", Map.of("count", "carry"), "nstorm.state", Map.of("count", List.of("x"))));
        assertEquals(Set.of("x"), of(new Keeping.Reflects(), both).state());
        Declared state = Declared.of(Map.of("nstorm.state", Map.of("count", List.of("x"))));
        assertEquals(Set.of("x"), of(new Keeping.InMap(), state).state());
        assertNull(of(new Keeping.Reflects(), state).state());
        Declared missing = Declared.of(Map.of("nstorm.state", Map.of("count", List.of("y"))));
        assertEquals(new MoveWay("has no field y"), of(new Keeping.InMap(), missing));
    }
}

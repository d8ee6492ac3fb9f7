package nstorm.proof;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.File;
import java.io.IOException;
import java.io.InputStream;
import java.io.ObjectInputStream;
import java.io.ObjectOutputStream;
import java.io.Serializable;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.Collections;
import java.util.HashMap;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Queue;
import java.util.Set;
import java.util.TreeMap;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.PriorityBlockingQueue;
import java.util.function.Consumer;
import nstorm.memory.Declared;
import nstorm.state.FirstPass;
import nstorm.state.StateBytes;
import org.apache.storm.spout.SpoutOutputCollector;
import org.apache.storm.task.OutputCollector;
import org.apache.storm.task.TopologyContext;
import org.apache.storm.topology.OutputFieldsDeclarer;
import org.apache.storm.topology.base.BaseRichBolt;
import org.apache.storm.topology.base.BaseRichSpout;
import org.apache.storm.tuple.Tuple;
import org.junit.jupiter.api.Test;

/** A bolt is prepared, something happens to it, and then it is to move. */
class MemoryTest {
    /** Holds whatever a test gives it: the code says nothing of what happens to it. */
    static class Holder extends BaseRichBolt {
        Object one;
        Object two;
        int number;
        static Object shared;

        @Override
        public void prepare(Map<String, Object> conf, TopologyContext context, OutputCollector collector) {}

        @Override
        public void execute(Tuple tuple) {}

        @Override
        public void declareOutputFields(OutputFieldsDeclarer declarer) {}
    }

    /** Its code cannot be followed. */
    static final class Unsure extends Holder {
        @Override
        public void execute(Tuple tuple) {
            try {
                String.class.getMethod("isEmpty").invoke("");
            } catch (ReflectiveOperationException e) {
                throw new IllegalStateException(e);
            }
        }
    }

    enum State {
        CLOSED,
        OPEN
    }

    enum Kind {
        PLAIN,
        OWN {}
    }

    enum Counting {
        ONLY;

        int count;
    }

    static class Pair implements Serializable {
        Object left;
        Object right;

        Pair(Object left, Object right) {
            this.left = left;
            this.right = right;
        }
    }

    static final class Numbers extends Pair {
        double wide;
        float narrow;

        Numbers(Object left, Object right, double wide, float narrow) {
            super(left, right);
            this.wide = wide;
            this.narrow = narrow;
        }
    }

    static final class Caching extends Pair {
        transient Object cache;

        Caching() {
            super(1, 2);
        }
    }

    /** Whatever is asked of it calls the user's code. */
    static final class Touchy implements Serializable {
        int changes;

        private RuntimeException touched() {
            changes++;
            return new IllegalStateException("the user's code was called");
        }

        @Override
        public boolean equals(Object other) {
            throw touched();
        }

        @Override
        public int hashCode() {
            throw touched();
        }

        @Override
        public String toString() {
            throw touched();
        }
    }

    private static Holder with(Object one, Object two) {
        Holder holder = new Holder();
        holder.one = one;
        holder.two = two;
        return holder;
    }

    private static Memory prepared(Holder holder) {
        Memory memory = new Memory(
                "count",
                List.of(holder),
                List.of(),
                Declared.of(Map.of("nstorm.state.classes", List.of("nstorm.proof.*"))));
        memory.prepared();
        memory.read();
        return memory;
    }

    private static String changed(Holder holder, Consumer<Holder> work) {
        Memory memory = prepared(holder);
        assertNull(memory.changedSincePrepared());
        work.accept(holder);
        return memory.changedSincePrepared();
    }

    private static byte[] bytes(StateBytes state) {
        ByteBuffer all = ByteBuffer.allocate(state.size());
        for (int i = 0; i < state.pieces(); i++) {
            all.put(state.piece(i));
        }
        return all.array();
    }

    /** Moves what a bolt remembers into a new one; the new one, or why not. */
    private static Holder moved(Holder holder, Consumer<Holder> work, Holder target) throws IOException {
        Memory source = prepared(holder);
        work.accept(holder);
        Departure departure = source.depart(null);
        prepared(target).arrive(bytes(departure.state()), null, departure.proof());
        return target;
    }

    private static String refused(Holder holder, Consumer<Holder> work, Holder target) {
        return assertThrows(IOException.class, () -> moved(holder, work, target))
                .getMessage();
    }

    @Test
    void whatIsAsItWasIsNoMemory() {
        assertNull(changed(
                with(new ArrayList<>(List.of("a")), new HashMap<>(Map.of("a", new Pair(1, "x")))), holder -> {
                    @SuppressWarnings("unchecked")
                    List<Object> list = (List<Object>) holder.one;
                    list.add("b");
                    list.remove("b");
                    ((Map<?, ?>) holder.two).keySet();
                }));
    }

    @Test
    void whatHasChangedIsNamedWithItsPath() {
        assertEquals("count.number: 0 → 1", changed(with(null, null), holder -> holder.number++));
        assertEquals("count.one: CLOSED → OPEN", changed(with(State.CLOSED, null), holder -> holder.one = State.OPEN));
        Map<String, Long> counts = new HashMap<>();
        assertEquals(
                "count.one[1].left: HashMap of 0 → of 4,711",
                changed(with(new Object[] {null, new Pair(counts, 1)}, null), holder -> {
                    for (long i = 0; i < 4711; i++) {
                        counts.put("w" + i, i);
                    }
                }));
    }

    /** A primary and its backup change places, and a key that stands for itself is another one. */
    @Test
    void numbersThatChangePlacesAreMemory() {
        for (Map<Object, Object> now : List.<Map<Object, Object>>of(Map.of(2, 1), Map.of(2L, 1L), Map.of(7, 7))) {
            Map<Object, Object> map = new HashMap<>();
            now.forEach((key, value) -> map.put(value == key ? 5 : value, value == key ? 5 : key));
            String what = changed(with(map, null), holder -> {
                map.clear();
                map.putAll(now);
            });
            assertEquals("count.one has changed, deep in it", what);
        }
    }

    @Test
    void aLambdasVariablesAreMemory() {
        Map<String, Integer> counts = new HashMap<>();
        Runnable counter = () -> counts.merge("a", 1, Integer::sum);
        String what = changed(with(counter, null), holder -> ((Runnable) holder.one).run());
        assertTrue(what.contains("HashMap of 0 → of 1"), what);
    }

    @Test
    void enumsAndStaticFieldsAreMemory() {
        String what = changed(with(Counting.ONLY, null), holder -> Counting.ONLY.count++);
        assertEquals("count.one.count: 0 → 1", what);
        Holder.shared = new ArrayList<>();
        what = changed(with(null, null), holder -> ((List<?>) Holder.shared).add(null));
        assertEquals("remembers something that is not in its fields: count.Holder.shared: ArrayList of 0 → of 1", what);
        Holder.shared = null;
    }

    /** Of what is too large nobody can see whether it has changed. */
    @Test
    void aStaticFieldThatIsTooLargeCountsAsChanged() {
        Object chain = null;
        for (int i = 0; i < 4_000_000; i++) {
            chain = new Object[] {chain};
        }
        Holder.shared = chain;
        String what = prepared(with(null, null)).changedSincePrepared();
        Holder.shared = null;
        assertEquals(
                "remembers something that is not in its fields: count.Holder.shared leads to more than can be looked at in time",
                what);
    }

    /** The fields say Object: of which classes their objects are shows once the bolt is prepared. */
    @Test
    void theEnumsOfConstantsThatAreHeldMayTravel() throws IOException {
        Map<String, Object> states = new HashMap<>(Map.of("a", State.CLOSED));
        for (Object held : List.of(State.CLOSED, Kind.OWN, new Object[] {State.CLOSED}, states)) {
            Object next = held == Kind.OWN ? Kind.PLAIN : State.OPEN;
            Holder source = with(held, null);
            Memory memory = new Memory("count", List.of(source), List.of(), Declared.of(Map.of()));
            memory.prepared();
            memory.read();
            source.one = next;
            Departure departure = memory.depart(null);
            Holder target = with(held, null);
            Memory other = new Memory("count", List.of(target), List.of(), Declared.of(Map.of()));
            other.prepared();
            other.arrive(bytes(departure.state()), null, departure.proof());
            assertSame(next, target.one);
        }
    }

    /** As a client or a ledger of which each JVM has one. */
    @Test
    void whatTheJvmSharesIsNoMemoryOfAField() {
        assertNull(changed(
                with(Registry.ONLY, new Pair(Registry.ONLY, 1)), holder -> Registry.ONLY.all.put("by another", 1)));
        Unsure unsure = new Unsure();
        unsure.one = Registry.ONLY;
        String what = changed(unsure, holder -> Registry.ONLY.all.put("by somebody", 1));
        assertEquals(
                "remembers something that is not in its fields: count.Registry.ONLY.all: HashMap of 1 → of 2", what);
        what = changed(with(Registry.ONLY, null), holder -> holder.one = new Registry());
        assertTrue(what.startsWith("count.one: a shared Registry → Registry"), what);
    }

    @Test
    void aThreadsOwnValueIsMemory() {
        ThreadLocal<int[]> own = ThreadLocal.withInitial(() -> new int[1]);
        String what = changed(with(own, null), holder -> own.get()[0]++);
        assertNotNull(what);
        own.remove();
    }

    @Test
    void noCodeOfTheUsersRuns() throws IOException {
        Touchy touchy = new Touchy();
        Map<Object, Object> map = new java.util.IdentityHashMap<>();
        map.put(touchy, touchy);
        Holder target = moved(with(map, new TreeMap<>()), holder -> map.put(new Touchy(), 1), with(null, null));
        assertEquals(2, ((Map<?, ?>) target.one).size());
        assertEquals(0, touchy.changes);
    }

    @Test
    void cyclesAndLongChainsEnd() {
        Pair chain = new Pair(null, null);
        Pair first = chain;
        for (int i = 0; i < 1_000_000; i++) {
            chain = new Pair(chain, null);
        }
        first.left = chain;
        Holder holder = with(chain, null);
        Memory memory = prepared(holder);
        first.right = 1;
        assertNotNull(memory.changedSincePrepared());
    }

    @Test
    void whatTravelsIsComparedWithWhatCame() throws IOException {
        Map<Object, Object> map = new HashMap<>();
        Holder target = moved(
                with(map, Collections.unmodifiableMap(map)),
                holder -> {
                    for (int i = 0; i < 100; i++) {
                        map.put("k" + i, new Pair(List.of(i), new HashSet<>(Set.of("a", "b", i))));
                    }
                    map.put(
                            new ArrayList<>(List.of(1, 2)),
                            new LinkedHashMap<>(Map.of(1, new ConcurrentHashMap<>(Map.of(2, 3)))));
                },
                with(null, null));
        assertEquals(101, ((Map<?, ?>) target.one).size());
        assertEquals(target.one, target.two, "what two fields share goes together");
    }

    /** What the processor makes of 0.0 / 0 has other bits than what an object stream has of it. */
    @Test
    void aNumberThatIsNoneTravels() throws IOException {
        double wide = Double.longBitsToDouble(0xfff8000000000000L);
        float narrow = Float.intBitsToFloat(0xffc00000);
        Map<Object, Object> large = new HashMap<>();
        for (int i = 0; i < 6000; i++) {
            large.put(i, i % 2 == 0 ? (Object) wide : narrow);
        }
        Object[] all = {
            wide,
            narrow,
            new double[] {wide},
            new float[] {narrow},
            new HashMap<>(Map.of(wide, narrow)),
            large,
            new Numbers(wide, narrow, wide, narrow)
        };
        for (Object one : all) {
            Holder target = moved(with(null, null), holder -> holder.one = new Object[] {one}, with(null, null));
            assertEquals(1, ((Object[]) target.one).length);
        }
        // One with bits of somebody's own would come without them.
        double own = Double.longBitsToDouble(0x7ff8000000000001L);
        assertTrue(refused(with(null, null), holder -> holder.one = own, with(null, null))
                .startsWith("came as another one than it left"));
    }

    static final class Recent extends LinkedHashMap<Object, Object> {
        @Override
        protected boolean removeEldestEntry(Map.Entry<Object, Object> eldest) {
            return size() > 10;
        }
    }

    /** What they have beside their content does not. */
    @Test
    void theJdksCollectionsAndDatesTravel() throws IOException {
        java.sql.Timestamp shown = new java.sql.Timestamp(1);
        assertNotNull(shown.toString());
        Set<Object> set = Collections.newSetFromMap(new HashMap<>());
        set.add(1);
        Set<Object> ordered = Collections.newSetFromMap(new LinkedHashMap<>());
        ordered.add(2);
        Queue<Object> roomy = new PriorityBlockingQueue<>(20);
        roomy.add(3);
        for (Object one : List.of(shown, set, ordered, roomy, new PriorityBlockingQueue<>(List.of(1, 2)))) {
            Holder target = moved(with(null, null), holder -> holder.one = one, with(null, null));
            assertEquals(one.getClass(), target.one.getClass());
        }
    }

    /** As a line in the log does. */
    @Test
    @SuppressWarnings("JavaUtilDate")
    void aDateThatIsShownHasNotChanged() {
        java.sql.Timestamp time = new java.sql.Timestamp(1);
        assertNull(changed(with(time, null), holder -> assertNotNull(time.toString())));
    }

    @Test
    void anOwnCollectionThatExtendsOneOfTheJdkIsNamed() {
        Recent recent = new Recent();
        recent.put(1, 2);
        assertEquals(
                "it holds what cannot travel: one is a nstorm.proof.MemoryTest$Recent, which extends a collection of the JDK "
                        + "(java.util.LinkedHashMap)",
                refused(with(null, null), holder -> holder.one = recent, with(null, null))
                        .replace(": 0 one", ": one"));
    }

    @Test
    void whatDoesNotComeAsItWasStays() {
        Caching pair = new Caching();
        assertEquals(
                "its nstorm.proof.MemoryTest$Caching has something in the transient field cache",
                refused(
                        with(null, null),
                        holder -> {
                            pair.cache = new int[] {3};
                            holder.one = new ArrayList<>(List.of(pair));
                        },
                        with(null, null)));
        String what = refused(
                with(null, null),
                holder -> holder.one = new ArrayList<>(List.of(new File("/tmp/x"))),
                with(null, null));
        assertTrue(what.contains("one[0] is a path of this host"), what);
        what = refused(with(null, null), holder -> holder.one = new Object[] {holder}, with(null, null));
        assertTrue(what.contains("MemoryTest$Holder"), what);
        what = refused(with(null, null), holder -> holder.one = InputStream.nullInputStream(), with(null, null));
        assertTrue(what.contains("java.io.InputStream$1, which is not Serializable"), what);
    }

    /** A bolt of its own, since what is seen of a class is remembered for the class. */
    static final class Viewing extends Holder {
        private final Object[] more;
        private final Map<String, Integer> shown;
        private final Map<String, Integer> table = new HashMap<>();

        Viewing() {
            shown = Collections.unmodifiableMap(table);
            more = new Object[] {table};
        }

        @Override
        public void execute(Tuple tuple) {
            table.put("new", 1);
        }
    }

    /** The view is met only when the table has gone ahead. */
    @Test
    void whatSharesWithWhatHasGoneAheadTravelsTheNextTime() throws IOException {
        Viewing source = new Viewing();
        for (int i = 0; i < 6000; i++) {
            source.table.put("k" + i, i);
        }
        Memory memory = prepared(source);
        assertEquals(Set.of("table"), memory.way().state());
        Departure first = memory.depart(ahead(source, memory));
        assertEquals(
                "shares what travels with its fields more, shown, which is known from now on",
                assertThrows(Learnt.class, first::proof).getMessage());
        assertEquals(Set.of("more", "shown", "table"), memory.way().state());
        memory.depart(ahead(source, memory)).proof();
    }

    private static FirstPass ahead(Holder source, Memory memory) throws IOException {
        FirstPass first = FirstPass.of(List.of(source), memory.way().state());
        first.write();
        return first;
    }

    record Friend(String name, Set<Friend> friends) implements Serializable {
        @Override
        public boolean equals(Object other) {
            return other instanceof Friend friend && name.equals(friend.name);
        }

        @Override
        public int hashCode() {
            return name.hashCode();
        }
    }

    @Test
    void keysThatLeadBackToThemselvesStay() {
        Friend one = new Friend("one", new HashSet<>());
        Friend other = new Friend("other", new HashSet<>(Set.of(one)));
        String what = refused(with(one, null), holder -> one.friends.add(other), with(null, null));
        assertTrue(what.endsWith("one.friends has a key that leads back to itself"), what);
    }

    @Test
    void aTargetThatHasAnotherOneRefuses() throws IOException {
        Holder holder = with(Counting.ONLY, null);
        Memory source = prepared(holder);
        holder.one = new ArrayList<>(List.of(Counting.ONLY));
        Departure departure = source.depart(null);
        Counting.ONLY.count += 5; // in another JVM it is another object
        Memory target = prepared(with(null, null));
        String what = assertThrows(
                        IOException.class, () -> target.arrive(bytes(departure.state()), null, departure.proof()))
                .getMessage();
        assertTrue(what.matches("came as another one than it left: count.one\\[0].count: \\d+ → \\d+"), what);
    }

    @Test
    void aBoltThatHasThreadsStays() {
        Memory memory = prepared(with(new Pair(null, new Object[] {new Thread(() -> {})}), null));
        assertTrue(
                memory.way().pinned().startsWith("one.right[0] is a thread (java.lang.Thread)"),
                memory.way().pinned());
    }

    /** Its queue is in no field of it. */
    public static final class PollsStatic extends BaseRichSpout {
        static final Queue<String> WORDS = new ConcurrentLinkedQueue<>();

        private transient SpoutOutputCollector out;

        @Override
        public void open(Map<String, Object> conf, TopologyContext context, SpoutOutputCollector collector) {
            out = collector;
        }

        @Override
        public void nextTuple() {
            out.emit(List.of(WORDS.poll()));
        }

        @Override
        public void declareOutputFields(OutputFieldsDeclarer declarer) {}
    }

    @Test
    void aSpoutThatTakesFromAStaticQueueStaysUnlessDeclared() {
        Memory memory = spout(Map.of());
        assertEquals(
                "keeps something for the whole JVM in MemoryTest$PollsStatic.WORDS; declare nstorm.move: {source: renew} if its source gives again "
                        + "what it holds in memory",
                memory.way().pinned());
        assertNull(spout(Map.of("nstorm.move", Map.of("source", "renew"))).way().pinned());
    }

    private static Memory spout(Map<String, Object> conf) {
        Memory memory = new Memory("source", List.of(new PollsStatic()), List.of(), Declared.of(conf));
        memory.prepared();
        memory.readSpout();
        return memory;
    }

    @SuppressWarnings("unchecked")
    private static <T> T again(T object) throws Exception {
        ByteArrayOutputStream bytes = new ByteArrayOutputStream();
        new ObjectOutputStream(bytes).writeObject(object);
        return (T) new ObjectInputStream(new ByteArrayInputStream(bytes.toByteArray())).readObject();
    }

    @Test
    void aCopyOfACopyLooksAlike() throws Exception {
        List<Object> all = new ArrayList<>(List.of(
                new HashMap<>(Map.of("a", 1)),
                new java.util.BitSet(),
                new java.util.PriorityQueue<>(List.of(3, 1)),
                java.util.EnumSet.of(State.OPEN),
                new java.util.EnumMap<>(Map.of(State.OPEN, 1)),
                Set.of(1, 2, 3),
                Map.of(1, 2, 3, 4),
                new java.util.Date(5),
                new StringBuilder("x"),
                new java.util.concurrent.atomic.AtomicLong(3),
                java.time.Instant.now(),
                new java.util.ArrayDeque<>(List.of(1)),
                java.util.Arrays.asList(1, 2),
                Collections.synchronizedMap(new HashMap<>()),
                new java.math.BigDecimal("1.50"),
                new java.util.Random(3),
                new java.util.concurrent.locks.ReentrantLock(),
                new int[][] {{1}, {2}}));
        ((java.util.BitSet) all.get(1)).set(700);
        Holder target = moved(with(null, null), holder -> holder.one = all, with(null, null));
        assertEquals(all.size(), ((List<?>) target.one).size());
        assertNotNull(again(all));
    }
}

/** Not of the bolt's own classes. */
final class Registry {
    static final Registry ONLY = new Registry();
    final Map<Object, Object> all = new HashMap<>();
}

package nstorm.trial;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.io.Serializable;
import java.lang.invoke.MethodHandles;
import java.lang.management.ManagementFactory;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import java.util.function.Consumer;
import java.util.zip.Deflater;
import nstorm.memory.Declared;
import nstorm.proof.Departure;
import nstorm.proof.Memory;
import nstorm.state.Whole;
import nstorm.trial.Maker.Keeps;
import nstorm.trial.Maker.Made;
import org.apache.storm.task.OutputCollector;
import org.apache.storm.task.TopologyContext;
import org.apache.storm.topology.OutputFieldsDeclarer;
import org.apache.storm.topology.base.BaseRichBolt;
import org.apache.storm.tuple.Tuple;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** Whatever a bolt leads to, it moves right or stays with a reason, in bounded time, and nothing but an {@link IOException} comes out. */
@Timeout(60)
class BadInputTest {
    /** Of CPU: what a look may take, and four times of it for a busy machine's garbage collection. */
    private static final long LOOK_MAX_NANOS = TimeUnit.MILLISECONDS.toNanos(4 * 100);

    private static final int MANY = 10_000_000;

    static final class Holder extends BaseRichBolt {
        Object one;
        int number;

        @Override
        public void prepare(Map<String, Object> conf, TopologyContext context, OutputCollector collector) {}

        @Override
        public void execute(Tuple tuple) {}

        @Override
        public void declareOutputFields(OutputFieldsDeclarer declarer) {}
    }

    private static Memory prepared(Holder holder) {
        Memory memory = new Memory(
                "holder",
                List.of(holder),
                List.of(),
                Declared.of(Map.of("nstorm.state.classes", List.of("nstorm.trial.*"))));
        memory.prepared();
        memory.read();
        return memory;
    }

    private static Holder holding(Object one) {
        Holder holder = new Holder();
        holder.one = one;
        return holder;
    }

    private static Holder moved(Holder source, Consumer<Holder> work) throws IOException {
        Memory memory = prepared(source);
        work.accept(source);
        Departure departure = memory.depart(null);
        Holder target = new Holder();
        prepared(target).arrive(Whole.of(departure.state()), null, departure.proof());
        return target;
    }

    private static String stays(Holder source, Consumer<Holder> work) {
        String why = assertThrows(IOException.class, () -> moved(source, work)).getMessage();
        assertNotNull(why);
        return why;
    }

    private static long cpuNanos() {
        return ManagementFactory.getThreadMXBean().getCurrentThreadCpuTime();
    }

    /** A sleeping method would be as bad as one that throws: none is called at all. */
    @Test
    void lookingCallsNoCodeOfTheUsers() {
        Touchy.called = 0;
        for (Object one : Touchy.all()) {
            Holder holder = holding(one);
            Memory memory = prepared(holder);
            assertNull(memory.changedSincePrepared(), one.getClass()::getName);
            holder.one = new Object[] {one};
            assertNotNull(memory.changedSincePrepared(), one.getClass()::getName);
            try {
                assertNotNull(memory.depart(null).proof());
            } catch (IOException e) {
                assertNotNull(e.getMessage());
            }
            assertEquals(0, Touchy.called, one.getClass()::getName);
        }
    }

    static class Node implements Serializable {
        Node next;
        int number;
    }

    private static Node chain(int length, boolean ring) {
        Node last = new Node();
        Node first = last;
        for (int i = 1; i < length; i++) {
            Node node = new Node();
            node.next = first;
            first = node;
        }
        last.next = ring ? first : null;
        return first;
    }

    /** A stream goes as deep as the chain is long, and no stack is so deep. */
    @Test
    void aChainOfAMillionStays() {
        for (boolean ring : new boolean[] {false, true}) {
            Holder holder = holding(chain(1_000_000, ring));
            Memory memory = prepared(holder);
            ((Node) holder.one).number++;
            assertNotNull(memory.changedSincePrepared());
            assertNotNull(
                    assertThrows(IOException.class, () -> memory.depart(null)).getMessage());
        }
    }

    @Test
    void cyclesTravel() throws IOException {
        Node ring = chain(200, true);
        List<Object> itself = new ArrayList<>(List.of(ring));
        itself.add(itself);
        Map<String, Object> map = new HashMap<>(Map.of("list", itself));
        map.put("map", map);
        Holder target = moved(holding(null), holder -> holder.one = map);
        Map<?, ?> came = (Map<?, ?>) target.one;
        assertEquals(came, ((Map<?, ?>) target.one).get("map"));
        Node at = (Node) ((List<?>) came.get("list")).get(0);
        for (int i = 0; i < 200; i++) {
            at = at.next;
        }
        assertEquals(at, ((List<?>) came.get("list")).get(0));
    }

    /** What cannot be looked at in its time stays, and the look takes no longer. */
    @Test
    void tenMillionObjectsStay() {
        Object[] all = new Object[MANY];
        for (int i = 0; i < MANY; i++) {
            all[i] = i % 2 == 0 ? new int[1] : new Object[] {i};
        }
        Holder holder = holding(all);
        long begunNanos = cpuNanos();
        Memory memory = prepared(holder);
        long lookedNanos = cpuNanos();
        String why = memory.changedSincePrepared();
        long tookNanos = cpuNanos() - lookedNanos;
        assertNotNull(why, "all of them in time?");
        assertTrue(
                lookedNanos - begunNanos < 5 * LOOK_MAX_NANOS, () -> (lookedNanos - begunNanos) + " ns when prepared");
        assertTrue(tookNanos < LOOK_MAX_NANOS, () -> tookNanos + " ns");
        assertThrows(IOException.class, () -> memory.depart(null));
    }

    private static Object hidden(Class<?> template) {
        try (var in = BadInputTest.class.getResourceAsStream(template.getName().replaceFirst(".*\\.", "") + ".class")) {
            return MethodHandles.lookup()
                    .defineHiddenClass(in.readAllBytes(), true)
                    .lookupClass()
                    .getDeclaredConstructor()
                    .newInstance();
        } catch (IOException | ReflectiveOperationException e) {
            throw new IllegalStateException(e);
        }
    }

    @Test
    void anObjectOfAHiddenClassStays() {
        // Java cannot even say its simple name.
        assertNotNull(prepared(holding(hidden(Node.class))).changedSincePrepared());
        Object hidden = hidden(HiddenTemplate.class);
        Memory memory = prepared(holding(hidden));
        assertNull(memory.changedSincePrepared());
        stays(holding(null), holder -> holder.one = new Object[] {hidden});
        stays(holding(hidden), holder -> {
            try {
                hidden.getClass().getField("count").setInt(hidden, 3);
            } catch (ReflectiveOperationException e) {
                throw new IllegalStateException(e);
            }
        });
    }

    @Test
    void whatStandsForSomethingNativeStays() {
        List<Object> handles = List.of(
                ByteBuffer.allocateDirect(8),
                new Deflater(),
                Thread.currentThread(),
                MethodHandles.lookup(),
                new Node() {
                    private final transient ByteBuffer inside = ByteBuffer.allocateDirect(4);
                });
        for (Object handle : handles) {
            stays(holding(null), holder -> holder.one = new Object[] {handle});
        }
    }

    private static final String VERSION = "package made.bolts;\n\nimport java.io.Serializable;\nimport java.util.*;\n"
            + "import org.apache.storm.task.*;\n"
            + "import org.apache.storm.topology.*;\nimport org.apache.storm.topology.base.*;\nimport org.apache.storm.tuple.*;\n"
            + "public class Versions extends BaseRichBolt {\n"
            + "static class Part implements Serializable { private static final long serialVersionUID = 1L; "
            + "int count; List<String> words = new ArrayList<>(); }\n"
            + "enum Mode { OFF, ON }\n"
            + "record Pair(int left, int right) implements Serializable { }\n"
            + "Map<String, Part> held = new TreeMap<>();\nMode mode;\nPair pair;\n"
            + "public void prepare(Map<String, Object> conf, TopologyContext context, OutputCollector collector) { }\n"
            + "public void execute(Tuple tuple) { Part part = new Part(); part.count = 7; part.words.add(tuple.getString(0)); "
            + "held.put(\"part\", part); "
            + "mode = Mode.ON; pair = new Pair(1, 2); }\n"
            + "public void declareOutputFields(OutputFieldsDeclarer declarer) { }\n}\n";

    /** What is another text elsewhere, and what it is there. */
    private static final String[][] OTHERS = {
        {"int count;", "int number;"},
        {"int count;", "long count;"},
        {"int count;", "int count; int more;"},
        {"List<String> words = new ArrayList<>();", "transient List<String> words = new ArrayList<>();"},
        {"serialVersionUID = 1L", "serialVersionUID = 2L"},
        {"class Part implements Serializable", "class Part"},
        {"Mode { OFF, ON }", "Mode { OFF, ON; int more = 5; }"},
        {"OFF, ON", "OFF, IDLE"},
        {
            "(int left, int right) implements Serializable { }",
            "(int left, int right) implements Serializable { Pair { right = left; } }"
        },
        {"held", "kept"},
        {"Part", "Share"},
    };

    private static String as(String name, String text) {
        return text.replace("Mode.ON", "Mode.values()[1]").replace("Versions", name);
    }

    /** Moves a bolt between sides with other code under the same name; null, or why it is refused. */
    private static String moved(Map<String, byte[]> here, Map<String, byte[]> there) {
        Side source = new Side(here);
        Side target = new Side(there);
        Copy from = new Copy(source, source.submitted("made.bolts.Versions"), true);
        Copy to = new Copy(target, target.submitted("made.bolts.Versions"), true);
        from.memory.read();
        from.take(0, 3);
        try {
            Departure departure = from.memory.depart(null);
            to.memory.arrive(Whole.of(departure.state()), null, departure.proof());
            return null;
        } catch (IOException e) {
            return String.valueOf(e.getMessage());
        }
    }

    @Test
    void aClassThatIsAnotherOneElsewhereIsRefused() {
        List<Made> versions =
                new ArrayList<>(List.of(new Made("made.bolts.Versions", Keeps.PLAIN, as("Versions", VERSION))));
        for (int i = 0; i < OTHERS.length; i++) {
            String other = VERSION.replace(OTHERS[i][0], OTHERS[i][1]).replace("part.number", "part.count");
            String name = "Versions" + i;
            versions.add(new Made(
                    "made.bolts." + name,
                    Keeps.PLAIN,
                    as(name, OTHERS[i][0].equals("int count;") ? other.replace("part.count = 7;", "") : other)));
        }
        Map<String, byte[]> code = Compiler.compile(versions);
        String name = "made.bolts.Versions";
        Map<String, byte[]> first = Renamed.of(code, name, name);
        assertNull(moved(first, first));
        for (int i = 0; i < OTHERS.length; i++) {
            String to = OTHERS[i][1];
            assertNotNull(moved(first, Renamed.of(code, name + i, name)), () -> "moved to where it has " + to);
        }
    }
}

/** Its code is that of a hidden class. */
final class HiddenTemplate implements Serializable {
    public int count;
}

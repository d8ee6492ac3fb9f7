package nstorm.state;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;

import java.io.IOException;
import java.io.ObjectInputStream;
import java.io.Serializable;
import java.math.BigDecimal;
import java.net.URL;
import java.time.DayOfWeek;
import java.time.Duration;
import java.time.Instant;
import java.time.ZonedDateTime;
import java.util.AbstractMap;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.BitSet;
import java.util.Collections;
import java.util.Comparator;
import java.util.Date;
import java.util.EnumMap;
import java.util.EnumSet;
import java.util.HashMap;
import java.util.Hashtable;
import java.util.IdentityHashMap;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.LinkedList;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.PriorityQueue;
import java.util.Random;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.UUID;
import java.util.concurrent.ArrayBlockingQueue;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ConcurrentLinkedDeque;
import java.util.concurrent.ConcurrentSkipListMap;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.LinkedBlockingDeque;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.PriorityBlockingQueue;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLongArray;
import java.util.concurrent.atomic.AtomicReference;
import java.util.concurrent.atomic.LongAdder;
import java.util.concurrent.locks.ReentrantLock;
import java.util.regex.Pattern;
import nstorm.memory.Declared;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

class StateClassesTest {
    /** Reading it runs code. */
    static final class Gadget implements Serializable {
        private static final long serialVersionUID = 1L;
        static boolean ran;

        private void readObject(ObjectInputStream in) {
            ran = true;
        }
    }

    interface Animal {}

    record Dog(String name, Map<String, Bone> bones) implements Animal, Serializable {}

    record Bone(int length) implements Serializable {}

    /** No type of a field leads to it. */
    record Loose(int number) implements Serializable {}

    enum Kind {
        PLAIN,
        OWN {}
    }

    static class Base<T> {
        List<T> inherited = new ArrayList<>();
    }

    static final class Bags extends HashMap<String, Bone> {
        private static final long serialVersionUID = 1L;
    }

    static final class Bolt extends Base<Bone> {
        Map<Kind, List<? extends Animal>> animals = new EnumMap<>(Kind.class);
        Bags bags;
        Bone[][] grid;
        Map<String, Object> any = new HashMap<>();
        transient Gadget never;
    }

    private static final Set<String> TYPED = Set.of("animals", "bags", "grid", "inherited");
    private static final Set<String> ANY = Set.of("any");
    private static final StateClasses ALL = with(Set.of(), "nstorm.*", "java.*", "javax.*");

    private static StateClasses with(Set<Class<?>> held, String... declared) {
        return new StateClasses(held, Declared.of(Map.of("nstorm.state.classes", List.of(declared))));
    }

    private static Bolt holding(Object value) {
        Bolt bolt = new Bolt();
        bolt.any.put("k", value);
        return bolt;
    }

    private static byte[] saved(Bolt bolt, Set<String> fields, StateClasses classes) throws IOException {
        return Whole.of(BoltState.save(List.of(bolt), fields, null, null, classes));
    }

    private static Bolt moved(Bolt bolt, Set<String> fields) throws IOException {
        Bolt target = new Bolt();
        Whole.load(saved(bolt, fields, Whole.undeclared()), List.of(target), null);
        return target;
    }

    @Test
    void whatTheTypesOfTheFieldsLeadToTravels() throws IOException {
        Bolt bolt = new Bolt();
        bolt.animals.put(Kind.PLAIN, List.of(new Dog("a", new TreeMap<>(Map.of("b", new Bone(1))))));
        bolt.animals.put(Kind.OWN, List.of());
        bolt.bags = new Bags();
        bolt.bags.put("c", new Bone(2));
        bolt.grid = new Bone[][] {{new Bone(3)}, null};
        bolt.inherited.add(new Bone(4));
        Bolt target = moved(bolt, TYPED);
        assertEquals(bolt.animals, target.animals);
        assertEquals(bolt.bags, target.bags);
        assertEquals(bolt.grid[0][0], target.grid[0][0]);
        assertEquals(bolt.inherited, target.inherited);
    }

    @Test
    void theSourceNamesTheFieldTheClassAndWhatToDeclare() {
        for (Object value : List.of(new Loose(1), List.of(new Loose(1)), new Loose[0], Map.of(1, new Loose(1)))) {
            assertEquals(
                    "its field any holds nstorm.state.StateClassesTest$Loose, to which the type of no field leads; declare "
                            + "nstorm.state.classes: [nstorm.state.StateClassesTest$Loose] if it is part of the state",
                    assertThrows(
                                    IOException.class,
                                    () -> saved(holding(value), Set.of("any", "bags"), Whole.undeclared()))
                            .getMessage());
        }
    }

    @Test
    void theTargetMakesNoObjectOfAnotherClass() throws IOException {
        byte[] state = saved(holding(List.of(new Gadget())), ANY, ALL);
        Bolt target = new Bolt();
        assertEquals(
                "it holds nstorm.state.StateClassesTest$Gadget, to which the type of no field leads; declare "
                        + "nstorm.state.classes: [nstorm.state.StateClassesTest$Gadget] if it is part of the state",
                assertThrows(IOException.class, () -> Whole.load(state, List.of(target), null))
                        .getMessage());
        assertFalse(Gadget.ran);
        assertEquals(Map.of(), target.any);
    }

    @Test
    void whatIsDeclaredAndWhatThePreparedBoltHeldTravels() throws IOException {
        byte[] state = saved(holding(new Loose(1)), ANY, ALL);
        for (StateClasses classes : List.of(
                with(Set.of(Loose.class)),
                with(Set.of(), "nstorm.state.StateClassesTest$Loose"),
                with(Set.of(), "nstorm.*"))) {
            Bolt target = new Bolt();
            BoltState.load(state, List.of(target), classes, null);
            assertEquals(Map.of("k", new Loose(1)), target.any);
        }
        for (String another :
                List.of("nstorm.state.StateClassesTest", "nstorm.st.*", "nstorm.state.StateClassesTest$Loose.*")) {
            assertThrows(
                    IOException.class, () -> BoltState.load(state, List.of(new Bolt()), with(Set.of(), another), null));
        }
    }

    static List<Object> ofTheJdk() {
        List<Integer> list = new ArrayList<>(List.of(1, 2));
        TreeMap<String, Integer> sorted = new TreeMap<>(String.CASE_INSENSITIVE_ORDER);
        sorted.put("a", 1);
        TreeSet<Integer> reversed =
                new TreeSet<>(Comparator.<Integer>naturalOrder().reversed());
        reversed.add(1);
        return List.of(
                "a",
                1,
                2L,
                (short) 3,
                (byte) 4,
                5f,
                6.0,
                'c',
                true,
                new BigDecimal("1.50"),
                Instant.EPOCH,
                Duration.ofSeconds(3),
                ZonedDateTime.now(),
                DayOfWeek.MONDAY,
                UUID.randomUUID(),
                new Date(1),
                new java.sql.Timestamp(1),
                Locale.ROOT,
                new Random(1),
                Pattern.compile("a"),
                new BitSet(),
                new StringBuilder("x"),
                list,
                new LinkedList<>(list),
                new ArrayDeque<>(list),
                new PriorityQueue<>(list),
                sorted,
                reversed,
                Arrays.asList(1, 2),
                List.of(),
                List.of(1, 2, 3),
                Set.of(1, 2),
                Map.of(1, 2),
                new LinkedHashMap<>(Map.of(1, 2)),
                new LinkedHashSet<>(list),
                new Hashtable<>(Map.of(1, 2)),
                new IdentityHashMap<>(Map.of(1, 2)),
                EnumSet.of(TimeUnit.DAYS),
                new EnumMap<>(Map.of(TimeUnit.DAYS, 1)),
                Collections.synchronizedMap(new TreeMap<>(Map.of(1, 2))),
                Collections.unmodifiableList(list),
                Collections.unmodifiableMap(sorted),
                Collections.emptyList(),
                Collections.singletonMap(1, 2),
                Collections.newSetFromMap(new ConcurrentHashMap<>()),
                ConcurrentHashMap.newKeySet(),
                new ConcurrentSkipListMap<>(Map.of(1, 2)),
                new ConcurrentLinkedDeque<>(list),
                new CopyOnWriteArrayList<>(list),
                new LinkedBlockingQueue<>(list),
                new LinkedBlockingDeque<>(list),
                new ArrayBlockingQueue<>(2, true, list),
                new PriorityBlockingQueue<>(list),
                new AtomicLongArray(2),
                new AtomicReference<>(list),
                new LongAdder(),
                new ReentrantLock(),
                new Object[] {1, new int[] {2}, new String[0]},
                new AbstractMap.SimpleEntry<>(1, 2));
    }

    @ParameterizedTest
    @MethodSource("ofTheJdk")
    void theJdksValuesAndCollectionsTravelInAnyField(Object value) throws IOException {
        assertEquals(value.getClass(), moved(holding(value), ANY).any.get("k").getClass());
    }

    @Test
    void otherClassesOfTheJdkDoNot() throws IOException {
        for (Object value : List.of(
                new URL("http://host"),
                new IllegalStateException("x"),
                (Comparator<String> & Serializable) (a, b) -> 0,
                new javax.management.BadAttributeValueExpException("x"))) {
            assertThrows(
                    IOException.class,
                    () -> saved(holding(value), ANY, Whole.undeclared()),
                    value.getClass().getName());
            byte[] state = saved(holding(value), ANY, ALL);
            assertThrows(
                    IOException.class,
                    () -> Whole.load(state, List.of(new Bolt()), null),
                    value.getClass().getName());
        }
    }
}

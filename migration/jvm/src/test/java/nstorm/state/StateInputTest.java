package nstorm.state;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTimeoutPreemptively;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.io.Serializable;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collections;
import java.util.HashMap;
import java.util.HashSet;
import java.util.Hashtable;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import org.junit.jupiter.api.Test;

/** What takes too much to be read is refused. */
class StateInputTest {
    static final class Bolt {
        Object kept;
        Node node;
        Place place;
        Friend friend;
    }

    /** What its hash code asks for stands in a stream behind what leads back to it. */
    static final class Friend implements Serializable {
        private static final long serialVersionUID = 1L;
        final Object friends;
        final String name;

        Friend(String name, Object friends) {
            this.name = name;
            this.friends = friends;
        }

        @Override
        public boolean equals(Object other) {
            return other instanceof Friend friend && name.equals(friend.name);
        }

        @Override
        public int hashCode() {
            return Objects.hashCode(name);
        }
    }

    record Node(Node left, Node right) implements Serializable {}

    /** Its hash code is its identity. */
    static final class Place implements Serializable {
        private static final long serialVersionUID = 1L;
        final List<Place> next = new ArrayList<>();
    }

    private static byte[] saved(Object kept, String field) throws IOException {
        Bolt bolt = new Bolt();
        if (kept instanceof Node node) {
            bolt.node = node;
        } else {
            bolt.kept = kept;
        }
        return Whole.of(Whole.save(List.of(bolt), Set.of(field), null));
    }

    private static Bolt loaded(byte[] state) throws IOException {
        Bolt bolt = new Bolt();
        assertTimeoutPreemptively(Duration.ofSeconds(10), () -> Whole.load(state, List.of(bolt), null));
        return bolt;
    }

    private static String refused(byte[] state) {
        return assertThrows(IOException.class, () -> loaded(state)).getMessage();
    }

    /** Each of a hundred is twice in the next: 5,828 bytes, and 2^100 steps. */
    @Test
    void setsWhoseHashCodeHasNoEndAreRefused() throws IOException {
        Set<Object> root = new HashSet<>();
        Set<Object> one = root;
        Set<Object> two = new HashSet<>();
        for (int i = 0; i < 100; i++) {
            Set<Object> nextOne = new HashSet<>(Set.of("foo"));
            Set<Object> nextTwo = new HashSet<>();
            one.add(nextOne);
            one.add(nextTwo);
            two.add(nextOne);
            two.add(nextTwo);
            one = nextOne;
            two = nextTwo;
        }
        // A map of identities writes it as it is, for no hash code is asked for.
        assertEquals(
                0, refused(saved(new Object[] {root}, "kept")).indexOf("its hash code would go through more than 10"));
    }

    private static Friend saved(Friend friend) throws IOException {
        Bolt bolt = new Bolt();
        bolt.friend = friend;
        return loaded(Whole.of(Whole.save(List.of(bolt), Set.of("friend"), null))).friend;
    }

    /** It would have them for ever, and say that it has not. */
    @Test
    void tablesThatDoNotFindTheirKeysAreRefused() throws IOException {
        for (Set<Friend> friends : List.<Set<Friend>>of(
                new HashSet<>(), new LinkedHashSet<>(), Collections.newSetFromMap(new ConcurrentHashMap<>()))) {
            Friend one = new Friend("one", friends);
            Friend other = new Friend("other", new HashSet<>(Set.of(one)));
            friends.add(other);
            assertTrue(assertThrows(IOException.class, () -> saved(one))
                    .getMessage()
                    .matches("has a \\w+ that does not find its own keys, which lead back to it"));
        }
        Map<Object, Object> table = new Hashtable<>();
        Friend one = new Friend("one", table);
        table.put(one, 1);
        assertThrows(IOException.class, () -> saved(one));
        table.clear();
        table.put(new Friend("two", table), 1);
        assertEquals(1, ((Map<?, ?>) saved(one).friends).size());
    }

    /** An object stream makes them one by one, and the language has one object of each. */
    @Test
    void smallNumbersAreTheJvmsOwn() throws IOException {
        List<Object> small = List.of(true, 127, -128L, (short) 5, (byte) 6, 'a');
        Bolt bolt = loaded(saved(new ArrayList<>(small), "kept"));
        for (int i = 0; i < small.size(); i++) {
            assertSame(small.get(i), ((List<?>) bolt.kept).get(i));
        }
    }

    private static Object nested(int deep) {
        Object one = 1;
        for (int i = 0; i < deep; i++) {
            one = new Object[] {one};
        }
        return one;
    }

    @Test
    void ownObjectsWhoseHashCodeHasNoEndAreRefused() throws IOException {
        Node node = null;
        for (int i = 0; i < 60; i++) {
            node = new Node(node, node);
        }
        assertEquals(0, refused(saved(node, "node")).indexOf("its hash code would go through more than 10"));
    }

    /** A graph of many ways is no trouble where no hash code follows them. */
    @Test
    void aGraphOfManyWaysIsRead() throws IOException {
        List<Place> all = new ArrayList<>();
        for (int i = 0; i < 200; i++) {
            all.add(new Place());
            for (int j = Math.max(0, i - 3); j < i; j++) {
                all.get(j).next.add(all.get(i));
            }
        }
        Bolt bolt = new Bolt();
        bolt.place = all.get(0);
        Bolt target = loaded(Whole.of(Whole.save(List.of(bolt), Set.of("place"), null)));
        assertEquals(3, target.place.next.size());
    }

    @Test
    void whatIsNestedTooDeepIsRefused() throws Exception {
        List<String> said = new ArrayList<>();
        Thread deep = new Thread(
                null,
                () -> {
                    for (int depth : new int[] {1900, 2100}) {
                        try {
                            Whole.load(saved(nested(depth), "kept"), List.of(new Bolt()), null);
                            said.add("read");
                        } catch (IOException e) {
                            said.add(e.getMessage());
                        }
                    }
                },
                "deep",
                256 << 20);
        deep.start();
        deep.join();
        assertEquals(List.of("read", "it is nested more than 2000 deep"), said);
    }

    @Test
    void whatTakesTooLongIsRefused() throws IOException {
        byte[] state = saved(new ArrayList<>(List.of(new HashMap<>(Map.of(1, 2)))), "kept");
        Bolt bolt = new Bolt();
        assertEquals(
                "to read it takes more than 0 s",
                assertThrows(IOException.class, () -> BoltState.load(state, List.of(bolt), Whole.undeclared(), null, 1))
                        .getMessage());
        assertNull(bolt.kept);
    }
}

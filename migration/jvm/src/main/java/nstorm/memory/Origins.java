package nstorm.memory;

import java.util.ArrayList;
import java.util.BitSet;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.stream.Collectors;
import org.objectweb.asm.Handle;

/**
 * Where values come from: a value is a set of origins, each a number here. If the set is empty, or of {@link Kind#VALUE} alone, nothing of
 * the value can be kept. It is a number, a text, null, or what a tuple carries.
 *
 * <p>What an origin's object holds is a set again. All sets only grow, so a walk over the code that is repeated ends.
 */
final class Origins {
    /** The bolt itself; the tuple that it was given. */
    static final int BOLT = 0;

    static final int TUPLE = 1;

    /** The bolt's collector. */
    static final int COLLECTOR = 2;

    /** Numbers and texts out of the tuple that it was given. */
    static final int INPUT = 3;

    /** The names by which a tick is known. */
    static final int TICK = 4;

    enum Kind {
        BOLT,
        TUPLE,
        COLLECTOR,
        FIELD,
        STATIC,
        MADE,
        HOST,
        VALUE
    }

    /**
     * One origin. For a field of the bolt it is all that the field leads to, for a place in the code all that is made there. For a host it
     * is a value that means something there alone. For values it is the numbers and texts out of the input or out of a field.
     *
     * @param type of what is made, or null
     * @param lambda the method that is called through what is made, or null
     */
    record Origin(Kind kind, String name, String type, Handle lambda, List<BitSet> captured) {}

    private final List<Origin> all = new ArrayList<>();
    private final List<BitSet> held = new ArrayList<>();
    private final Map<String, Integer> byKey = new HashMap<>();
    private final BitSet values = new BitSet();
    boolean changed;

    Origins() {
        add("bolt", new Origin(Kind.BOLT, "", null, null, List.of()));
        add("tuple", new Origin(Kind.TUPLE, "", null, null, List.of()));
        add("collector", new Origin(Kind.COLLECTOR, "", null, null, List.of()));
        add("input", new Origin(Kind.VALUE, "", null, null, List.of()));
        add("tick", new Origin(Kind.VALUE, "", null, null, List.of()));
    }

    private int add(String key, Origin origin) {
        all.add(origin);
        held.add(new BitSet());
        byKey.put(key, all.size() - 1);
        values.set(all.size() - 1, origin.kind == Kind.VALUE);
        return all.size() - 1;
    }

    int field(String name) {
        Integer known = byKey.get("field " + name);
        return known != null ? known : add("field " + name, new Origin(Kind.FIELD, name, null, null, List.of()));
    }

    /** Numbers and texts out of a field of the bolt. */
    int valuesOfField(String name) {
        Integer known = byKey.get("values " + name);
        return known != null ? known : add("values " + name, new Origin(Kind.VALUE, name, null, null, List.of()));
    }

    BitSet withoutValues(BitSet value) {
        BitSet objects = (BitSet) value.clone();
        objects.andNot(values);
        return objects;
    }

    /** Of what a number or a text is made that is made of this: a kept tuple is one of its field, not the input. */
    BitSet valuesOf(BitSet value) {
        BitSet reached = reached(value);
        BitSet found = (BitSet) reached.clone();
        found.and(values);
        boolean ofField = false;
        for (int one : reached.stream().filter(one -> is(one, Kind.FIELD)).toArray()) {
            found.set(valuesOfField(get(one).name));
            ofField = true;
        }
        if (reached.get(TUPLE) && !ofField) {
            found.set(INPUT);
        }
        return found;
    }

    /** The fields of the bolt out of which this comes, or of which it is made. */
    Set<String> fieldsOf(BitSet value) {
        return reached(value).stream()
                .mapToObj(all::get)
                .filter(one -> one.kind == Kind.FIELD || one.kind == Kind.VALUE)
                .map(Origin::name)
                .filter(name -> !name.isEmpty())
                .collect(Collectors.toSet());
    }

    /** Whether it comes out of the tuple that it was given, or is that tuple. */
    boolean isOfInput(BitSet value) {
        BitSet reached = reached(value);
        return reached.get(INPUT) || reached.get(TUPLE);
    }

    private BitSet reached(BitSet value) {
        if (value.isEmpty()) {
            return value;
        }
        BitSet from = (BitSet) value.clone();
        from.clear(BOLT);
        from.clear(COLLECTOR);
        return closure(from);
    }

    int host(String what) {
        Integer known = byKey.get("host " + what);
        return known != null ? known : add("host " + what, new Origin(Kind.HOST, what, null, null, List.of()));
    }

    /** The first of these that means something on one host alone, or null. */
    Origin hostOf(BitSet value) {
        return value.stream()
                .filter(one -> is(one, Kind.HOST))
                .mapToObj(all::get)
                .findFirst()
                .orElse(null);
    }

    /** @param typeOrNull the class of the object that it always holds */
    int ofStatic(String owner, String name, String typeOrNull) {
        String key = "static " + owner + "." + name;
        Integer known = byKey.get(key);
        String shown = owner.substring(owner.lastIndexOf('/') + 1) + "." + name;
        return known != null ? known : add(key, new Origin(Kind.STATIC, shown, typeOrNull, null, List.of()));
    }

    int made(String place, String typeOrNull) {
        Integer known = byKey.get("made " + place);
        return known != null ? known : add("made " + place, new Origin(Kind.MADE, place, typeOrNull, null, List.of()));
    }

    int lambda(String place, Handle method, int captures) {
        Integer known = byKey.get("lambda " + place);
        if (known != null) {
            return known;
        }
        List<BitSet> captured = new ArrayList<>();
        for (int i = 0; i < captures; i++) {
            captured.add(new BitSet());
        }
        return add("lambda " + place, new Origin(Kind.MADE, place, null, method, captured));
    }

    Origin get(int origin) {
        return all.get(origin);
    }

    boolean is(int origin, Kind kind) {
        return all.get(origin).kind == kind;
    }

    /** Grows {@code to} by {@code by}, and notes whether it did. */
    void grow(BitSet to, BitSet by) {
        int before = to.cardinality();
        to.or(by);
        changed |= to.cardinality() != before;
    }

    void hold(int origin, BitSet value) {
        if (values.get(origin)) {
            return;
        }
        // Which tuple was the input when it was kept, nobody knows later.
        BitSet kept = is(origin, Kind.FIELD) || is(origin, Kind.STATIC) ? withoutValues(value) : (BitSet) value.clone();
        kept.clear(origin);
        grow(held.get(origin), kept);
    }

    BitSet held(int origin) {
        return held.get(origin);
    }

    /** What may be read out of these objects: they and what they hold, one step down. */
    BitSet within(BitSet value) {
        BitSet found = (BitSet) value.clone();
        value.stream().forEach(origin -> found.or(held.get(origin)));
        return found;
    }

    /** These objects and all that they lead to. */
    BitSet closure(BitSet value) {
        BitSet found = (BitSet) value.clone();
        BitSet open = (BitSet) value.clone();
        while (!open.isEmpty()) {
            int next = open.nextSetBit(0);
            open.clear(next);
            BitSet more = (BitSet) held.get(next).clone();
            more.andNot(found);
            found.or(more);
            open.or(more);
        }
        return found;
    }
}

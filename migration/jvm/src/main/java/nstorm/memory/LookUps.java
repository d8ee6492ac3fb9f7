package nstorm.memory;

import java.util.ArrayList;
import java.util.BitSet;
import java.util.Collection;
import java.util.List;
import java.util.PriorityQueue;
import java.util.Set;
import java.util.SortedMap;
import java.util.SortedSet;
import java.util.concurrent.DelayQueue;
import java.util.concurrent.PriorityBlockingQueue;
import java.util.function.IntFunction;
import nstorm.memory.Origins.Kind;
import org.objectweb.asm.Type;

/** The places where the input decides which of the kept objects is meant: by its key, by a comparison with it, by its order. */
final class LookUps {
    /** Methods of collections and maps whose arguments choose the element. */
    private static final Set<String> BY_KEY = Names.of("""
            put get getOrDefault containsKey computeIfAbsent computeIfPresent compute merge putIfAbsent replace
            remove removeAll retainAll contains containsAll indexOf lastIndexOf headMap tailMap subMap headSet
            tailSet subSet floorEntry floorKey floor ceilingEntry ceilingKey ceiling higherEntry higherKey higher
            lowerEntry lowerKey lower removeFirstOccurrence removeLastOccurrence set
            """);
    /** Methods that take the first of those that are in order. */
    private static final Set<String> IN_ORDER = Names.of("""
            poll pollFirst pollLast pollFirstEntry pollLastEntry peek element remove take first last firstKey
            lastKey firstEntry lastEntry getFirst getLast removeFirst removeLast
            """);
    /** They answer whether something was done, and not what they were asked. */
    private static final Set<String> CHANGING =
            Set.of("add", "addAll", "addFirst", "addLast", "offer", "offerFirst", "offerLast", "put", "push");

    private static final List<Class<?>> ORDERED = List.of(
            SortedMap.class, SortedSet.class, PriorityQueue.class, PriorityBlockingQueue.class, DelayQueue.class);

    private final Origins origins;
    private final Findings findings;
    private final IntFunction<LiveTypes> liveOf;

    /** @param liveOf what a field of the bolt holds, by its origin */
    LookUps(Origins origins, Findings findings, IntFunction<LiveTypes> liveOf) {
        this.origins = origins;
        this.findings = findings;
        this.liveOf = liveOf;
    }

    /** @param followed whether the code of the method is also read: then what it compares with its own object shows there */
    void call(Bytecode.Instruction call, List<BitSet> arguments, boolean isStatic, boolean followed) {
        if (findings.isPreparing() || arguments.isEmpty()) {
            return;
        }
        BitSet receiver = arguments.get(0);
        if (!isStatic && call.owner().startsWith("java/util/")) {
            inCollection(call.name(), receiver, arguments.subList(1, arguments.size()));
        }
        int answer = Type.getReturnType(call.type()).getSort();
        if ((answer == Type.BOOLEAN || answer == Type.INT)
                && !CHANGING.contains(call.name())
                && !Known.isOutlet(call.owner())) {
            List<BitSet> compared = followed && !isStatic ? arguments.subList(1, arguments.size()) : arguments;
            for (int i = 0; i < compared.size(); i++) {
                for (BitSet other : compared.subList(i + 1, compared.size())) {
                    compare(compared.get(i), other);
                }
            }
        }
    }

    private void inCollection(String name, BitSet receiver, List<BitSet> arguments) {
        if (arguments.isEmpty() && IN_ORDER.contains(name)) {
            receiver.stream()
                    .filter(one -> origins.is(one, Kind.FIELD) && isOrdered(one))
                    .forEach(one -> findings.looksUp(origins.get(one).name()));
        } else if (BY_KEY.contains(name)) {
            arguments.forEach(key -> compare(receiver, key));
        }
    }

    private boolean isOrdered(int field) {
        List<String> types = new ArrayList<>();
        types.add(liveOf.apply(field).type());
        origins.held(field).stream().forEach(one -> types.add(origins.get(one).type()));
        return types.stream()
                .anyMatch(type -> type != null
                        && type.startsWith("java/util/")
                        && ORDERED.stream().anyMatch(ordered -> ordered.isAssignableFrom(Bytecode.jdk(type))));
    }

    /** Notes fields out of which one of these comes, if the other is made of the input alone. */
    void compare(BitSet one, BitSet other) {
        if (!findings.isPreparing()) {
            Set<String> first = origins.fieldsOf(one);
            Set<String> second = origins.fieldsOf(other);
            note(first, second, origins.isOfInput(other));
            note(second, first, origins.isOfInput(one));
        }
    }

    private void note(Collection<String> kept, Collection<String> besides, boolean ofInput) {
        if (ofInput) {
            kept.stream().filter(field -> !besides.contains(field)).forEach(findings::looksUp);
        }
    }
}

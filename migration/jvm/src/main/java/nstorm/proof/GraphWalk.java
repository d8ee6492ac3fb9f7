package nstorm.proof;

import java.io.File;
import java.io.Serializable;
import java.lang.management.ManagementFactory;
import java.lang.reflect.Array;
import java.lang.reflect.Field;
import java.lang.reflect.Method;
import java.lang.reflect.Modifier;
import java.math.BigDecimal;
import java.math.BigInteger;
import java.net.InetAddress;
import java.net.URL;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.BitSet;
import java.util.Collection;
import java.util.Comparator;
import java.util.Date;
import java.util.IdentityHashMap;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import java.util.PriorityQueue;
import java.util.Set;
import java.util.SortedMap;
import java.util.SortedSet;
import java.util.TreeSet;
import java.util.UUID;
import java.util.concurrent.PriorityBlockingQueue;
import java.util.concurrent.atomic.DoubleAdder;
import java.util.concurrent.atomic.LongAdder;
import java.util.regex.Pattern;
import java.util.zip.CRC32;
import java.util.zip.CRC32C;
import nstorm.memory.CodeBase;
import nstorm.proof.Shape.How;

/**
 * One walk over all that some roots lead to, breadth first and without recursion. Of each root it makes a hash of the content of its graph: values,
 * classes, and which object stands in which place. An object that an earlier root leads to counts there, and here as the place where it was met.
 *
 * <p>Fields are read by reflection, and exact classes of the JDK by their own methods: no code of the user's runs. To be called where nothing
 * else touches what is walked.
 */
final class GraphWalk {
    /** Nodes between two looks at the clock. */
    private static final int BETWEEN_LOOKS = 512;

    private static final int ROOT_BITS = 32;
    static final int BATCH = 256;
    /** From this number of elements on it takes less time to look at them on all cores. */
    private static final int LARGE = 20_000;

    private static final long SIGNED_NAN = 0xFFF8000000000000L;
    private static final int SHORT_SIGNED_NAN = 0xFFC00000;

    private static final long NULL = 0x6E756C6CL;
    static final long NO_VALUE = 0x6E6F6E65L;

    /** What a walk has found of one root. */
    static final class Found {
        long hash;
        /** What is outside this heap or cannot be seen, and its path; null if there is no such thing. */
        String obstacle;
        /** A value that means something on this host alone, and its path. */
        String foreign;
        /** It was not walked to its end. */
        boolean cut;
        /** Whether something in it could ever be another one than it is. */
        boolean mayChange;

        int nodes;
        /** The roots that also lead to objects of this one. */
        final Set<Integer> alias = new TreeSet<>();
    }

    private final boolean sameJvm;
    final Seen seen = new Seen();
    private Seen othersOrNull;
    private final Set<Object> passed = Fingerprint.identities();
    private int firstOwn;
    /** The roots of another walk that also lead to objects of this one. */
    final Set<Integer> shared = new TreeSet<>();

    private final Set<Object> given;
    /** Those whose content this walk is a part of. */
    private final Set<Object> keys;

    private Outline outline;
    private final long untilCpuNanos;
    private final List<Found> roots = new ArrayList<>();
    private Object[] queue = new Object[32];
    private int[] lines = new int[32];
    private int head;
    private int tail;
    private long hash;
    private long order;
    private int visits;
    private int line;
    private Found now;
    /** Of large maps and sets. */
    private IdentityHashMap<Object, Long> plainSums = new IdentityHashMap<>();
    /** The user's classes that were met: their static fields are also memory of their objects. */
    final Set<Class<?>> classes;

    /**
     * @param sameJvm whether the hashes are for this JVM alone, so that what is not read counts by identity
     * @param given objects that every copy gets
     */
    GraphWalk(boolean sameJvm, Set<Object> given, Set<Class<?>> classes, long limitNanos) {
        this(sameJvm, given, classes, limitNanos, Fingerprint.identities());
    }

    private GraphWalk(boolean sameJvm, Set<Object> given, Set<Class<?>> classes, long limitNanos, Set<Object> keys) {
        this.sameJvm = sameJvm;
        this.given = given;
        this.classes = classes;
        this.keys = keys;
        untilCpuNanos = cpuNanos() + limitNanos;
    }

    static long cpuNanos() {
        return ManagementFactory.getThreadMXBean().getCurrentThreadCpuTime();
    }

    /** Where to note what is met from now on. */
    void outline(Outline next) {
        outline = next;
    }

    /** Not to be walked through until {@link #sharedUpToHere}: what leads to them has not their content. */
    void passing(Collection<?> objects) {
        passed.addAll(objects);
    }

    /** Takes over what an earlier walk has added up, since nothing has changed in between. */
    void reuse(GraphWalk earlier) {
        plainSums = earlier.plainSums;
    }

    /** The roots so far are shared with others. */
    void sharedUpToHere() {
        firstOwn = roots.size();
        passed.clear();
    }

    /** Where it has to be noticed that an object belongs to a root of another walk. */
    void beside(Seen others) {
        othersOrNull = others;
    }

    static int rootOf(long number) {
        return (int) (number >>> ROOT_BITS);
    }

    /** Walks all that a value leads to. */
    Found root(String name, Object value) {
        now = new Found();
        roots.add(now);
        hash = 0;
        order = 0;
        head = 0;
        tail = 0;
        line = -1;
        try {
            child(name, value);
            while (head < tail) {
                Object next = queue[head];
                queue[head] = null;
                line = lines[head];
                head++;
                node(next);
            }
        } catch (Cut e) {
            now.cut = true;
            Arrays.fill(queue, null);
        } catch (Endless e) {
            if (!keys.isEmpty()) {
                throw e;
            }
            now.obstacle = path(null) + " has a key that leads back to itself";
            now.cut = true;
            Arrays.fill(queue, null);
        }
        now.hash = hash;
        now.nodes = (int) order;
        return now;
    }

    /** Too much for its time. */
    private static final class Cut extends RuntimeException {
        private static final long serialVersionUID = 1L;

        Cut() {
            super(null, null, false, false);
        }
    }

    /** The order of keys is that of their content, and that of one has its own in it. */
    private static final class Endless extends RuntimeException {
        private static final long serialVersionUID = 1L;

        Endless() {
            super(null, null, false, false);
        }
    }

    private void look() {
        if (++visits % BETWEEN_LOOKS == 0) {
            lookNow();
        }
    }

    private void lookNow() {
        if (cpuNanos() > untilCpuNanos) {
            throw new Cut();
        }
    }

    private void emit(long value) {
        hash = Hash.mix(hash, value);
    }

    /** Counts a reference, and what it leads to later. */
    private void child(Object step, Object value) {
        if (value == null) {
            emit(NULL);
            note(step, null, NULL);
            return;
        }
        Shape shape = Shape.of(value.getClass());
        if (shape.how() == How.VALUE) {
            long valueHash = value(value);
            emit(shape.name());
            emit(valueHash);
            note(step, value, valueHash);
            foreign(step, value);
            meet(value);
            return;
        }
        long number = (long) (roots.size() - 1) << ROOT_BITS | order;
        long before = seen.add(value, number);
        if (before >= 0) {
            int root = rootOf(before);
            now.mayChange |= root < firstOwn
                    && isOwn(shape.how(), value)
                    && (shape.how() != How.ENUM || roots.get(root).mayChange);
            // In a graph that others change too, the place would change with it.
            long which = root < firstOwn ? System.identityHashCode(value) : before;
            emit(which);
            if (outline != null && outline.hasRoom()) {
                outline.add(
                        line, step.toString(), "a shared " + value.getClass().getSimpleName(), -1, which);
            }
            if (root != roots.size() - 1 && mayBeShared(shape.how(), value)) {
                roots.get(root).alias.add(roots.size() - 1);
                now.alias.add(root);
            }
            return;
        }
        long other = othersOrNull == null ? -1 : othersOrNull.find(value);
        if (other >= 0 && mayBeShared(shape.how(), value)) {
            shared.add(rootOf(other));
        }
        order++;
        emit(shape.name());
        put(value, noteNode(step, shape, value));
    }

    /** Whether a copy gets another one: what every copy gets, or what only stands for itself, may be shared. */
    private boolean isOwn(How how, Object value) {
        return how != How.IDENTITY && how != How.NOTHING && !given.contains(value);
    }

    /** Whether it matters who else leads to it. An enum's constant is found by its name, and what that leads to counts all the same. */
    private boolean mayBeShared(How how, Object value) {
        return how != How.ENUM && isOwn(how, value);
    }

    private void put(Object value, int lineOf) {
        if (tail == queue.length) {
            int length = tail - head;
            Object[] room = 2 * length > queue.length ? new Object[2 * queue.length] : queue;
            int[] roomOfLines = room == queue ? lines : new int[room.length];
            System.arraycopy(queue, head, room, 0, length);
            System.arraycopy(lines, head, roomOfLines, 0, length);
            if (room == queue) {
                Arrays.fill(room, length, tail, null);
            }
            queue = room;
            lines = roomOfLines;
            head = 0;
            tail = length;
        }
        queue[tail] = value;
        lines[tail] = lineOf;
        tail++;
    }

    /** Numbers and the like are shown; texts may be nobody's business. */
    private void note(Object step, Object value, long valueHash) {
        if (outline != null && outline.hasRoom()) {
            boolean shown = value instanceof Number || value instanceof Boolean || value instanceof Character;
            String what = value == null
                    ? "null"
                    : shown
                            ? value.toString()
                            : value instanceof Enum<?> one
                                    ? one.name()
                                    : value instanceof String
                                            ? "a text"
                                            : "a " + value.getClass().getSimpleName();
            outline.add(line, step.toString(), what, -1, valueHash);
        }
    }

    private int noteNode(Object step, Shape shape, Object value) {
        if (outline == null || !outline.hasRoom()) {
            return -1;
        }
        String name = value.getClass().getSimpleName();
        return outline.add(
                line,
                step.toString(),
                name.isEmpty() ? value.getClass().getName() : name,
                Shape.size(shape.how(), value),
                0);
    }

    private String path(Object stepOrNull) {
        return outline == null ? stepOrNull == null ? "it" : stepOrNull.toString() : outline.pathOf(line, stepOrNull);
    }

    /** Of a constant the enum that declares it: a constant with code of its own has a class of its own. */
    private void meet(Object value) {
        if (value instanceof Enum<?> one && !CodeBase.ofTheJdk(one.getDeclaringClass())) {
            classes.add(one.getDeclaringClass());
        }
    }

    private void foreign(Object step, Object value) {
        if (now.foreign == null && (value instanceof File || value instanceof Path)) {
            now.foreign = path(step) + " is a path of this host";
        }
    }

    private static long value(Object value) {
        if (value instanceof String text) {
            return Hash.text(text);
        } else if (value instanceof Double number) {
            return bits(number);
        } else if (value instanceof Float number) {
            return bits(number);
        } else if (value instanceof BigInteger || value instanceof BigDecimal) {
            return Hash.text(value.toString());
        } else if (value instanceof Number number) {
            return number.longValue();
        } else if (value instanceof Boolean truth) {
            return truth ? 1 : 2;
        } else if (value instanceof Character character) {
            return character;
        } else if (value instanceof UUID id) {
            return Hash.mix(id.getMostSignificantBits(), id.getLeastSignificantBits());
        } else if (value instanceof Class<?> type) {
            return Hash.text(type.getName());
        } else if (value instanceof Enum<?> one) {
            return Hash.text(one.name());
        } else if (value instanceof URL url) {
            return Hash.text(url.toExternalForm());
        } else if (value instanceof Pattern pattern) {
            return Hash.mix(Hash.text(pattern.pattern()), pattern.flags());
        }
        return Hash.text(value.toString()); // of the JDK's immutable classes alone
    }

    /** What processors make of 0.0 / 0 has a sign or none, and an object stream takes it off. */
    private static long bits(double number) {
        long bits = Double.doubleToRawLongBits(number);
        return bits == SIGNED_NAN ? bits & Long.MAX_VALUE : bits;
    }

    private static int bits(float number) {
        int bits = Float.floatToRawIntBits(number);
        return bits == SHORT_SIGNED_NAN ? bits & Integer.MAX_VALUE : bits;
    }

    private void node(Object object) {
        look();
        if (given.contains(object) || firstOwn == 0 && passed.contains(object)) {
            return;
        }
        Shape shape = Shape.of(object.getClass());
        now.mayChange |= !shape.isFixed(object);
        switch (shape.how()) {
            case IDENTITY -> emit(sameJvm ? System.identityHashCode(object) : 0);
            case OUTSIDE, HIDDEN -> blocked(object, shape);
            case ENUM -> {
                meet(object);
                emit(Hash.text(((Enum<?>) object).name()));
                fields(object, shape);
            }
            case PRIMITIVES -> primitives(object);
            case ARRAY -> elements(Arrays.asList((Object[]) object), null);
            case UNORDERED_MAP -> {
                if (!sameJvm
                        && object instanceof IdentityHashMap<?, ?> map
                        && map.keySet().stream().anyMatch(GraphWalk::isAnotherElsewhere)) {
                    now.obstacle = path(null) + " finds values by identity, which are other objects elsewhere";
                }
                unordered(object, ((Map<?, ?>) object).entrySet(), true);
            }
            case UNORDERED_SET -> unordered(object, (Set<?>) object, false);
            case ORDERED_MAP -> pairs((Map<?, ?>) object);
            case ELEMENTS -> elements((Collection<?>) object, comparator(object));
            case BITS -> {
                for (long word : ((BitSet) object).toLongArray()) {
                    emit(word);
                }
            }
            case TEXT -> emit(Hash.text((CharSequence) object));
            case NUMBER -> emit(number(object));
            case LOCAL -> child("value", ThreadValues.of((ThreadLocal<?>) object));
            case FIELDS -> fields(object, shape);
            default -> {}
        }
    }

    private void blocked(Object object, Shape shape) {
        emit(sameJvm ? System.identityHashCode(object) : 0);
        boolean shared = object == System.out || object == System.err || object == Thread.currentThread();
        if (now.obstacle == null && !shared) {
            now.obstacle = path(null) + " is "
                    + (shape.how() == How.HIDDEN ? "a " + object.getClass().getName() + ", which " : "") + shape.about()
                    + (shape.how() == How.HIDDEN ? "" : " (" + object.getClass().getName() + ")");
        }
    }

    @SuppressWarnings("JavaUtilDate") // a user's
    private static long number(Object object) {
        return object instanceof LongAdder adder
                ? adder.sum()
                : object instanceof DoubleAdder adder ? bits(adder.sum()) : ((Date) object).getTime();
    }

    private static Comparator<?> comparator(Object sorted) {
        return sorted instanceof SortedSet<?> set
                ? set.comparator()
                : sorted instanceof SortedMap<?, ?> map
                        ? map.comparator()
                        : sorted instanceof PriorityQueue<?> queue ? queue.comparator() : null;
    }

    private void fields(Object object, Shape shape) {
        if (!CodeBase.ofTheJdk(object.getClass())) {
            classes.add(object.getClass());
        } else if (object instanceof InetAddress && now.foreign == null) {
            now.foreign = path(null) + " is an address of a host";
        }
        if (!sameJvm && now.obstacle == null && !(object instanceof Serializable) && !isView(object)) {
            now.obstacle = path(null) + " is a " + object.getClass().getName() + ", which is not Serializable";
        }
        for (Field field : shape.fields()) {
            try {
                if (field.getType().isPrimitive()) {
                    emit(primitive(field, object));
                } else {
                    Object value = content(object, field);
                    if (!sameJvm && now.obstacle == null && isInner(object, field, value)) {
                        now.obstacle = path(null) + " is a " + object.getClass().getName()
                                + ", which extends a collection of the JDK ("
                                + field.getDeclaringClass().getName() + ")";
                    }
                    child(field.getName(), value);
                }
            } catch (IllegalAccessException e) {
                throw new IllegalStateException("cannot read " + field, e);
            }
        }
    }

    /** Without what is no content, as the free room of a queue, or the parts of a date that it notes once it is shown. */
    private static Object content(Object object, Field field) throws IllegalAccessException {
        Object value = field.get(object);
        if (field.getDeclaringClass() == Date.class && field.getName().equals("cdate")) {
            return null;
        } else if (object.getClass() == PriorityBlockingQueue.class && value instanceof Object[] room) {
            return Arrays.copyOf(room, ((PriorityBlockingQueue<?>) object).size());
        }
        return value;
    }

    /** Of a set over a map: not written, since it is made of the map again. */
    private static boolean isView(Object object) {
        return object instanceof Set<?>
                && CodeBase.ofTheJdk(object.getClass())
                && object.getClass().getName().endsWith("KeySet");
    }

    /** Whether that holds the elements of a collection which is also of a class of the user's. */
    private static boolean isInner(Object object, Field field, Object value) {
        Class<?> type = value == null ? Object.class : value.getClass();
        while (type.isArray()) {
            type = type.getComponentType();
        }
        return !type.isPrimitive()
                && type != Object.class
                && !Serializable.class.isAssignableFrom(type)
                && Modifier.isTransient(field.getModifiers())
                && CodeBase.ofTheJdk(field.getDeclaringClass())
                && !CodeBase.ofTheJdk(object.getClass());
    }

    private long primitive(Field field, Object object) throws IllegalAccessException {
        Class<?> type = field.getType();
        long value = type == double.class
                ? bits(field.getDouble(object))
                : type == float.class
                        ? bits(field.getFloat(object))
                        : type == boolean.class
                                ? field.getBoolean(object) ? 1 : 2
                                : type == char.class ? field.getChar(object) : field.getLong(object);
        if (outline != null && outline.hasRoom()) {
            note(field.getName(), field.get(object), value);
        }
        return value;
    }

    private void primitives(Object array) {
        int length = Array.getLength(array);
        emit(length);
        if (array instanceof byte[] bytes) {
            CRC32 one = new CRC32();
            CRC32C other = new CRC32C();
            one.update(bytes);
            other.update(bytes);
            emit(one.getValue() << Integer.SIZE | other.getValue());
            lookNow();
        } else if (array instanceof long[] longs) {
            for (long one : longs) {
                emit(one);
            }
        } else if (array instanceof int[] ints) {
            for (int one : ints) {
                emit(one);
            }
        } else if (array instanceof double[] doubles) {
            for (double one : doubles) {
                emit(bits(one));
            }
        } else {
            for (int i = 0; i < length; i++) {
                emit(value(Array.get(array, i)));
            }
        }
        emit(length);
    }

    private void elements(Collection<?> elements, Comparator<?> comparatorOrNull) {
        emit(elements.size());
        if (comparatorOrNull != null) {
            child("comparator", comparatorOrNull);
        }
        int i = 0;
        for (Object element : elements) {
            look();
            child(new Index(i++), element);
        }
    }

    private void pairs(Map<?, ?> map) {
        emit(map.size());
        Comparator<?> comparator = comparator(map);
        if (comparator != null) {
            child("comparator", comparator);
        }
        for (Map.Entry<?, ?> entry : map.entrySet()) {
            look();
            child("key", entry.getKey());
            child(new Key(entry.getKey()), entry.getValue());
        }
    }

    /**
     * Where all keys are values their hashes order them, whatever the table; else a walk of its own over each does. Some hundred entries are asked for their
     * keys and values before these are looked at: memory then answers several at once.
     */
    private void unordered(Object object, Collection<?> elements, boolean entries) {
        emit(elements.size());
        long plain = elements.size() < LARGE ? NO_VALUE : plainSum(object, elements, entries);
        if (plain == PlainSum.LATE) {
            throw new Cut();
        } else if (plain != NO_VALUE) {
            emit(plain);
            return;
        }
        long sum = 0;
        List<Ordered> others = null;
        int room = Math.min(BATCH, Math.max(elements.size(), 1));
        Object[] keys = new Object[room];
        Object[] values = new Object[room];
        for (Iterator<?> all = elements.iterator(); all.hasNext(); ) {
            int count = 0;
            while (count < room && all.hasNext()) {
                keys[count++] = all.next();
            }
            for (int i = 0; entries && i < count; i++) {
                Map.Entry<?, ?> entry = (Map.Entry<?, ?>) keys[i];
                keys[i] = entry.getKey();
                values[i] = entry.getValue();
            }
            lookNow();
            for (int i = 0; i < count; i++) {
                long key = keyHash(keys[i]);
                long value = key == NO_VALUE ? NO_VALUE : valueHash(values[i]);
                if (value != NO_VALUE) {
                    sum += entry(sameJvm, key, value);
                    meet(keys[i]);
                    meet(values[i]);
                } else {
                    others = others == null ? new ArrayList<>() : others;
                    others.add(new Ordered(key == NO_VALUE ? of(keys[i]) : key, keys[i], values[i]));
                }
            }
        }
        emit(sum);
        if (others != null) {
            others.sort(null);
            sortAlike(others);
            for (Ordered one : others) {
                look();
                emit(one.hash);
                child("key", one.key);
                child(new Key(one.key), one.value);
            }
        }
    }

    private long plainSum(Object object, Collection<?> elements, boolean entries) {
        Long known = plainSums.get(object);
        long sum = known == null ? PlainSum.of(elements, entries, sameJvm, untilCpuNanos - cpuNanos()) : known;
        if (sum != PlainSum.LATE) {
            plainSums.put(object, sum);
        }
        return sum;
    }

    private static boolean isAnotherElsewhere(Object key) {
        return key != null
                && !(key instanceof Enum<?>)
                && !(key instanceof Class<?>)
                && Shape.of(key.getClass()).how() == How.VALUE;
    }

    /** Keys of the same content have their order by what they lead to. */
    private void sortAlike(List<Ordered> entries) {
        for (int i = 0; i + 1 < entries.size(); i++) {
            int end = i + 1;
            while (end < entries.size() && entries.get(end).hash == entries.get(i).hash) {
                end++;
            }
            if (end - i > 1) {
                List<Ordered> alike = entries.subList(i, end);
                alike.replaceAll(one -> new Ordered(
                        Hash.mix(one.hash, valueHash(one.value) == NO_VALUE ? of(one.value) : valueHash(one.value)),
                        one.key,
                        one.value));
                alike.sort(null);
            }
            i = end - 1;
        }
    }

    /**
     * The hash of an entry. Between two JVMs it is blind to keys and values that change places: one of them may have an earlier jar, which makes
     * it so. What a bolt has changed is found within one JVM.
     */
    static long entry(boolean sameJvm, long key, long value) {
        return sameJvm ? Hash.entry(key, value) : Hash.mix(key, value);
    }

    /** The hash of a key. A text has its hash stored. Where there are enough texts for a clash to matter, some of them would differ. */
    static long keyHash(Object key) {
        return key instanceof String text ? Hash.mix(1, text.hashCode()) : valueHash(key);
    }

    /** {@link #NO_VALUE} for what is no value. */
    static long valueHash(Object object) {
        if (object instanceof Long number) {
            return Hash.mix(2, number);
        } else if (object instanceof Integer number) {
            return Hash.mix(3, number);
        } else if (object == null) {
            return NULL;
        }
        Shape shape = Shape.of(object.getClass());
        return shape.how() == How.VALUE ? Hash.mix(shape.name(), value(object)) : NO_VALUE;
    }

    /** Of the content of a key, wherever else its objects stand. */
    private long of(Object key) {
        if (!keys.add(key)) {
            throw new Endless();
        }
        GraphWalk own = new GraphWalk(sameJvm, given, classes, untilCpuNanos - cpuNanos(), keys);
        Found found;
        try {
            found = own.root("key", key);
        } finally {
            keys.remove(key);
        }
        if (found.cut) {
            throw new Cut();
        }
        now.obstacle = now.obstacle == null ? found.obstacle : now.obstacle;
        return found.hash;
    }

    private record Ordered(long hash, Object key, Object value) implements Comparable<Ordered> {
        @Override
        public int compareTo(Ordered other) {
            return Long.compare(hash, other.hash);
        }
    }

    /** Steps are texts only once somebody wants to know. */
    private record Index(int index) {
        @Override
        public String toString() {
            return "[" + index + "]";
        }
    }

    private record Key(Object key) {
        @Override
        public String toString() {
            return key instanceof Integer || key instanceof Long ? "[" + key + "]" : "[…]";
        }
    }

    /** What a {@link ThreadLocal} has for the calling thread, without asking it: that would call the user's code. */
    private static final class ThreadValues {
        private static final Field MAP = open(Thread.class, "threadLocals");
        private static Method entry;
        private static Field value;

        private static Field open(Class<?> type, String name) {
            try {
                Field field = type.getDeclaredField(name);
                return Opened.open(field, type) ? field : null;
            } catch (NoSuchFieldException e) {
                return null;
            }
        }

        static synchronized Object of(ThreadLocal<?> local) {
            try {
                Object map = MAP == null ? null : MAP.get(Thread.currentThread());
                if (map == null) {
                    return null;
                }
                if (entry == null) {
                    Method found = map.getClass().getDeclaredMethod("getEntry", ThreadLocal.class);
                    Opened.open(found, map.getClass());
                    entry = found;
                }
                Object held = entry.invoke(map, local);
                if (held == null) {
                    return null;
                }
                value = value == null ? open(held.getClass(), "value") : value;
                return value.get(held);
            } catch (ReflectiveOperationException e) {
                throw new IllegalStateException("cannot read what a thread has of its own", e);
            }
        }
    }
}

package nstorm.memory;

import java.lang.reflect.Field;
import java.lang.reflect.Modifier;
import java.util.BitSet;
import java.util.Collection;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.TimeUnit;
import java.util.function.BiFunction;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import nstorm.memory.Origins.Kind;
import org.apache.storm.topology.BasicBoltExecutor;

/**
 * What a bolt keeps from one tuple to the next, as far as its code shows.
 *
 * @param fields the fields of the bolt that its {@code execute} changes, or what they lead to
 * @param tuples those of them that hold tuples, to ack them later
 * @param stays why it must not move, whatever its fields hold at the moment; null if they decide
 * @param unless what would have to be so that it may move all the same
 * @param unsure where its code could not be followed, so that only a look at its objects decides; null if it could
 * @param outside what it does outside the heap, so that two copies may never work at once; null if nothing
 * @param made    the classes of the objects that its code makes and puts into those fields
 */
public record BoltMemory(
        Set<String> fields,
        Set<String> tuples,
        String stays,
        String unless,
        String unsure,
        String outside,
        Set<String> made) {
    private static final int REASON_MAX = 300;
    /** By class and by what the fields hold: both decide which code runs. */
    private static final Map<List<Object>, BoltMemory> READ = new ConcurrentHashMap<>();
    /** Of CPU: a busy machine decides nothing. */
    private static final long LIMIT_NANOS = TimeUnit.SECONDS.toNanos(5);

    private static final String TUPLE = "Lorg/apache/storm/tuple/Tuple;";
    /** What every prepare and open takes first. */
    private static final String FIRST = "(Ljava/util/Map;Lorg/apache/storm/task/TopologyContext;";

    private static final BitSet NOTHING = new BitSet();

    /**
     * Reads the code of a bolt that has been prepared, which takes some tenths of a second of CPU, five seconds at most. Never throws: what cannot be
     * decided stays.
     */
    public static BoltMemory of(Object bolt) {
        return of(bolt, BoltMemory::readBolt);
    }

    /**
     * Why a spout that has been opened stays, as far as its code shows: its source does not give again what it keeps. Null if a look at
     * its objects decides, as of fields that are as they were once nothing is pending.
     */
    static String whySpoutStays(Object spout) {
        return of(spout, BoltMemory::readSpout).stays;
    }

    private static BoltMemory of(Object taskObject, BiFunction<Class<?>, Map<String, LiveTypes>, BoltMemory> reader) {
        try {
            Object user = user(taskObject);
            Map<String, LiveTypes> live = live(user);
            return READ.computeIfAbsent(List.of(user.getClass(), live), key -> {
                try {
                    return reader.apply(user.getClass(), live);
                } catch (Undecided e) {
                    // Kept as well: what takes longest is not read again for each executor.
                    return undecided(e.getMessage());
                }
            });
        } catch (Undecided e) {
            return undecided(e.getMessage());
        } catch (RuntimeException | LinkageError | StackOverflowError | AssertionError e) {
            return undecided("cannot be looked into (" + e + ")");
        }
    }

    /** Why executors of this component stay, and what to declare; null if they may move. */
    public String reason(String component) {
        if (stays == null && fields.isEmpty() && unsure == null && outside == null) {
            return null;
        }
        String why = stays != null
                ? stays
                : !fields.isEmpty() ? keeps() : unsure != null ? "may keep something, for it " + unsure : outside;
        String shown = why.length() > REASON_MAX ? why.substring(0, REASON_MAX) + "…" : why;
        return shown + "; declare " + Declared.MOVE + ": {" + component + ": live} if " + unless;
    }

    private String keeps() {
        return tuples.isEmpty() ? "keeps something in " + in(fields) : "keeps tuples in " + in(tuples);
    }

    private static BoltMemory undecided(String why) {
        return new BoltMemory(Set.of(), Set.of(), null, "it keeps nothing", why, null, Set.of());
    }

    /** The user's own bolt in what Storm has made of it. */
    public static Object user(Object bolt) {
        if (!(bolt instanceof BasicBoltExecutor)) {
            return bolt;
        }
        try {
            Field field = BasicBoltExecutor.class.getDeclaredField("bolt");
            field.setAccessible(true);
            return field.get(bolt);
        } catch (ReflectiveOperationException e) {
            throw new Undecided("is wrapped as no known Storm does it");
        }
    }

    private static BoltMemory readBolt(Class<?> bolt, Map<String, LiveTypes> live) {
        Set<String> threads = threads(live);
        if (!threads.isEmpty()) {
            // Whatever its code does: ShellBolt's takes seconds to follow.
            return staysForThreads("has threads in " + in(threads));
        }
        Reading reading = new Reading(bolt, live);
        reading.follow(
                "prepare",
                FIRST + "Lorg/apache/storm/task/OutputCollector;)V",
                NOTHING,
                NOTHING,
                Walk.of(Origins.COLLECTOR));
        reading.follow("prepare", FIRST + ")V", NOTHING, NOTHING);
        reading.prepared();
        boolean rich = reading.follow("execute", "(" + TUPLE + ")V", Walk.of(Origins.TUPLE));
        boolean basic = reading.follow(
                "execute",
                "(" + TUPLE + "Lorg/apache/storm/topology/BasicOutputCollector;)V",
                Walk.of(Origins.TUPLE),
                NOTHING);
        if (!rich && !basic) {
            throw new Undecided("has no execute whose code is read");
        }
        return verdict(reading.findings, reading.made());
    }

    private static BoltMemory readSpout(Class<?> spout, Map<String, LiveTypes> live) {
        Reading reading = new Reading(spout, live);
        reading.follow(
                "open",
                FIRST + "Lorg/apache/storm/spout/SpoutOutputCollector;)V",
                NOTHING,
                NOTHING,
                Walk.of(Origins.COLLECTOR));
        reading.follow("activate", "()V");
        reading.prepared();
        Findings found = reading.findings;
        if (!reading.follow("nextTuple", "()V")) {
            throw new Undecided("has no nextTuple whose code is read");
        }
        Set<String> emitting = Set.copyOf(found.fields);
        found.fields.clear();
        reading.beginAgain();
        reading.follow("ack", "(Ljava/lang/Object;)V", NOTHING);
        reading.follow("fail", "(Ljava/lang/Object;)V", NOTHING);
        return spoutVerdict(spout, live, found, emitting);
    }

    /** @param emitting the fields that nextTuple changes; those that ack and fail change have been found since */
    private static BoltMemory spoutVerdict(
            Class<?> spout, Map<String, LiveTypes> live, Findings found, Set<String> emitting) {
        Set<String> kept = new TreeSet<>(found.fields);
        kept.addAll(emitting);
        Set<String> both = new HashSet<>(found.fields);
        both.retainAll(emitting);
        kept.removeAll(both);
        kept.removeIf(field -> comesBack(spout, field, live.get(field)));
        String statics = found.statics.isEmpty()
                ? null
                : "keeps something for the whole JVM in " + String.join(", ", found.statics);
        Set<String> held = threads(live);
        String started = found.thread == null ? null : "starts threads (" + found.thread + ")";
        String threads = held.isEmpty() ? started : "has threads in " + in(held);
        String stays = Stream.of(
                        threads, found.stays, statics, kept.isEmpty() ? null : "keeps something in " + in(kept))
                .filter(Objects::nonNull)
                .findFirst()
                .orElse(null);
        return new BoltMemory(
                kept, Set.of(), stays, "its source gives it again", found.undecided, found.outside, Set.of());
    }

    /** Whether a field may be as it was without an ack: a collection that is empty again, or what only draws by chance. */
    private static boolean comesBack(Class<?> spout, String field, LiveTypes value) {
        if (value == null
                || value.cursor()
                || value.type() != null && value.type().startsWith("[")) {
            return false;
        }
        Class<?> type = value.empty()
                ? declared(spout, field)
                : Bytecode.isOfTheJdk(value.type()) ? Bytecode.jdk(value.type()) : Object.class;
        return Known.draws(LiveTypes.nameOf(type))
                || Collection.class.isAssignableFrom(type)
                || Map.class.isAssignableFrom(type);
    }

    private static Class<?> declared(Class<?> type, String field) {
        try {
            return type.getDeclaredField(field).getType();
        } catch (NoSuchFieldException e) {
            return declared(type.getSuperclass(), field);
        }
    }

    /** One class whose code is followed from the calls that Storm makes. */
    private static final class Reading {
        final Findings findings = new Findings();
        private final long untilCpuNanos = Walk.cpuNanos() + LIMIT_NANOS;
        private final Origins origins = new Origins();
        private final Map<String, LiveTypes> live;
        private final Bytecode bytecode;
        private final String type;
        private Walk walk;

        Reading(Class<?> taskClass, Map<String, LiveTypes> live) {
            this.live = live;
            type = LiveTypes.nameOf(taskClass);
            bytecode = new Bytecode(taskClass.getClassLoader(), new CodeBase(taskClass));
            if (bytecode.type(type) == null) {
                throw new Undecided("has no code that can be read");
            }
            beginAgain();
        }

        /** What was followed up to now is not followed again. */
        void beginAgain() {
            walk = new Walk(bytecode, origins, type, live, findings);
        }

        /** From now on calls come again and again. */
        void prepared() {
            findings.judgeThreads(owned(live.keySet(), origins), origins);
            findings.prepared();
            beginAgain();
        }

        /** What its code makes and the fields that it changes lead to, by class. */
        Set<String> made() {
            BitSet held = new BitSet();
            findings.fields.forEach(field -> held.or(origins.held(origins.field(field))));
            return origins.closure(held).stream()
                    .mapToObj(one -> origins.get(one).type())
                    .filter(name -> name != null && !name.startsWith("["))
                    .map(name -> name.replace('/', '.'))
                    .collect(Collectors.toCollection(TreeSet::new));
        }

        /** False if there is no such method. */
        boolean follow(String name, String signature, BitSet... arguments) {
            return walk.follow(name, signature, List.of(arguments), untilCpuNanos);
        }
    }

    /** All that the bolt's fields lead to, but for what they have from a static field. */
    private static BitSet owned(Set<String> fields, Origins origins) {
        BitSet owned = new BitSet();
        for (String field : fields) {
            BitSet held = origins.held(origins.field(field));
            if (held.stream().noneMatch(one -> origins.is(one, Kind.STATIC))) {
                owned.or(origins.closure(held));
            }
        }
        owned.clear(Origins.BOLT);
        return owned;
    }

    private static BoltMemory verdict(Findings found, Set<String> made) {
        if (found.thread != null) {
            return staysForThreads("starts threads (" + found.thread + ")");
        } else if (found.identity && !found.fields.isEmpty()) {
            return stays(
                    "keeps something in " + in(found.fields) + ", and compares texts or numbers by identity",
                    "it may forget that");
        } else if (found.stays != null) {
            return stays(found.stays, "that is right all the same");
        } else if (found.tuples.stream().anyMatch(found.lookedUp::contains)) {
            return stays("keeps tuples that it looks up for others in " + in(found.tuples), "those may be replayed");
        } else if (!found.tuples.isEmpty()) {
            boolean nothingElse =
                    found.fields.equals(found.tuples) && found.statics.isEmpty() && found.undecided == null;
            Set<String> own = new TreeSet<>(found.tuples);
            own.retainAll(found.fields);
            String unless = "those may be replayed";
            return nothingElse
                    ? new BoltMemory(found.fields, own, null, unless, null, null, Set.of())
                    : new BoltMemory(
                            found.fields,
                            own,
                            "keeps tuples in " + in(found.tuples) + ", and something else",
                            unless + ", or drain if what else it keeps may be forgotten",
                            null,
                            null,
                            Set.of());
        } else if (!found.statics.isEmpty()) {
            return stays(
                    "keeps something for the whole JVM in " + String.join(", ", found.statics),
                    "another JVM may go on without it");
        }
        String unless = found.fields.isEmpty() ? "it keeps nothing" : "it may forget that";
        return new BoltMemory(found.fields, Set.of(), null, unless, found.undecided, found.outside, made);
    }

    /** The fields that lead to threads. */
    private static Set<String> threads(Map<String, LiveTypes> live) {
        Set<String> fields = new TreeSet<>();
        live.forEach((field, value) -> {
            if (value.thread()) {
                fields.add(field);
            }
        });
        return fields;
    }

    private static BoltMemory staysForThreads(String why) {
        return stays(why, "those may live on, or renew if its cleanup ends them");
    }

    private static BoltMemory stays(String why, String unless) {
        return new BoltMemory(Set.of(), Set.of(), why, unless, null, null, Set.of());
    }

    /** Names fields in a sentence. */
    static String in(Set<String> fields) {
        return (fields.size() == 1 ? "its field " : "its fields ") + String.join(", ", fields);
    }

    private static Map<String, LiveTypes> live(Object bolt) {
        Map<String, LiveTypes> live = new TreeMap<>();
        for (Class<?> at = bolt.getClass(); !Bytecode.isOfTheJdk(LiveTypes.nameOf(at)); at = at.getSuperclass()) {
            for (Field field : at.getDeclaredFields()) {
                if (!Modifier.isStatic(field.getModifiers())) {
                    LiveTypes before = live.put(field.getName(), types(field, bolt));
                    if (before != null) {
                        throw new Undecided("has two fields of the name " + field.getName());
                    }
                }
            }
        }
        return live;
    }

    private static LiveTypes types(Field field, Object bolt) {
        try {
            field.setAccessible(true);
            return field.getType().isPrimitive() ? LiveTypes.of(null) : LiveTypes.of(field.get(bolt));
        } catch (IllegalAccessException e) {
            throw new Undecided("cannot be read: " + field);
        }
    }
}

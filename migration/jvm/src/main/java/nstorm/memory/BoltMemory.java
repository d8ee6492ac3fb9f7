package nstorm.memory;

import java.lang.reflect.Field;
import java.lang.reflect.Modifier;
import java.util.ArrayList;
import java.util.BitSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.TimeUnit;
import nstorm.memory.Origins.Kind;
import org.apache.storm.topology.BasicBoltExecutor;

/**
 * What a bolt keeps from one tuple to the next, as far as its code says.
 *
 * @param fields the fields of the bolt that its {@code execute} changes, or what they lead to
 * @param tuples those of them that hold tuples, to ack them later
 * @param stays why it must not move, whatever its fields hold at the moment; null if they decide
 * @param unless what would have to be so that it may move all the same
 * @param unsure where its code could not be followed, so that only a look at its objects can tell; null if it could
 * @param outside what it does outside the heap, so that two copies may never work at once; null if nothing
 */
public record BoltMemory(Set<String> fields, Set<String> tuples, String stays, String unless, String unsure, String outside) {
    private static final int REASON_MAX = 300;
    /** By class and by what the fields hold: both decide which code runs. */
    private static final Map<List<Object>, BoltMemory> READ = new ConcurrentHashMap<>();
    /** Of CPU: a busy machine decides nothing. */
    private static final long LIMIT_NANOS = TimeUnit.SECONDS.toNanos(5);
    private static final String TUPLE = "Lorg/apache/storm/tuple/Tuple;";
    private static final String CONTEXT = "Lorg/apache/storm/task/TopologyContext;";

    /**
     * Reads the code of a bolt that has been prepared, which takes some tenths of a second of CPU, five seconds at most. Never throws: what cannot be
     * decided stays.
     */
    public static BoltMemory of(Object bolt) {
        try {
            return read(bolt);
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
        String why = stays != null ? stays : !fields.isEmpty() ? keeps() : unsure != null ? "may keep something, for it " + unsure : outside;
        String shown = why.length() > REASON_MAX ? why.substring(0, REASON_MAX) + "…" : why;
        return shown + "; declare " + Declared.MOVE + ": {" + component + ": live} if " + unless;
    }

    private String keeps() {
        return tuples.isEmpty() ? "keeps something in " + in(fields) : "keeps tuples in " + in(tuples);
    }

    private static BoltMemory undecided(String why) {
        return new BoltMemory(Set.of(), Set.of(), null, "it keeps nothing", why, null);
    }

    private static BoltMemory read(Object bolt) {
        Object user = user(bolt);
        Map<String, LiveTypes> live = live(user);
        return READ.computeIfAbsent(List.of(user.getClass(), live), key -> {
            try {
                return read(user.getClass(), live);
            } catch (Undecided e) {
                return undecided(e.getMessage()); // kept as well: what takes longest is not read again for each executor
            }
        });
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

    private static BoltMemory read(Class<?> bolt, Map<String, LiveTypes> live) {
        long untilCpuNanos = Walk.cpuNanos() + LIMIT_NANOS;
        String type = LiveTypes.nameOf(bolt);
        Bytecode bytecode = new Bytecode(bolt.getClassLoader(), new CodeBase(bolt));
        if (bytecode.type(type) == null) {
            throw new Undecided("has no code that can be read");
        }
        Origins origins = new Origins();
        Findings findings = new Findings();
        Walk preparing = new Walk(bytecode, origins, type, live, findings);
        preparing.follow("prepare", "(Ljava/util/Map;" + CONTEXT + "Lorg/apache/storm/task/OutputCollector;)V",
                List.of(new BitSet(), new BitSet(), Walk.of(Origins.COLLECTOR)), untilCpuNanos);
        preparing.follow("prepare", "(Ljava/util/Map;" + CONTEXT + ")V", List.of(new BitSet(), new BitSet()), untilCpuNanos);
        findings.judgeThreads(owned(live.keySet(), origins), origins);
        findings.prepared();
        String basic = "(" + TUPLE + "Lorg/apache/storm/topology/BasicOutputCollector;)V";
        if (bytecode.method(type, "execute", "(" + TUPLE + ")V") == null && bytecode.method(type, "execute", basic) == null) {
            throw new Undecided("has no execute whose code is read");
        }
        Walk executing = new Walk(bytecode, origins, type, live, findings);
        List<BitSet> tuple = List.of(Walk.of(Origins.TUPLE), new BitSet());
        executing.follow("execute", "(" + TUPLE + ")V", tuple.subList(0, 1), untilCpuNanos);
        executing.follow("execute", basic, tuple, untilCpuNanos);
        return verdict(live, findings);
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

    private static BoltMemory verdict(Map<String, LiveTypes> live, Findings found) {
        List<String> threads = new ArrayList<>();
        live.forEach((field, value) -> {
            if (value.thread()) {
                threads.add(field);
            }
        });
        if (!threads.isEmpty()) {
            return stays("has threads in " + in(new TreeSet<>(threads)), "those may live on");
        } else if (found.thread != null) {
            return stays("starts threads (" + found.thread + ")", "those may live on");
        } else if (found.identity && !found.fields.isEmpty()) {
            return stays("keeps something in " + in(found.fields) + ", and compares texts by identity", "it may forget that");
        } else if (found.stays != null) {
            return stays(found.stays, "that is right all the same");
        } else if (found.tuples.stream().anyMatch(found.lookedUp::containsKey)) {
            return stays("keeps tuples that it looks up for others in " + in(found.tuples), "those may be replayed");
        } else if (!found.tuples.isEmpty()) {
            boolean nothingElse = found.fields.equals(found.tuples) && found.statics.isEmpty() && found.undecided == null;
            Set<String> own = new TreeSet<>(found.tuples);
            own.retainAll(found.fields);
            String unless = "those may be replayed";
            return nothingElse ? new BoltMemory(found.fields, own, null, unless, null, null)
                    : new BoltMemory(found.fields, own, "keeps tuples in " + in(found.tuples) + ", and something else",
                            unless + ", or drain if what else it keeps may be forgotten", null, null);
        } else if (!found.statics.isEmpty()) {
            return stays("keeps something for the whole JVM in " + String.join(", ", found.statics),
                    "another JVM may go on without it");
        }
        return new BoltMemory(found.fields, Set.of(), null, found.fields.isEmpty() ? "it keeps nothing" : "it may forget that", found.undecided, found.outside);
    }

    private static BoltMemory stays(String why, String unless) {
        return new BoltMemory(Set.of(), Set.of(), why, unless, null, null);
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

package nstorm.memory;

import java.io.Serializable;
import java.lang.reflect.Field;
import java.lang.reflect.Modifier;
import java.util.Set;
import java.util.TreeSet;

/**
 * How the executor of a bolt may move.
 *
 * @param pinned why it does not move live, or null
 * @param state the fields that travel with it, none if its source only stops first; null if it does not move so
 * @param tuples the fields that hold no tuple any more before it moves; null if it does not move so
 * @param renews whether it is cleaned up at its source before it is prepared at its target
 */
public record MoveWay(String pinned, Set<String> state, Set<String> tuples, boolean renews) {
    /** One that is not renewed. */
    public MoveWay(String pinned, Set<String> state, Set<String> tuples) {
        this(pinned, state, tuples, false);
    }

    /** One that stays for a reason, or moves live if there is none. */
    public MoveWay(String reasonOrNull) {
        this(reasonOrNull, null, null);
    }

    /** Finds how a bolt that has been prepared moves, as far as its code shows; never throws. */
    public static MoveWay of(String component, Object bolt, Declared declared) {
        return of(component, bolt, declared, Set.of(), null);
    }

    /**
     * The same with what is known of it apart from its code.
     *
     * @param changed fields that a look at such bolts has seen changed
     * @param holdsOrNull what it leads to that a copy cannot leave behind, such as a thread
     */
    public static MoveWay of(
            String component, Object bolt, Declared declared, Set<String> changed, String holdsOrNull) {
        Reviewed.Verdict verdict = declared.isSilent(component) ? Reviewed.of(bolt) : null;
        if (verdict != null) {
            return reviewed(component, verdict, holdsOrNull);
        }
        BoltMemory memory = BoltMemory.of(bolt);
        Set<String> named = declared.state(component);
        boolean keepsTuples = !memory.tuples().isEmpty();
        if (declared.isRenewed(component)) {
            return checked(bolt, renewed(Declared.MOVE + " is renew", named == null ? memory.tuples() : named));
        }
        if (declared.isDrain(component) || named == null && keepsTuples && memory.stays() == null) {
            return drained(bolt, named == null ? memory.tuples() : named);
        }
        boolean stays = memory.stays() != null || keepsTuples || named != null && memory.unsure() != null;
        if (stays && !(declared.isCarry(component) && named != null)) {
            return new MoveWay(memory.reason(component));
        } else if (named == null && holdsOrNull != null) {
            return holding(component, holdsOrNull);
        }
        Set<String> fields = new TreeSet<>(named == null ? memory.fields() : named);
        if (named == null) {
            fields.addAll(changed);
        }
        String obstacle = obstacle(bolt, fields);
        if (obstacle != null) {
            return new MoveWay(
                    stays || named != null || memory.fields().isEmpty()
                            ? obstacle
                            : obstacle + "; " + memory.reason(component));
        }
        return fields.isEmpty() ? moves(memory) : carried(fields);
    }

    /**
     * How a spout moves: live for one that may be closed here and opened elsewhere, else why it stays.
     *
     * @param seenOrNull what a look at its objects has found; its code decides if that is nothing
     */
    public static MoveWay ofSpout(String component, Object spout, String seenOrNull) {
        String why = seenOrNull != null ? seenOrNull : BoltMemory.whySpoutStays(spout);
        return new MoveWay(
                why == null
                        ? null
                        : why + "; declare " + Declared.MOVE + ": {" + component
                                + ": renew} if its source gives again what it holds in memory");
    }

    /** Names fields in a sentence. */
    public static String in(Set<String> fields) {
        return BoltMemory.in(fields);
    }

    private static MoveWay reviewed(String component, Reviewed.Verdict verdict, String holdsOrNull) {
        if (holdsOrNull != null) {
            return holding(component, holdsOrNull);
        }
        return switch (verdict.how()) {
            case LIVE -> new MoveWay(null);
            case CARRY -> stopping(verdict.why());
            case RENEW -> renewed(verdict.why(), verdict.tuples());
            default -> new MoveWay(verdict.reason(component));
        };
    }

    private static MoveWay holding(String component, String holds) {
        return new MoveWay(holds + "; declare " + Declared.MOVE + ": {" + component
                + ": live} if that may live on, or renew if its cleanup ends it");
    }

    /** One whose fields travel with it. */
    public static MoveWay carried(Set<String> fields) {
        return new MoveWay("keeps something in " + BoltMemory.in(fields) + ", which travels with it", fields, null);
    }

    /** With no field that travels: two copies may work at once only where the code was followed to its end, and acts on nothing else. */
    private static MoveWay moves(BoltMemory memory) {
        if (memory.outside() != null) {
            return stopping(memory.outside());
        } else if (memory.unsure() != null) {
            return stopping("may keep something, for it " + memory.unsure());
        }
        return new MoveWay(null);
    }

    /** One with which nothing travels, but whose copies never work at once. */
    public static MoveWay stopping(String why) {
        return new MoveWay(why + ", so its source stops first", Set.of(), null);
    }

    /**
     * One that holds what only one copy may hold: its source is cleaned up before its target is prepared.
     *
     * @param tuples the fields with tuples that the source acks first, perhaps none
     */
    public static MoveWay renewed(String why, Set<String> tuples) {
        String acks = tuples.isEmpty() ? "" : "acks what it keeps in " + BoltMemory.in(tuples) + " and ";
        return new MoveWay(
                why + ": its source " + acks + "is cleaned up before its target is prepared", null, tuples, true);
    }

    /** The same, or why it stays: its bolt has no such fields. */
    private static MoveWay checked(Object bolt, MoveWay way) {
        try {
            BoltFields.named(bolt, way.tuples());
            return way;
        } catch (Undecided e) {
            return new MoveWay(e.getMessage());
        }
    }

    private static MoveWay drained(Object bolt, Set<String> tuples) {
        if (tuples.isEmpty()) {
            return new MoveWay(
                    Declared.MOVE + " is drain, and its code does not show where it keeps tuples: name the fields in "
                            + Declared.STATE);
        }
        return checked(
                bolt,
                new MoveWay("keeps tuples in " + BoltMemory.in(tuples) + ", which it has to ack first", null, tuples));
    }

    /** Why the values of these fields cannot travel as they are now, or null. To be called where nothing else changes them, or to guess. */
    public static String obstacle(Object bolt, Set<String> fields) {
        try {
            Object user = BoltMemory.user(bolt);
            for (Field field : BoltFields.named(bolt, fields)) {
                LiveTypes held = LiveTypes.of(field.getType().isPrimitive() ? null : field.get(user));
                String unfit = unfit(user, field, held);
                if (unfit != null) {
                    return "its field " + field.getName() + " holds " + unfit + ", which cannot travel";
                }
            }
            return null;
        } catch (Undecided e) {
            return e.getMessage();
        } catch (IllegalAccessException | RuntimeException | LinkageError e) {
            return "its state cannot be looked into (" + e + ")";
        }
    }

    private static String unfit(Object bolt, Field field, LiveTypes held) {
        if (!held.lambdas().isEmpty() || held.type() != null && held.type().contains("$$Lambda")) {
            return "a lambda";
        }
        if (held.type() != null && !Serializable.class.isAssignableFrom(type(held.type(), bolt))) {
            return held.type().replace('/', '.');
        }
        if (held.type() == null
                && !field.getType().isPrimitive()
                && !field.getType().isInterface()
                && !Serializable.class.isAssignableFrom(field.getType())
                && field.getType() != Object.class) {
            return field.getType().getName();
        }
        for (String name : held.types()) {
            Class<?> type = type(name, bolt);
            if (type.isInstance(bolt) || !Serializable.class.isAssignableFrom(type) || losesFields(type)) {
                return type.getName();
            }
        }
        return null;
    }

    /** What is transient an object stream leaves out. */
    private static boolean losesFields(Class<?> type) {
        for (Class<?> at = type; at != null && !Bytecode.isOfTheJdk(LiveTypes.nameOf(at)); at = at.getSuperclass()) {
            for (Field field : at.getDeclaredFields()) {
                if (Modifier.isTransient(field.getModifiers()) && !Modifier.isStatic(field.getModifiers())) {
                    return true;
                }
            }
        }
        return false;
    }

    private static Class<?> type(String name, Object bolt) {
        try {
            return Class.forName(name.replace('/', '.'), false, bolt.getClass().getClassLoader());
        } catch (ClassNotFoundException e) {
            throw new Undecided("holds an unknown class, " + name);
        }
    }
}

package nstorm.memory;

import java.io.IOException;
import java.lang.reflect.Field;
import java.util.Arrays;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import org.apache.storm.spout.ISpout;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * What {@code reviewed.txt} has on bolts and spouts of well-known libraries. Their code was read by a person, for a reader of code does not
 * follow it. It counts for that very code: a class with another hash, and a subclass, is read like any other.
 */
public final class Reviewed {
    private static final Logger LOG = LoggerFactory.getLogger(Reviewed.class);
    private static final Map<String, ReviewedClass> TABLE = table();
    private static final Map<Class<?>, Optional<ReviewedClass>> KNOWN = new ConcurrentHashMap<>();

    /** How it may move. */
    public enum How {
        LIVE,
        CARRY,
        RENEW,
        SPOUT,
        STAYS
    }

    /**
     * The verdict on one bolt or spout.
     *
     * @param tuples  the fields that hold tuples which are not acked yet
     * @param why     why so, as a part of a sentence about the executor
     * @param unless  the way to declare if it may move all the same
     */
    public record Verdict(How how, Set<String> tuples, String why, String unless) {
        /** Why executors of this component stay, and what to declare. */
        public String reason(String component) {
            return why + "; declare " + Declared.MOVE + ": {" + component + ": " + unless
                    + "} if it may move all the same";
        }
    }

    private Reviewed() {}

    private static Map<String, ReviewedClass> table() {
        try {
            return ReviewedClass.all();
        } catch (IOException | RuntimeException e) {
            LOG.warn("no reviewed verdicts: every bolt is read", e);
            return Map.of();
        }
    }

    /** The verdict on a bolt or spout as Storm has built it, or null. Never throws: what cannot be looked into stays. */
    public static Verdict of(Object taskObject) {
        try {
            ReviewedClass found = known(taskObject);
            return found == null ? null : verdict(found, BoltMemory.user(taskObject));
        } catch (RuntimeException | LinkageError e) {
            return new Verdict(How.STAYS, Set.of(), "it cannot be looked into (" + e + ")", "renew");
        }
    }

    /**
     * What its {@code prepare} or its next tuple makes again, so that a look at what it remembers passes it over. Fields are named; static
     * ones with their class's simple name and a dot. Never throws.
     */
    public static Set<String> madeAgain(Object taskObject) {
        try {
            ReviewedClass found = known(taskObject);
            return found == null ? Set.of() : found.names("again");
        } catch (RuntimeException | LinkageError e) {
            return Set.of();
        }
    }

    /**
     * Closes what a bolt's {@code prepare} has opened and its {@code cleanup}, which has ended, has left open. Never throws: what cannot
     * be closed lives on.
     */
    public static void closeLeftOpen(Object taskObject) {
        try {
            ReviewedClass found = known(taskObject);
            for (String path : found == null ? Set.<String>of() : found.names("closes")) {
                if (follow(BoltMemory.user(taskObject), path.split("\\.")) instanceof AutoCloseable open) {
                    open.close();
                }
            }
        } catch (Exception | Error e) {
            LOG.warn(
                    "what {} leaves open cannot be closed",
                    taskObject.getClass().getName(),
                    e);
        }
    }

    private static ReviewedClass known(Object taskObject) {
        Class<?> type = BoltMemory.user(taskObject).getClass();
        return KNOWN.computeIfAbsent(type, Reviewed::read).orElse(null);
    }

    private static Optional<ReviewedClass> read(Class<?> type) {
        ReviewedClass listed = TABLE.get(type.getName());
        try {
            return Optional.ofNullable(listed)
                    .filter(one -> type.getClassLoader() != null)
                    .filter(one -> one.versionsByHash().containsKey(hash(one, type)));
        } catch (IllegalStateException e) {
            LOG.warn("{} is not taken for reviewed", type.getName(), e);
            return Optional.empty();
        }
    }

    private static String hash(ReviewedClass listed, Class<?> type) {
        try {
            return String.valueOf(listed.hash(type.getClassLoader()));
        } catch (IOException e) {
            throw new IllegalStateException("cannot read its code", e);
        }
    }

    private static Verdict verdict(ReviewedClass found, Object user) {
        How how = How.valueOf(found.one("way").toUpperCase(Locale.ROOT));
        String unless = how == How.STAYS && !(user instanceof ISpout) ? "live" : "renew";
        for (String line : found.all("only")) {
            List<String> pathAndReviewed = List.of(line.split(" +"));
            String path = pathAndReviewed.get(0);
            List<String> reviewed = pathAndReviewed.subList(1, pathAndReviewed.size());
            String held = held(user, path.split("\\."));
            if (!reviewed.contains(held)) {
                return new Verdict(
                        How.STAYS,
                        Set.of(),
                        "its " + path + " is " + held + ", and " + String.join(" or ", reviewed)
                                + " alone was reviewed",
                        unless);
            }
        }
        return new Verdict(how, found.names("tuples"), found.one("why"), unless);
    }

    /** The constant of an enum or else the class of what a path of fields leads to; {@code none} without an object. */
    private static String held(Object from, String[] path) {
        Object at = follow(from, path);
        return at == null
                ? "none"
                : at instanceof Enum<?> constant
                        ? constant.name()
                        : at.getClass().getName();
    }

    private static Object follow(Object from, String[] path) {
        Object at = from;
        for (String name : path) {
            at = at == null ? null : value(at, name);
        }
        return at;
    }

    private static Object value(Object owner, String name) {
        for (Class<?> type = owner.getClass(); type != null; type = type.getSuperclass()) {
            Optional<Field> field = Arrays.stream(type.getDeclaredFields())
                    .filter(one -> one.getName().equals(name))
                    .findFirst();
            if (field.isPresent()) {
                field.get().setAccessible(true);
                return BoltFields.read(field.get(), owner);
            }
        }
        throw new IllegalStateException(owner.getClass().getName() + " has no field " + name);
    }
}

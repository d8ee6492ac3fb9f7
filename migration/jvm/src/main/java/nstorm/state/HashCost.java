package nstorm.state;

import java.io.InvalidObjectException;
import java.lang.reflect.Field;
import java.util.Collection;
import java.util.HashMap;
import java.util.IdentityHashMap;
import java.util.List;
import java.util.Map;
import nstorm.memory.BoltFields;
import nstorm.memory.CodeBase;
import nstorm.memory.ObjectFields;

/**
 * How many objects the hash code of an object that was read would go through. Where objects share others it goes
 * through far more than there are. With a hundred sets, each twice in the next, a hash map is busy for ever. So the
 * cost is checked before the object gets into a hash map.
 */
final class HashCost {
    /**
     * An object that goes through no more is not remembered, and counts as this number: to remember it takes longer than to read it again.
     */
    private static final int SMALL = 8;

    private final long most;
    /** Of those that are not small. */
    private final IdentityHashMap<Object, Long> costs = new IdentityHashMap<>();

    private final Map<Class<?>, Content> contents = new HashMap<>();
    private Class<?> lastClass;
    private Content last;

    /** What a hash code of a class may go through. */
    private record Content(boolean isArray, boolean isCollection, boolean isMap, boolean isEntry, List<Field> fields) {
        static Content of(Class<?> type) {
            return new Content(
                    Object[].class.isAssignableFrom(type),
                    Collection.class.isAssignableFrom(type),
                    Map.class.isAssignableFrom(type),
                    Map.Entry.class.isAssignableFrom(type),
                    HashCost.fields(type));
        }

        boolean isNothing() {
            return !isArray && !isCollection && !isMap && !isEntry && fields.isEmpty();
        }
    }

    HashCost(long most) {
        this.most = most;
    }

    /** Takes an object whose content has been read. Whether it had to be gone through. */
    boolean read(Object object) throws InvalidObjectException {
        if (Plain.is(object)) {
            return false;
        }
        if (object.getClass() != lastClass) {
            lastClass = object.getClass();
            last = contents.computeIfAbsent(lastClass, Content::of);
        }
        if (last.isNothing() || last.isMap && !costs.isEmpty() && costs.containsKey(object)) {
            return false;
        }
        long cost = cost(object);
        if (cost > most) {
            throw new InvalidObjectException("its hash code would go through more than " + most + " objects");
        }
        if (cost > SMALL) {
            costs.put(object, cost);
        }
        return true;
    }

    private long cost(Object object) {
        long cost = 1;
        if (last.isArray) {
            for (Object one : (Object[]) object) {
                cost += of(one);
            }
        } else if (last.isCollection) {
            for (Object one : (Collection<?>) object) {
                cost += of(one);
            }
        } else if (last.isMap) {
            for (Map.Entry<?, ?> one : ((Map<?, ?>) object).entrySet()) {
                cost += of(one.getKey()) + of(one.getValue());
            }
        } else if (last.isEntry) {
            cost += of(((Map.Entry<?, ?>) object).getKey()) + of(((Map.Entry<?, ?>) object).getValue());
        }
        for (Field field : last.fields) {
            cost += of(BoltFields.read(field, object));
        }
        return cost;
    }

    private long of(Object object) {
        return Plain.is(object) ? 1 : costs.isEmpty() ? SMALL : costs.getOrDefault(object, (long) SMALL);
    }

    /** Notes a map of plain keys and values, so that nobody goes through it. */
    void plain(Map<Object, Object> map) {
        costs.put(map, 1 + 2L * map.size());
    }

    /** What a hash code, or an order, of the class's own may go through; those of the JDK's classes are known by their elements. */
    private static List<Field> fields(Class<?> type) {
        return !hasOwnHash(type)
                ? List.of()
                : ObjectFields.of(type).stream()
                        .filter(field -> !CodeBase.ofTheJdk(field.getDeclaringClass()) && leadsOn(field.getType()))
                        .filter(Field::trySetAccessible)
                        .toList();
    }

    private static boolean leadsOn(Class<?> type) {
        return !type.isPrimitive()
                && type != String.class
                && !(type.getSuperclass() == Number.class && type.getClassLoader() == null)
                && !type.isEnum()
                && !(type.isArray() && type.getComponentType().isPrimitive());
    }

    private static boolean hasOwnHash(Class<?> type) {
        try {
            return !type.isArray()
                    && (Comparable.class.isAssignableFrom(type)
                            || type.getMethod("hashCode").getDeclaringClass() != Object.class);
        } catch (NoSuchMethodException e) {
            throw new IllegalStateException("each class has one", e);
        }
    }
}

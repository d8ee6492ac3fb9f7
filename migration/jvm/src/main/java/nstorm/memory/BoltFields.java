package nstorm.memory;

import java.lang.reflect.Field;
import java.lang.reflect.Modifier;
import java.util.ArrayList;
import java.util.List;
import java.util.Set;

/** Fields of the user's own bolt, in what Storm has made of it. */
public final class BoltFields {
    private BoltFields() {}

    /** The fields by name, where the class of the bolt or one above it has them; a missing one is named. */
    public static List<Field> named(Object bolt, Set<String> names) {
        List<Field> found = new ArrayList<>();
        for (String name : names) {
            Field field = null;
            for (Class<?> at = BoltMemory.user(bolt).getClass(); at != null && field == null; at = at.getSuperclass()) {
                for (Field one : at.getDeclaredFields()) {
                    field = one.getName().equals(name) && !Modifier.isStatic(one.getModifiers()) ? one : field;
                }
            }
            if (field == null) {
                throw new Undecided("has no field " + name);
            }
            field.setAccessible(true);
            found.add(field);
        }
        return found;
    }

    /** What a field of {@link #named} holds. */
    public static Object get(Field field, Object bolt) {
        return read(field, BoltMemory.user(bolt));
    }

    /** What a field that was made accessible holds. */
    public static Object read(Field field, Object owner) {
        try {
            return field.get(owner);
        } catch (IllegalAccessException e) {
            throw new IllegalStateException("cannot read " + field, e);
        }
    }
}

package nstorm.memory;

import java.lang.reflect.Field;
import java.lang.reflect.Modifier;
import java.util.ArrayList;
import java.util.List;
import java.util.Set;

/** Which fields of an object make up what it holds. */
public final class ObjectFields {
    /** Of the JDK's classes: counts of changes, and what is made when it is first asked for. */
    private static final Set<String> UNCOUNTED = Set.of(
            "modCount",
            "hash",
            "hashCode",
            "hashIsZero",
            "keySet",
            "values",
            "entrySet",
            "navigableKeySet",
            "descendingMap");

    private ObjectFields() {}

    /** The instance fields of a class and of those above it; an enum's name and place are its value. Not yet accessible. */
    public static List<Field> of(Class<?> type) {
        List<Field> all = new ArrayList<>();
        for (Class<?> at = type; at != null && at != Enum.class; at = at.getSuperclass()) {
            for (Field field : at.getDeclaredFields()) {
                if (!Modifier.isStatic(field.getModifiers())
                        && !(UNCOUNTED.contains(field.getName()) && CodeBase.ofTheJdk(at))) {
                    all.add(field);
                }
            }
        }
        return all;
    }
}

package nstorm.state;

import java.io.Externalizable;
import java.io.InvalidObjectException;
import java.io.ObjectStreamField;
import java.lang.invoke.SerializedLambda;
import java.lang.reflect.Array;
import java.lang.reflect.Field;
import java.lang.reflect.Method;
import java.lang.reflect.Modifier;
import java.util.HashMap;
import java.util.Map;
import java.util.Set;
import nstorm.memory.CodeBase;

/**
 * Whether objects of the user's classes are in an object stream what they are in the heap. Looked at for each object as it is written, before any method
 * of its class is called: some of those change what they write.
 */
public final class Travelling {
    private static final Set<String> OWN_FORM =
            Set.of("writeObject", "readObject", "readObjectNoData", "writeReplace", "readResolve");

    private final Class<?> bolt;
    private final CodeBase codeBase;
    private final Map<Class<?>, String> known = new HashMap<>();

    /** @param bolt the class of the user's bolt: an object that leads back to it would take it along */
    public Travelling(Class<?> bolt) {
        this.bolt = bolt;
        codeBase = new CodeBase(bolt);
    }

    /** Why no object of this class travels as it is; null if it may. */
    public String obstacle(Class<?> type) {
        return known.computeIfAbsent(type, one -> {
                            String found = find(one);
                            return found == null ? "" : found;
                        })
                        .isEmpty()
                ? null
                : known.get(type);
    }

    private String find(Class<?> type) {
        if (type == bolt) {
            return type.getName() + " itself, to which it leads back";
        } else if (type == SerializedLambda.class) {
            return "a lambda";
        }
        for (Class<?> at = type; at != null && codeBase.has(at); at = at.getSuperclass()) {
            if (Externalizable.class.isAssignableFrom(at)) {
                return at.getName() + ", which writes a form of its own (Externalizable)";
            }
            for (Method method : at.getDeclaredMethods()) {
                if (OWN_FORM.contains(method.getName())) {
                    return at.getName() + ", which writes a form of its own (" + method.getName() + ")";
                }
            }
            for (Field field : at.getDeclaredFields()) {
                if (field.getName().equals("serialPersistentFields") && field.getType() == ObjectStreamField[].class) {
                    return at.getName() + ", which writes a form of its own (serialPersistentFields)";
                }
            }
        }
        return null;
    }

    void check(Object value) throws InvalidObjectException {
        if (value == null) {
            return;
        }
        String obstacle = obstacle(value.getClass());
        if (obstacle != null) {
            throw new InvalidObjectException("it holds " + obstacle);
        }
        for (Class<?> at = value.getClass(); at != null && codeBase.has(at); at = at.getSuperclass()) {
            checkTransient(at, value);
        }
    }

    /** What is transient an object stream leaves out. */
    private static void checkTransient(Class<?> at, Object value) throws InvalidObjectException {
        for (Field field : at.getDeclaredFields()) {
            if (Modifier.isTransient(field.getModifiers())
                    && !Modifier.isStatic(field.getModifiers())
                    && !isUnset(field, value)) {
                throw new InvalidObjectException(
                        "its " + at.getName() + " has something in the transient field " + field.getName());
            }
        }
    }

    private static boolean isUnset(Field field, Object owner) throws InvalidObjectException {
        if (!field.trySetAccessible()) {
            throw new InvalidObjectException("the field " + field + " cannot be read");
        }
        try {
            Object value = field.get(owner);
            return field.getType().isPrimitive()
                    ? value.equals(Array.get(Array.newInstance(field.getType(), 1), 0))
                    : value == null;
        } catch (IllegalAccessException e) {
            throw new InvalidObjectException("the field " + field + " cannot be read");
        }
    }
}

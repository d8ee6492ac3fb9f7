package nstorm.state;

import java.io.InvalidObjectException;
import java.lang.reflect.Field;
import java.lang.reflect.GenericArrayType;
import java.lang.reflect.Modifier;
import java.lang.reflect.ParameterizedType;
import java.lang.reflect.Type;
import java.lang.reflect.TypeVariable;
import java.lang.reflect.WildcardType;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.TreeSet;
import java.util.stream.Collectors;
import nstorm.memory.BoltFields;
import nstorm.memory.BoltMemory;
import nstorm.memory.CodeBase;
import nstorm.memory.Declared;
import nstorm.memory.MoveWay;

/**
 * The classes that one state may hold. The types of the bolt's fields lead to them, or the bolt held objects of them when it had been
 * prepared. The JDK's values and collections, and what is declared, are allowed as well. The source asks as it writes, the target before it
 * makes an object.
 */
public final class StateClasses {
    /** How many classes a reason names. */
    private static final int NAMED = 3;

    private final Set<Class<?>> held;
    private final Declared declared;
    private final Set<Class<?>> led = new HashSet<>();
    private final Set<Class<?>> allowed = new HashSet<>();

    /** @param held what is not the JDK's of the classes of the objects that the bolt held when it had been prepared */
    public StateClasses(Set<Class<?>> held, Declared declared) {
        this.held = held;
        this.declared = declared;
    }

    /** From these fields of the bolt on types lead further. */
    void from(Class<?> bolt, List<Field> fields) {
        for (Class<?> at = bolt; at != null; at = at.getSuperclass()) {
            leadByArguments(at.getGenericSuperclass());
        }
        fields.forEach(field -> lead(field.getGenericType()));
    }

    /** That a state holds an object of a class which it may not. */
    static final class Undeclared extends InvalidObjectException {
        private static final long serialVersionUID = 1L;
        private final String name;

        Undeclared(String what, String name) {
            super(what + " holds " + name + ", to which the type of no field leads; declare " + Declared.STATE_CLASSES
                    + ": [" + name + "] if it is part of the state");
            this.name = name;
        }

        Undeclared in(Field field) {
            return new Undeclared("its field " + field.getName(), name);
        }
    }

    /**
     * The same way, which names what to declare: the classes that the bolt's code puts into fields that travel, and to which no type leads.
     * Never throws: the move itself reports what cannot be looked into.
     */
    public MoveWay naming(MoveWay way, Object bolt) {
        try {
            return way.state() == null || way.state().isEmpty() ? way : named(way, bolt);
        } catch (RuntimeException | LinkageError e) {
            return way;
        }
    }

    private MoveWay named(MoveWay way, Object bolt) {
        Object user = BoltMemory.user(bolt);
        from(user.getClass(), BoltFields.named(bolt, way.state()));
        Set<String> open =
                undeclared(BoltMemory.of(bolt).made(), user.getClass().getClassLoader());
        if (open.isEmpty()) {
            return way;
        }
        // Each report of load has the reason, for each executor.
        String names = open.stream().limit(NAMED).collect(Collectors.joining(", "));
        String more = open.size() > NAMED ? " and " + (open.size() - NAMED) + " more" : "";
        return new MoveWay(
                way.pinned() + "; declare " + Declared.STATE_CLASSES + ": [" + names + "]" + more + " if "
                        + (open.size() == 1 ? "it is" : "they are") + " part of the state",
                way.state(),
                null);
    }

    /** Each class that is allowed may lead to others. */
    private Set<String> undeclared(Set<String> names, ClassLoader loader) {
        Set<String> open = new TreeSet<>(names);
        boolean more = true;
        while (more) {
            more = open.removeIf(name -> mayBeHeld(name, loader));
        }
        return open;
    }

    private boolean mayBeHeld(String name, ClassLoader loader) {
        try {
            Class<?> type = Class.forName(name, false, loader);
            return CodeBase.ofTheJdk(type) || allowed.contains(type) || allow(type);
        } catch (ClassNotFoundException | LinkageError e) {
            return true; // the move reports it
        }
    }

    /** @throws Undeclared if the state may hold no object of the class; the message names what to declare */
    void check(Class<?> type) throws Undeclared {
        Class<?> one = type;
        while (one.isArray()) {
            one = one.getComponentType();
        }
        if (!allowed.contains(one) && !allow(one)) {
            throw new Undeclared("it", one.getName());
        }
    }

    private boolean allow(Class<?> type) {
        boolean allow = type.isPrimitive()
                || type.isInterface()
                || type == SentMap.class
                || JdkClasses.has(type.getName())
                || led.contains(type)
                || held.contains(type)
                || declared.isOfState(type.getName())
                || led.stream().anyMatch(one -> !CodeBase.ofTheJdk(one) && one.isAssignableFrom(type));
        if (allow) {
            allowed.add(type);
            leadOn(type);
        }
        return allow;
    }

    /** What an object of the class may have in it; for the JDK's classes their type arguments decide. */
    private void leadOn(Class<?> type) {
        for (Class<?> at = type; at != null && !CodeBase.ofTheJdk(at); at = at.getSuperclass()) {
            allowed.add(at);
            leadByArguments(at.getGenericSuperclass());
            for (Field field : at.getDeclaredFields()) {
                if (!Modifier.isStatic(field.getModifiers())) {
                    lead(field.getGenericType());
                }
            }
        }
    }

    private void leadByArguments(Type type) {
        if (type instanceof ParameterizedType generic) {
            List.of(generic.getActualTypeArguments()).forEach(this::lead);
        }
    }

    private void lead(Type type) {
        if (type instanceof Class<?> one) {
            if (one.isArray()) {
                lead(one.getComponentType());
            } else {
                led.add(one);
            }
        } else if (type instanceof ParameterizedType generic) {
            lead(generic.getRawType());
            leadByArguments(generic);
        } else if (type instanceof GenericArrayType array) {
            lead(array.getGenericComponentType());
        } else if (type instanceof WildcardType wildcard) {
            List.of(wildcard.getUpperBounds()).forEach(this::lead);
            List.of(wildcard.getLowerBounds()).forEach(this::lead);
        } else if (type instanceof TypeVariable<?> variable && variable.getBounds()[0] instanceof Class<?> bound) {
            lead(bound);
        }
    }
}

package nstorm.memory;

import java.io.Serializable;
import java.lang.invoke.SerializedLambda;
import java.lang.reflect.Array;
import java.lang.reflect.Field;
import java.lang.reflect.Method;
import java.lang.reflect.Modifier;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Collection;
import java.util.Collections;
import java.util.Enumeration;
import java.util.IdentityHashMap;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.Timer;
import java.util.TreeSet;
import java.util.concurrent.Executor;
import java.util.function.Supplier;
import org.objectweb.asm.Handle;
import org.objectweb.asm.Opcodes;

/**
 * What a field of a bolt really holds: the classes of the objects that it leads to, so that calls of interfaces can
 * be followed.
 *
 * @param type the name of the class of the object itself, or null for no object
 * @param types the names of classes outside the JDK
 * @param lambdas the methods behind those lambdas that name theirs
 * @param open whether it may lead to more than was seen
 * @param thread whether it is a thread or makes some
 * @param cursor whether it moves on by being read
 */
record LiveTypes(String type, Set<String> types, List<Handle> lambdas, boolean open, boolean thread, boolean cursor) {
    /** Fewer than would slow a worker down; what leads to more counts as open. */
    private static final int OBJECTS_MAX = 2000;

    private static final int ELEMENTS_MAX = 100;
    private static final int COPIES_MAX = 10;

    static LiveTypes of(Object valueOrNull) {
        return new Search().from(valueOrNull);
    }

    /** What cannot be read: anything may be there. */
    static LiveTypes unknown() {
        return new LiveTypes("java/lang/Object", Set.of(), List.of(), true, false, false);
    }

    /** Whether there is no object to call anything on. */
    boolean empty() {
        return type == null;
    }

    private static final class Search {
        private final Set<Object> seen = Collections.newSetFromMap(new IdentityHashMap<>());
        private final ArrayDeque<Object> todo = new ArrayDeque<>();
        private final Set<String> types = new TreeSet<>();
        private final List<Handle> lambdas = new ArrayList<>();
        private boolean open;

        LiveTypes from(Object first) {
            boolean thread = first instanceof Thread || first instanceof Executor || first instanceof Timer;
            boolean cursor = first instanceof Iterator || first instanceof Enumeration;
            push(first);
            while (!todo.isEmpty()) {
                visit(todo.poll());
            }
            return new LiveTypes(first == null ? null : nameOf(first.getClass()), types, lambdas, open, thread, cursor);
        }

        private void push(Object object) {
            if (object == null
                    || object instanceof Class
                    || Known.leadsNowhere(nameOf(object.getClass()))
                    || !seen.add(object)) {
                return;
            }
            if (seen.size() > OBJECTS_MAX) {
                open = true;
            } else {
                todo.add(object);
            }
        }

        private void visit(Object object) {
            Class<?> type = object.getClass();
            if (type.isArray()) {
                visitArray(object);
            } else if (type.isSynthetic() || type.isHidden()) {
                visitLambda(object);
            } else if (Bytecode.isOfTheJdk(nameOf(type))) {
                visitOfTheJdk(object);
            } else {
                types.add(nameOf(type));
                for (Class<?> at = type; at != null && !Bytecode.isOfTheJdk(nameOf(at)); at = at.getSuperclass()) {
                    for (Field field : at.getDeclaredFields()) {
                        if (!Modifier.isStatic(field.getModifiers())
                                && !field.getType().isPrimitive()) {
                            push(read(field, object));
                        }
                    }
                }
            }
        }

        private void visitArray(Object array) {
            if (!array.getClass().getComponentType().isPrimitive()) {
                int length = Array.getLength(array);
                open |= length > ELEMENTS_MAX;
                for (int i = 0; i < Math.min(length, ELEMENTS_MAX); i++) {
                    push(Array.get(array, i));
                }
            }
        }

        /** Small collections are looked into, in a copy: the bolt's thread may change them at the same time. */
        private void visitOfTheJdk(Object object) {
            if (object instanceof Map<?, ?> map && map.size() <= ELEMENTS_MAX) {
                pushCopy(() -> map.keySet().toArray());
                pushCopy(() -> map.values().toArray());
            } else if (object instanceof Collection<?> many && many.size() <= ELEMENTS_MAX) {
                pushCopy(many::toArray);
            } else if (!(object instanceof Enum<?>)) {
                open = true;
            }
        }

        /** Some throw when they change at the same time, and may not the next time. */
        @SuppressWarnings("ThreadPriorityCheck") // a hint is enough
        private void pushCopy(Supplier<Object[]> copy) {
            for (int i = 0; i < COPIES_MAX; i++) {
                try {
                    push(copy.get());
                    return;
                } catch (RuntimeException e) {
                    Thread.yield();
                }
            }
            open = true;
        }

        private void visitLambda(Object object) {
            try {
                if (!(object instanceof Serializable)) {
                    open = true;
                    return;
                }
                Method replace = object.getClass().getDeclaredMethod("writeReplace");
                replace.setAccessible(true);
                SerializedLambda lambda = (SerializedLambda) replace.invoke(object);
                lambdas.add(new Handle(
                        lambda.getImplMethodKind(),
                        lambda.getImplClass(),
                        lambda.getImplMethodName(),
                        lambda.getImplMethodSignature(),
                        lambda.getImplMethodKind() == Opcodes.H_INVOKEINTERFACE));
                for (int i = 0; i < lambda.getCapturedArgCount(); i++) {
                    push(lambda.getCapturedArg(i));
                }
            } catch (ReflectiveOperationException | RuntimeException e) {
                open = true;
            }
        }

        private static Object read(Field field, Object owner) {
            try {
                field.setAccessible(true);
                return field.get(owner);
            } catch (IllegalAccessException e) {
                throw new IllegalStateException("cannot read " + field, e);
            }
        }
    }

    static String nameOf(Class<?> type) {
        return type.getName().replace('.', '/');
    }
}

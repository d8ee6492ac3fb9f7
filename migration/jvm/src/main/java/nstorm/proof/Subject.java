package nstorm.proof;

import java.lang.reflect.Field;
import java.lang.reflect.Modifier;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.Set;
import nstorm.memory.BoltFields;
import nstorm.memory.BoltMemory;
import nstorm.memory.CodeBase;
import org.apache.storm.spout.ISpout;
import org.apache.storm.task.TopologyContext;

/**
 * What is looked at of an executor: the user's bolts or spouts, one for each task, and what their tasks share.
 *
 * @param bolts    the user's own objects, all of one class
 * @param fields   the instance fields of that class and of those above it, readable
 * @param data     what the user's code may put into a task's context, by name
 * @param given    objects that every copy gets
 * @param types    the class and those above it, without the JDK's
 * @param own      the user's of them, their interfaces, and what is within the class: their static fields are compared
 * @param codeBase which classes are the user's own
 */
record Subject(
        List<Object> bolts,
        List<Field> fields,
        Map<String, Object> data,
        Set<Object> given,
        List<Class<?>> types,
        Set<Class<?>> own,
        CodeBase codeBase) {
    private static final Map<String, Field> DATA = contextFields();

    /** @throws IllegalStateException if something of them cannot be read */
    static Subject of(List<Object> taskObjects, List<TopologyContext> contexts, Object... given) {
        List<Object> bolts = new ArrayList<>();
        taskObjects.forEach(one -> bolts.add(BoltMemory.user(one)));
        List<Class<?>> types = new ArrayList<>();
        List<Field> fields = new ArrayList<>();
        for (Class<?> at = bolts.get(0).getClass(); at != null && !CodeBase.ofTheJdk(at); at = at.getSuperclass()) {
            types.add(at);
            for (Field field : at.getDeclaredFields()) {
                if (!Modifier.isStatic(field.getModifiers())) {
                    if (!Opened.open(field, at)) {
                        throw new IllegalStateException("its field " + field.getName() + " cannot be read");
                    }
                    fields.add(field);
                }
            }
        }
        Set<Object> all = Fingerprint.identities();
        all.addAll(List.of(given));
        if (bolts.get(0) instanceof ISpout) {
            chance(bolts, fields, all);
        }
        CodeBase codeBase = new CodeBase(bolts.get(0).getClass());
        return new Subject(bolts, fields, data(contexts), all, types, own(types, codeBase), codeBase);
    }

    private static Set<Class<?>> own(List<Class<?>> types, CodeBase codeBase) {
        Set<Class<?>> own = new LinkedHashSet<>();
        types.forEach(type -> withInterfaces(type, own));
        withMembers(types.get(0), own);
        try {
            // Scala's place for what it has instead of static fields.
            Class<?> first = types.get(0);
            withMembers(Class.forName(first.getName() + "$", false, first.getClassLoader()), own);
        } catch (ClassNotFoundException e) {
            // As of most.
        }
        own.removeIf(type -> !codeBase.has(type));
        return own;
    }

    private static void withInterfaces(Class<?> type, Set<Class<?>> to) {
        to.add(type);
        for (Class<?> one : type.getInterfaces()) {
            withInterfaces(one, to);
        }
    }

    private static void withMembers(Class<?> type, Set<Class<?>> to) {
        to.add(type);
        CodeBase.within(type).forEach(one -> withMembers(one, to));
    }

    /** What a spout draws from is not what its source has given. */
    private static void chance(List<Object> spouts, List<Field> fields, Set<Object> to) {
        for (Object spout : spouts) {
            for (Field field : fields) {
                Object value = BoltFields.read(field, spout);
                if (value instanceof Random) {
                    to.add(value);
                }
            }
        }
    }

    /** Whether the static fields of a class are compared, also if the code could be followed. */
    boolean isOwn(Class<?> type) {
        return own.contains(type) || type.getName().startsWith(types.get(0).getName() + "$");
    }

    /** The fields of this name stand for one another where they are named. */
    boolean isAmbiguous(String name) {
        return fields.stream().filter(field -> field.getName().equals(name)).count() > 1;
    }

    private static Map<String, Object> data(List<TopologyContext> contexts) {
        Map<String, Object> data = new LinkedHashMap<>();
        for (TopologyContext context : contexts) {
            DATA.forEach((name, field) -> {
                try {
                    data.put(name + " of task " + context.getThisTaskId(), field.get(context));
                } catch (IllegalAccessException e) {
                    throw new IllegalStateException("cannot read " + field, e);
                }
            });
        }
        return data;
    }

    private static Map<String, Field> contextFields() {
        Map<String, Field> fields = new LinkedHashMap<>();
        Map.of("task data", "taskData", "executor data", "executorData", "task hooks", "hooks")
                .forEach((shown, name) -> {
                    try {
                        Field field = TopologyContext.class.getDeclaredField(name);
                        field.setAccessible(true);
                        fields.put(shown, field);
                    } catch (NoSuchFieldException e) {
                        throw new IllegalStateException("Storm's TopologyContext has no " + name, e);
                    }
                });
        return fields;
    }
}

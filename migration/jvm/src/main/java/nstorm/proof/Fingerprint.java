package nstorm.proof;

import java.lang.reflect.Field;
import java.lang.reflect.Modifier;
import java.util.ArrayList;
import java.util.Collection;
import java.util.Collections;
import java.util.Comparator;
import java.util.HashSet;
import java.util.IdentityHashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.Set;
import java.util.TreeSet;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.DoubleAdder;
import java.util.concurrent.atomic.LongAdder;
import nstorm.memory.BoltFields;
import nstorm.proof.GraphWalk.Found;

/**
 * All that an executor's bolts lead to, at one moment: their fields and the data of their tasks. The static fields of the user's classes
 * whose objects they hold count as well. To be taken where nothing else touches the bolts.
 */
final class Fingerprint {
    /** Of CPU, for one fingerprint: what is too large to look at in that time counts as changed. */
    private static final long LIMIT_NANOS = TimeUnit.MILLISECONDS.toNanos(100);

    /** One thing that is compared as a whole. */
    record Root(Kind kind, int task, String name) {}

    enum Kind {
        FIELD,
        DATA,
        /** Of the bolt's own class, an interface of it, or what is within it; of another one. */
        OWN_STATIC,
        STATIC;

        boolean isStatic() {
            return this == OWN_STATIC || this == STATIC;
        }
    }

    private final Map<Root, Found> found = new LinkedHashMap<>();
    private final List<Root> order = new ArrayList<>();
    private final Map<Root, Outline> outlines = new LinkedHashMap<>();
    private final Set<Class<?>> classes;
    private final Set<Class<?>> held;
    /** What belongs to which root; null once it is not needed, for it holds all objects. */
    private Seen seen;

    private Fingerprint(Set<Class<?>> classes, Set<Class<?>> held, Seen seen) {
        this.classes = classes;
        this.held = held;
        this.seen = seen;
    }

    /** Keeps the hashes alone, for as long as the bolts live. */
    Fingerprint forgettingObjects() {
        seen = null;
        return this;
    }

    /** The classes of the objects to which the bolts led, but for the JDK's. */
    Set<Class<?>> held() {
        return held;
    }

    Seen seen() {
        return seen;
    }

    Root root(int index) {
        return order.get(index);
    }

    /**
     * Looks at everything but the fields that travel anyway. What static fields lead to is the JVM's, and looked at first: in a field it only counts which
     * object that is.
     *
     * @param without those fields, and others by name; static ones with their class's simple name and a dot
     * @param beforeOrNull an earlier one: the static fields of the same classes are looked at
     */
    static Fingerprint of(Subject subject, Set<String> without, Fingerprint beforeOrNull) {
        GraphWalk earlier = beforeOrNull == null ? overFields(subject, without) : null;
        Set<Class<?>> held = earlier == null ? beforeOrNull.held : earlier.classes;
        Set<Class<?>> classes = byName(beforeOrNull == null ? users(held, subject) : beforeOrNull.classes);
        // One that was not in use before has its first objects now: whether these have changed nobody knows.
        subject.own().stream().filter(Opened::isInitialised).forEach(classes::add);
        GraphWalk walk = new GraphWalk(true, subject.given(), new HashSet<>(), LIMIT_NANOS);
        if (earlier != null) {
            walk.reuse(earlier);
        }
        Fingerprint print = new Fingerprint(classes, held, walk.seen);
        walk.passing(subject.bolts());
        for (Class<?> type : classes) {
            boolean late = beforeOrNull != null && !beforeOrNull.classes.contains(type);
            print.addStatics(walk, type, subject.isOwn(type) ? Kind.OWN_STATIC : Kind.STATIC, late, without);
        }
        walk.sharedUpToHere();
        for (int task = 0; task < subject.bolts().size(); task++) {
            Object bolt = subject.bolts().get(task);
            for (Field field : subject.fields()) {
                if (!without.contains(field.getName())) {
                    print.add(walk, new Root(Kind.FIELD, task, field.getName()), BoltFields.read(field, bolt));
                }
            }
        }
        subject.data().forEach((name, data) -> print.add(walk, new Root(Kind.DATA, 0, name), data));
        return print;
    }

    /** Meets the classes whose static fields are to be looked at before the fields are. */
    private static GraphWalk overFields(Subject subject, Set<String> without) {
        GraphWalk walk = new GraphWalk(true, subject.given(), new HashSet<>(subject.types()), LIMIT_NANOS);
        for (Object bolt : subject.bolts()) {
            subject.fields().stream()
                    .filter(field -> !without.contains(field.getName()))
                    .forEach(field -> walk.root(field.getName(), BoltFields.read(field, bolt)));
        }
        return walk;
    }

    /** The user's of these classes. They have been initialised, so to read a static field runs nothing. */
    private static List<Class<?>> users(Set<Class<?>> met, Subject subject) {
        return met.stream().filter(subject.codeBase()::has).toList();
    }

    private static Set<Class<?>> byName(Collection<Class<?>> classes) {
        Set<Class<?>> sorted = new TreeSet<>(Comparator.comparing(Class::getName));
        sorted.addAll(classes);
        return sorted;
    }

    /** @param late whether the class was not in use before: then the code shows whether its private constants change, if it can be followed */
    private void addStatics(GraphWalk walk, Class<?> type, Kind kindOfClass, boolean late, Set<String> without) {
        int privateConstant = Modifier.PRIVATE | Modifier.FINAL;
        for (Field field : type.getDeclaredFields()) {
            String name = type.getSimpleName() + "." + field.getName();
            boolean shows = late && (field.getModifiers() & privateConstant) == privateConstant;
            Kind kind = shows ? Kind.STATIC : kindOfClass;
            boolean looked = Modifier.isStatic(field.getModifiers())
                    && !field.isSynthetic()
                    && !(field.isEnumConstant() && kind == Kind.STATIC) // one that a field holds counts there
                    && !without.contains(name);
            if (!looked || !Opened.open(field, type)) {
                continue;
            }
            Object value = BoltFields.read(field, null);
            // What is drawn from a Random is chance. To an adder one can only add: the code shows whether a sum is read
            // back.
            if (!(value instanceof Random
                    || field.getType() == LongAdder.class
                    || field.getType() == DoubleAdder.class)) {
                Root root = new Root(kind, 0, name);
                root = found.containsKey(root) ? new Root(kind, 0, type.getName() + "." + field.getName()) : root;
                add(walk, root, value);
                found.get(root).mayChange |= !Modifier.isFinal(field.getModifiers());
            }
        }
    }

    private void add(GraphWalk walk, Root root, Object value) {
        Outline outline = new Outline(Outline.MANY);
        walk.outline(outline);
        order.add(root);
        found.put(root, walk.root(root.name, value));
        outlines.put(root, outline);
    }

    /** What keeps fields from being left behind as they are, such as an open file, with its path; null if there is nothing. */
    String obstacle() {
        for (Map.Entry<Root, Found> one : found.entrySet()) {
            if (!one.getKey().kind.isStatic() && one.getValue().obstacle != null) {
                return one.getValue().obstacle;
            }
        }
        return null;
    }

    boolean has(String name) {
        return found.keySet().stream().anyMatch(root -> root.name.equals(name));
    }

    /** What is too large to be looked at in its time, static fields left out; null if nothing is. */
    String tooLarge() {
        return found.entrySet().stream()
                .filter(one -> one.getValue().cut && !one.getKey().kind.isStatic())
                .map(one -> one.getKey().name)
                .findFirst()
                .orElse(null);
    }

    /** Whether the bolts have any object of their own in which something could be kept. */
    boolean mayChange() {
        return found.entrySet().stream()
                .anyMatch(one -> one.getKey().kind == Kind.FIELD && (one.getValue().mayChange || one.getValue().cut));
    }

    /**
     * The things that are not as they were, each with what is another, in a few words.
     *
     * @param statics whether static fields of all classes count. Others of the JVM also change them. Where a bolt does, its code shows it
     *     if it can be followed
     */
    Map<Root, String> changedSince(Fingerprint before, boolean statics) {
        Map<Root, String> changed = new LinkedHashMap<>();
        found.forEach((root, now) -> {
            Found was = before.found.get(root);
            if (root.kind == Kind.STATIC && !statics || was == null && !now.mayChange) {
                return;
            }
            if (was == null) {
                changed.put(root, root.name + " was not in use when it was prepared");
            } else if (root.kind.isStatic() && (was.cut || now.cut)) {
                changed.put(root, root.name + " leads to more than can be looked at in time");
            } else if (was.cut != now.cut || was.hash != now.hash) {
                String difference = before.outlines.get(root).difference(outlines.get(root));
                changed.put(root, difference == null ? root.name + " has changed, deep in it" : difference);
            }
        });
        return changed;
    }

    /** The other things that lead to objects to which this one leads. */
    Set<Root> sharing(Root root) {
        Set<Root> sharing = new HashSet<>();
        found.get(root).alias.forEach(index -> sharing.add(order.get(index)));
        return sharing;
    }

    static Set<Object> identities() {
        return Collections.newSetFromMap(new IdentityHashMap<>());
    }

    static Set<String> names(Set<Root> roots) {
        Set<String> names = new TreeSet<>();
        roots.forEach(root -> names.add(root.name));
        return names;
    }
}

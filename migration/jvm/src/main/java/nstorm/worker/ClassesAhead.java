package nstorm.worker;

import java.io.IOException;
import java.io.InputStream;
import java.lang.management.ManagementFactory;
import java.lang.management.MemoryPoolMXBean;
import java.security.CodeSource;
import java.util.ArrayDeque;
import java.util.Deque;
import java.util.HashSet;
import java.util.List;
import java.util.Objects;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.TimeUnit;
import nstorm.hook.Faults;
import org.apache.storm.executor.Executor;
import org.objectweb.asm.ClassReader;
import org.objectweb.asm.Type;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Loads what a spout, or a bolt that is renewed, will need to open, while its old copy still works. The first Kafka
 * spout of a JVM opens through 2,400 classes. Follows what class files call, so it also loads classes that are not
 * needed. Initialises none: no code of the user's runs.
 */
final class ClassesAhead {
    private static final Logger LOG = LoggerFactory.getLogger(ClassesAhead.class);
    /** Each takes some 6 kB outside the heap. */
    private static final int MOST = 3_000;

    private static final long SPARED_BYTES = 64L << 20;
    private static final List<MemoryPoolMXBean> METASPACES = ManagementFactory.getMemoryPoolMXBeans().stream()
            .filter(pool -> pool.getName().equals("Metaspace"))
            .toList();
    /** A quarter of what PREPARE may take. */
    private static final long LIMIT_NANOS = TimeUnit.SECONDS.toNanos(5);
    /** Constants that name a field or a method, and its class. */
    private static final Set<Integer> MEMBERS = Set.of(9, 10, 11);

    private final int most;
    /** Components whose classes are loaded, or were looked for. */
    final Set<Class<?>> opened = ConcurrentHashMap.newKeySet();

    ClassesAhead() {
        this(MOST);
    }

    ClassesAhead(int most) {
        this.most = most;
    }

    /** One of the class is opened in this JVM by Storm: what it needs is loaded. */
    void opens(Class<?> component) {
        opened.add(component);
    }

    /** Loads what leads from a component's class, nearest first, while there is room for classes; throws nothing. */
    void load(Class<?> component) {
        if (component.getClassLoader() == null || !opened.add(component)) {
            return;
        }
        long began = System.nanoTime();
        Set<String> seen = new HashSet<>(Set.of(component.getName()));
        Deque<String> next = new ArrayDeque<>(seen);
        int loaded = 0;
        while (!next.isEmpty() && loaded < most && System.nanoTime() - began < LIMIT_NANOS && hasRoom()) {
            try {
                Class<?> type = Class.forName(next.poll(), false, component.getClassLoader());
                loaded++;
                if (type.getClassLoader() == component.getClassLoader() && !ofStorm(type)) {
                    follow(type, seen, next);
                }
            } catch (ClassNotFoundException | LinkageError | IOException | RuntimeException e) {
                // A library names classes that only some of its users have.
            } catch (VirtualMachineError e) {
                Faults.report("loading classes ahead", e);
                break;
            }
        }
        LOG.info(
                "nstorm_classes_ahead class={} loaded={} left={} ms={}",
                component.getName(),
                loaded,
                next.size(),
                TimeUnit.NANOSECONDS.toMillis(System.nanoTime() - began));
    }

    /** Where a limit is set, Storm and the user need some of it. */
    private static boolean hasRoom() {
        return METASPACES.stream()
                .map(MemoryPoolMXBean::getUsage)
                .allMatch(one -> one.getMax() < 0 || one.getMax() - one.getUsed() > SPARED_BYTES);
    }

    /** What this worker has run with for long. */
    private static boolean ofStorm(Class<?> type) {
        return Objects.equals(source(type), source(Executor.class));
    }

    private static CodeSource source(Class<?> type) {
        return type.getProtectionDomain().getCodeSource();
    }

    private static void follow(Class<?> type, Set<String> seen, Deque<String> next) throws IOException {
        try (InputStream file =
                type.getClassLoader().getResourceAsStream(type.getName().replace('.', '/') + ".class")) {
            if (file == null) {
                return;
            }
            ClassReader reader = new ClassReader(file);
            char[] buffer = new char[reader.getMaxStringLength()];
            for (int i = 1; i < reader.getItemCount(); i++) {
                int at = reader.getItem(i);
                // No other class that is named: the class around an inner one leads to all of a topology.
                if (at > 0 && MEMBERS.contains(reader.readByte(at - 1))) {
                    Type named = Type.getObjectType(reader.readClass(at, buffer));
                    Type element = named.getSort() == Type.ARRAY ? named.getElementType() : named;
                    if (element.getSort() == Type.OBJECT && seen.add(element.getClassName())) {
                        next.add(element.getClassName());
                    }
                }
            }
        }
    }
}

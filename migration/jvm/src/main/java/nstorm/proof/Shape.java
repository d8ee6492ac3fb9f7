package nstorm.proof;

import java.io.Closeable;
import java.io.File;
import java.io.FileDescriptor;
import java.io.PrintStream;
import java.lang.invoke.MethodHandle;
import java.lang.invoke.VarHandle;
import java.lang.ref.Reference;
import java.lang.reflect.Array;
import java.lang.reflect.Field;
import java.lang.reflect.Member;
import java.lang.reflect.Modifier;
import java.math.BigDecimal;
import java.math.BigInteger;
import java.net.URI;
import java.net.URL;
import java.nio.Buffer;
import java.nio.channels.Channel;
import java.nio.charset.Charset;
import java.nio.file.Path;
import java.text.Format;
import java.time.Clock;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.BitSet;
import java.util.Collection;
import java.util.Currency;
import java.util.Date;
import java.util.HashMap;
import java.util.HashSet;
import java.util.Hashtable;
import java.util.IdentityHashMap;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.LinkedList;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.PriorityQueue;
import java.util.Properties;
import java.util.Set;
import java.util.Stack;
import java.util.TimeZone;
import java.util.Timer;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.UUID;
import java.util.Vector;
import java.util.WeakHashMap;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ConcurrentLinkedDeque;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.ConcurrentSkipListMap;
import java.util.concurrent.ConcurrentSkipListSet;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.CopyOnWriteArraySet;
import java.util.concurrent.Executor;
import java.util.concurrent.Future;
import java.util.concurrent.LinkedBlockingDeque;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.atomic.DoubleAdder;
import java.util.concurrent.atomic.LongAdder;
import java.util.regex.Pattern;
import nstorm.memory.CodeBase;
import nstorm.memory.ObjectFields;

/**
 * How objects of one class are looked at, worked out once a class.
 *
 * @param how    by what their content is read
 * @param about  for those that are not read: what they are, for a sentence
 * @param fields for those that are read by their fields: all of an object, those of the classes above it too
 * @param name   hash of the class's name
 */
record Shape(How how, String about, Field[] fields, long name) {
    /** By what the content of an object is read. No way calls a method that a user's class may override. */
    enum How {
        /** It never changes: its value is hashed where it stands, and it is no node of the graph. */
        VALUE,
        /** It is given to every copy, or holds nothing that is remembered: its class counts, and within one JVM its identity. */
        IDENTITY,
        /** As IDENTITY, but only its class counts: what it changes in itself is nobody's memory. */
        NOTHING,
        /** It stands for something outside this heap: a thread, a file, a connection. */
        OUTSIDE,
        /** Its content cannot be seen. */
        HIDDEN,
        ENUM,
        PRIMITIVES,
        ARRAY,
        /** Pairs, whose order is chance or is part of the content. */
        UNORDERED_MAP,
        ORDERED_MAP,
        UNORDERED_SET,
        /** Elements in their order. */
        ELEMENTS,
        BITS,
        TEXT,
        NUMBER,
        LOCAL,
        FIELDS
    }

    /** Storm's own collectors, contexts and executors: what every copy gets, or leads to the whole worker. */
    private static final List<String> GIVEN_PACKAGES = List.of(
            "org.apache.storm.task.",
            "org.apache.storm.executor.",
            "org.apache.storm.daemon.",
            "org.apache.storm.cluster.",
            "org.apache.storm.messaging.",
            "org.apache.storm.generated.",
            "org.apache.storm.stats.",
            "org.apache.storm.serialization.");

    private static final Set<String> GIVEN = Set.of(
            "org.apache.storm.spout.SpoutOutputCollector",
            "org.apache.storm.topology.BasicOutputCollector",
            "org.apache.storm.metrics2.StormMetricRegistry");
    private static final List<String> LOGGING = List.of(
            "org.slf4j.",
            "org.apache.logging.",
            "org.apache.log4j.",
            "org.apache.commons.logging.",
            "java.util.logging.",
            "ch.qos.logback.");
    /** Bolts count in them, and others read them: a bolt's code shows whether it reads one back. */
    private static final List<String> METRICS =
            List.of("com.codahale.metrics.", "org.apache.storm.metric.api.", "org.apache.storm.metrics2.");
    /** By their contract they keep nothing from one call to the next but what makes the next one quicker. */
    private static final Set<String> READERS = Set.of(
            "com.fasterxml.jackson.databind.ObjectMapper",
            "com.fasterxml.jackson.databind.json.JsonMapper",
            "com.fasterxml.jackson.databind.ObjectReader",
            "com.fasterxml.jackson.databind.ObjectWriter",
            "com.fasterxml.jackson.core.JsonFactory",
            "com.google.gson.Gson",
            "org.json.simple.parser.JSONParser");

    private static final Set<Class<?>> VALUES = Set.of(
            String.class,
            Boolean.class,
            Byte.class,
            Character.class,
            Short.class,
            Integer.class,
            Long.class,
            Float.class,
            Double.class,
            UUID.class,
            Class.class,
            Locale.class,
            Currency.class,
            URI.class,
            URL.class,
            Pattern.class,
            File.class,
            BigInteger.class,
            BigDecimal.class);
    private static final Set<Class<?>> UNORDERED_MAPS = Set.of(
            HashMap.class,
            ConcurrentHashMap.class,
            IdentityHashMap.class,
            Properties.class,
            Hashtable.class,
            WeakHashMap.class);
    private static final Set<Class<?>> ORDERED_MAPS =
            Set.of(LinkedHashMap.class, TreeMap.class, ConcurrentSkipListMap.class);
    private static final Set<Class<?>> ELEMENTS = Set.of(
            ArrayList.class,
            LinkedList.class,
            ArrayDeque.class,
            Vector.class,
            Stack.class,
            PriorityQueue.class,
            LinkedHashSet.class,
            TreeSet.class,
            CopyOnWriteArrayList.class,
            CopyOnWriteArraySet.class,
            ConcurrentLinkedQueue.class,
            ConcurrentLinkedDeque.class,
            ConcurrentSkipListSet.class,
            LinkedBlockingQueue.class,
            LinkedBlockingDeque.class);
    private static final Field[] NONE = {};
    private static final ClassValue<Shape> SHAPES = new ClassValue<>() {
        @Override
        protected Shape computeValue(Class<?> type) {
            return make(type);
        }
    };

    static Shape of(Class<?> type) {
        return SHAPES.get(type);
    }

    private static Shape make(Class<?> type) {
        // The number behind a hidden class's name is another one in each JVM.
        String shown = type.isHidden() ? type.getName().replaceFirst("/.*", "") : type.getName();
        long name = Hash.text(shown);
        How how = how(type);
        if (how != null) {
            return new Shape(how, null, NONE, name);
        }
        String outside = outside(type);
        if (outside != null) {
            return new Shape(How.OUTSIDE, outside, NONE, name);
        }
        if (MethodHandle.class.isAssignableFrom(type)
                || VarHandle.class.isAssignableFrom(type)
                || Buffer.class.isAssignableFrom(type) && type.getSimpleName().startsWith("Direct")) {
            return new Shape(How.HIDDEN, "cannot be looked into", NONE, name);
        }
        return byFields(type, name);
    }

    private static How how(Class<?> type) {
        if (type.isArray()) {
            return type.getComponentType().isPrimitive() ? How.PRIMITIVES : How.ARRAY;
        }
        String name = type.getName();
        if (VALUES.contains(type)
                || name.startsWith("java.time.") && !Clock.class.isAssignableFrom(type)
                || Path.class.isAssignableFrom(type) && CodeBase.ofTheJdk(type)
                || Charset.class.isAssignableFrom(type)
                || TimeZone.class.isAssignableFrom(type) && CodeBase.ofTheJdk(type)) {
            return How.VALUE;
        } else if (type == StringBuilder.class || type == StringBuffer.class) {
            return How.TEXT;
        } else if (type == BitSet.class) {
            return How.BITS;
        } else if (type == LongAdder.class || type == DoubleAdder.class || type == Date.class) {
            return How.NUMBER;
        } else if (UNORDERED_MAPS.contains(type) || isImmutable(type, Map.class)) {
            return How.UNORDERED_MAP;
        } else if (ORDERED_MAPS.contains(type)) {
            return How.ORDERED_MAP;
        } else if (type == HashSet.class || isImmutable(type, Set.class)) {
            return How.UNORDERED_SET;
        } else if (ELEMENTS.contains(type) || isImmutable(type, List.class)) {
            return How.ELEMENTS;
        } else if (ThreadLocal.class.isAssignableFrom(type)) {
            return How.LOCAL;
        }
        return notRead(type, name);
    }

    /** Those of {@code List.of} and the like: their order is another one in each JVM. */
    private static boolean isImmutable(Class<?> type, Class<?> kind) {
        return type.getName().startsWith("java.util.ImmutableCollections$") && kind.isAssignableFrom(type);
    }

    private static How notRead(Class<?> type, String name) {
        boolean given = GIVEN.contains(name) || GIVEN_PACKAGES.stream().anyMatch(name::startsWith);
        if (given
                || ClassLoader.class.isAssignableFrom(type)
                || Member.class.isAssignableFrom(type)
                || ThreadGroup.class == type) {
            return How.IDENTITY;
        }
        boolean nobodys = LOGGING.stream().anyMatch(name::startsWith)
                || METRICS.stream().anyMatch(name::startsWith) && !name.endsWith("Reporter")
                || READERS.contains(name)
                || Reference.class.isAssignableFrom(type)
                || Format.class.isAssignableFrom(type) && CodeBase.ofTheJdk(type);
        return nobodys ? How.NOTHING : null;
    }

    private static String outside(Class<?> type) {
        if (Thread.class.isAssignableFrom(type)) {
            return "a thread";
        } else if (Executor.class.isAssignableFrom(type)
                || Timer.class.isAssignableFrom(type)
                || type.getName().endsWith("Reporter")) {
            return "what has threads";
        } else if (Future.class.isAssignableFrom(type)) {
            return "what another thread ends";
        } else if (Process.class.isAssignableFrom(type) || ProcessHandle.class.isAssignableFrom(type)) {
            return "a process";
        } else if (type == FileDescriptor.class
                || Channel.class.isAssignableFrom(type)
                || Closeable.class.isAssignableFrom(type)
                        && type.getName().matches("(java|sun|javax)\\.(io|nio|net)\\..*(File|Socket|Channel).*")
                || type == PrintStream.class) {
            return "an open file or connection";
        }
        return null;
    }

    private static Shape byFields(Class<?> type, long name) {
        List<Field> all = ObjectFields.of(type);
        if (!all.stream().allMatch(field -> Opened.open(field, field.getDeclaringClass()))) {
            return new Shape(How.HIDDEN, "cannot be looked into", NONE, name);
        }
        boolean isEnum = Enum.class.isAssignableFrom(type);
        How how = !isEnum ? How.FIELDS : all.isEmpty() ? How.VALUE : How.ENUM;
        return new Shape(how, null, all.toArray(NONE), name);
    }

    /** Whether nothing of an object itself can ever be another one, so that it keeps nothing: what it leads to is another question. */
    boolean isFixed(Object object) {
        return switch (how) {
            case VALUE, IDENTITY, NOTHING -> true;
            case FIELDS, ENUM -> Arrays.stream(fields).allMatch(field -> Modifier.isFinal(field.getModifiers()));
            default -> object.getClass().getName().startsWith("java.util.ImmutableCollections$");
        };
    }

    /** How many elements an object has; −1 if it is not made of elements. */
    static int size(How how, Object object) {
        return switch (how) {
            case UNORDERED_MAP, ORDERED_MAP -> ((Map<?, ?>) object).size();
            case UNORDERED_SET, ELEMENTS -> ((Collection<?>) object).size();
            case PRIMITIVES, ARRAY -> Array.getLength(object);
            case TEXT -> ((CharSequence) object).length();
            default -> -1;
        };
    }
}

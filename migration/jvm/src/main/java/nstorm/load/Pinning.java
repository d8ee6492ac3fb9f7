package nstorm.load;

import java.lang.reflect.Field;
import java.lang.reflect.Modifier;
import java.util.ArrayList;
import java.util.Collections;
import java.util.IdentityHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import nstorm.wire.Way;
import org.apache.storm.daemon.Acker;
import org.apache.storm.streams.ProcessorNode;
import org.apache.storm.task.IBolt;
import org.apache.storm.topology.IComponent;

/**
 * Why an executor may not be moved. Two live copies of it for a moment would be wrong, or what Storm's own class keeps
 * in memory would stay behind.
 */
public final class Pinning {
    private static final Map<String, String> PINNED_CLASSES = Map.ofEntries(
            Map.entry("org.apache.storm.topology.WindowedBoltExecutor", "windowed bolt"),
            Map.entry("org.apache.storm.topology.BaseStatefulBoltExecutor", "stateful bolt"),
            Map.entry("org.apache.storm.trident.topology.TridentBoltExecutor", "Trident bolt"),
            Map.entry("org.apache.storm.trident.spout.TridentSpoutCoordinator", "Trident coordinator"),
            Map.entry("org.apache.storm.coordination.CoordinatedBolt", "coordinated bolt"),
            Map.entry("org.apache.storm.coordination.BatchBoltExecutor", "batch bolt"),
            Map.entry("org.apache.storm.drpc.KeyedFairBolt", "keyed-fair bolt"),
            Map.entry("org.apache.storm.drpc.JoinResult", "DRPC join"),
            Map.entry("org.apache.storm.drpc.ReturnResults", "DRPC return"),
            Map.entry("org.apache.storm.streams.StatefulProcessorBolt", "stateful stream"),
            Map.entry("org.apache.storm.streams.WindowedProcessorBolt", "windowed stream"),
            Map.entry("org.apache.storm.bolt.JoinBolt", "join bolt"));
    private static final String STREAM_BOLT = "org.apache.storm.streams.ProcessorBolt";
    private static final String PROCESSORS = "org.apache.storm.streams.processors.";
    /** Storm's processors that look at one value at a time; any other keeps something, as far as we know. */
    private static final Set<String> STATELESS_PROCESSORS = Set.of(
            PROCESSORS + "BranchProcessor",
            PROCESSORS + "FilterProcessor",
            PROCESSORS + "FlatMapProcessor",
            PROCESSORS + "FlatMapValuesProcessor",
            PROCESSORS + "ForEachProcessor",
            PROCESSORS + "MapProcessor",
            PROCESSORS + "MapValuesProcessor",
            PROCESSORS + "PeekProcessor");

    private Pinning() {}

    /**
     * How this component's executors move; live also for those with a reason to stay.
     *
     * @param spout whether the executor runs a spout
     * @param taskObject the user's spout or bolt as Storm has built it
     */
    public static Way way(String component, boolean spout, Object taskObject) {
        if (taskObject instanceof Acker) {
            return Way.ACKER;
        }
        return spout && !storms(component, taskObject) ? Way.SPOUT : Way.LIVE;
    }

    private static boolean storms(String component, Object taskObject) {
        return component.startsWith("__")
                || component.startsWith("$")
                || taskObject.getClass().getName().startsWith("org.apache.storm.trident.");
    }

    /**
     * The reason why this component's executors stay where they are, or null. Never throws: what cannot be
     * looked into stays. What moves by a way of its own has a reason too, for controllers that do not know that way.
     *
     * @param component component id; Storm's own begin with {@code __}, Trident's with {@code $}
     * @param spout whether the executor runs a spout
     * @param taskObject the user's bolt as Storm has built it
     */
    public static String reason(String component, boolean spout, Object taskObject) {
        if (spout) {
            return storms(component, taskObject) ? named("Storm's own spout", taskObject) : "spout";
        }
        if (component.startsWith("__")) {
            return component.equals("__acker") ? "acker" : "system component";
        }
        try {
            String reason = reason(taskObject, Collections.newSetFromMap(new IdentityHashMap<>()));
            return reason == null && component.startsWith("$") ? named("Trident component", taskObject) : reason;
        } catch (ReflectiveOperationException | RuntimeException | LinkageError e) {
            return "cannot be looked into (" + taskObject.getClass().getName() + "): " + e;
        }
    }

    private static String reason(Object bolt, Set<Object> seen) throws ReflectiveOperationException {
        if (!seen.add(bolt)) {
            return null;
        }
        for (Class<?> type : classes(bolt)) {
            String reason = PINNED_CLASSES.get(type.getName());
            if (reason != null) {
                return reason + " (" + type.getSimpleName() + ")";
            }
            if (type.getName().equals(STREAM_BOLT)) {
                return reasonOfStream(bolt);
            }
        }
        for (Object inner : wrapped(bolt)) {
            String reason = reason(inner, seen);
            if (reason != null) {
                return reason;
            }
        }
        return null;
    }

    private static String reasonOfStream(Object bolt) throws ReflectiveOperationException {
        Object delegate = value(bolt.getClass().getDeclaredField("delegate"), bolt);
        for (Object node : (List<?>) value(delegate.getClass().getDeclaredField("nodes"), delegate)) {
            ProcessorNode processor = (ProcessorNode) node;
            if (!STATELESS_PROCESSORS.contains(
                    processor.getProcessor().getClass().getName())) {
                return named("stream with state", processor.getProcessor());
            }
            if (!processor.getWindowedParentStreams().isEmpty()) {
                return named("stream after a window", bolt);
            }
        }
        return null;
    }

    /** The bolts that a bolt holds in its fields, as {@code BasicBoltExecutor} does. */
    private static List<Object> wrapped(Object bolt) throws ReflectiveOperationException {
        List<Object> inner = new ArrayList<>();
        for (Class<?> type : classes(bolt)) {
            for (Field field : type.getDeclaredFields()) {
                boolean mayHold = !field.getType().isPrimitive() && !Modifier.isStatic(field.getModifiers());
                Object held = mayHold ? value(field, bolt) : null;
                if (held instanceof IBolt || held instanceof IComponent) {
                    inner.add(held);
                }
            }
        }
        return inner;
    }

    /** The object's class and those above it, without the JDK's. */
    private static List<Class<?>> classes(Object object) {
        List<Class<?>> classes = new ArrayList<>();
        for (Class<?> type = object.getClass(); type.getClassLoader() != null; type = type.getSuperclass()) {
            classes.add(type);
        }
        return classes;
    }

    private static Object value(Field field, Object owner) throws IllegalAccessException {
        field.setAccessible(true);
        return field.get(owner);
    }

    private static String named(String reason, Object object) {
        return reason + " (" + object.getClass().getSimpleName() + ")";
    }
}

package nstorm.load;

import java.util.Map;

/** Why an executor may not be moved: two live copies of it for a moment would be wrong. */
public final class Pinning {
    private static final Map<String, String> PINNED_CLASSES = Map.of(
            "org.apache.storm.topology.WindowedBoltExecutor", "windowed bolt",
            "org.apache.storm.topology.BaseStatefulBoltExecutor", "stateful bolt",
            "org.apache.storm.trident.topology.TridentBoltExecutor", "Trident bolt",
            "org.apache.storm.coordination.CoordinatedBolt", "coordinated bolt",
            "org.apache.storm.coordination.BatchBoltExecutor", "batch bolt",
            "org.apache.storm.drpc.KeyedFairBolt", "keyed-fair bolt",
            "org.apache.storm.bolt.JoinBolt", "join bolt");

    private Pinning() {
    }

    /**
     * The reason why this component's executors stay where they are, or null.
     *
     * @param component component id; Storm's own begin with {@code __}
     * @param spout whether the executor runs a spout
     * @param taskObject the user's bolt as Storm has built it
     */
    public static String reason(String component, boolean spout, Object taskObject) {
        if (spout) {
            return "spout";
        }
        if (component.startsWith("__")) {
            return component.equals("__acker") ? "acker" : "system component";
        }
        for (Class<?> c = taskObject.getClass(); c != null; c = c.getSuperclass()) {
            String reason = PINNED_CLASSES.get(c.getName());
            if (reason != null) {
                return reason;
            }
        }
        return null;
    }
}

package nstorm.wire;

import java.io.IOException;
import java.util.List;
import java.util.stream.Stream;
import nstorm.wire.json.JsonInput;
import nstorm.wire.json.WireException;

/**
 * The plans a node's JVMs need, as the node's agent stores them.
 *
 * @param kept the last plans of topologies that are missing in what the agent has stored
 */
public record LocalPlan(String cluster, List<Plan> plans, List<Plan> kept) {

    public LocalPlan(String cluster, List<Plan> plans) {
        this(cluster, plans, List.of());
    }

    public static LocalPlan parse(byte[] json) throws WireException {
        return JsonInput.parse(json, LocalPlan::read);
    }

    /** The plan of a topology, or null. */
    public Plan of(String topologyId) {
        return Stream.concat(plans.stream(), kept.stream())
                .filter(plan -> plan.topology().equals(topologyId))
                .findFirst()
                .orElse(null);
    }

    /** True while a move is in any of them. */
    public boolean hasEntries() {
        return Stream.concat(plans.stream(), kept.stream())
                .anyMatch(plan -> !plan.entries().isEmpty());
    }

    private static LocalPlan read(JsonInput in) throws IOException, WireException {
        String cluster = null;
        List<Plan> plans = List.of();
        in.beginObject();
        for (String key = in.nextKey(); key != null; key = in.nextKey()) {
            switch (key) {
                case "cluster" -> cluster = in.text();
                case "plans" -> plans = in.list(Plan::read);
                default -> in.pass();
            }
        }
        return new LocalPlan(in.required(cluster, "cluster"), plans);
    }
}

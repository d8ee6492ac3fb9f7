package nstorm.wire;

import java.util.List;
import nstorm.wire.json.JsonFields;
import nstorm.wire.json.WireException;

/** The plans a node's JVMs need, as the node's agent stores them. */
public record LocalPlan(String cluster, List<Plan> plans) {

    public static LocalPlan parse(byte[] json) throws WireException {
        JsonFields local = JsonFields.parse(json);
        local.only("cluster", "plans");
        return new LocalPlan(local.text("cluster"), local.list("plans", Plan::from));
    }

    /** The plan of a topology, or null. */
    public Plan of(String topologyId) {
        for (Plan plan : plans) {
            if (plan.topology().equals(topologyId)) {
                return plan;
            }
        }
        return null;
    }
}

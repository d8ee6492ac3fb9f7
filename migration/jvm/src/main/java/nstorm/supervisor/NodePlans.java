package nstorm.supervisor;

import java.util.List;
import nstorm.store.PlanStore;
import nstorm.wire.LocalPlan;
import nstorm.wire.Plan;

/** The plans of this node for several threads. */
final class NodePlans {

    private static final LocalPlan NONE = new LocalPlan("", List.of());

    private final PlanStore store;

    NodePlans(PlanStore store) {
        this.store = store;
    }

    /** The newest plan of a topology; null if there is none. */
    synchronized Plan of(String topologyId) {
        return newest().of(topologyId);
    }

    /** Why this supervisor takes part in no move until it is switched on; else null. */
    synchronized String inert() {
        return store.inert();
    }

    /** The newest plans; none, and of no cluster, before the first ones. */
    synchronized LocalPlan newest() {
        LocalPlan local = store.poll();
        return local == null ? NONE : local;
    }
}

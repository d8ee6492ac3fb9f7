package nstorm.supervisor;

import java.util.ArrayList;
import java.util.List;
import nstorm.store.PlanStore;
import nstorm.wire.LocalPlan;
import nstorm.wire.Plan;
import nstorm.wire.report.SupervisorAck.PlanSeen;

/** The plans of this node for several threads. */
final class Plans {

    private final PlanStore store;

    Plans(PlanStore store) {
        this.store = store;
    }

    /** The newest plan of a topology; null if there is none. */
    synchronized Plan of(String topologyId) {
        LocalPlan local = store.poll();
        return local == null ? null : local.of(topologyId);
    }

    synchronized List<PlanSeen> seen() {
        List<PlanSeen> seen = new ArrayList<>();
        LocalPlan local = store.poll();
        if (local != null) {
            local.plans().forEach(plan -> seen.add(new PlanSeen(plan.topology(), plan.epoch(), plan.version())));
        }
        return seen;
    }
}

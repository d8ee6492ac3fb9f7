package nstorm.wire.report;

import java.util.List;
import nstorm.wire.ExecutorId;
import nstorm.wire.Protocol;
import nstorm.wire.json.JsonText;

/**
 * What a supervisor has persisted for its own restart, and which plans it has read.
 *
 * @param cluster of the plans it has read, empty before the first ones
 * @param storm   version of Storm
 * @param error   why this supervisor follows no plan, null if it does
 * @param plans   those of the topologies that the agent has named last
 */
public record SupervisorAck(
        String supervisor,
        long pid,
        String hooks,
        long timeMs,
        String cluster,
        List<PlanSeen> plans,
        List<SlotSet> slots,
        String storm,
        String error) {

    /** The newest plan read of a topology. */
    public record PlanSeen(String topology, long epoch, long version) {}

    /**
     * The executors persisted for one port.
     *
     * @param user as whom Storm starts its worker, null where that is the supervisor's own
     */
    public record SlotSet(int port, String topology, List<ExecutorId> executors, String user) {
        private void write(JsonText out) {
            out.open().put("port", port).put("topology", topology).list("executors", executors, ExecutorId::write);
            if (user != null) {
                out.put("user", user);
            }
            out.close();
        }
    }

    public byte[] toJson() {
        return new JsonText()
                .open()
                .put("supervisor", supervisor)
                .put("pid", pid)
                .put("hooks", hooks)
                .put("speaks", Protocol.SPEAKS)
                .put("time_ms", timeMs)
                .put("cluster", cluster)
                .list(
                        "plans",
                        plans,
                        (out, plan) -> out.listOf(() ->
                                out.value(plan.topology()).value(plan.epoch()).value(plan.version())))
                .list("slots", slots, (out, slot) -> slot.write(out))
                .put("storm", storm)
                .put("error", error)
                .close()
                .bytes();
    }
}

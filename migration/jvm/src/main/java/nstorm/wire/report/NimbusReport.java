package nstorm.wire.report;

import java.util.List;
import nstorm.wire.Plan;
import nstorm.wire.Protocol;
import nstorm.wire.json.JsonText;

/**
 * The hook's report on itself: what is published was true when it was written.
 *
 * @param storm version of Storm
 * @param error why this Nimbus follows no plan, null if it does
 */
public record NimbusReport(
        long timeMs, String hooks, String scheduler, List<Published> topologies, String storm, String error) {

    /**
     * An active topology.
     *
     * @param plan    the newest that the hook has read, or null
     * @param problem why the topology is not published, or null
     * @param undoes  why Storm itself would undo moves of the topology, or null
     */
    public record Published(String topology, Plan plan, String problem, String undoes) {}

    public byte[] toJson() {
        return new JsonText()
                .open()
                .put("time_ms", timeMs)
                .put("hooks", hooks)
                .put("speaks", Protocol.SPEAKS)
                .put("scheduler", scheduler)
                .list(
                        "topologies",
                        topologies,
                        (out, told) -> out.open()
                                .put("topology", told.topology)
                                .put("plan", told.plan, (pair, plan) -> pair.values(plan.epoch(), plan.version()))
                                .put("problem", told.problem)
                                .put("undoes", told.undoes)
                                .close())
                .put("storm", storm)
                .put("error", error)
                .close()
                .bytes();
    }
}

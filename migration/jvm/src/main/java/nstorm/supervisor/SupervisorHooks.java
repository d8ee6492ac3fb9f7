package nstorm.supervisor;

import java.util.List;
import nstorm.hook.Advised;
import nstorm.hook.HookSet;
import nstorm.hook.Symbol;

/** The hooks of a supervisor's JVM; HOOKS.md has the purpose of each. */
public final class SupervisorHooks implements HookSet {

    @Override
    public List<Advised> advised() {
        return List.of(
                new Advised(
                        "org.apache.storm.daemon.supervisor.Supervisor",
                        "launch",
                        "()V",
                        SupervisorAdvice.Launch.class),
                new Advised(
                        "org.apache.storm.utils.EquivalenceUtils",
                        "areLocalAssignmentsEquivalent",
                        "(Lorg/apache/storm/generated/LocalAssignment;Lorg/apache/storm/generated/LocalAssignment;)Z",
                        SupervisorAdvice.Equivalent.class),
                new Advised(
                        "org.apache.storm.daemon.supervisor.ReadClusterState",
                        "readAssignments",
                        "(Ljava/util/Map;)Ljava/util/Map;",
                        SupervisorAdvice.ReadAssignments.class),
                new Advised(
                        "org.apache.storm.localizer.PortAndAssignment",
                        "isEquivalentTo",
                        "(Lorg/apache/storm/localizer/PortAndAssignment;)Z",
                        SupervisorAdvice.SameReservation.class));
    }

    @Override
    public List<Symbol> reflected() {
        return List.of();
    }

    @Override
    public List<Symbol> reliedOn() {
        String supervisor = "org.apache.storm.daemon.supervisor.";
        return List.of(
                new Symbol(supervisor + "Slot", null, null),
                new Symbol(supervisor + "ReadClusterState", null, null),
                new Symbol(supervisor + "timer.ReportWorkerHeartbeats", null, null),
                new Symbol("org.apache.storm.utils.EquivalenceUtils", null, null),
                new Symbol("org.apache.storm.localizer.PortAndAssignment", null, null));
    }
}

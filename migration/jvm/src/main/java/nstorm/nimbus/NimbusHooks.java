package nstorm.nimbus;

import java.util.List;
import nstorm.hook.Advised;
import nstorm.hook.HookSet;
import nstorm.hook.Symbol;

/** The hooks of Nimbus; HOOKS.md has the purpose of each. */
public final class NimbusHooks implements HookSet {

    static final String NIMBUS = "org.apache.storm.daemon.nimbus.Nimbus";
    static final String MAKE_ASSIGNMENTS = "mkAssignments";

    private static final String BLACKLIST = "org.apache.storm.scheduler.blacklist.BlacklistScheduler";
    private static final String MAP = "Ljava/util/Map;";

    @Override
    public List<Advised> advised() {
        String topologies = "Lorg/apache/storm/scheduler/Topologies;";
        return List.of(
                new Advised(BLACKLIST, "<init>", "(Lorg/apache/storm/scheduler/IScheduler;)V", NimbusAdvice.Wrap.class),
                new Advised(
                        BLACKLIST,
                        "schedule",
                        "(" + topologies + "Lorg/apache/storm/scheduler/Cluster;)V",
                        NimbusAdvice.Schedule.class),
                new Advised(
                        NIMBUS,
                        "computeNewSchedulerAssignments",
                        "(" + MAP + topologies + MAP + "Ljava/lang/String;)" + MAP,
                        NimbusAdvice.RoundBegins.class),
                new Advised(
                        NIMBUS,
                        "changedExecutors",
                        "(" + MAP + MAP + ")Ljava/util/List;",
                        NimbusAdvice.ChangedExecutors.class),
                new Advised(NIMBUS, "lockingMkAssignments", null, NimbusAdvice.RoundEnds.class));
    }

    @Override
    public List<Symbol> reflected() {
        return List.of(
                new Symbol(NIMBUS, "conf", MAP),
                new Symbol(NIMBUS, "stormClusterState", "Lorg/apache/storm/cluster/IStormClusterState;"),
                new Symbol(NIMBUS, "leaderElector", "Lorg/apache/storm/nimbus/ILeaderElector;"),
                new Symbol(NIMBUS, "timer", "Lorg/apache/storm/StormTimer;"),
                new Symbol(NIMBUS, MAKE_ASSIGNMENTS, "()V"));
    }

    @Override
    public List<Symbol> reliedOn() {
        String schedulers = "org.apache.storm.scheduler.";
        return List.of(
                new Symbol(NIMBUS, MAKE_ASSIGNMENTS, null),
                new Symbol(NIMBUS, "computeTopologyToAliveExecutors", null),
                new Symbol(NIMBUS, "computeSupervisorToDeadPorts", null),
                new Symbol(NIMBUS, "computeTopologyToSchedulerAssignment", null),
                new Symbol(NIMBUS, "computeTopoToExecToNodePort", null),
                new Symbol("org.apache.storm.daemon.nimbus.HeartbeatCache", null, null),
                new Symbol(schedulers + "Cluster", null, null),
                new Symbol(schedulers + "DefaultScheduler", null, null),
                new Symbol(schedulers + "EvenScheduler", null, null),
                new Symbol(schedulers + "IsolationScheduler", null, null),
                new Symbol(schedulers + "resource.ResourceAwareScheduler", null, null),
                new Symbol(BLACKLIST, null, null));
    }
}

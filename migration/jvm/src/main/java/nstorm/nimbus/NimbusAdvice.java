package nstorm.nimbus;

import java.util.List;
import java.util.Map;
import net.bytebuddy.asm.Advice;
import org.apache.storm.StormTimer;
import org.apache.storm.cluster.IStormClusterState;
import org.apache.storm.daemon.nimbus.Nimbus;
import org.apache.storm.generated.Assignment;
import org.apache.storm.generated.NodeInfo;
import org.apache.storm.nimbus.ILeaderElector;
import org.apache.storm.scheduler.Cluster;
import org.apache.storm.scheduler.IScheduler;
import org.apache.storm.scheduler.Topologies;

/** Bytecode templates that are copied into Storm's methods: each one call, and nothing thrown. */
final class NimbusAdvice {

    private NimbusAdvice() {}

    /** Into {@code BlacklistScheduler}'s constructor: Nimbus puts whatever scheduler it has into one. */
    static final class Wrap {
        @Advice.OnMethodEnter(suppress = Throwable.class)
        static void enter(@Advice.Argument(value = 0, readOnly = false) IScheduler scheduler) {
            scheduler = NimbusCalls.wrap(scheduler);
        }
    }

    /** Into {@code BlacklistScheduler.schedule}: skipped in a round that only absorbs. */
    static final class Schedule {
        @Advice.OnMethodEnter(suppress = Throwable.class, skipOn = Advice.OnNonDefaultValue.class)
        static boolean enter(@Advice.Argument(0) Topologies topologies, @Advice.Argument(1) Cluster cluster) {
            return NimbusCalls.absorbedAlone(topologies, cluster);
        }
    }

    /** Into {@code Nimbus.computeNewSchedulerAssignments}, which has everything a round works on. */
    static final class RoundBegins {
        @Advice.OnMethodEnter(suppress = Throwable.class)
        static void enter(
                @Advice.This Nimbus nimbus,
                @Advice.Argument(0) Map<String, Assignment> existing,
                @Advice.Argument(1) Topologies topologies,
                @Advice.FieldValue("conf") Map<String, Object> conf,
                @Advice.FieldValue("stormClusterState") IStormClusterState state,
                @Advice.FieldValue("leaderElector") ILeaderElector elector,
                @Advice.FieldValue("timer") StormTimer timer) {
            NimbusCalls.roundBegins(nimbus, existing, topologies, conf, state, elector, timer);
        }
    }

    /** Into {@code Nimbus.changedExecutors}: what it returns gets new start times. */
    static final class ChangedExecutors {
        @Advice.OnMethodExit(suppress = Throwable.class)
        static void exit(
                @Advice.Argument(0) Map<List<Long>, NodeInfo> before,
                @Advice.Argument(1) Map<List<Long>, List<Object>> after,
                @Advice.Return List<List<Long>> changed) {
            NimbusCalls.keepStartTimes(before, after, changed);
        }
    }

    /** Into {@code Nimbus.lockingMkAssignments}: the new assignments are written. */
    static final class RoundEnds {
        @Advice.OnMethodExit(suppress = Throwable.class)
        static void exit() {
            NimbusCalls.roundEnded();
        }
    }
}

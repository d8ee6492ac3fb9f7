package nstorm.supervisor;

import java.util.Map;
import net.bytebuddy.asm.Advice;
import org.apache.storm.daemon.supervisor.Supervisor;
import org.apache.storm.generated.Assignment;
import org.apache.storm.generated.LocalAssignment;
import org.apache.storm.localizer.PortAndAssignment;

/** Bytecode templates that are copied into Storm's methods: each one call, and nothing thrown. */
final class SupervisorAdvice {

    private SupervisorAdvice() {}

    /** Into {@code Supervisor.launch}, before the first slot recovers its worker. */
    static final class Launch {
        @Advice.OnMethodEnter(suppress = Throwable.class)
        static void enter(@Advice.This Supervisor supervisor) {
            SupervisorCalls.launched(supervisor);
        }
    }

    /** Into {@code EquivalenceUtils.areLocalAssignmentsEquivalent}. */
    static final class Equivalent {
        @Advice.OnMethodExit(suppress = Throwable.class)
        static void exit(
                @Advice.Argument(0) LocalAssignment next,
                @Advice.Argument(1) LocalAssignment current,
                @Advice.Return(readOnly = false) boolean equivalent) {
            equivalent = equivalent || SupervisorCalls.accepts(next, current);
        }
    }

    /** Into {@code ReadClusterState.readAssignments}. */
    static final class ReadAssignments {
        @Advice.OnMethodExit(suppress = Throwable.class)
        static void exit(
                @Advice.Argument(0) Map<String, Assignment> assignments,
                @Advice.Return Map<Integer, LocalAssignment> ports) {
            SupervisorCalls.openSlots(ports, assignments);
        }
    }

    /** Into {@code PortAndAssignment.isEquivalentTo}. */
    static final class SameReservation {
        @Advice.OnMethodEnter(suppress = Throwable.class, skipOn = Advice.OnNonDefaultValue.class)
        static boolean enter(@Advice.This PortAndAssignment held, @Advice.Argument(0) PortAndAssignment released) {
            return SupervisorCalls.isSameReservation(held, released);
        }

        @Advice.OnMethodExit(suppress = Throwable.class)
        static void exit(@Advice.Enter boolean same, @Advice.Return(readOnly = false) boolean equivalent) {
            equivalent = equivalent || same;
        }
    }
}

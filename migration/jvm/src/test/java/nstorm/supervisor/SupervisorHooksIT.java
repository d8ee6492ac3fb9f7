package nstorm.supervisor;

import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.file.Path;
import nstorm.hook.HookStatus;
import nstorm.store.PlanStore;
import nstorm.store.PlanWriting;
import org.apache.storm.generated.LocalAssignment;
import org.apache.storm.localizer.PortAndAssignment;
import org.apache.storm.utils.EquivalenceUtils;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Storm's own classes, woven by the packaged jar, and a plan that Python wrote. */
class SupervisorHooksIT {

    private static final LocalAssignment BOTH = Assignments.of("t", "user", 7, 8);
    private static final LocalAssignment ONE = Assignments.of("t", "user", 8);

    @TempDir
    Path dir;

    private record Reservation(int getPort, LocalAssignment getAssignment) implements PortAndAssignment {
        @Override
        public String getToplogyId() {
            return getAssignment.get_topology_id();
        }

        @Override
        public String getOwner() {
            return getAssignment.get_owner();
        }
    }

    @BeforeEach
    void follow() {
        assertTrue(HookStatus.active());
        SupervisorCalls.follow("s1", new NodePlans(new PlanStore(dir, topology -> true)));
    }

    private void plan(long version, String entries) throws Exception {
        PlanWriting.write(
                dir,
                "{\"cluster\":\"c\",\"plans\":[{\"cluster\":\"c\",\"epoch\":1,\"version\":" + version
                        + ",\"topology\":\"t\",\"entries\":[" + entries + "]}]}");
    }

    private static final String SEVEN = "{\"id\":\"m1\",\"executor\":[7,7],\"from\":\"s1:6700\",\"to\":\"s2:6701\","
            + "\"phase\":\"STOP\",\"base\":[\"s1:6700\",100],\"void\":null}";

    @Test
    void equivalentOnlyWhileThePlanSaysSo() throws Exception {
        assertTrue(EquivalenceUtils.areLocalAssignmentsEquivalent(BOTH, new LocalAssignment(BOTH)), "stock");
        assertFalse(EquivalenceUtils.areLocalAssignmentsEquivalent(ONE, BOTH), "no plan");
        plan(1, SEVEN);
        assertTrue(EquivalenceUtils.areLocalAssignmentsEquivalent(ONE, BOTH));
        assertFalse(EquivalenceUtils.areLocalAssignmentsEquivalent(null, BOTH));
        plan(2, "");
        assertFalse(EquivalenceUtils.areLocalAssignmentsEquivalent(new LocalAssignment(ONE), BOTH));
    }

    @Test
    void aReservationUnderTheOldSetIsReleased() throws Exception {
        Reservation held = new Reservation(6700, BOTH);
        assertFalse(held.isEquivalentTo(new Reservation(6700, ONE)), "nothing adopted yet");
        plan(1, SEVEN);
        assertTrue(EquivalenceUtils.areLocalAssignmentsEquivalent(ONE, BOTH));
        plan(2, "");
        assertTrue(held.isEquivalentTo(new Reservation(6700, ONE)), "adopted");
        assertFalse(held.isEquivalentTo(new Reservation(6701, ONE)));
        assertFalse(held.isEquivalentTo(new Reservation(6700, Assignments.of("u", "user", 8))));
    }
}

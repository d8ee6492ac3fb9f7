package nstorm.supervisor;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertNull;

import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import nstorm.wire.report.SupervisorAck.PlanSeen;
import org.apache.storm.generated.LocalAssignment;
import org.junit.jupiter.api.Test;

class SupervisorReportTest {

    @Test
    void tellsWhatIsPersistedAndOnlyChanges() throws Exception {
        List<PlanSeen> plans = new ArrayList<>(List.of(new PlanSeen("t", 3, 17)));
        Map<Long, LocalAssignment> persisted = new HashMap<>();
        persisted.put(6701L, Assignments.of("t", "user", 9, 8));
        persisted.put(6700L, Assignments.of("t", "user", 7));
        SupervisorReport report =
            new SupervisorReport("s1", () -> List.copyOf(plans), () -> persisted, Path.of("unused"));
        String first = new String(report.due(), StandardCharsets.UTF_8);
        String tail = "\"plans\":[[\"t\",3,17]],\"slots\":[{\"port\":6700,\"topology\":\"t\",\"executors\":[[7,7]]},"
            + "{\"port\":6701,\"topology\":\"t\",\"executors\":[[8,8],[9,9]]}]}";
        assertEquals(tail, first.substring(first.indexOf("\"plans\"")));
        assertNull(report.due(), "nothing new");
        persisted.remove(6700L);
        assertNotNull(report.due(), "another set");
        plans.set(0, new PlanSeen("t", 3, 18));
        assertNotNull(report.due(), "another plan");
        assertNull(report.due());
        Thread.sleep(2100);
        assertNotNull(report.due(), "a sign of life");
    }
}

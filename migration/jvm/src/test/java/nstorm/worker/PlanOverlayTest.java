package nstorm.worker;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.file.Path;
import nstorm.store.PlanStore;
import nstorm.store.PlanWriting;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class PlanOverlayTest {

    private static String plan(String cluster, long version) {
        return "{\"cluster\":\"" + cluster + "\",\"epoch\":1,\"version\":" + version
            + ",\"topology\":\"t\",\"entries\":[]}";
    }

    private static void write(Path dir, String cluster, String plans) throws Exception {
        PlanWriting.write(dir, "{\"cluster\":\"" + cluster + "\",\"plans\":[" + plans + "]}");
    }

    @Test
    void followsTheNodeIntoAnotherCluster(@TempDir Path dir) throws Exception {
        write(dir, "old", plan("old", 7));
        PlanOverlay overlay = new PlanOverlay("t", new PlanStore(dir, topology -> true));
        assertEquals(7, overlay.plan().version());
        write(dir, "old", "");
        assertFalse(overlay.poll(), "within a cluster a plan that is missing stays");
        write(dir, "new", "");
        assertTrue(overlay.poll());
        assertNull(overlay.plan(), "the new cluster has none for this topology");
        write(dir, "new", plan("new", 0));
        assertTrue(overlay.poll());
        assertEquals("new", overlay.plan().cluster());
    }
}

package nstorm.supervisor;

import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.HashMap;
import java.util.List;
import java.util.Map;
import nstorm.wire.Entry;
import nstorm.wire.ExecutorId;
import nstorm.wire.Phase;
import nstorm.wire.Plan;
import nstorm.wire.Slot;
import org.apache.storm.generated.LocalAssignment;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

class AdoptionsTest {

    private static final LocalAssignment BOTH = Assignments.of("t", "user", 7, 8);
    private static final LocalAssignment ONE = Assignments.of("t", "user", 8);

    private final Map<String, Plan> plans = new HashMap<>();
    private final Adoptions adoptions = new Adoptions("s1", plans::get);

    @BeforeEach
    void movingSeven() {
        Slot from = new Slot("s1", 6700);
        plans.put("t", new Plan("c", 1, 1, "t", List.of(new Entry("m1", new ExecutorId(7, 7), from,
            new Slot("s2", 6700), Phase.STOP, from, 100, null))));
    }

    @Test
    void adoptsAMovedSetThoughItsResourcesDiffer() {
        assertTrue(adoptions.accepts(ONE, BOTH));
        assertTrue(adoptions.adopted("t"));
    }

    @Test
    void keepsItsWordWithinAStep() {
        assertTrue(adoptions.accepts(ONE, BOTH));
        plans.clear();
        assertTrue(adoptions.accepts(ONE, BOTH), "the same two again");
        assertFalse(adoptions.accepts(new LocalAssignment(ONE), BOTH), "read anew");
    }

    @Test
    void anotherThreadWasToldNothing() throws Exception {
        assertTrue(adoptions.accepts(ONE, BOTH));
        plans.clear();
        boolean[] answer = {true};
        Thread other = new Thread(() -> answer[0] = adoptions.accepts(ONE, BOTH));
        other.start();
        other.join();
        assertFalse(answer[0]);
    }

    @Test
    void anotherTopologyOwnerOrAnEmptySlotIsStormsOwn() {
        assertFalse(adoptions.accepts(Assignments.of("u", "user", 8), BOTH));
        assertFalse(adoptions.accepts(Assignments.of("t", "other", 8), BOTH));
        assertFalse(adoptions.accepts(Assignments.of("t", null, 8), BOTH));
        assertFalse(adoptions.accepts(null, BOTH));
        assertFalse(adoptions.accepts(ONE, null));
        assertFalse(adoptions.accepts(null, null));
        assertFalse(adoptions.adopted("t"));
    }
}

package nstorm.worker.state;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.util.Map;
import org.junit.jupiter.api.Test;

class RehearsalTest {
    private static final long LARGE_BYTES = 20L << 20;

    @Test
    void nothingIsRehearsedUnlessTheTopologyWantsIt() {
        assertEquals(0, new Rehearsal(Map.of()).padding(LARGE_BYTES).size());
        assertEquals(
                0,
                new Rehearsal(Map.of("nstorm.state.rehearsed", false))
                        .padding(LARGE_BYTES)
                        .size());
    }

    @Test
    void zerosGoAheadOfTheFirstLargeStateAlone() {
        Rehearsal rehearsal = new Rehearsal(Map.of("nstorm.state.rehearsed", true));
        assertEquals(0, rehearsal.padding(1000).size());
        assertEquals(LARGE_BYTES, rehearsal.padding(LARGE_BYTES).size());
        assertEquals(0, rehearsal.padding(LARGE_BYTES).size());
    }

    /** Whatever fails in a rehearsal is only logged: so it is tried by itself. */
    @Test
    void theRehearsedBoltTravels() throws IOException {
        Rehearsal.Counts counts = new Rehearsal.Counts();
        counts.travel();
        assertTrue(counts.kept.containsKey("one more"));
    }
}

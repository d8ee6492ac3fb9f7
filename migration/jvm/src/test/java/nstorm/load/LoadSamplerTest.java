package nstorm.load;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.List;
import nstorm.load.LoadSampler.Running;
import nstorm.wire.ExecutorId;
import org.junit.jupiter.api.Test;

class LoadSamplerTest {
    private static Running executor(int task, long stateBytes) {
        return new Running(
                new ExecutorId(task, task), "count", Thread.currentThread().getId(), null, null, task, stateBytes);
    }

    @Test
    void whatIsUnackedIsReported() {
        assertArrayEquals(
                new long[] {5, 7},
                LoadSampler.numbers(List.of(executor(5, -1), executor(7, -1))).get("pending_tuples"));
    }

    @Test
    void aStateIsReportedWhereOneIsKnown() {
        assertArrayEquals(
                new long[] {-1, 42_000_000},
                LoadSampler.numbers(List.of(executor(1, -1), executor(2, 42_000_000)))
                        .get("state_bytes"));
        assertTrue(LoadSampler.numbers(List.of(executor(1, 0))).containsKey("state_bytes"), "an empty one");
        assertFalse(LoadSampler.numbers(List.of(executor(1, -1))).containsKey("state_bytes"));
    }
}

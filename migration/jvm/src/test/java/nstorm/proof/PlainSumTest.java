package nstorm.proof;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotEquals;

import java.util.AbstractCollection;
import java.util.ArrayList;
import java.util.Collections;
import java.util.Iterator;
import java.util.List;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;

class PlainSumTest {
    private static final int MANY = 50_000;
    private static final long LIMIT_NANOS = TimeUnit.MILLISECONDS.toNanos(150);

    private static List<Object> numbers() {
        List<Object> numbers = new ArrayList<>();
        for (int i = 0; i < MANY; i++) {
            numbers.add(i);
        }
        return numbers;
    }

    /** What comes from it comes after a while in which no CPU is used, as on a machine that is busy with something else. */
    private static final class Waiting extends AbstractCollection<Object> {
        @Override
        public Iterator<Object> iterator() {
            try {
                Thread.sleep(2 * TimeUnit.NANOSECONDS.toMillis(LIMIT_NANOS));
            } catch (InterruptedException e) {
                throw new IllegalStateException(e);
            }
            return numbers().iterator();
        }

        @Override
        public int size() {
            return MANY;
        }
    }

    @Test
    void theOrderDoesNotCountAndTheContentDoes() {
        List<Object> numbers = numbers();
        long sum = PlainSum.of(numbers, false, Long.MAX_VALUE >> 10);
        Collections.reverse(numbers);
        assertEquals(sum, PlainSum.of(numbers, false, Long.MAX_VALUE >> 10));
        numbers.set(7, -1);
        assertNotEquals(sum, PlainSum.of(numbers, false, Long.MAX_VALUE >> 10));
        numbers.set(7, new Object());
        assertEquals(GraphWalk.NO_VALUE, PlainSum.of(numbers, false, Long.MAX_VALUE >> 10));
    }

    @Test
    void onlyItsOwnCpuTimeIsLimited() {
        assertEquals(
                PlainSum.of(numbers(), false, Long.MAX_VALUE >> 10), PlainSum.of(new Waiting(), false, LIMIT_NANOS));
        assertEquals(PlainSum.LATE, PlainSum.of(numbers(), false, 1));
    }
}

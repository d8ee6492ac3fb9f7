package nstorm.proof;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotEquals;

import java.util.AbstractCollection;
import java.util.ArrayList;
import java.util.Collections;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
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
        long sum = PlainSum.of(numbers, false, true, Long.MAX_VALUE >> 10);
        Collections.reverse(numbers);
        assertEquals(sum, PlainSum.of(numbers, false, true, Long.MAX_VALUE >> 10));
        numbers.set(7, -1);
        assertNotEquals(sum, PlainSum.of(numbers, false, true, Long.MAX_VALUE >> 10));
        numbers.set(7, new Object());
        assertEquals(GraphWalk.NO_VALUE, PlainSum.of(numbers, false, true, Long.MAX_VALUE >> 10));
    }

    private static long sum(Map<?, ?> map, boolean sameJvm) {
        return PlainSum.of(map.entrySet(), true, sameJvm, Long.MAX_VALUE >> 10);
    }

    /** Two roles change places, or a number stands for itself. */
    @Test
    void whichIsTheKeyAndWhichTheValueCounts() {
        assertNotEquals(sum(Map.of(1, 2), true), sum(Map.of(2, 1), true));
        assertNotEquals(sum(Map.of(5L, 5L), true), sum(Map.of(7L, 7L), true));
    }

    /** A worker with an earlier jar makes it so at the other end of a move. */
    @Test
    void betweenTwoJvmsTheSumIsAsEver() {
        assertEquals(Hash.mix(Hash.mix(3, 1), Hash.mix(2, 7)), sum(Map.of(1, 7L), false));
    }

    @Test
    void onlyItsOwnCpuTimeIsLimited() {
        assertEquals(
                PlainSum.of(numbers(), false, true, Long.MAX_VALUE >> 10),
                PlainSum.of(new Waiting(), false, true, LIMIT_NANOS));
        assertEquals(PlainSum.LATE, PlainSum.of(numbers(), false, true, 1));
    }
}

package nstorm.load;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.lang.management.ManagementFactory;
import java.lang.ref.WeakReference;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import org.junit.jupiter.api.Test;

class SpoutAcksTest {
    private final SpoutAcks acks = new SpoutAcks();

    @Test
    void beforeTheFirstNothingIsKnown() {
        assertEquals(-1, acks.ackedTuples());
        assertEquals(-1, acks.failedTuples());
        assertEquals(List.of(), acks.latency());
    }

    @Test
    void whatIsKnownOfOneIsKnownOfTheOther() {
        acks.failed();
        assertEquals(0, acks.ackedTuples());
        assertEquals(1, acks.failedTuples());
    }

    @Test
    void onlyTimedTuplesAreInTheHistogram() {
        acks.acked(null);
        acks.acked(41L);
        acks.acked(41L);
        acks.acked(-3L);
        acks.acked(0L);
        assertEquals(5, acks.ackedTuples());
        assertEquals(2, acks.latency().size());
        assertArrayEquals(new long[] {0, 1}, acks.latency().get(0));
        assertArrayEquals(new long[] {22, 2}, acks.latency().get(1), "40 to 48 ms");
    }

    @Test
    void bucketsAreFourADoubling() {
        assertEquals(List.of(0, 1, 5, 7, 9), of(0, 1, 2, 3, 4));
        assertEquals(List.of(13, 13, 14, 14, 15, 15, 16, 16, 17), of(8, 9, 10, 11, 12, 13, 14, 15, 16));
        assertEquals(List.of(72, 73, 73, 73), of((1 << 18) - 1, 1 << 18, 300_000, Long.MAX_VALUE));
        assertEquals(SpoutAcks.BUCKETS - 1, SpoutAcks.bucket(Long.MAX_VALUE));
    }

    /** Without ackers Storm acks where it emits, and nobody asks for a sum. */
    @Test
    void threadsThatHaveEndedAreNotKeptThoughNobodyAsks() throws Exception {
        List<WeakReference<Thread>> threads = new ArrayList<>();
        for (int i = 0; i < 3; i++) {
            Thread thread = new Thread(() -> acks.acked(1L));
            thread.start();
            thread.join();
            threads.add(new WeakReference<>(thread));
        }
        for (int i = 0; i < 100 && threads.get(0).get() != null; i++) {
            System.gc();
            Thread.sleep(20);
        }
        assertNull(threads.get(0).get());
        assertNull(threads.get(1).get());
        assertEquals(3, acks.ackedTuples());
    }

    /** {@code controller/core/latency.py} has the same rule. */
    @Test
    void aBucketBeginsWhereItsNumberSays() {
        for (int e = 3; e < 18; e++) {
            for (int k = 0; k < 4; k++) {
                long begins = (1L << e) * (4 + k) / 4;
                assertEquals(1 + 4 * e + k, SpoutAcks.bucket(begins));
                assertEquals(4 * e + k, SpoutAcks.bucket(begins - 1));
            }
        }
    }

    @Test
    void whatAThreadHasCountedOutlivesIt() throws Exception {
        for (int i = 0; i < 3; i++) {
            Thread thread = new Thread(() -> {
                acks.acked(5L);
                acks.failed();
            });
            thread.start();
            thread.join();
            acks.acked(5L);
            assertEquals(2 * (i + 1), acks.ackedTuples());
        }
        assertEquals(6, acks.ackedTuples());
        assertEquals(3, acks.failedTuples());
        assertEquals(6, acks.latency().get(0)[1]);
    }

    @Test
    void theTuplePathAllocatesNothing() {
        var threads = (com.sun.management.ThreadMXBean) ManagementFactory.getThreadMXBean();
        Long took = 1_000_000L;
        acks.acked(took);
        long before = threads.getThreadAllocatedBytes(Thread.currentThread().getId());
        for (int i = 0; i < 100_000; i++) {
            acks.acked(took);
            acks.failed();
        }
        long bytes = threads.getThreadAllocatedBytes(Thread.currentThread().getId()) - before;
        assertTrue(bytes < 10_000, bytes + " bytes");
    }

    private static List<Integer> of(long... millis) {
        return Arrays.stream(millis).mapToObj(SpoutAcks::bucket).toList();
    }
}

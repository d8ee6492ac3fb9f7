package nstorm.proof;

import java.util.ArrayList;
import java.util.Collection;
import java.util.List;
import java.util.Map;
import java.util.Spliterator;
import java.util.concurrent.atomic.AtomicLong;

/**
 * The hashes of all elements of a large map or set of values, added up. All cores work on parts of it, since its executor holds still until
 * then.
 */
final class PlainSum {
    /** It took longer than it may. */
    static final long LATE = 0x6C617465L;

    private static final int PART = 8192;
    /** Two cores at work as long as one may be: the work is the same on more of them. */
    private static final int TIMES = 2;

    private final boolean entries;
    private final boolean sameJvm;
    private final AtomicLong leftCpuNanos;
    private final AtomicLong sum = new AtomicLong();
    private volatile long failed;

    private PlainSum(boolean entries, boolean sameJvm, long limitNanos) {
        this.entries = entries;
        this.sameJvm = sameJvm;
        leftCpuNanos = new AtomicLong(limitNanos * TIMES);
    }

    /**
     * The sum; {@link GraphWalk#NO_VALUE} if one is no value, {@link #LATE} if it takes too long.
     *
     * @param sameJvm whether the sum is for this JVM alone
     * @param limitNanos of CPU, as if two cores shared it: that they are busy decides nothing
     */
    static long of(Collection<?> elements, boolean entries, boolean sameJvm, long limitNanos) {
        PlainSum sum = new PlainSum(entries, sameJvm, limitNanos);
        List<Spliterator<?>> parts = new ArrayList<>(List.of(elements.spliterator()));
        for (int size = elements.size(); size > PART; size /= 2) {
            List<Spliterator<?>> halves = new ArrayList<>();
            for (Spliterator<?> part : parts) {
                Spliterator<?> half = part.trySplit();
                halves.add(part);
                if (half != null) {
                    halves.add(half);
                }
            }
            parts = halves;
        }
        parts.parallelStream().forEach(sum::add);
        return sum.failed != 0 ? sum.failed : sum.sum.get();
    }

    private void add(Spliterator<?> part) {
        Object[] keys = new Object[GraphWalk.BATCH];
        Object[] values = new Object[GraphWalk.BATCH];
        int[] count = new int[1];
        long own = 0;
        long lookedNanos = GraphWalk.cpuNanos();
        boolean more = true;
        while (more && failed == 0) {
            count[0] = 0;
            while (count[0] < GraphWalk.BATCH && more) {
                more = part.tryAdvance(element -> keys[count[0]++] = element);
            }
            for (int i = 0; entries && i < count[0]; i++) {
                Map.Entry<?, ?> entry = (Map.Entry<?, ?>) keys[i];
                keys[i] = entry.getKey();
                values[i] = entry.getValue();
            }
            for (int i = 0; i < count[0]; i++) {
                long key = GraphWalk.keyHash(keys[i]);
                long value = GraphWalk.valueHash(values[i]);
                if (key == GraphWalk.NO_VALUE || value == GraphWalk.NO_VALUE) {
                    failed = GraphWalk.NO_VALUE;
                    return;
                }
                own += GraphWalk.entry(sameJvm, key, value);
            }
            long nowNanos = GraphWalk.cpuNanos();
            if (leftCpuNanos.addAndGet(lookedNanos - nowNanos) < 0) {
                failed = LATE;
            }
            lookedNanos = nowNanos;
        }
        sum.addAndGet(own);
    }
}

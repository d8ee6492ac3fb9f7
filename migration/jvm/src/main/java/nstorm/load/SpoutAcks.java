package nstorm.load;

import java.util.ArrayList;
import java.util.List;

/**
 * Counts the tuples that Storm acks and fails at the spouts of this JVM, and how long the acked ones took.
 *
 * <p>Each executor's thread writes a row of its own: no lock, no shared line and, after its first tuple, no allocation. A reader
 * may see a count some microseconds old. Storm's own counters would not do: they are samples, and of times they keep a mean.
 */
public final class SpoutAcks {
    /** Those of this JVM. */
    public static final SpoutAcks HERE = new SpoutAcks();

    /** A bucket for less than a millisecond, then four a doubling up to five minutes; the last has all that took longer. */
    static final int BUCKETS = 74;

    private static final long LAST_MS = 1 << 18;

    /** What one thread has counted. */
    private static final class Row {
        final Thread thread;
        final long[] latency = new long[BUCKETS];
        long acked;
        long failed;

        Row(Thread thread) {
            this.thread = thread;
        }

        void add(Row other) {
            acked += other.acked;
            failed += other.failed;
            for (int i = 0; i < BUCKETS; i++) {
                latency[i] += other.latency[i];
            }
        }
    }

    private final ThreadLocal<Row> own = ThreadLocal.withInitial(this::newRow);
    private final List<Row> rows = new ArrayList<>();
    /** What threads have counted that have ended. */
    private final Row ended = new Row(null);

    private synchronized Row newRow() {
        addEnded(); // who never asks for a sum has moves all the same, and a row holds its thread
        Row row = new Row(Thread.currentThread());
        rows.add(row);
        return row;
    }

    /**
     * Counts one acked tuple; on the tuple path.
     *
     * @param latencyMs as the acker has measured it, or null: Storm times only samples
     */
    public void acked(Long latencyMs) {
        Row row = own.get();
        row.acked++;
        if (latencyMs != null && latencyMs >= 0) {
            row.latency[bucket(latencyMs)]++;
        }
    }

    /** Counts one failed tuple; on the tuple path. */
    public void failed() {
        own.get().failed++;
    }

    /** The bucket of a time; bucket 1 + 4e + k begins at 2^e × (4 + k) / 4 ms. */
    static int bucket(long ms) {
        if (ms <= 0) {
            return 0;
        }
        long capped = Math.min(ms, LAST_MS);
        int doublings = 63 - Long.numberOfLeadingZeros(capped);
        return 1 + 4 * doublings + (int) ((capped << 2 >> doublings) & 3);
    }

    /** How many tuples were acked, or -1 while none has been acked or failed: it is not known then whether spouts want acks. */
    long ackedTuples() {
        Row all = sum();
        return all.acked + all.failed == 0 ? -1 : all.acked;
    }

    /** As {@link #ackedTuples}. */
    long failedTuples() {
        Row all = sum();
        return all.acked + all.failed == 0 ? -1 : all.failed;
    }

    /** Rows of bucket and tuples, without the empty ones. */
    List<long[]> latency() {
        Row all = sum();
        List<long[]> buckets = new ArrayList<>();
        for (int i = 0; i < BUCKETS; i++) {
            if (all.latency[i] > 0) {
                buckets.add(new long[] {i, all.latency[i]});
            }
        }
        return buckets;
    }

    private void addEnded() {
        rows.removeIf(row -> {
            boolean over = !row.thread.isAlive();
            if (over) {
                ended.add(row);
            }
            return over;
        });
    }

    private synchronized Row sum() {
        addEnded();
        Row all = new Row(null);
        all.add(ended);
        rows.forEach(all::add);
        return all;
    }
}

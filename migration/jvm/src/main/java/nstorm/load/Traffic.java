package nstorm.load;

import java.util.ArrayList;
import java.util.List;
import org.apache.storm.tuple.AddressedTuple;

/**
 * Counts tuples sent, source task → destination task, on the executors' own threads.
 *
 * <p>One row of longs per source task, written by that task's executor alone: no lock, no allocation and
 * no shared line per tuple. A reader may see a count some microseconds old. Bolts that emit from threads
 * of their own may lose a count now and then; the figures are for decisions, not for ledgers.
 */
public final class Traffic {
    /** By it tasks of Storm 3 report upstream, against the direction of the user's tuples. */
    static final String FEEDBACK = "__feedback";

    private static long[][] rows = new long[0][];
    /** When each row was last asked for. */
    private static long[] askedNanos = new long[0];

    private Traffic() {}

    /** Sizes the matrix: task ids from −1 (system) to {@code maxTaskId}. */
    public static synchronized void prepare(int maxTaskId) {
        rows = new long[maxTaskId + 2][];
        askedNanos = new long[maxTaskId + 2];
    }

    /** Gives a source task its row, or keeps it; to be called before its executor runs, and now and then while it does. */
    public static synchronized void addSource(int task) {
        long[][] all = rows;
        if (task + 1 < all.length) {
            askedNanos[task + 1] = System.nanoTime();
            if (all[task + 1] == null) {
                all[task + 1] = new long[all.length];
            }
        }
    }

    /** Frees the rows that nobody has asked for since then, each of which has a place for every task; returns their tasks. */
    static synchronized List<Integer> removeGone(long sinceNanos) {
        List<Integer> gone = new ArrayList<>();
        for (int i = 0; i < rows.length; i++) {
            if (rows[i] != null && askedNanos[i] - sinceNanos < 0) {
                rows[i] = null;
                gone.add(i - 1);
            }
        }
        return gone;
    }

    /** Counts one tuple that Storm took; on the tuple path. */
    public static void count(AddressedTuple tuple) {
        int source = tuple.tuple.getSourceTask() + 1;
        int destination = tuple.dest + 1;
        long[][] all = rows;
        if (source >= 0 && source < all.length && destination >= 0 && destination < all.length) {
            long[] row = all[source];
            if (row != null && !FEEDBACK.equals(tuple.tuple.getSourceStreamId())) {
                row[destination]++;
            }
        }
    }

    /** The counters, by source task + 1 and destination task + 1; a row is null until its task sends from here. */
    static long[][] counters() {
        return rows;
    }
}

package nstorm.worker.routes;

import java.util.HashSet;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.TimeUnit;
import org.apache.storm.tuple.AddressedTuple;

/**
 * Keeps a tuple from circling between workers whose plans contradict each other. A tuple that this worker has forwarded
 * and that has come back stays until the plan advances, or for a second or two.
 *
 * <p>A {@code TaskMessage} has no room for hops or versions. But an anchored tuple has an edge id of its own, and keeps
 * it from worker to worker. The id is drawn at random for each task that the tuple is sent to. Without anchors two
 * tuples of the same content cannot be distinguished, so these are not held. What is held never waits for a plan alone:
 * an agent that stays away would stop the task's tuples for ever.
 *
 * <p>For the one thread that forwards, except {@link #planAdvanced}.
 */
final class RecentlyForwarded {
    private static final long PERIOD_NANOS = TimeUnit.SECONDS.toNanos(1);
    /** Beyond it a tuple is not remembered: it may then circle as if this class did not exist. */
    private static final int LIMIT = 50_000;

    private Set<Long> before = new HashSet<>();
    private Set<Long> now = new HashSet<>();
    private long sinceNanos;
    private volatile boolean advanced;

    RecentlyForwarded(long nowNanos) {
        sinceNanos = nowNanos;
    }

    /** From any thread: the routes follow another plan, so whatever has come back may go again. */
    void planAdvanced() {
        advanced = true;
    }

    /** True if the tuple has left this worker since the plan last advanced, in the last second or two. */
    boolean contains(AddressedTuple tuple, long nowNanos) {
        turn(nowNanos);
        boolean none = before.isEmpty() && now.isEmpty();
        return !none && isAnchored(tuple) && (now.contains(key(tuple)) || before.contains(key(tuple)));
    }

    /** Remembers a tuple that leaves this worker. */
    void add(AddressedTuple tuple) {
        if (isAnchored(tuple) && now.size() < LIMIT) {
            now.add(key(tuple));
        }
    }

    private void turn(long nowNanos) {
        if (advanced || nowNanos - sinceNanos > 2 * PERIOD_NANOS) {
            advanced = false;
            sinceNanos = nowNanos;
            now.clear();
            before.clear();
        } else if (nowNanos - sinceNanos > PERIOD_NANOS) {
            sinceNanos = nowNanos;
            Set<Long> emptied = before;
            emptied.clear();
            before = now;
            now = emptied;
        }
    }

    private static Map<Long, Long> anchors(AddressedTuple tuple) {
        return tuple.tuple.getMessageId().getAnchorsToIds();
    }

    private static boolean isAnchored(AddressedTuple tuple) {
        return !anchors(tuple).isEmpty();
    }

    private static long key(AddressedTuple tuple) {
        long key = tuple.dest;
        for (Map.Entry<Long, Long> anchor : anchors(tuple).entrySet()) {
            key += 31 * anchor.getKey() + anchor.getValue();
        }
        return key;
    }
}

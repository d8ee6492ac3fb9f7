package nstorm.worker.state;

import java.lang.ref.WeakReference;

/**
 * Lets the collector look at young objects now. Those of a large state are new and will live: the next collection
 * copies them, and all threads stand still until it ends. Better before the executor's pause than in it.
 */
final class EarlyCollection {
    private static final int PIECE_BYTES = 1 << 18;
    /** Where young objects have more room than this, the next collection is not near. */
    private static final long MOST_BYTES = Math.min(Runtime.getRuntime().maxMemory() / 2, 1L << 30);

    @SuppressWarnings("UnusedVariable") // else the compiler could leave the array out
    private static volatile byte[] garbage;

    private EarlyCollection() {}

    /** Makes garbage until there has been a collection; unlike {@code System.gc()} it is one of the young objects alone. */
    static void provoke() {
        WeakReference<Object> canary = new WeakReference<>(new Object());
        for (long left = MOST_BYTES; left > 0 && !canary.refersTo(null); left -= PIECE_BYTES) {
            garbage = new byte[PIECE_BYTES];
        }
        garbage = null;
    }
}

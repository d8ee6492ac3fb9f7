package nstorm.workload;

/**
 * The buckets of a latency histogram: 16 to an octave of microseconds, so a value is known to about 6 per cent.
 * Buckets below 16 hold one microsecond each.
 */
final class Latencies {
    private static final int SUB_BITS = 4;
    private static final int SUB_COUNT = 1 << SUB_BITS;
    /** Enough for 2^40 µs, far beyond any message timeout. */
    static final int BUCKETS = SUB_COUNT * (40 - SUB_BITS + 2);

    private Latencies() {}

    static int bucket(long micros) {
        if (micros < SUB_COUNT) {
            return (int) Math.max(micros, 0);
        }
        int octave = 63 - Long.numberOfLeadingZeros(micros);
        int sub = (int) (micros >>> (octave - SUB_BITS)) & (SUB_COUNT - 1);
        return Math.min(SUB_COUNT * (octave - SUB_BITS + 1) + sub, BUCKETS - 1);
    }
}

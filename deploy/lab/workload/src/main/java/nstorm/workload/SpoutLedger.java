package nstorm.workload;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;

/**
 * What became of every id of one spout task: totals, and windows of one second of wall clock.
 * The spout's thread counts, the ledger's thread closes windows, hence the locks.
 */
final class SpoutLedger {
    private static final int IN_FLIGHT_MAX = 1 << 20;

    private final int task;
    /** Emit time of the id in flight at [id mod size]; 0 when that place is free. */
    private final long[] emittedNanos = new long[IN_FLIGHT_MAX];
    private final int[] windowLatencies = new int[Latencies.BUCKETS];
    private final List<String> closed = new ArrayList<>();
    private long emitted;
    private long acked;
    private long failed;
    private long doubleAcked;
    private long windowSecond;
    private long windowEmitted;
    private long windowAcked;
    private long windowFailed;
    private long windowMaxMicros;

    SpoutLedger(int task, long nowMillis) {
        this.task = task;
        this.windowSecond = nowMillis / 1000;
    }

    /** Books a new id, or returns -1 while a million are in flight. */
    synchronized long emit() {
        int place = (int) (emitted & (IN_FLIGHT_MAX - 1));
        if (emittedNanos[place] != 0) {
            return -1;
        }
        roll(System.currentTimeMillis());
        emittedNanos[place] = System.nanoTime() | 1;
        windowEmitted++;
        return emitted++;
    }

    synchronized void ack(long id) {
        roll(System.currentTimeMillis());
        long since = settle(id);
        if (since == 0) {
            doubleAcked++;
            return;
        }
        acked++;
        windowAcked++;
        long micros = (System.nanoTime() - since) / 1000;
        windowLatencies[Latencies.bucket(micros)]++;
        windowMaxMicros = Math.max(windowMaxMicros, micros);
    }

    synchronized void fail(long id) {
        roll(System.currentTimeMillis());
        if (settle(id) == 0) {
            doubleAcked++;
            return;
        }
        failed++;
        windowFailed++;
    }

    /** The emit time of an id that is in flight, which it then no longer is; else 0. */
    private long settle(long id) {
        if (id < 0 || id >= emitted || id < emitted - IN_FLIGHT_MAX) {
            return 0;
        }
        int place = (int) (id & (IN_FLIGHT_MAX - 1));
        long since = emittedNanos[place];
        emittedNanos[place] = 0;
        return since;
    }

    /** Closes the windows before this moment; seconds in which nothing happened get a line too. */
    private void roll(long nowMillis) {
        for (long now = nowMillis / 1000; windowSecond < now; windowSecond++) {
            closed.add(window());
            windowEmitted = 0;
            windowAcked = 0;
            windowFailed = 0;
            windowMaxMicros = 0;
            Arrays.fill(windowLatencies, 0);
        }
    }

    synchronized List<String> takeWindows(long nowMillis) {
        roll(nowMillis);
        List<String> taken = List.copyOf(closed);
        closed.clear();
        return taken;
    }

    synchronized String totals() {
        return "{\"task\":" + task + ",\"emitted\":" + emitted + ",\"acked\":" + acked + ",\"failed\":" + failed
            + ",\"double_acked\":" + doubleAcked + "}";
    }

    private String window() {
        StringBuilder line = new StringBuilder("{\"t_s\":").append(windowSecond).append(",\"task\":").append(task)
            .append(",\"emitted\":").append(windowEmitted).append(",\"acked\":").append(windowAcked)
            .append(",\"failed\":").append(windowFailed).append(",\"pending\":").append(emitted - acked - failed)
            .append(",\"max_us\":").append(windowMaxMicros).append(",\"latency\":[");
        String separator = "";
        for (int bucket = 0; bucket < windowLatencies.length; bucket++) {
            if (windowLatencies[bucket] > 0) {
                line.append(separator).append('[').append(bucket).append(',').append(windowLatencies[bucket]).append(']');
                separator = ",";
            }
        }
        return line.append("]}").toString();
    }
}

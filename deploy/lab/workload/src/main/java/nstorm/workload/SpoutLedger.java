package nstorm.workload;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;

/**
 * What became of every id of one spout task: totals, windows of one second of wall clock, and acks by slot of 10 ms.
 * The spout's thread counts, the ledger's thread closes windows, hence the locks.
 */
final class SpoutLedger {
    private static final int IN_FLIGHT_MAX = 1 << 20;
    private static final int SLOT_MS = 10;
    private static final int SLOTS = 1000 / SLOT_MS;

    private final int task;
    /** Emit time of the id in flight at [id mod size]; 0 when that place is free. */
    private long[] emittedNanos = new long[IN_FLIGHT_MAX];

    private final int[] windowLatencies = new int[Latencies.BUCKETS];
    /** Acks of this second by slot; those before {@code slotsWritten} are written. */
    private final int[] slotAcked = new int[SLOTS];

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
    private int slotsWritten;

    SpoutLedger(int task, long nowMillis) {
        this.task = task;
        this.windowSecond = nowMillis / 1000;
        this.slotsWritten = slot(nowMillis);
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
        long nowMillis = System.currentTimeMillis();
        roll(nowMillis);
        long since = settle(id);
        if (since == 0) {
            doubleAcked++;
            return;
        }
        acked++;
        windowAcked++;
        // A clock that was set back counts in what is not yet written.
        slotAcked[Math.max(slot(nowMillis), slotsWritten)]++;
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
            closeSlots(SLOTS);
            slotsWritten = 0;
            windowEmitted = 0;
            windowAcked = 0;
            windowFailed = 0;
            windowMaxMicros = 0;
            Arrays.fill(windowLatencies, 0);
        }
    }

    /** The slots so far too, so that a JVM that is killed takes no whole second of them with it. */
    synchronized List<String> takeWindows(long nowMillis) {
        roll(nowMillis);
        // An ack may have begun the next second while the caller waited for the lock.
        if (nowMillis / 1000 == windowSecond) {
            closeSlots(slot(nowMillis));
        }
        List<String> taken = List.copyOf(closed);
        closed.clear();
        return taken;
    }

    synchronized String totals() {
        return "{\"task\":" + task + ",\"emitted\":" + emitted + ",\"acked\":" + acked + ",\"failed\":" + failed
                + ",\"double_acked\":" + doubleAcked + "}";
    }

    synchronized long emitted() {
        return emitted;
    }

    /** Nothing is emitted or acked any more; the counts stay. A JVM may see many spouts come and go. */
    synchronized void close() {
        emittedNanos = new long[0];
    }

    private static int slot(long nowMillis) {
        return (int) (nowMillis % 1000) / SLOT_MS;
    }

    /** Closes the slots of this second before one of them. */
    private void closeSlots(int end) {
        if (slotsWritten >= end) {
            return;
        }
        StringBuilder line = new StringBuilder("{\"slots_of_s\":")
                .append(windowSecond)
                .append(",\"task\":")
                .append(task)
                .append(",\"first\":")
                .append(slotsWritten)
                .append(",\"acked\":[");
        for (int slot = slotsWritten; slot < end; slot++) {
            line.append(slot > slotsWritten ? "," : "").append(slotAcked[slot]);
        }
        closed.add(line.append("]}").toString());
        Arrays.fill(slotAcked, slotsWritten, end, 0);
        slotsWritten = end;
    }

    private String window() {
        StringBuilder line = new StringBuilder("{\"t_s\":")
                .append(windowSecond)
                .append(",\"task\":")
                .append(task)
                .append(",\"emitted\":")
                .append(windowEmitted)
                .append(",\"acked\":")
                .append(windowAcked)
                .append(",\"failed\":")
                .append(windowFailed)
                .append(",\"pending\":")
                .append(emitted - acked - failed)
                .append(",\"max_us\":")
                .append(windowMaxMicros)
                .append(",\"latency\":[");
        String separator = "";
        for (int bucket = 0; bucket < windowLatencies.length; bucket++) {
            if (windowLatencies[bucket] > 0) {
                line.append(separator)
                        .append('[')
                        .append(bucket)
                        .append(',')
                        .append(windowLatencies[bucket])
                        .append(']');
                separator = ",";
            }
        }
        return line.append("]}").toString();
    }
}

package nstorm.wire;

import java.util.List;

/** An executor by its task range, both ends included; Storm writes it as a list of two longs. */
public record ExecutorId(int start, int end) implements Comparable<ExecutorId> {

    public static ExecutorId of(List<Long> storm) {
        return new ExecutorId(Math.toIntExact(storm.get(0)), Math.toIntExact(storm.get(1)));
    }

    public List<Long> toStorm() {
        return List.of((long) start, (long) end);
    }

    @Override
    public int compareTo(ExecutorId other) {
        return start != other.start ? Integer.compare(start, other.start) : Integer.compare(end, other.end);
    }

    @Override
    public String toString() {
        return "[" + start + "," + end + "]";
    }
}

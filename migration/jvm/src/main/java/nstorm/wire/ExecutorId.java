package nstorm.wire;

import java.io.IOException;
import java.util.List;
import nstorm.wire.json.JsonInput;
import nstorm.wire.json.JsonText;
import nstorm.wire.json.WireException;

/** An executor by its task range, both ends included; Storm writes it as a list of two longs. */
public record ExecutorId(int start, int end) implements Comparable<ExecutorId> {

    public static ExecutorId of(List<Long> storm) {
        return new ExecutorId(Math.toIntExact(storm.get(0)), Math.toIntExact(storm.get(1)));
    }

    /** Reads a list of two task ids; what a later version adds to it is passed over. */
    static ExecutorId read(JsonInput in) throws IOException, WireException {
        in.beginArray();
        long start = in.whole(-1, Integer.MAX_VALUE);
        long end = in.whole(start, Integer.MAX_VALUE);
        in.endArray();
        return new ExecutorId((int) start, (int) end);
    }

    /** Writes a list of two task ids. */
    public static void write(JsonText out, ExecutorId executor) {
        out.values(executor.start, executor.end);
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

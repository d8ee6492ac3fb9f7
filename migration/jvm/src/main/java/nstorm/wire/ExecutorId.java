package nstorm.wire;

import java.util.List;
import nstorm.wire.json.JsonFields;
import nstorm.wire.json.JsonText;
import nstorm.wire.json.WireException;

/** An executor by its task range, both ends included; Storm writes it as a list of two longs. */
public record ExecutorId(int start, int end) implements Comparable<ExecutorId> {

    public static ExecutorId of(List<Long> storm) {
        return new ExecutorId(Math.toIntExact(storm.get(0)), Math.toIntExact(storm.get(1)));
    }

    /** Reads the field of this name, a list of two task ids. */
    static ExecutorId read(JsonFields fields, String name) throws WireException {
        JsonFields range = fields.pair(name);
        long start = range.whole("0", 1);
        long end = range.whole("1", start);
        if (end > Integer.MAX_VALUE) {
            throw fields.wrong(name, "is not a task range: [" + start + "," + end + "]");
        }
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

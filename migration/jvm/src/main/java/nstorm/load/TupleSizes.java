package nstorm.load;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.function.BiConsumer;
import nstorm.wire.report.TupleSize;
import org.apache.storm.messaging.TaskMessage;

/**
 * Adds up how large the tuples are that leave for other workers, by source and destination component: all of each
 * {@value #ONE_OF}th send.
 *
 * <p>Storm's transfer thread alone adds, without a lock. The sampling thread makes the rows that it adds to, one for each
 * component that sends, so that nothing is allocated here. What was sent before there is a row is not counted.
 */
public final class TupleSizes {
    /** A prime: what is sent in turn, such as tuples and their acks, must not always meet the same turn. */
    static final int ONE_OF = 31;
    /** Length and task, which Storm's MessageBatch writes before each message. */
    static final int FRAME_BYTES = 6;

    private static final int VAR_INT_BYTES = 5;
    private static final int NONE = -1;
    private static final long[] WANTED = new long[0];

    private final String[] components;
    private final int[] componentOf;
    /** By source component: for each destination component the tuples and their bytes. */
    private final long[][] rows;
    /** Made once, for a lambda in the loop would be one more object for each send. */
    private final BiConsumer<Integer, ArrayList<TaskMessage>> add = this::add;

    private int sends;

    /** @param byTask the component of each task */
    public TupleSizes(Map<Integer, String> byTask) {
        components = byTask.values().stream().distinct().sorted().toArray(String[]::new);
        List<String> names = Arrays.asList(components); // takes null, for there may be no such task
        componentOf = new int[Collections.max(byTask.keySet()) + 1];
        for (int task = 0; task < componentOf.length; task++) {
            componentOf[task] = names.indexOf(byTask.get(task));
        }
        rows = new long[components.length][];
    }

    /** These messages are sent now, by destination task; on the transfer thread. */
    public void sent(Map<Integer, ArrayList<TaskMessage>> bundles) {
        sends++;
        if (sends == ONE_OF) {
            sends = 0;
            bundles.forEach(add);
        }
    }

    private void add(Integer task, ArrayList<TaskMessage> messages) {
        int destination = component(task);
        int size = destination == NONE ? 0 : messages.size();
        for (int i = 0; i < size; i++) {
            byte[] message = messages.get(i).message();
            int source = component(sourceTask(message));
            if (source != NONE) {
                add(source, destination, message.length);
            }
        }
    }

    private void add(int source, int destination, int bytes) {
        long[] row = rows[source];
        if (row == null) {
            rows[source] = WANTED;
        } else if (row != WANTED) {
            row[2 * destination]++;
            row[2 * destination + 1] += FRAME_BYTES + bytes;
        }
    }

    /** None for tasks of Storm itself and of these hooks, which are below 0. */
    private int component(int task) {
        return task >= 0 && task < componentOf.length ? componentOf[task] : NONE;
    }

    /** A message begins with its source task, as Kryo writes an int that is seldom negative: the lowest 7 bits first. */
    static int sourceTask(byte[] message) {
        int task = 0;
        int most = Math.min(message.length, VAR_INT_BYTES);
        for (int i = 0; i < most; i++) {
            task |= (message[i] & 0x7f) << (7 * i);
            if (message[i] >= 0) {
                return task;
            }
        }
        return NONE;
    }

    /** What was added up since this JVM started; on the sampling thread. */
    List<TupleSize> read() {
        List<TupleSize> found = new ArrayList<>();
        for (int source = 0; source < rows.length; source++) {
            if (rows[source] == WANTED) {
                rows[source] = new long[2 * components.length];
            }
            long[] row = rows[source];
            for (int i = 0; row != null && i < components.length; i++) {
                if (row[2 * i] > 0) {
                    found.add(new TupleSize(components[source], components[i], row[2 * i], row[2 * i + 1]));
                }
            }
        }
        return found;
    }
}

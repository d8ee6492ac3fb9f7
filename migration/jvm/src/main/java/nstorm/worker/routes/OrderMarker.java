package nstorm.worker.routes;

import java.util.List;
import nstorm.wire.ExecutorId;
import nstorm.wire.Slot;
import org.apache.storm.daemon.StormCommon;
import org.apache.storm.task.WorkerTopologyContext;
import org.apache.storm.tuple.Tuple;
import org.apache.storm.tuple.TupleImpl;

/**
 * Two messages by which a sender reports to a moving task that its tuples go another way from now on. OPENS comes before the first that
 * goes directly, CLOSES behind the last that went the old way. They are tuples of that sender on Storm's own stream, which every component
 * has.
 *
 * <p>They, and what an end of a move forwards, go under a pseudo task. So the other end can distinguish them from what comes directly.
 */
public final class OrderMarker {
    private static final int FIRST = -2000;
    static final String OPENS = "nstorm.opens";
    static final String CLOSES = "nstorm.closes ";

    private static final String PROBE = "nstorm.probe ";

    /** What an old copy sends behind all that it has emitted: each worker that has got it sends it on to the new copy's. */
    record Probe(int task, int workers, Slot to) {}

    private OrderMarker() {}

    static Tuple probe(WorkerTopologyContext context, Probe probe) {
        return marker(context, probe.task(), PROBE + probe.task() + " " + probe.workers() + " " + probe.to());
    }

    /** Null if the tuple is none. */
    static Probe probe(Tuple tuple) {
        if (tuple.getValue(0) instanceof String text && text.startsWith(PROBE)) {
            String[] parts = text.substring(PROBE.length()).split(" ", 3);
            return new Probe(Integer.parseInt(parts[0]), Integer.parseInt(parts[1]), Slot.parse(parts[2]));
        }
        return null;
    }

    /** Whether the pseudo tasks of an executor fit into a message, whose tasks have 16 bits. */
    static boolean fits(ExecutorId executor) {
        return oldWay(executor.end()) >= Short.MIN_VALUE;
    }

    /** The pseudo task under which messages for a task go the old way. */
    public static int oldWay(int task) {
        return FIRST - task;
    }

    static boolean isOldWay(int dest) {
        return dest <= FIRST;
    }

    /** The task that is meant by a pseudo task. */
    static int task(int oldWay) {
        return FIRST - oldWay;
    }

    static Tuple opens(WorkerTopologyContext context, int source) {
        return marker(context, source, OPENS);
    }

    /** What closes the old way of a sender, for the worker that its tuples go to from now on. */
    public static Tuple closes(WorkerTopologyContext context, int source, Slot to) {
        return marker(context, source, CLOSES + to);
    }

    private static Tuple marker(WorkerTopologyContext context, int source, String text) {
        return new TupleImpl(
                context, List.of(text), context.getComponentId(source), source, StormCommon.SYSTEM_STREAM_ID);
    }

    /** Whether a tuple is one of the two. */
    public static boolean is(Tuple tuple) {
        return StormCommon.SYSTEM_STREAM_ID.equals(tuple.getSourceStreamId())
                && tuple.size() == 1
                && tuple.getValue(0) instanceof String text
                && (text.equals(OPENS) || text.startsWith(CLOSES));
    }

    /** Which worker's tuples a CLOSES is for; null if it is an OPENS. */
    static Slot closedFor(Tuple marker) {
        String text = (String) marker.getValue(0);
        return text.equals(OPENS) ? null : Slot.parse(text.substring(CLOSES.length()));
    }
}

package nstorm.worker;

import java.io.IOException;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.TimeUnit;
import nstorm.wire.Entry;
import nstorm.wire.ExecutorId;
import nstorm.wire.Phase;
import nstorm.wire.Way;
import org.apache.storm.daemon.StormCommon;
import org.apache.storm.messaging.TaskMessage;
import org.apache.storm.serialization.KryoTupleSerializer;
import org.apache.storm.task.WorkerTopologyContext;
import org.apache.storm.tuple.AddressedTuple;
import org.apache.storm.tuple.TupleImpl;

/**
 * Carries what bolts keep from the source of a move to its target, as tuples for a pseudo task over Storm's connection
 * between the two workers. A connection may drop them, so they are sent again until the plan goes on.
 *
 * <p>All but {@link #isPiece} and {@link #take} is the reconciler's thread's.
 */
final class StateTransfer {
    /** Not a route's: no connection is kept for it. */
    private static final int TASK = WorkerTables.LAST_END - 1;
    private static final long AGAIN_NANOS = TimeUnit.SECONDS.toNanos(3);

    /** Of a move from here: its state once it was asked for, and when it was last sent. */
    private static final class Leaving {
        List<byte[]> pieces;
        long sentNanos;
    }

    private final HookedWorker worker;
    private final StateArrivals arrivals = new StateArrivals();
    private final Map<String, Leaving> leaving = new HashMap<>();
    private KryoTupleSerializer serializer;

    StateTransfer(HookedWorker worker) {
        this.worker = worker;
    }

    static boolean isPiece(AddressedTuple tuple) {
        return tuple.dest == TASK;
    }

    /** Takes a piece that has just come by Netty. */
    void take(AddressedTuple tuple) {
        try {
            arrivals.take((byte[]) tuple.tuple.getValue(0));
        } catch (IOException | RuntimeException e) {
            Faults.report("taking a piece of a bolt's state", e);
        }
    }

    /** Forgets moves that have gone on. */
    void follow(List<Entry> entries) {
        Set<String> coming = new HashSet<>();
        Set<String> going = new HashSet<>();
        for (Entry entry : entries) {
            boolean early = entry.phase() == Phase.SWITCH || entry.phase() == Phase.DRAIN || entry.phase() == Phase.CARRY;
            if (entry.way() == Way.CARRY && early) {
                (entry.to().equals(worker.me) ? coming : going).add(entry.id());
            }
        }
        arrivals.await(coming);
        leaving.keySet().retainAll(going);
    }

    /** At the source in CARRY: asks the copy for its state, and sends it. */
    void send(Entry entry, ExecutorCopy copy) {
        Leaving state = leaving.get(entry.id());
        if (state == null) {
            leaving.put(entry.id(), new Leaving());
            copy.saveState();
            return;
        }
        byte[] saved = state.pieces == null ? copy.savedState() : null;
        if (saved != null) {
            state.pieces = StateArrivals.cut(entry.id(), saved);
            state.sentNanos = System.nanoTime() - AGAIN_NANOS;
        }
        if (state.pieces != null && System.nanoTime() - state.sentNanos >= AGAIN_NANOS
                && worker.tables.send(entry.to(), messages(entry.executor(), copy.component, state.pieces))) {
            state.sentNanos = System.nanoTime();
        }
    }

    /** At the target in CARRY: gives the copy the state once it is whole. */
    void load(Entry entry, ExecutorCopy copy) {
        byte[] state = copy.loaded() ? null : arrivals.whole(entry.id());
        if (state != null) {
            copy.loadState(state);
        }
    }

    private List<TaskMessage> messages(ExecutorId from, String component, List<byte[]> pieces) {
        WorkerTopologyContext context = worker.state.getWorkerTopologyContext();
        if (serializer == null) {
            serializer = new KryoTupleSerializer(worker.state.getTopologyConf(), context);
        }
        return messages(pieces, component, from, context, serializer);
    }

    static List<TaskMessage> messages(List<byte[]> pieces, String component, ExecutorId from, WorkerTopologyContext context,
            KryoTupleSerializer serializer) {
        List<TaskMessage> messages = new ArrayList<>();
        for (byte[] piece : pieces) {
            // Each component has Storm's own stream, of one value.
            TupleImpl tuple = new TupleImpl(context, List.of(piece), component, from.start(), StormCommon.SYSTEM_STREAM_ID);
            messages.add(new TaskMessage(TASK, serializer.serialize(tuple)));
        }
        return messages;
    }
}

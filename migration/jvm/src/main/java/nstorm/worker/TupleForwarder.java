package nstorm.worker;

import java.util.Map;
import nstorm.wire.Slot;
import org.apache.storm.daemon.worker.WorkerState;
import org.apache.storm.serialization.KryoTupleSerializer;
import org.apache.storm.tuple.AddressedTuple;
import org.apache.storm.utils.JCQueue;

/** Where one misrouted tuple goes: to a copy in this worker, or over the network to the owner's worker. */
final class TupleForwarder implements MisroutedTuples.Delivery {
    private final HookedWorker worker;
    private final WorkerState state;
    private final WorkerTables tables;
    private final Map<Integer, ExecutorCopy> copyByTask;
    private final RecentlyForwarded forwarded = new RecentlyForwarded(System.nanoTime());
    /** Of the one thread that delivers: Kryo is for one thread. */
    private KryoTupleSerializer serializer;

    TupleForwarder(HookedWorker worker, Map<Integer, ExecutorCopy> copyByTask) {
        this.worker = worker;
        state = worker.state;
        tables = worker.tables;
        this.copyByTask = copyByTask;
    }

    @Override
    public boolean deliver(AddressedTuple tuple) {
        if (TupleOrder.isForPeer(tuple.dest)) {
            return worker.order.sendToPeer(tuple.dest, tuple.tuple);
        }
        if (OrderMarker.is(tuple.tuple)) {
            return deliverMarker(tuple);
        }
        JCQueue queue = here(tuple.dest);
        OrderGate gate = queue == null || !worker.order.atEnd(tuple.dest) ? null : worker.order.gate(tuple.dest);
        if (gate != null) {
            return gate.forwarded(tuple);
        }
        if (queue != null) {
            return OrderGate.enter(queue, tuple);
        }
        Slot owner = tables.ownerOf(tuple.dest);
        if (owner == null || owner.equals(worker.me) || forwarded.contains(tuple, System.nanoTime())) {
            return false;
        }
        if (serializer == null) {
            serializer = new KryoTupleSerializer(state.getTopologyConf(), state.getWorkerTopologyContext());
        }
        boolean sent = worker.order.atEnd(tuple.dest) ? worker.order.transfer(tuple.dest, serializer.serialize(tuple.tuple))
                : state.tryTransferRemote(tuple, null, serializer);
        if (sent) {
            forwarded.add(tuple);
        }
        return sent;
    }

    /** The queue of this worker that takes the task's tuples; null if there is none. */
    private JCQueue here(int task) {
        ExecutorCopy copy = copyByTask.get(task);
        if (copy != null && copy.drain.forwards()) {
            // What it has just handed on would come back behind what is still sent to it.
            return null;
        }
        JCQueue queue = tables.routes.queue(task);
        return queue == null && copy != null && copy.acceptsEarly() ? copy.queue : queue;
    }

    /** A marker that nobody here awaits goes on; where its move has ended nobody does there either. */
    private boolean deliverMarker(AddressedTuple marker) {
        Slot to = OrderMarker.closedFor(marker.tuple);
        OrderGate gate = worker.order.gate(marker.dest);
        if (worker.me.equals(to) || to == null) {
            return gate == null || gate.forwarded(marker);
        }
        return !worker.order.atEnd(marker.dest) || worker.order.transfer(marker.dest, marker.tuple);
    }

    /** What has come back may go again; from any thread. */
    void planAdvanced() {
        forwarded.planAdvanced();
    }

    @Override
    public void flush() {
        state.tryFlushRemotes();
    }
}

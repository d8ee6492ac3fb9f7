package nstorm.worker.routes;

import nstorm.wire.Slot;
import org.apache.storm.daemon.worker.WorkerState;
import org.apache.storm.serialization.KryoTupleSerializer;
import org.apache.storm.tuple.AddressedTuple;
import org.apache.storm.utils.JCQueue;

/** Where one misrouted tuple goes: to a copy in this worker, or over the network to the owner's worker. */
final class TupleForwarder implements MisroutedTuples.Delivery {
    private final TupleRouting routing;
    private final WorkerState state;
    private final WorkerTables tables;
    private final RecentlyForwarded forwarded = new RecentlyForwarded(System.nanoTime());
    /** Of the one thread that delivers: Kryo is for one thread. */
    private KryoTupleSerializer serializer;

    TupleForwarder(TupleRouting routing) {
        this.routing = routing;
        state = routing.state;
        tables = routing.tables;
    }

    @Override
    public boolean deliver(AddressedTuple tuple) {
        if (TupleOrder.isForPeer(tuple.dest)) {
            return routing.order.sendToPeer(tuple.dest, tuple.tuple);
        }
        if (OrderMarker.is(tuple.tuple)) {
            return deliverMarker(tuple);
        }
        JCQueue queue = here(tuple.dest);
        OrderGate gate = queue == null || !routing.order.atEnd(tuple.dest) ? null : routing.order.gate(tuple.dest);
        if (gate != null) {
            return gate.forwarded(tuple);
        }
        if (queue != null) {
            return OrderGate.enter(queue, tuple);
        }
        Slot owner = tables.ownerOf(tuple.dest);
        if (owner == null || owner.equals(routing.me) || forwarded.contains(tuple, System.nanoTime())) {
            return false;
        }
        boolean atEnd = routing.order.atEnd(tuple.dest);
        if (atEnd && !routing.order.reachesEnd(tuple.dest)) {
            return false;
        }
        if (serializer == null) {
            serializer = new KryoTupleSerializer(state.getTopologyConf(), state.getWorkerTopologyContext());
        }
        boolean sent = atEnd
                ? routing.order.transfer(tuple.dest, serializer.serialize(tuple.tuple))
                : state.tryTransferRemote(tuple, null, serializer);
        if (sent) {
            forwarded.add(tuple);
        }
        return sent;
    }

    /** The queue of this worker that takes the task's tuples; null if there is none. */
    private JCQueue here(int task) {
        LocalCopies.Copy copy = routing.copies.copyOf(task);
        if (copy != null && copy.forwards()) {
            // What it has just handed on would come back behind what is still sent to it.
            return null;
        }
        JCQueue queue = tables.routes.queue(task);
        return queue == null && copy != null && copy.acceptsEarly() ? copy.queue() : queue;
    }

    /** A marker that nobody here awaits goes on; where its move has ended nobody does there either. */
    private boolean deliverMarker(AddressedTuple marker) {
        Slot to = OrderMarker.closedFor(marker.tuple);
        OrderGate gate = routing.order.gate(marker.dest);
        if (routing.me.equals(to) || to == null) {
            return gate == null || gate.forwarded(marker);
        }
        if (!routing.order.atEnd(marker.dest)) {
            return true;
        }
        // Where the other end is cut off, what stands behind it comes here, and must not wait for it.
        return routing.order.reachesEnd(marker.dest)
                ? routing.order.transfer(marker.dest, marker.tuple)
                : here(marker.dest) != null;
    }

    /** What has come back may go again; from any thread. */
    void planAdvanced() {
        forwarded.planAdvanced();
    }

    @Override
    public boolean flush() {
        return routing.order.flush();
    }
}

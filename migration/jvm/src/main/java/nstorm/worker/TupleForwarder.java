package nstorm.worker;

import java.util.Map;
import nstorm.wire.Slot;
import org.apache.storm.daemon.worker.WorkerState;
import org.apache.storm.serialization.KryoTupleSerializer;
import org.apache.storm.tuple.AddressedTuple;
import org.apache.storm.utils.JCQueue;

/** Where one misrouted tuple goes: to a copy in this worker, or over the network to the owner's worker. */
final class TupleForwarder implements MisroutedTuples.Delivery {
    private final WorkerState state;
    private final Slot me;
    private final WorkerTables tables;
    private final Map<Integer, ExecutorCopy> copyByTask;
    private final RecentlyForwarded forwarded = new RecentlyForwarded(System.nanoTime());
    /** Of the one thread that delivers: Kryo is for one thread. */
    private KryoTupleSerializer serializer;

    TupleForwarder(WorkerState state, Slot me, WorkerTables tables, Map<Integer, ExecutorCopy> copyByTask) {
        this.state = state;
        this.me = me;
        this.tables = tables;
        this.copyByTask = copyByTask;
    }

    @Override
    public boolean deliver(AddressedTuple tuple) {
        JCQueue queue = tables.routes.queue(tuple.dest);
        ExecutorCopy copy = copyByTask.get(tuple.dest);
        if (queue == null && copy != null && copy.acceptsEarly()) {
            queue = copy.queue;
        }
        if (queue != null) {
            return queue.isEmptyOverflow() && queue.tryPublishDirect(tuple) || queue.tryPublishToOverflow(tuple);
        }
        Slot owner = tables.ownerOf(tuple.dest);
        if (owner == null || owner.equals(me) || forwarded.contains(tuple, System.nanoTime())) {
            return false;
        }
        if (serializer == null) {
            serializer = new KryoTupleSerializer(state.getTopologyConf(), state.getWorkerTopologyContext());
        }
        boolean sent = state.tryTransferRemote(tuple, null, serializer);
        if (sent) {
            forwarded.add(tuple);
        }
        return sent;
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

package nstorm.worker.routes;

import java.util.Iterator;
import java.util.List;
import nstorm.hook.Faults;
import nstorm.wire.Slot;
import org.apache.storm.Config;
import org.apache.storm.daemon.worker.WorkerState;
import org.apache.storm.messaging.TaskMessage;
import org.apache.storm.serialization.KryoTupleDeserializer;
import org.apache.storm.tuple.AddressedTuple;
import org.apache.storm.tuple.Tuple;
import org.apache.storm.utils.JCQueue;
import org.apache.storm.utils.ObjectReader;

/** What becomes of tuples that come here and are another worker's, or must not overtake others: made of parts that need each other. */
public final class TupleRouting {
    /** What Storm's Netty threads find for a task whose queue has gone since the batch was looked at. */
    private final class Unowned extends JCQueue {
        Unowned() {
            super("nstorm-unowned", "nstorm-unowned", 2, 0, 1, null, "", "", List.of(), 0, null);
        }

        @Override
        public boolean tryPublish(Object event) {
            try {
                take((AddressedTuple) event);
            } catch (Throwable e) {
                Faults.contained("taking a tuple whose queue has gone", e);
            }
            return true;
        }
    }

    final WorkerState state;
    final Slot me;
    final WorkerTables tables;
    final LocalCopies copies;
    public final TupleOrder order;
    public final MisroutedTuples misrouted;
    public final HandOver handOver;
    public final int producerBatch;
    final int transferBatch;
    /** Storm 3: a batch that is flushed before it is full makes the next ones smaller. */
    public final boolean dynamicBatch;

    public final long messageTimeoutSecs;
    private final TupleForwarder forwarder;
    private KryoTupleDeserializer transferDeserializer;

    public TupleRouting(WorkerState state, Slot me, WorkerTables tables, LocalCopies copies) {
        this.state = state;
        this.me = me;
        this.tables = tables;
        this.copies = copies;
        producerBatch = ObjectReader.getInt(state.getTopologyConf().get(Config.TOPOLOGY_PRODUCER_BATCH_SIZE), 1);
        transferBatch = ObjectReader.getInt(state.getTopologyConf().get(Config.TOPOLOGY_TRANSFER_BATCH_SIZE), 1);
        dynamicBatch = ObjectReader.getBoolean(state.getTopologyConf().get("topology.producer.batch.dynamic"), false);
        messageTimeoutSecs = ObjectReader.getInt(state.getTopologyConf().get(Config.TOPOLOGY_MESSAGE_TIMEOUT_SECS), 30);
        order = new TupleOrder(this);
        forwarder = new TupleForwarder(this);
        misrouted = new MisroutedTuples(forwarder);
        handOver = new HandOver(state, tables.routes, misrouted);
        tables.takeUnowned(new Unowned());
    }

    private void take(AddressedTuple tuple) {
        if (OrderMarker.isOldWay(tuple.dest)) {
            order.takeUngated(tuple);
            return;
        }
        JCQueue left = tables.routes.arrival(tuple.dest);
        if (left != null) {
            // What this thread has put into a batch of it was sent before.
            left.tryFlush();
        }
        misrouted.offer(tuple);
    }

    /** Takes a tuple out of a batch that has just arrived by Netty if this worker does not own it. */
    public void takeMisrouted(Iterator<AddressedTuple> tuples, AddressedTuple tuple) {
        if (OrderMarker.isOldWay(tuple.dest)) {
            if (!tables.hasTask(tuple.dest)) {
                tuples.remove();
                order.takeUngated(tuple);
            }
        } else if (tuple.dest != TupleOrder.PROBES && tables.routes.arrival(tuple.dest) == null) {
            tuples.remove();
            misrouted.offer(tuple);
        }
    }

    /** Takes messages over that Storm's transfer thread was about to send. */
    public void takeBack(List<TaskMessage> messages) {
        misrouted.takeBack(messages, this::read);
    }

    /** On the one thread that sends: Kryo is for one thread. */
    private Tuple read(byte[] message) {
        if (transferDeserializer == null) {
            transferDeserializer = new KryoTupleDeserializer(state.getTopologyConf(), state.getWorkerTopologyContext());
        }
        return transferDeserializer.deserialize(message);
    }

    /** What has come back may go again. */
    public void planAdvanced() {
        forwarder.planAdvanced();
    }
}

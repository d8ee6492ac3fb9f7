package nstorm.worker.routes;

import java.util.Map;
import java.util.Queue;
import org.apache.storm.Config;
import org.apache.storm.daemon.worker.WorkerState;
import org.apache.storm.executor.Executor;
import org.apache.storm.tuple.AddressedTuple;
import org.apache.storm.utils.JCQueue;
import org.apache.storm.utils.ObjectReader;

/** Takes what a stopping executor leaves: tuples for the new owner, and what it holds back in batches. */
public final class HandOver {
    private final WorkerState state;
    private final Routes routes;
    private final MisroutedTuples misrouted;
    private final int producerBatch;
    private final int transferBatch;

    public HandOver(WorkerState state, Routes routes, MisroutedTuples misrouted) {
        this.state = state;
        this.routes = routes;
        this.misrouted = misrouted;
        Map<String, Object> conf = state.getTopologyConf();
        producerBatch = ObjectReader.getInt(conf.get(Config.TOPOLOGY_PRODUCER_BATCH_SIZE), 1);
        transferBatch = ObjectReader.getInt(conf.get(Config.TOPOLOGY_TRANSFER_BATCH_SIZE), 1);
    }

    public void take(AddressedTuple tuple) {
        misrouted.offer(tuple);
    }

    /**
     * What back-pressure held back must not hold back the end. Storm empties an overflow only once the queue before it
     * is empty. So a sender in another worker may wait for as long as local senders fill it.
     *
     * @return whether that was all; else there was no room, and the executor must not end yet
     */
    public boolean takePendingEmits(Executor executor) {
        return takeAll(executor.getPendingEmits());
    }

    /** Takes what is in a queue of the calling thread, but ticks, as far as there is room; whether that was all. */
    public boolean takeAll(Queue<AddressedTuple> left) {
        while (!left.isEmpty() && hasRoom()) {
            AddressedTuple tuple = left.poll();
            if (tuple.dest != AddressedTuple.BROADCAST_DEST) {
                take(tuple);
            }
        }
        return left.isEmpty();
    }

    /** False while so much waits to be forwarded that more might be dropped. */
    public boolean hasRoom() {
        return misrouted.hasRoom();
    }

    /**
     * Flushes what the calling executor thread holds back in thread-local batches. One flush moves at
     * least one tuple of each batch and none if it is empty, hence as many flushes as a batch is long.
     */
    public void flushBatchesOf(Executor executor) throws InterruptedException {
        executor.getExecutorTransfer().flush();
        for (int i = 1; i < producerBatch; i++) {
            for (JCQueue queue : routes) {
                if (queue != null) {
                    queue.flush();
                }
            }
        }
        for (int i = 1; i < transferBatch; i++) {
            state.flushRemotes();
        }
    }
}

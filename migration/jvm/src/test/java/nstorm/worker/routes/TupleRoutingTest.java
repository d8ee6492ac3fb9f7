package nstorm.worker.routes;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.ArrayList;
import java.util.List;
import nstorm.hook.Faults;
import org.apache.storm.tuple.AddressedTuple;
import org.apache.storm.utils.JCQueue;
import org.junit.jupiter.api.Test;

class TupleRoutingTest {
    private final FakeWorker worker = new FakeWorker();
    private final TupleRouting routing = worker.routing();

    TupleRoutingTest() throws ReflectiveOperationException {}

    /** What the hook leaves in a batch for Storm. */
    private List<AddressedTuple> looked(AddressedTuple... arrived) {
        List<AddressedTuple> batch = new ArrayList<>(List.of(arrived));
        for (var tuples = batch.iterator(); tuples.hasNext(); ) {
            routing.takeMisrouted(tuples, tuples.next());
        }
        return batch;
    }

    /** Storm would throw on its Netty thread, and end the JVM. */
    @Test
    void aQueueMayGoAfterABatchWasLookedAt() throws Throwable {
        int oldWay = OrderMarker.oldWay(FakeWorker.SINK);
        JCQueue queue = FakeWorker.queue(64, 1);
        worker.tables.addTask(FakeWorker.SINK, queue);
        worker.tables.addTask(oldWay, queue);
        List<AddressedTuple> batch = looked(worker.tuple(FakeWorker.SINK, 1), worker.tuple(oldWay, 2));
        assertEquals(2, batch.size(), "both have a queue");
        assertTrue(worker.tables.removeTask(FakeWorker.SINK, queue));
        assertTrue(worker.tables.removeTask(oldWay, queue));
        worker.transferLocalBatch(batch);
        assertEquals(0, queue.size());
        assertEquals(2, routing.misrouted.parked());
    }

    @Test
    void norMayWhatComesThenThrow() throws Throwable {
        long faults = Faults.count();
        worker.transferLocalBatch(List.of(new AddressedTuple(OrderMarker.oldWay(FakeWorker.SINK), null)));
        assertEquals(1, Faults.count() - faults);
    }

    /** With batches of producers a Netty thread flushes what it has put into one once the whole batch is in. */
    @Test
    void aQueueThatStormFindsNoMoreStillTakesWhatWasPutIntoABatchOfIt() throws Throwable {
        JCQueue queue = FakeWorker.queue(64, 8);
        worker.tables.addTask(FakeWorker.SINK, queue);
        worker.transferLocalBatch(List.of(worker.tuple(FakeWorker.SINK, 1)));
        assertEquals(0, queue.size());
        assertTrue(worker.tables.closeTask(FakeWorker.SINK, queue));
        worker.transferLocalBatch(List.of(worker.tuple(FakeWorker.SINK, 2)));
        assertEquals(1, queue.size(), "what was sent before goes before");
        assertEquals(1, routing.misrouted.parked());
        assertEquals(queue, worker.tables.routes.arrival(FakeWorker.SINK));
        worker.tables.forgetTask(FakeWorker.SINK, queue);
        assertNull(worker.tables.routes.arrival(FakeWorker.SINK));
    }

    /** Nor are the two tables ever at odds. */
    @Test
    void anExecutorThatComesBackKeepsItsNewQueue() {
        JCQueue before = FakeWorker.queue(64, 1);
        JCQueue now = FakeWorker.queue(64, 1);
        worker.tables.addTask(FakeWorker.SINK, before);
        worker.tables.addTask(FakeWorker.SINK, now);
        worker.tables.removeTask(FakeWorker.SINK, before);
        assertEquals(now, worker.tables.found(FakeWorker.SINK));
        assertEquals(now, worker.tables.routes.arrival(FakeWorker.SINK));
    }
}

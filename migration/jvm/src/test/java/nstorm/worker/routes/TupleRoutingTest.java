package nstorm.worker.routes;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.BooleanSupplier;
import nstorm.hook.Faults;
import org.apache.storm.messaging.TaskMessage;
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

    private static void await(BooleanSupplier condition) throws InterruptedException {
        long end = System.nanoTime() + TimeUnit.SECONDS.toNanos(60);
        while (!condition.getAsBoolean()) {
            assertTrue(System.nanoTime() < end, "waited 60 s");
            Thread.sleep(1);
        }
    }

    private static void fill(JCQueue queue) {
        while (queue.tryPublishDirect("busy")) {}
    }

    private static int sent(FakeWorker from) {
        AtomicInteger messages = new AtomicInteger();
        from.transferQueue.consume(new JCQueue.Consumer() {
            @Override
            public void accept(Object event) {
                messages.addAndGet(event instanceof TaskMessage ? 1 : 0);
            }

            @Override
            public void flush() {}
        });
        return messages.get();
    }

    /** Storm's own threads flush their batches each millisecond. */
    @Test
    void whatIsForwardedDoesNotStayInABatchOfItsThread() throws Exception {
        FakeWorker batched = new FakeWorker(10);
        TupleRouting forwards = batched.routing();
        batched.taskToNode.put(FakeWorker.SINK, FakeWorker.node(FakeWorker.OTHER));
        fill(batched.transferQueue);
        for (int i = 0; i < 7; i++) {
            forwards.misrouted.offer(batched.tuple(FakeWorker.SINK, i));
        }
        await(() -> forwards.misrouted.forwarded.get() == 7);
        AtomicInteger came = new AtomicInteger();
        await(() -> came.addAndGet(sent(batched)) == 7);
        await(() -> forwards.misrouted.parked() == 0);
    }

    /** Its thread may hold still from then on. */
    @Test
    void norDoesAMarkerOrAProbe() throws Exception {
        FakeWorker batched = new FakeWorker(10);
        TupleOrder order = batched.routing().order;
        assertTrue(batched.transferQueue.tryPublish(new TaskMessage(FakeWorker.SINK, new byte[0])));
        assertTrue(order.transfer(FakeWorker.SINK, new byte[0]));
        assertEquals(2, sent(batched));
        fill(batched.transferQueue);
        assertFalse(order.transfer(FakeWorker.SINK, new byte[0]));
        assertEquals(0, sent(batched));
        assertTrue(order.transfer(FakeWorker.SINK, new byte[0]));
        assertEquals(1, sent(batched));
    }
}

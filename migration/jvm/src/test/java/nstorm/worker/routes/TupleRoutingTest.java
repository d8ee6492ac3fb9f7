package nstorm.worker.routes;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.BooleanSupplier;
import nstorm.hook.Faults;
import nstorm.wire.Entry;
import nstorm.wire.ExecutorId;
import nstorm.wire.Phase;
import nstorm.wire.Plan;
import nstorm.wire.Way;
import org.apache.storm.messaging.ConnectionWithStatus.Status;
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

    /** What Storm's transfer thread sends; what the connection takes of it. */
    private static List<TaskMessage> connect(FakeWorker from, Status status) {
        List<TaskMessage> got = new ArrayList<>();
        FakeConnection connection = new FakeConnection() {
            @Override
            public void send(Iterator<TaskMessage> messages) {
                messages.forEachRemaining(got::add);
            }
        };
        connection.status = status;
        from.connect(FakeWorker.OTHER, connection);
        return got;
    }

    /** As Storm's transfer thread does. */
    private void sendQueued() {
        Map<Integer, ArrayList<TaskMessage>> bundles = new HashMap<>();
        worker.transferQueue.consume(new JCQueue.Consumer() {
            @Override
            public void accept(Object event) {
                TaskMessage message = (TaskMessage) event;
                bundles.computeIfAbsent(message.task(), task -> new ArrayList<>())
                        .add(message);
            }

            @Override
            public void flush() {}
        });
        routing.order.onSend(bundles, worker.taskToNode);
    }

    @Test
    void aProbeThatNoConnectionTookGoesOnceThereIsOne() throws Throwable {
        connect(worker, Status.Connecting);
        OrderMarker.Probe probe = new OrderMarker.Probe(FakeWorker.SINK, 1, FakeWorker.OTHER);
        worker.transferLocalBatch(List.of(new AddressedTuple(
                TupleOrder.PROBES, OrderMarker.probe(worker.state.getWorkerTopologyContext(), probe))));
        await(() -> worker.transferQueue.size() == 1);
        sendQueued();
        routing.order.follow(null);
        assertEquals(0, worker.transferQueue.size());
        List<TaskMessage> got = connect(worker, Status.Ready);
        routing.order.follow(null);
        sendQueued();
        assertEquals(
                List.of(TupleOrder.PROBES), got.stream().map(TaskMessage::task).toList());
    }

    /** Two threads would pass it to each other at full speed. */
    @Test
    void whatComesBackFromTheOtherEndWaitsUntilThatIsReached() throws Exception {
        ExecutorId id = new ExecutorId(FakeWorker.SINK, FakeWorker.SINK);
        worker.taskToNode.put(FakeWorker.SINK, FakeWorker.node(FakeWorker.OTHER));
        worker.state.getWorkerTopologyContext().getTaskToNodePort().set(worker.taskToNode);
        Entry entry = new Entry(
                "m", id, FakeWorker.ME, FakeWorker.OTHER, Phase.DRAIN, FakeWorker.ME, 0, null, Way.LIVE, null, true);
        routing.order.follow(new Plan("c", 1, 1, "t-1-1", List.of(entry)));
        connect(worker, Status.Connecting);
        routing.misrouted.offer(worker.tuple(FakeWorker.SINK, 1));
        await(() -> worker.transferQueue.size() == 1);
        sendQueued();
        TimeUnit.MILLISECONDS.sleep(50);
        assertEquals(0, worker.transferQueue.size());
        assertEquals(1, routing.misrouted.parked());
        List<TaskMessage> got = connect(worker, Status.Ready);
        await(() -> worker.transferQueue.size() == 1);
        sendQueued();
        assertEquals(
                List.of(OrderMarker.oldWay(FakeWorker.SINK)),
                got.stream().map(TaskMessage::task).toList());
        await(() -> routing.misrouted.parked() == 0);
    }
}

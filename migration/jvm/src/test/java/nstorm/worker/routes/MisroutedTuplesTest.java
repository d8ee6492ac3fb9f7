package nstorm.worker.routes;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.BooleanSupplier;
import nstorm.hook.Faults;
import org.apache.storm.messaging.TaskMessage;
import org.apache.storm.tuple.AddressedTuple;
import org.apache.storm.utils.JCQueue;
import org.junit.jupiter.api.Test;

class MisroutedTuplesTest {
    private static final class Gate implements MisroutedTuples.Delivery {
        final List<AddressedTuple> delivered = Collections.synchronizedList(new ArrayList<>());
        volatile int closedTask = -1;
        volatile int brokenTask = -1;
        volatile boolean flushes = true;

        @Override
        public boolean deliver(AddressedTuple tuple) {
            if (tuple.dest == brokenTask) {
                MisroutedTuplesTest.<RuntimeException>sneak(new InterruptedException("cannot be serialised"));
            }
            return tuple.dest != closedTask && delivered.add(tuple);
        }

        @Override
        public boolean flush() {
            return flushes;
        }
    }

    /** As a serialiser in Kotlin may throw anything. */
    @SuppressWarnings({"unchecked", "TypeParameterUnusedInFormals"})
    private static <T extends Throwable> void sneak(Throwable thrown) throws T {
        throw (T) thrown;
    }

    private static void await(BooleanSupplier condition) throws InterruptedException {
        long end = System.nanoTime() + TimeUnit.SECONDS.toNanos(60);
        while (!condition.getAsBoolean()) {
            assertTrue(System.nanoTime() < end, "waited 60 s in vain");
            Thread.sleep(1);
        }
    }

    @Test
    void aTaskThatMustWaitDoesNotHoldUpOthersAndKeepsItsOrder() throws Exception {
        Gate gate = new Gate();
        gate.closedTask = 7;
        MisroutedTuples misrouted = new MisroutedTuples(gate);
        List<AddressedTuple> sevens = new ArrayList<>();
        for (int i = 0; i < 100; i++) {
            AddressedTuple seven = new AddressedTuple(7, null);
            sevens.add(seven);
            misrouted.offer(seven);
            misrouted.offer(new AddressedTuple(8, null));
        }
        await(() -> gate.delivered.size() == 100);
        assertTrue(gate.delivered.stream().allMatch(t -> t.dest == 8));
        assertEquals(100, misrouted.parked());
        gate.closedTask = -1;
        await(() -> gate.delivered.size() == 200);
        assertEquals(sevens, gate.delivered.subList(100, 200));
        assertEquals(0, misrouted.parked());
        assertEquals(200, misrouted.forwarded.get());
        assertEquals(0, misrouted.dropped.get());
    }

    /** A worker that has nothing parked may end. */
    @Test
    void whatIsInABatchOfItsThreadIsParkedUntilItIsFlushed() throws Exception {
        Gate gate = new Gate();
        gate.flushes = false;
        MisroutedTuples misrouted = new MisroutedTuples(gate);
        misrouted.offer(new AddressedTuple(1, null));
        await(() -> misrouted.forwarded.get() == 1);
        TimeUnit.MILLISECONDS.sleep(50);
        assertEquals(1, misrouted.parked());
        gate.flushes = true;
        await(() -> misrouted.parked() == 0);
    }

    @Test
    void whatIsOverTheLimitIsDroppedAndCounted() throws Exception {
        Gate gate = new Gate();
        gate.closedTask = 1;
        MisroutedTuples misrouted = new MisroutedTuples(gate);
        for (int i = 0; i < 200_010; i++) {
            misrouted.offer(new AddressedTuple(1, null));
        }
        assertEquals(10, misrouted.dropped.get());
        gate.closedTask = -1;
        await(() -> gate.delivered.size() == 200_000);
    }

    /** The queue of one saturated executor is unlimited, and several may end at once. */
    @Test
    void whatAnEndedExecutorLeavesStaysInItsQueueUntilThereIsRoom() throws Exception {
        Gate gate = new Gate();
        gate.closedTask = 1;
        MisroutedTuples misrouted = new MisroutedTuples(gate);
        List<JCQueue> left = List.of(queueOf(120_000), queueOf(120_000));
        AtomicInteger ended = new AtomicInteger();
        left.forEach(queue -> misrouted.retire(queue, 0, ended::incrementAndGet, () -> {}));
        await(() -> !misrouted.hasRoom());
        TimeUnit.MILLISECONDS.sleep(50);
        assertEquals(0, misrouted.dropped.get());
        assertEquals(100_000, misrouted.parked());
        assertEquals(0, ended.get(), "its time is over, and it is not empty");
        gate.closedTask = -1;
        await(() -> gate.delivered.size() == 240_000 && ended.get() == 2);
        assertEquals(0, misrouted.dropped.get());
    }

    /** A thread that has found the queue publishes into it once it is found no more, and then offers what follows. */
    @Test
    void whatComesIntoAQueueAsItIsGivenUpGoesOnInItsOrder() throws Exception {
        Gate gate = new Gate();
        MisroutedTuples misrouted = new MisroutedTuples(gate);
        JCQueue queue = queueOf(0);
        AddressedTuple late = new AddressedTuple(1, null);
        AddressedTuple next = new AddressedTuple(1, null);
        AtomicInteger gone = new AtomicInteger();
        misrouted.retire(
                queue,
                0,
                () -> {
                    assertTrue(queue.tryPublish(late));
                    misrouted.offer(next);
                },
                gone::incrementAndGet);
        await(() -> gate.delivered.size() == 2);
        assertEquals(List.of(late, next), gate.delivered);
        await(() -> gone.get() == 1);
        assertEquals(0, misrouted.parked());
    }

    private static JCQueue queueOf(int tuples) {
        JCQueue queue = new JCQueue("q", "q", 1024, 0, 1, null, "t", "c", List.of(), 6700, null);
        for (int i = 0; i < tuples; i++) {
            AddressedTuple tuple = new AddressedTuple(1, null);
            assertTrue(queue.tryPublish(tuple) || queue.tryPublishToOverflow(tuple));
        }
        return queue;
    }

    @Test
    void oneThatCannotBeSentIsDroppedAndHoldsUpNoOther() throws Exception {
        Gate gate = new Gate();
        gate.closedTask = 9;
        gate.brokenTask = 7;
        MisroutedTuples misrouted = new MisroutedTuples(gate);
        long faults = Faults.count();
        for (int i = 0; i < 100; i++) {
            for (int task : new int[] {6, 7, 8, 9}) {
                misrouted.offer(new AddressedTuple(task, null));
            }
        }
        await(() -> gate.delivered.size() == 200 && misrouted.dropped.get() == 100 && misrouted.parked() == 100);
        gate.brokenTask = -1;
        gate.closedTask = -1;
        misrouted.offer(new AddressedTuple(7, null));
        await(() -> gate.delivered.size() == 301);
        assertEquals(0, misrouted.parked());
        assertEquals(301, misrouted.forwarded.get());
        assertEquals(100, misrouted.dropped.get());
        assertEquals(1, Faults.count() - faults);
        assertTrue(Faults.last().contains("task 7"), Faults.last());
    }

    @Test
    void aMessageThatCannotBeReadIsCountedAndHoldsUpNoOther() throws Exception {
        Gate gate = new Gate();
        MisroutedTuples misrouted = new MisroutedTuples(gate);
        long faults = Faults.count();
        List<TaskMessage> messages = new ArrayList<>();
        for (int task : new int[] {6, 7, 8, 7, 9}) {
            messages.add(new TaskMessage(task, new byte[] {(byte) task}));
        }
        misrouted.takeBack(messages, message -> {
            if (message[0] == 7) {
                MisroutedTuplesTest.<RuntimeException>sneak(new IOException("no such class here"));
            }
            return null;
        });
        assertEquals(List.of(), messages, "Storm would send what is left to this very worker, and drop it");
        await(() -> gate.delivered.size() == 3);
        assertEquals(
                List.of(6, 8, 9),
                gate.delivered.stream().map(tuple -> tuple.dest).sorted().toList());
        assertEquals(2, misrouted.dropped.get());
        assertEquals(1, Faults.count() - faults);
        assertTrue(Faults.last().contains("reading a tuple for task 7"), Faults.last());
    }
}

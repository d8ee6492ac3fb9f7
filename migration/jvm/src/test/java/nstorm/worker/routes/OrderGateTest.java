package nstorm.worker.routes;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.concurrent.TimeUnit;
import java.util.stream.IntStream;
import nstorm.wire.Slot;
import org.apache.storm.task.GeneralTopologyContext;
import org.apache.storm.tuple.AddressedTuple;
import org.apache.storm.tuple.Fields;
import org.apache.storm.tuple.TupleImpl;
import org.apache.storm.utils.JCQueue;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

class OrderGateTest {
    private static final Slot ME = new Slot("s2", 6701);
    private static final Slot OTHER = new Slot("s1", 6700);
    private static final int TASK = 7;
    private static final int QUEUE_SIZE = 16;
    private static final GeneralTopologyContext CONTEXT = new GeneralTopologyContext(
            null,
            Map.of(),
            Map.of(0, "c", 1, "c", 2, "c", 3, "c"),
            Map.of(),
            Map.of("c", Map.of("default", new Fields("number"), "__system", new Fields("event"))),
            "t");

    private final JCQueue queue = new JCQueue("q", "q", QUEUE_SIZE, 0, 1, null, "t", "c", List.of(), 6700, null);
    private final List<AddressedTuple> ungated = new ArrayList<>();
    private final OrderGate gate = new OrderGate("m1", ME, queue, false, ungated::add);

    private static AddressedTuple tuple(int source, Object value, String stream) {
        return new AddressedTuple(TASK, new TupleImpl(CONTEXT, List.of(value), "c", source, stream));
    }

    private static AddressedTuple number(int source, int number) {
        return tuple(source, number, "default");
    }

    private static AddressedTuple opens(int source) {
        return tuple(source, OrderMarker.OPENS, "__system");
    }

    private static AddressedTuple closes(int source, Slot to) {
        return tuple(source, OrderMarker.CLOSES + to, "__system");
    }

    private List<Object> taken() {
        List<Object> values = new ArrayList<>();
        take(values);
        return values;
    }

    private void take(List<Object> values) {
        queue.consume(new JCQueue.Consumer() {
            @Override
            public void accept(Object event) {
                values.add(((AddressedTuple) event).tuple.getValue(0));
            }

            @Override
            public void flush() {}
        });
    }

    /** As Storm's Netty thread publishes. */
    private static void publish(JCQueue to, AddressedTuple tuple) {
        assertTrue(to.isEmptyOverflow() && to.tryPublish(tuple) || to.tryPublishToOverflow(tuple));
    }

    @Test
    void whatComesDirectlyWaitsForWhatWasSentTheOldWay() {
        assertTrue(gate.forwarded(opens(1)));
        publish(gate.direct, number(1, 2));
        publish(gate.direct, number(3, 1));
        assertTrue(gate.forwarded(number(1, 1)));
        assertEquals(List.of(1, 1), taken());
        assertEquals(1, gate.parked());
        assertTrue(gate.forwarded(closes(1, ME)));
        publish(gate.direct, number(1, 3));
        assertEquals(List.of(2, 3), taken());
        assertTrue(gate.idle(true));
    }

    /** A thread that has looked the gate up may be held up for long before it publishes. */
    @Test
    void aThreadThatFoundTheGateBeforeItWentLosesNothing() {
        assertTrue(gate.retire(true));
        assertFalse(gate.expect(1), "who sends from here looks the way up again");
        publish(gate.oldWay, new AddressedTuple(OrderMarker.oldWay(TASK), opens(1).tuple));
        publish(gate.oldWay, new AddressedTuple(OrderMarker.oldWay(TASK), closes(2, OTHER).tuple));
        assertFalse(gate.leave(closes(2, OTHER)), "the bolt would be given the marker");
        publish(gate.direct, number(1, 1));
        assertEquals(List.of(1), taken());
        assertEquals(
                List.of(OrderMarker.OPENS, OrderMarker.CLOSES + OTHER),
                ungated.stream().map(one -> one.tuple.getValue(0)).toList());
    }

    @Test
    void aGateOfACopyThatHasNotBegunOpensAsItGoes() {
        OrderGate shut = new OrderGate("m1", ME, queue, true, ungated::add);
        assertTrue(shut.retire(true));
        publish(shut.direct, number(1, 1));
        assertEquals(List.of(1), taken());
    }

    @Test
    void aGateWithSomethingInItDoesNotGo() {
        gate.expect(1);
        publish(gate.direct, number(1, 1));
        assertFalse(gate.retire(true));
        publish(gate.direct, number(1, 2));
        assertEquals(2, gate.parked());
    }

    @Test
    void allThatWaitsGoesOnWithTheQueueOfAnExecutorThatHasEnded() {
        for (int i = 0; i < QUEUE_SIZE; i++) {
            publish(gate.direct, number(2, i));
        }
        gate.expect(1);
        publish(gate.direct, number(1, 100));
        publish(gate.direct, number(1, 101));
        gate.end();
        assertEquals(0, gate.parked());
        assertFalse(gate.expect(1));
        publish(gate.direct, number(1, 102));
        assertEquals(QUEUE_SIZE + 3, taken().size() + taken().size());
    }

    /** As under {@code topology.executor.overflow.limit}. */
    private static JCQueue limited() {
        return new JCQueue("q", "q", QUEUE_SIZE, 3, 1, null, "t", "c", List.of(), 6700, null);
    }

    @Test
    void whatAQueueWithALimitHasNoRoomForWaitsInItsOrder() {
        JCQueue to = limited();
        OrderGate shut = new OrderGate("m1", ME, to, true, ungated::add);
        int half = 5 * QUEUE_SIZE;
        assertTrue(shut.forwarded(opens(1)));
        for (int i = 0; i < half; i++) {
            assertTrue(shut.forwarded(number(1, i)));
            publish(shut.direct, number(1, half + 1 + i));
        }
        shut.probed(1, List.of());
        assertTrue(shut.forwarded(number(1, half)), "what comes last the old way");
        assertTrue(shut.forwarded(closes(1, ME)));
        assertEquals(2 * half + 1 - QUEUE_SIZE - 3, shut.parked());
        assertEquals(numbers(2 * half + 1), all(shut, to, () -> shut.tick(System.nanoTime(), false)));
    }

    @Test
    void norIsAnythingLostThatWaitedForAnExecutorThatHasEnded() {
        JCQueue to = limited();
        OrderGate shut = new OrderGate("m1", ME, to, true, ungated::add);
        int half = 5 * QUEUE_SIZE;
        shut.expect(1);
        for (int i = 0; i < half; i++) {
            assertTrue(shut.forwarded(number(1, i)));
            publish(shut.direct, number(1, half + i));
        }
        assertEquals(2 * half, shut.end());
        publish(shut.direct, number(1, 2 * half));
        assertEquals(numbers(2 * half + 1), all(shut, to, shut::drained));
    }

    @Test
    void aMarkerThatFindsNoRoomIsNotInTheQueue() {
        JCQueue to = limited();
        OrderGate open = new OrderGate("m1", ME, to, false, ungated::add);
        for (int i = 0; i < QUEUE_SIZE + 3; i++) {
            assertTrue(open.forwarded(number(1, i)));
        }
        assertFalse(open.forwarded(closes(1, OTHER)));
        consume(to, Integer.MAX_VALUE, new HashMap<>());
        consume(to, Integer.MAX_VALUE, new HashMap<>());
        assertTrue(open.idle(true));
    }

    private static List<Object> numbers(int count) {
        return IntStream.range(0, count).<Object>mapToObj(i -> i).toList();
    }

    /** What the executor of sender 1's task is given, or gets forwarded. */
    private static List<Object> all(OrderGate gate, JCQueue queue, Runnable letIn) {
        Map<Integer, List<Object>> arrived = new HashMap<>();
        while (gate.parked() > 0 || queue.size() > 0) {
            consume(queue, QUEUE_SIZE, arrived);
            letIn.run();
        }
        return arrived.get(1);
    }

    @Test
    void whoseOldWayWasClosedBeforeWaitsForNothing() {
        assertTrue(gate.forwarded(closes(1, ME)));
        assertTrue(gate.forwarded(opens(1)));
        publish(gate.direct, number(1, 1));
        assertEquals(List.of(1), taken());
    }

    @Test
    void aMarkerForAnotherWorkerGoesThroughTheQueueBehindItsSendersTuples() {
        publish(gate.direct, number(1, 1));
        assertTrue(gate.forwarded(closes(1, OTHER)));
        assertFalse(gate.idle(true), "a copy that is no longer guarded would give it to the bolt");
        assertEquals(List.of(1, OrderMarker.CLOSES + OTHER), taken());
        gate.taken();
        assertTrue(gate.idle(true));
    }

    @Test
    void aMarkerForAnotherWorkerWaitsWithItsSendersTuples() {
        assertTrue(gate.forwarded(opens(1)));
        publish(gate.direct, number(1, 2));
        assertTrue(gate.forwarded(closes(1, OTHER)));
        assertEquals(List.of(), taken());
        assertTrue(gate.forwarded(closes(1, ME)));
        assertEquals(List.of(2, OrderMarker.CLOSES + OTHER), taken());
    }

    @Test
    void aSenderOfThisWorkerLeavesBehindItsOwnTuplesThatWait() {
        gate.expect(1);
        publish(gate.direct, number(1, 1));
        assertFalse(gate.leave(closes(1, OTHER)), "a tuple of it would come after its CLOSES");
        assertTrue(gate.leave(closes(2, OTHER)));
        assertTrue(gate.forwarded(closes(1, ME)));
        assertTrue(gate.leave(closes(1, OTHER)));
        assertEquals(List.of(OrderMarker.CLOSES + OTHER, 1, OrderMarker.CLOSES + OTHER), taken());
    }

    @Test
    void aSenderIsGivenUpOnceNothingHasComeTheOldWayForLong() {
        assertTrue(gate.forwarded(opens(1)));
        publish(gate.direct, number(1, 1));
        long late = System.nanoTime() + OrderGate.PATIENCE_NANOS + TimeUnit.SECONDS.toNanos(1);
        assertEquals(0, gate.tick(late, true), "its executor takes nothing anyway");
        assertEquals(0, gate.tick(late + 1, false));
        assertEquals(1, gate.tick(late + OrderGate.PATIENCE_NANOS + 2, false));
        assertEquals(List.of(1), taken());
        assertTrue(gate.forwarded(closes(1, ME)));
        assertTrue(gate.forwarded(opens(1)));
        publish(gate.direct, number(1, 2));
        assertEquals(List.of(), taken(), "the marker that came late is not that of the next move");
    }

    @Test
    void sendersAreHeldBackOnceManyTuplesWait() {
        assertTrue(gate.forwarded(opens(1)));
        for (int i = 0; i < OrderGate.ROOM; i++) {
            assertTrue(gate.direct.tryPublish(number(1, i)));
        }
        assertFalse(gate.direct.tryPublish(number(1, OrderGate.ROOM)));
        assertTrue(
                gate.direct.tryPublishToOverflow(number(1, OrderGate.ROOM)),
                "what Netty has brought is kept all the same");
        assertTrue(gate.direct.tryPublish(number(2, 0)), "another sender waits for nothing");
    }

    @Test
    void aNewCopyTakesNothingUntilEveryWorkerHasWhatTheOldOneEmitted() {
        OrderGate shut = new OrderGate("m1", ME, queue, true, ungated::add);
        assertTrue(shut.forwarded(opens(1)));
        publish(shut.direct, number(1, 2));
        publish(shut.direct, number(2, 1));
        assertTrue(shut.forwarded(number(1, 1)));
        assertTrue(shut.forwarded(closes(1, ME)));
        shut.probed(2, List.of());
        assertEquals(List.of(), taken());
        shut.probed(2, List.of());
        assertEquals(List.of(1, 2, 1), taken());
        assertTrue(shut.idle(true));
    }

    /** As where one probe was lost, while a worker that has not read of the move sends on. */
    @Test
    void aProbeIsGivenUpAlthoughTuplesGoOnComingTheOldWay() {
        OrderGate shut = new OrderGate("m1", ME, queue, true, ungated::add);
        long nowNanos = System.nanoTime();
        assertEquals(0, shut.tick(nowNanos - 2 * OrderGate.PATIENCE_NANOS, false));
        shut.expect(2);
        publish(shut.direct, number(1, 1));
        publish(shut.direct, number(2, 1));
        assertTrue(shut.forwarded(number(3, 9)));
        assertEquals(List.of(), taken());
        assertEquals(1, shut.tick(nowNanos, false));
        assertEquals(List.of(9, 1), taken());
        assertEquals(1, shut.parked(), "its sender is still heard of the old way");
    }

    @Test
    void eachProbeMakesTheOthersWaitedForAgain() {
        OrderGate shut = new OrderGate("m1", ME, queue, true, ungated::add);
        shut.tick(System.nanoTime() - 2 * OrderGate.PATIENCE_NANOS, false);
        publish(shut.direct, number(1, 1));
        assertTrue(shut.forwarded(number(3, 9)));
        shut.probed(2, List.of());
        assertEquals(0, shut.tick(System.nanoTime(), false), "the last one has just come");
        assertEquals(2, shut.parked());
    }

    @Test
    void norAsLongAsThatWaitsInAnOverflowHere() {
        OrderGate shut = new OrderGate("m1", ME, queue, true, ungated::add);
        JCQueue consumer = new JCQueue("q", "q", QUEUE_SIZE, 0, 1, null, "t", "d", List.of(), 6700, null);
        consumer.tryPublishToOverflow(number(2, 1));
        publish(shut.direct, number(1, 1));
        shut.probed(1, List.of(consumer));
        shut.tick(System.nanoTime(), false);
        assertEquals(List.of(), taken());
        consume(consumer, 1, new HashMap<>());
        shut.tick(System.nanoTime(), false);
        assertEquals(List.of(1), taken());
    }

    /** What one sender still has to bring, the old way and directly. */
    private static final class Sender {
        final ArrayDeque<AddressedTuple> old = new ArrayDeque<>();
        final ArrayDeque<AddressedTuple> direct = new ArrayDeque<>();

        Sender(int source, int numbers, Random random) {
            int turn = random.nextInt(numbers + 1);
            for (int i = 0; i < turn; i++) {
                old.add(number(source, i));
            }
            old.add(closes(source, ME));
            direct.add(opens(source));
            for (int i = turn; i < numbers; i++) {
                direct.add(number(source, i));
            }
        }
    }

    @ParameterizedTest
    @ValueSource(longs = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10})
    void howeverTheTwoWaysInterleaveEachSendersOrderIsKept(long seed) {
        for (int run = 0; run < 100; run++) {
            everyOrderOf(new Random(seed * 1000 + run));
        }
    }

    private void everyOrderOf(Random random) {
        int count = 1 + random.nextInt(4);
        int numbers = random.nextInt(60);
        int limit = random.nextInt(3);
        JCQueue to = new JCQueue("q", "q", QUEUE_SIZE, limit, 1, null, "t", "c", List.of(), 6700, null);
        OrderGate tried = new OrderGate("m1", ME, to, random.nextBoolean(), ungated::add);
        List<Sender> senders = new ArrayList<>();
        for (int i = 0; i < count; i++) {
            senders.add(new Sender(i, numbers, random));
        }
        Map<Integer, List<Object>> arrived = new HashMap<>();
        // Nobody is given up, however slow the machine is.
        long begunNanos = System.nanoTime();
        while (senders.stream().anyMatch(sender -> !sender.old.isEmpty() || !sender.direct.isEmpty())
                || !tried.idle(true)) {
            Sender sender = senders.get(random.nextInt(count));
            switch (random.nextInt(5)) {
                case 4 -> tried.probed(3, List.of());
                case 0 -> bring(tried, sender.old, true);
                case 1 -> bring(tried, sender.direct, random.nextBoolean());
                case 2 -> tried.tick(begunNanos, false);
                default -> consume(to, random.nextInt(QUEUE_SIZE), arrived);
            }
        }
        consume(to, Integer.MAX_VALUE, arrived);
        for (int i = 0; i < count; i++) {
            List<Object> wanted = new ArrayList<>();
            for (int n = 0; n < numbers; n++) {
                wanted.add(n);
            }
            assertEquals(wanted, arrived.getOrDefault(i, List.of()));
        }
    }

    /** As a Netty thread brings it, which may use the overflow, or as a sender of this worker, which tries again. */
    private static void bring(OrderGate gate, ArrayDeque<AddressedTuple> from, boolean netty) {
        AddressedTuple next = from.peek();
        if (next == null) {
            return;
        }
        boolean marker = OrderMarker.is(next.tuple);
        boolean old = marker || from.peekLast().tuple.getSourceStreamId().equals("__system");
        if (old
                ? gate.forwarded(next)
                : gate.direct.tryPublish(next) || netty && gate.direct.tryPublishToOverflow(next)) {
            from.poll();
        }
    }

    private static void consume(JCQueue queue, int most, Map<Integer, List<Object>> arrived) {
        int[] left = {most};
        queue.consume(
                new JCQueue.Consumer() {
                    @Override
                    public void accept(Object event) {
                        AddressedTuple tuple = (AddressedTuple) event;
                        arrived.computeIfAbsent(tuple.tuple.getSourceTask(), s -> new ArrayList<>())
                                .add(tuple.tuple.getValue(0));
                        left[0]--;
                    }

                    @Override
                    public void flush() {}
                },
                () -> left[0] > 0);
    }
}

package nstorm.worker;

import static nstorm.worker.OneWorker.await;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.lang.reflect.Field;
import java.nio.file.Path;
import java.util.List;
import java.util.Set;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import nstorm.wire.ExecutorId;
import nstorm.wire.Phase;
import nstorm.worker.OneWorker.Sink;
import nstorm.worker.OneWorker.Source;
import org.apache.storm.daemon.worker.WorkerState;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** A target that cannot build or open what it is to get, or takes long. */
class OpeningIT {
    private static OneWorker one;
    private static ExecutorId spout;
    private static ExecutorId holder;

    @BeforeAll
    static void start(@TempDir Path dir) throws Exception {
        one = new OneWorker(dir);
        spout = one.idOf("source");
        holder = one.idOf("holder");
    }

    @AfterAll
    static void end() throws Exception {
        one.close();
    }

    @AfterEach
    void bothWorkHereAgain() throws Exception {
        Source.failsInOpen = false;
        Source.openGate.countDown();
        Sink.buildGate.countDown();
        Holder.inPrepare = null;
        one.way = "live";
        one.settle();
        long taken = Holder.TAKEN.get();
        await("the holder takes tuples", () -> Holder.TAKEN.get() > taken + 10);
        assertEquals(List.of(), Holder.WRONG);
    }

    private static long opens() {
        return Source.CALLS.stream().filter("open"::equals).count();
    }

    /** Has the copy here closed, and builds another that waits. */
    private static void prepared(ExecutorId executor, String way) throws Exception {
        one.way = way;
        one.plan("away", executor, one.worker.me, one.elsewhere, Phase.QUIET);
        one.awaitAck("away", "STOPPED");
        one.plan("m", executor, one.elsewhere, one.worker.me, Phase.PREPARE);
        one.awaitAck("m", "READY");
    }

    @ParameterizedTest
    @CsvSource({"source, spout", "holder, renew"})
    void whatOpensLateHasItsClassesOnceItIsReady(String component, String way) throws Exception {
        ExecutorId executor = one.idOf(component);
        Class<?> type = component.equals("source") ? Source.class : Holder.class;
        Set<Class<?>> opened = one.worker.factory.classesAhead.opened;
        assertTrue(opened.contains(type), "Storm has opened it");
        opened.clear();
        prepared(executor, way);
        assertEquals(Set.of(type), opened);
        opened.addAll(Set.of(Source.class, Holder.class));
        one.plan("m", executor, one.elsewhere, one.worker.me, Phase.STOP);
        one.awaitAck("m", "ROUTED");
    }

    @Test
    void aSpoutThatFailsTwiceIsRefusedForGood() throws Exception {
        prepared(spout, "spout");
        long before = opens();
        Source.failsInOpen = true;
        one.plan("m", spout, one.elsewhere, one.worker.me, Phase.STOP);
        one.awaitAck("m", "REFUSED");
        assertEquals(before + 2, opens());
        assertTrue(one.ack().contains("opening executor " + spout + " in move m"), one.ack());
        Source.failsInOpen = false;
        Thread.sleep(5000);
        one.awaitAck("m", "REFUSED");
        assertEquals(before + 2, opens(), "the source may have opened it by now");
        one.plan("m", spout, one.elsewhere, one.worker.me, Phase.UNDO);
        one.awaitAck("m", "STOPPED");
        // The next move tries again.
        one.plan("n", spout, one.elsewhere, one.worker.me, Phase.STOP);
        one.awaitAck("n", "ROUTED");
        one.awaitTuples();
    }

    @Test
    void aSpoutThatDoesNotReturnFromOpenIsRefusedAndClosedOnceItDoes() throws Exception {
        prepared(spout, "spout");
        Source.openGate = new CountDownLatch(1);
        long before = opens();
        long beganNanos = System.nanoTime();
        one.plan("m", spout, one.elsewhere, one.worker.me, Phase.STOP);
        await("it opens", () -> opens() > before);
        int calls = Source.CALLS.size();
        one.awaitAck("m", "REFUSED");
        assertTrue(System.nanoTime() - beganNanos > TimeUnit.SECONDS.toNanos(29));
        one.plan("m", spout, one.elsewhere, one.worker.me, Phase.UNDO);
        one.awaitAck("m", "STUCK");
        Source.openGate.countDown();
        one.awaitAck("m", "STOPPED");
        assertEquals(List.of("close"), Source.CALLS.subList(calls, Source.CALLS.size()));
    }

    /** Storm's executors wait then before they open anything. */
    @Test
    void aTopologyThatIsNotActiveIsNoReasonToRefuse() throws Exception {
        prepared(spout, "spout");
        long before = opens();
        ExecutorCopy copy = one.worker.copies.get(spout);
        // By Storm: its worker reads again whether it is active each 10 s.
        one.cluster.deactivate("one");
        await(
                "the worker has heard of it",
                () -> !one.worker.state.getIsTopologyActive().get());
        one.plan("m", spout, one.elsewhere, one.worker.me, Phase.STOP);
        one.awaitAck("m", "NONE");
        assertFalse(copy.opensFor(0));
        assertEquals(before, opens());
        one.cluster.activate("one");
        one.awaitAck("m", "ROUTED");
    }

    /** As one that has just started while another worker of its topology is down: Storm opens nothing there. */
    @ParameterizedTest
    @CsvSource({"source, spout", "holder, renew"})
    void aWorkerThatIsNotActiveIsNotReadyForWhatOpensLate(String component, String way) throws Exception {
        ExecutorId executor = one.idOf(component);
        Field latch = WorkerState.class.getDeclaredField("isWorkerActive");
        latch.setAccessible(true);
        Object active = latch.get(one.worker.state);
        prepared(executor, way);
        latch.set(one.worker.state, new CountDownLatch(1));
        try {
            one.plan("m", executor, one.elsewhere, one.worker.me, Phase.PREPARE);
            one.awaitAck("m", "NONE");
        } finally {
            latch.set(one.worker.state, active);
        }
        one.awaitAck("m", "READY");
        one.plan("m", executor, one.elsewhere, one.worker.me, Phase.STOP);
        one.awaitAck("m", "ROUTED");
    }

    @Test
    void aBoltThatIsRenewedIsRefusedToo() throws Exception {
        prepared(holder, "renew");
        Holder.inPrepare = new IllegalStateException("no route to the user's database");
        one.plan("m", holder, one.elsewhere, one.worker.me, Phase.STOP);
        one.awaitAck("m", "REFUSED");
        assertFalse(Holder.HELD.get());
        one.plan("m", holder, one.elsewhere, one.worker.me, Phase.UNDO);
        one.awaitAck("m", "STOPPED");
        assertFalse(one.worker.copies.containsKey(holder));
    }

    /** Reading a model of the user's may take seconds. */
    @Test
    void aBoltThatTakesLongToBeBuiltHoldsUpNoOtherMove() throws Exception {
        one.plan("away", one.elsewhere, one.worker.me, Phase.UNDO);
        one.awaitAck("away", "STOPPED");
        int built = Sink.BUILT.get();
        Sink.buildGate = new CountDownLatch(1);
        one.plan("slow", one.elsewhere, one.worker.me, Phase.PREPARE);
        await("it is being built", () -> Sink.BUILT.get() > built);
        prepared(holder, "renew");
        one.plan("m", holder, one.elsewhere, one.worker.me, Phase.STOP);
        one.awaitAck("m", "ROUTED");
        one.way = "live";
        one.plan("slow", one.elsewhere, one.worker.me, Phase.UNDO);
        one.awaitAck("slow", "STOPPED");
        assertTrue(one.worker.state.getExecutorReceiveQueueMap().containsKey(one.id.toStorm()));
        Sink.buildGate.countDown();
        await(
                "what nobody wants is taken back",
                () -> !one.worker.state.getExecutorReceiveQueueMap().containsKey(one.id.toStorm()));
        assertFalse(one.worker.copies.containsKey(one.id));
        one.plan("slow", one.elsewhere, one.worker.me, Phase.PREPARE);
        one.awaitAck("slow", "READY");
        assertEquals(built + 2, Sink.BUILT.get());
    }

    /** Storm has it here alone: it is tried until Nimbus gives it another place. */
    @Test
    void whatNimbusHasAbsorbedIsNotRefused() throws Exception {
        prepared(spout, "spout");
        long before = opens();
        Source.failsInOpen = true;
        one.plan("m", spout, one.elsewhere, one.worker.me, Phase.SETTLE);
        await("three tries", () -> opens() >= before + 3);
        one.awaitAck("m", "NONE");
        Source.failsInOpen = false;
        one.awaitAck("m", "ROUTED");
    }
}

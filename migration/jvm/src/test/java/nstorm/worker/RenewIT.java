package nstorm.worker;

import static nstorm.worker.OneWorker.await;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import nstorm.memory.Declared;
import nstorm.proof.Memory;
import nstorm.wire.ExecutorId;
import nstorm.wire.Phase;
import nstorm.wire.Slot;
import nstorm.wire.Way;
import nstorm.worker.exit.StopSwitch;
import nstorm.worker.storm.StormFields;
import org.apache.storm.daemon.Task;
import org.apache.storm.utils.JCQueue;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Moves of a bolt that holds what only one copy may hold, each as seen from one of its ends. */
class RenewIT {
    private static OneWorker one;
    private static ExecutorId holder;
    private int before;

    @BeforeAll
    static void start(@TempDir Path dir) throws Exception {
        one = new OneWorker(dir);
        holder = one.idOf("holder");
        String way = "{\"executor\":[" + holder.start() + "," + holder.end() + "],\"way\":\"renew\"}";
        one.planNothing();
        await("it is known how it moves", () -> one.ack().contains(way));
        one.way = "renew";
    }

    @AfterAll
    static void end() throws Exception {
        one.close();
    }

    @BeforeEach
    void isFilled() throws InterruptedException {
        before = Holder.CALLS.size();
        takes();
    }

    @AfterEach
    void oneCopyRunsHereAndNothingWasWrong() throws Exception {
        Holder.prepareGate.countDown();
        Holder.cleanupGate.countDown();
        Holder.inCleanup = null;
        Holder.waits = false;
        Holder.takesMs = 0;
        plan("settle", one.worker.me, one.elsewhere, Phase.UNDO);
        one.awaitAck("settle", "ROUTED");
        one.planNothing();
        await("settled", () -> !one.loop.reconciler.busy());
        takes();
        assertEquals(List.of(), Holder.WRONG);
        assertTrue(Holder.HELD.get());
    }

    private static void takes() throws InterruptedException {
        long taken = Holder.TAKEN.get();
        await("tuples in the batch", () -> Holder.TAKEN.get() > taken + 10);
    }

    private static void plan(String move, Slot from, Slot to, Phase phase) throws Exception {
        one.plan(move, holder, from, to, phase);
    }

    private static void leaves(Phase phase) throws Exception {
        plan("m", one.worker.me, one.elsewhere, phase);
    }

    private static void comes(Phase phase) throws Exception {
        plan("m", one.elsewhere, one.worker.me, phase);
    }

    private void assertCalls(String... expected) {
        assertEquals(List.of(expected), Holder.CALLS.subList(before, Holder.CALLS.size()));
    }

    /** Gives the bolt to another worker, and forgets how it left. */
    private void elsewhere() throws Exception {
        leaves(Phase.QUIET);
        one.awaitAck("m", "STOPPED");
        leaves(Phase.STOP);
        one.awaitAck("m", "STOPPED");
        before = Holder.CALLS.size();
    }

    @Test
    void itIsCleanedUpOnceItHasAckedWhatItKeepsAndPreparedAgainByAnUndo() throws Exception {
        Holder.waits = true;
        takes();
        leaves(Phase.QUIET);
        one.awaitAck("m", "ROUTED");
        JCQueue queue = one.worker.copies.get(holder).queue();
        await("what comes waits in its queue", () -> queue.size() > 500);
        long taken = Holder.TAKEN.get();
        Thread.sleep(1500);
        assertEquals(taken, Holder.TAKEN.get());
        assertTrue(taken > Holder.WRITTEN.get());
        assertTrue(one.worker.tables.delivers(holder));
        assertCalls();
        Holder.waits = false;
        one.awaitAck("m", "STOPPED");
        assertCalls("cleanup");
        assertEquals(taken, Holder.TAKEN.get());
        assertEquals(taken, Holder.WRITTEN.get());
        leaves(Phase.UNDO);
        one.awaitAck("m", "ROUTED");
        takes();
        assertCalls("cleanup", "prepare");
    }

    /** Storm's loop takes tuples as long as there are some, and more come all the time. */
    @Test
    void anUndoBeforeItIsCleanedUpFindsItAsItWasAndItsTuplesInTheirOrder() throws Exception {
        Holder.waits = true;
        Holder.takesMs = 3;
        JCQueue queue = one.worker.copies.get(holder).queue();
        await("a backlog", () -> queue.size() > 100);
        long inverted = Holder.INVERTED.get();
        for (int i = 0; i < 20; i++) {
            leaves(Phase.QUIET);
            one.awaitAck("m", "ROUTED");
            leaves(Phase.UNDO);
            one.awaitAck("m", "ROUTED");
            takes();
        }
        assertCalls();
        assertEquals(inverted, Holder.INVERTED.get());
        assertEquals(0, one.worker.misrouted.parked());
        Holder.takesMs = 0;
        await("it is no longer attended", () -> StopSwitch.ATTENDED.get() == 0);
    }

    @Test
    void whatWaitsGoesToTheTargetAndNothingIsLost() throws Exception {
        Holder.takesMs = 3;
        JCQueue queue = one.worker.copies.get(holder).queue();
        await("a backlog", () -> queue.size() > 100);
        long forwarded = one.worker.misrouted.forwarded.get();
        leaves(Phase.QUIET);
        one.awaitAck("m", "STOPPED");
        await("what came waits for the next owner", () -> one.worker.misrouted.parked() > 100);
        leaves(Phase.STOP);
        one.awaitAck("m", "STOPPED");
        await("handed on", () -> one.worker.misrouted.parked() == 0);
        assertTrue(one.worker.misrouted.forwarded.get() > forwarded + 100);
        assertEquals(0, one.worker.misrouted.dropped.get());
        assertCalls("cleanup");
    }

    @Test
    void aTargetIsReadyUnpreparedAndPreparedOnceTheSourceIsCleanedUp() throws Exception {
        elsewhere();
        for (Phase phase : List.of(Phase.PREPARE, Phase.QUIET)) {
            comes(phase);
            one.awaitAck("m", "READY");
        }
        comes(Phase.UNDO);
        one.awaitAck("m", "STOPPED");
        assertCalls();
        comes(Phase.PREPARE);
        one.awaitAck("m", "READY");
        assertCalls();
        Holder.prepareGate = new CountDownLatch(1);
        long taken = Holder.TAKEN.get();
        comes(Phase.STOP);
        JCQueue queue = one.worker.copies.get(holder).queue();
        await("what comes waits in its queue", () -> queue.size() > 100);
        one.awaitAck("m", "NONE");
        assertFalse(Holder.HELD.get());
        assertEquals(taken, Holder.TAKEN.get());
        Holder.prepareGate.countDown();
        one.awaitAck("m", "ROUTED");
        takes();
        assertCalls("prepare");
    }

    /** It holds it as soon as it is prepared. */
    @Test
    void aTargetThatIsNotWantedAnyMoreIsCleanedUp() throws Exception {
        elsewhere();
        Holder.prepareGate = new CountDownLatch(1);
        long entered = Holder.ENTERED.get();
        comes(Phase.STOP);
        await("it is being prepared", () -> Holder.ENTERED.get() > entered);
        comes(Phase.UNDO);
        one.awaitAck("m", "STUCK");
        Holder.prepareGate.countDown();
        one.awaitAck("m", "STOPPED");
        assertCalls("prepare", "cleanup");
        comes(Phase.STOP);
        takes();
        comes(Phase.UNDO);
        one.awaitAck("m", "STOPPED");
        assertCalls("prepare", "cleanup", "prepare", "cleanup");
        assertFalse(Holder.HELD.get());
    }

    @Test
    void whatCleanupThrowsIsContained() throws Exception {
        Holder.inCleanup = new IllegalStateException("of the user");
        leaves(Phase.QUIET);
        one.awaitAck("m", "STOPPED");
        await("the fault is reported", () -> one.ack().contains("cleanup of bolt holder"));
        assertCalls("cleanup");
        assertFalse(one.worker.copies.containsKey(holder));
    }

    @Test
    void aCleanupThatDoesNotReturnIsStuckAndNothingIsPreparedMeanwhile() throws Exception {
        Holder.cleanupGate = new CountDownLatch(1);
        leaves(Phase.QUIET);
        one.awaitAck("m", "STUCK");
        leaves(Phase.UNDO);
        one.awaitAck("m", "STUCK");
        assertCalls("cleanup");
        Holder.cleanupGate.countDown();
        one.awaitAck("m", "ROUTED");
        takes();
        assertCalls("cleanup", "prepare");
    }

    /** Declared, it may forget what it remembers; one that is known by its class may not. */
    @Test
    void oneThatRemembersSomethingIsNotCleanedUp() throws Exception {
        ExecutorCopy copy = one.worker.copies.get(holder);
        StopSwitch stop = StopSwitch.of(copy.executor());
        Memory declared = stop.memory();
        ArrayList<Task> tasks = StormFields.get(StormFields.ID_TO_TASK, copy.executor());
        List<Object> bolts =
                tasks.stream().filter(Objects::nonNull).map(Task::getTaskObject).toList();
        Memory undeclared = new Memory("holder", bolts, List.of(), Declared.of(Map.of()));
        Holder.waits = true;
        takes();
        stop.betweenTuples(() -> {
            undeclared.prepared();
            stop.remembers(undeclared);
        });
        await("it is looked at", () -> stop.memory() == undeclared);
        try {
            Holder.waits = false;
            leaves(Phase.QUIET);
            one.awaitAck("m", "REFUSED");
        } finally {
            stop.remembers(declared);
        }
        leaves(Phase.UNDO);
        one.awaitAck("m", "ROUTED");
        assertCalls();
        assertTrue(copy.pinned().startsWith("remembers something that is not in its fields: holder."), copy.pinned());
        leaves(Phase.QUIET);
        one.awaitAck("m", "STOPPED");
    }

    /** A new copy may move again. */
    @Test
    void oneThatKeepsItsTuplesForTooLongIsKeptAndStays() throws Exception {
        Holder.waits = true;
        takes();
        long beganNanos = System.nanoTime();
        leaves(Phase.QUIET);
        one.awaitAck("m", "REFUSED");
        assertTrue(System.nanoTime() - beganNanos > TimeUnit.SECONDS.toNanos(15));
        leaves(Phase.UNDO);
        one.awaitAck("m", "ROUTED");
        takes();
        assertCalls();
        ExecutorCopy copy = one.worker.copies.get(holder);
        assertEquals(Way.LIVE, copy.way());
        assertEquals("keeps tuples, and had not acked them all after 15 s in a move", copy.pinned());
        Holder.waits = false;
        leaves(Phase.QUIET);
        one.awaitAck("m", "STOPPED");
    }
}

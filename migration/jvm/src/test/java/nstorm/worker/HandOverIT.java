package nstorm.worker;

import static nstorm.worker.OneWorker.await;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.file.Path;
import java.util.ArrayDeque;
import java.util.Queue;
import nstorm.wire.ExecutorId;
import nstorm.wire.Phase;
import nstorm.worker.OneWorker.Sink;
import nstorm.worker.routes.HandOver;
import nstorm.worker.routes.MisroutedTuples;
import org.apache.storm.tuple.AddressedTuple;
import org.apache.storm.utils.JCQueue;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Executors that hand their tuples on while there is no room for more. */
class HandOverIT {
    private static final int ROOM = 100_000;

    /** Delivers nothing until a test lets it. */
    private static final class Gate implements MisroutedTuples.Delivery {
        volatile boolean open;

        @Override
        public boolean deliver(AddressedTuple tuple) {
            return open;
        }

        @Override
        public boolean flush() {
            return true;
        }
    }

    private static OneWorker one;
    private final Gate gate = new Gate();
    private final MisroutedTuples misrouted = new MisroutedTuples(gate);
    private HandOver full;

    @BeforeAll
    static void start(@TempDir Path dir) throws Exception {
        one = new OneWorker(dir);
    }

    @AfterAll
    static void end() throws Exception {
        one.close();
    }

    @BeforeEach
    void noRoom() {
        full = new HandOver(one.worker.state, one.worker.tables.routes, misrouted);
        for (int i = 0; i < ROOM; i++) {
            misrouted.offer(new AddressedTuple(1, null));
        }
        assertFalse(full.hasRoom());
    }

    @AfterEach
    void bothWorkHereAgain() throws Exception {
        gate.open = true;
        Holder.takesMs = 0;
        one.plan("settle", one.idOf("holder"), one.worker.me, one.elsewhere, Phase.UNDO);
        one.awaitAck("settle", "ROUTED");
        one.settle();
        assertEquals(0, misrouted.dropped.get());
    }

    @Test
    void anExecutorThatHandsItsQueueOnWaitsForRoom() throws Exception {
        ExecutorCopy sink = one.worker.copies.get(one.id);
        sink.drain.forward(full, true);
        await("what comes waits in its queue", () -> sink.queue().size() > 200);
        long executed = Sink.EXECUTED.get();
        Thread.sleep(200);
        assertEquals(executed, Sink.EXECUTED.get());
        assertEquals(ROOM, misrouted.parked());
        gate.open = true;
        await("handed on", () -> misrouted.forwarded.get() > ROOM + 200);
        sink.drain.keep();
        one.awaitTuples();
    }

    @Test
    void aBoltThatWasCleanedUpEndsOnceThereIsRoomForWhatItHeldBack() throws Exception {
        ExecutorId id = one.idOf("holder");
        ExecutorCopy holder = one.worker.copies.get(id);
        JCQueue queue = holder.queue();
        Holder.takesMs = 3;
        await("a backlog", () -> queue.size() > 200);
        holder.drain.finish(full);
        await("it is cleaned up", holder::cleanedUp);
        Thread.sleep(200);
        assertTrue(holder.alive());
        assertEquals(ROOM, misrouted.parked());
        gate.open = true;
        await("it has ended", () -> !holder.alive());
        assertTrue(misrouted.forwarded.get() + misrouted.parked() > ROOM);
    }

    @Test
    void whatBackPressureHeldBackWaitsForRoom() throws Exception {
        Queue<AddressedTuple> pending = new ArrayDeque<>();
        pending.add(new AddressedTuple(1, null));
        pending.add(new AddressedTuple(2, null));
        assertFalse(full.takeAll(pending));
        assertEquals(2, pending.size());
        assertEquals(ROOM, misrouted.parked());
        gate.open = true;
        await("room", full::hasRoom);
        assertTrue(full.takeAll(pending));
    }
}

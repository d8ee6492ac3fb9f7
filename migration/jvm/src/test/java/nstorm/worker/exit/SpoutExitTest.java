package nstorm.worker.exit;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.Callable;
import java.util.concurrent.atomic.AtomicBoolean;
import nstorm.worker.exit.UsersEndTest.Spout;
import nstorm.worker.routes.FakeWorker;
import nstorm.worker.routes.HandOver;
import nstorm.worker.routes.MisroutedTuples;
import nstorm.worker.storm.StormFields;
import org.apache.storm.Config;
import org.apache.storm.executor.Executor;
import org.apache.storm.executor.ExecutorTransfer;
import org.apache.storm.executor.spout.SpoutExecutor;
import org.apache.storm.shade.org.jctools.queues.MpscChunkedArrayQueue;
import org.apache.storm.utils.JCQueue;
import org.apache.storm.utils.RotatingMap;
import org.junit.jupiter.api.Test;

/** A spout with one tuple pending, turn by turn. */
class SpoutExitTest {
    /** Made without its constructor. */
    static final class NothingToFlush extends ExecutorTransfer {
        NothingToFlush() {
            super(null, Map.of());
        }

        @Override
        public void flush() {}
    }

    private final Spout spout = UsersEndTest.blank(Spout.class);
    private final SpoutExecutor executor = UsersEndTest.executor(SpoutExecutor.class, spout);
    private final RotatingMap<Long, Object> pending = new RotatingMap<>(2, this::fail);
    private int fails;
    private boolean paused;

    SpoutExitTest() throws ReflectiveOperationException {
        UsersEndTest.set(
                Executor.class,
                "receiveQueue",
                executor,
                new JCQueue("q", "q", 8, 0, 1, null, "t", "c", List.of(), 6700, null));
        UsersEndTest.set(Executor.class, "pendingEmits", executor, new MpscChunkedArrayQueue<>(8, 16));
        UsersEndTest.set(Executor.class, "executorTransfer", executor, UsersEndTest.blank(NothingToFlush.class));
        UsersEndTest.set(
                Executor.class, "topoConf", executor, new HashMap<>(Map.of(Config.TOPOLOGY_MESSAGE_TIMEOUT_SECS, 1)));
        StormFields.set(StormFields.SPOUT_ACTIVE, executor, new AtomicBoolean());
        StormFields.set(StormFields.SPOUT_PENDING, executor, pending);
        pending.put(1L, "tuple");
    }

    /** Emits again at once, as many spouts do. */
    private void fail(Long id, Object tuple) {
        fails++;
        pending.put(id, tuple);
    }

    private static HandOver handOver() throws ReflectiveOperationException {
        return new HandOver(new FakeWorker().state, null, UsersEndTest.blank(MisroutedTuples.class));
    }

    @Test
    void whatItEmitsAgainAsItFailsHasATimeOutOfItsOwn() throws Exception {
        SpoutExit exit = new SpoutExit(executor);
        exit.finish(handOver(), () -> true);
        while (fails == 0) {
            exit.turn(null);
        }
        for (int turn = 0; turn < 1000; turn++) {
            exit.turn(null);
        }
        assertTrue(fails < 100, "failed " + fails + " times");
        assertFalse(spout.ended);
        pending.remove(1L);
        assertNull(exit.turn(null));
        assertTrue(spout.ended);
    }

    /** With the interrupt Storm's loop would end before the spout is closed, and its copy would still count as ready. */
    @Test
    void anInterruptThatDeactivateLeavesDoesNotEndItsThread() throws Exception {
        StormFields.set(StormFields.SPOUT_ACTIVE, executor, new AtomicBoolean(true));
        spout.asItPauses = () -> {
            paused = true;
            Thread.currentThread().interrupt();
        };
        SpoutExit exit = new SpoutExit(executor);
        exit.finish(handOver(), () -> true);
        assertEquals(1L, exit.turn(null));
        assertTrue(paused);
        assertFalse(Thread.interrupted());
    }

    @Test
    void itsTicksWaitWhileItIsClosed() throws Exception {
        StopSwitch stop = StopSwitch.of(executor);
        boolean[] waits = new boolean[1];
        spout.asItEnds = () -> waits[0] = stop.takesNothing();
        Callable<Long> loop = stop.wrap(null);
        assertFalse(stop.takesNothing());
        stop.stop(handOver(), null, false);
        assertNull(loop.call());
        assertTrue(waits[0]);
    }
}

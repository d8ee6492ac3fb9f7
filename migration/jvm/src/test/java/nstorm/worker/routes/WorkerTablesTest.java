package nstorm.worker.routes;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.ArrayList;
import java.util.Collections;
import java.util.Iterator;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.FutureTask;
import java.util.concurrent.TimeUnit;
import org.apache.storm.messaging.TaskMessage;
import org.junit.jupiter.api.Test;

class WorkerTablesTest {
    private static final TaskMessage TUPLE = new TaskMessage(FakeWorker.SINK, new byte[0]);
    private static final TaskMessage PIECE = new TaskMessage(-1100, new byte[0]);

    private final FakeWorker worker = new FakeWorker();

    WorkerTablesTest() throws ReflectiveOperationException {}

    private static void await(CountDownLatch latch) {
        try {
            assertTrue(latch.await(30, TimeUnit.SECONDS));
        } catch (InterruptedException e) {
            throw new AssertionError(e);
        }
    }

    /** Storm's connection collects a batch without a lock, and what is in it would come behind what is sent next. */
    @Test
    void noTwoThreadsSendAtOnce() throws Exception {
        CountDownLatch sends = new CountDownLatch(1);
        CountDownLatch goesOn = new CountDownLatch(1);
        List<Integer> sent = Collections.synchronizedList(new ArrayList<>());
        worker.connect(FakeWorker.OTHER, new FakeConnection() {
            @Override
            public void send(Iterator<TaskMessage> messages) {
                int task = messages.next().task();
                assertTrue(worker.sends.getReadHoldCount() > 0 || worker.sends.isWriteLockedByCurrentThread());
                if (task == FakeWorker.SINK) {
                    sends.countDown();
                    await(goesOn);
                }
                sent.add(task);
            }
        });
        worker.taskToNode.put(FakeWorker.SINK, FakeWorker.node(FakeWorker.OTHER));
        FutureTask<Void> storms = new FutureTask<>(() -> {
            worker.transfer.accept(TUPLE);
            worker.transfer.flush();
            return null;
        });
        new Thread(storms).start();
        await(sends);
        assertFalse(worker.tables.send(FakeWorker.OTHER, PIECE));
        assertEquals(List.of(), sent);
        goesOn.countDown();
        storms.get(30, TimeUnit.SECONDS);
        assertTrue(worker.tables.send(FakeWorker.OTHER, PIECE));
        assertEquals(List.of(FakeWorker.SINK, -1100), sent);
    }
}

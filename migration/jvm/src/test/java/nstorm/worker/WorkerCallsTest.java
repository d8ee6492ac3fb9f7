package nstorm.worker;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.lang.reflect.Field;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import nstorm.hook.HookStatus;
import nstorm.store.PlanStore;
import nstorm.worker.plan.PlanOverlay;
import nstorm.worker.routes.FakeWorker;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class WorkerCallsTest {

    /** Storm's own refresh asks the supervisor, which may be down. */
    @Test
    void aRefreshIsAloneOnceTheAssignmentWasReadAndNotBefore() throws Exception {
        CountDownLatch asks = new CountDownLatch(1);
        CountDownLatch answered = new CountDownLatch(1);
        CountDownLatch read = new CountDownLatch(1);
        CountDownLatch goesOn = new CountDownLatch(1);
        Thread storms = started(() -> {
            WorkerCalls.beforeRefresh();
            asks.countDown();
            await(answered);
            WorkerCalls.assignmentRead();
            read.countDown();
            await(goesOn);
            WorkerCalls.afterRefresh();
        });
        await(asks);
        Thread ours = started(WorkerCallsTest::refresh);
        ours.join(10_000);
        assertFalse(ours.isAlive(), "it does not wait for the supervisor");
        answered.countDown();
        await(read);
        Thread second = started(WorkerCallsTest::refresh);
        second.join(300);
        assertTrue(second.isAlive(), "routes change in one refresh at a time");
        goesOn.countDown();
        storms.join(10_000);
        second.join(10_000);
        assertEquals(Thread.State.TERMINATED, second.getState());
    }

    /** As where a worker starts, and where Storm's reading of the assignment has changed. */
    @Test
    void outsideOfARefreshNothingIsLocked() throws Exception {
        WorkerCalls.assignmentRead();
        WorkerCalls.beforeRefresh();
        WorkerCalls.afterRefresh();
        Thread other = started(WorkerCallsTest::refresh);
        other.join(10_000);
        assertFalse(other.isAlive());
    }

    /** Its port is open before. What the other end of a move then sends would end the JVM. */
    @Test
    void aBatchWaitsUntilTheStateIsTakenOverOrIsNot(@TempDir Path dir) throws Exception {
        Thread stock = started(() -> WorkerCalls.onBatch(new ArrayList<>()));
        stock.join(10_000);
        assertFalse(stock.isAlive(), "without hooks none waits");
        Field overlay = WorkerCalls.class.getDeclaredField("overlay");
        overlay.setAccessible(true);
        overlay.set(null, new PlanOverlay("t", new PlanStore(dir, topology -> true)));
        HookStatus.activate();
        try {
            Thread early = started(() -> WorkerCalls.onBatch(new ArrayList<>()));
            early.join(300);
            assertTrue(early.isAlive());
            // It has no tracker of back-pressure, so it is not taken over.
            WorkerCalls.onStateBuilt(new FakeWorker().state);
            early.join(5_000);
            assertFalse(early.isAlive());
            assertNull(WorkerCalls.loop());
            assertFalse(HookStatus.active());
        } finally {
            overlay.set(null, null);
            System.clearProperty(HookStatus.REFUSED);
        }
    }

    private static void refresh() {
        WorkerCalls.beforeRefresh();
        WorkerCalls.assignmentRead();
        WorkerCalls.afterRefresh();
    }

    private static Thread started(Runnable run) {
        Thread thread = new Thread(run);
        thread.setDaemon(true);
        thread.start();
        return thread;
    }

    private static void await(CountDownLatch latch) {
        try {
            assertTrue(latch.await(30, TimeUnit.SECONDS));
        } catch (InterruptedException e) {
            throw new AssertionError(e);
        }
    }
}

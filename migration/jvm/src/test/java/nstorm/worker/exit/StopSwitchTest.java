package nstorm.worker.exit;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.Arrays;
import java.util.concurrent.Callable;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicBoolean;
import nstorm.worker.exit.UsersEndTest.Bolt;
import nstorm.worker.exit.UsersEndTest.Spout;
import nstorm.worker.storm.StormFields;
import org.apache.storm.daemon.Task;
import org.apache.storm.executor.Executor;
import org.apache.storm.executor.bolt.BoltExecutor;
import org.apache.storm.executor.bolt.BoltOutputCollectorImpl;
import org.apache.storm.executor.spout.SpoutExecutor;
import org.apache.storm.hooks.BaseTaskHook;
import org.apache.storm.utils.Utils;
import org.junit.jupiter.api.Test;

/** An executor that is to end, in the loop that Storm runs it in. */
class StopSwitchTest {
    private final Spout spout = UsersEndTest.blank(Spout.class);
    private final Bolt bolt = UsersEndTest.blank(Bolt.class);
    private volatile boolean ticksWait;
    private int cleanedHooks;

    StopSwitchTest() throws ReflectiveOperationException {}

    /** As where {@code open()} catches the interrupt and sets it again, or never looks at it. */
    private static void isInterruptedWhileItOpens(Executor executor) throws InterruptedException {
        StopSwitch stop = StopSwitch.of(executor);
        CountDownLatch opening = new CountDownLatch(1);
        Callable<?> opened = () -> {
            opening.countDown();
            while (!Thread.currentThread().isInterrupted()) {
                Thread.onSpinWait();
            }
            return stop.wrap(() -> {
                throw new IllegalStateException("nobody wants it");
            });
        };
        Thread thread = Utils.asyncLoop(opened, false, null, Thread.NORM_PRIORITY, true, true, "opens");
        opening.await();
        stop.stop(null, thread, true);
        thread.join();
    }

    @Test
    void aSpoutThatOpensAfterItWasInterruptedIsClosed() throws Exception {
        SpoutExecutor executor = UsersEndTest.executor(SpoutExecutor.class, spout);
        spout.asItEnds = () -> ticksWait = StopSwitch.of(executor).takesNothing();
        hooked(executor);
        isInterruptedWhileItOpens(executor);
        assertTrue(spout.ended && ticksWait);
        assertEquals(0, cleanedHooks);
    }

    @Test
    void aBoltThatIsPreparedAfterItWasInterruptedIsCleanedUp() throws Exception {
        BoltExecutor executor = UsersEndTest.executor(BoltExecutor.class, bolt);
        bolt.asItEnds = () -> ticksWait = StopSwitch.of(executor).takesNothing();
        hooked(executor);
        isInterruptedWhileItOpens(executor);
        assertTrue(bolt.ended && ticksWait);
        assertEquals(0, cleanedHooks);
    }

    /** As Storm opens the tasks of an executor one after the other; the second fails. */
    @Test
    void whatWasOpenedBeforeATaskThatFailsToOpenIsClosed() throws Exception {
        Spout failed = UsersEndTest.blank(Spout.class);
        Spout later = UsersEndTest.blank(Spout.class);
        SpoutExecutor executor = UsersEndTest.executor(SpoutExecutor.class, spout, failed, later);
        hooked(executor);
        StormFields.set(StormFields.SPOUT_COLLECTORS, executor, Arrays.asList(null, null));
        failsToOpen(executor, false);
        assertTrue(spout.ended);
        assertFalse(failed.ended || later.ended);
        assertEquals(0, cleanedHooks);
    }

    @Test
    void whatWasPreparedBeforeATaskThatFailsIsCleanedUp() throws Exception {
        Bolt failed = UsersEndTest.blank(Bolt.class);
        BoltExecutor executor = UsersEndTest.executor(BoltExecutor.class, bolt, failed);
        hooked(executor);
        BoltOutputCollectorImpl last = UsersEndTest.blank(BoltOutputCollectorImpl.class);
        StormFields.set(
                StormFields.COLLECTOR_TASK, last, UsersEnd.tasks(executor).get(1));
        StormFields.set(StormFields.BOLT_COLLECTOR, executor, last);
        failsToOpen(executor, true);
        assertTrue(bolt.ended);
        assertFalse(failed.ended);
        assertEquals(0, cleanedHooks);
    }

    /** Its cleanup() may close what all bolts of the JVM share. */
    @Test
    void butNotWhereTheCopyIsNotToBeCleanedUp() throws Exception {
        BoltExecutor executor = UsersEndTest.executor(BoltExecutor.class, bolt);
        hooked(executor);
        failsToOpen(executor, false);
        assertFalse(bolt.ended);
        assertEquals(0, cleanedHooks);
    }

    /** The copies that stay may use what they share with it. */
    @Test
    void theHooksOfWhatWasNeverOpenedAreLeftAlone() throws Exception {
        SpoutExecutor executor = UsersEndTest.executor(SpoutExecutor.class, spout);
        hooked(executor);
        Thread.currentThread().interrupt();
        assertThrows(InterruptedException.class, StopSwitch.of(executor)::openWhenAllowed);
        assertFalse(spout.ended);
        assertEquals(0, cleanedHooks);
    }

    /** Without a worker Storm's own code fails as it begins. */
    private static void failsToOpen(Executor executor, boolean late) throws ReflectiveOperationException {
        StopSwitch stop = StopSwitch.of(executor);
        if (late) {
            stop.opensLate();
        }
        stop.run();
        assertThrows(NullPointerException.class, stop::openWhenAllowed);
    }

    /** Gives each task a hook. */
    private void hooked(Executor executor) throws ReflectiveOperationException {
        UsersEndTest.set(Executor.class, "openOrPrepareWasCalled", executor, new AtomicBoolean());
        for (Task task : UsersEnd.tasks(executor)) {
            task.getUserContext().addTaskHook(new BaseTaskHook() {
                @Override
                public void cleanup() {
                    cleanedHooks++;
                }
            });
        }
    }
}

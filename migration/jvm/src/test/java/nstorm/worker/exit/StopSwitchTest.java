package nstorm.worker.exit;

import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.concurrent.Callable;
import java.util.concurrent.CountDownLatch;
import nstorm.worker.exit.UsersEndTest.Bolt;
import nstorm.worker.exit.UsersEndTest.Spout;
import org.apache.storm.executor.Executor;
import org.apache.storm.executor.bolt.BoltExecutor;
import org.apache.storm.executor.spout.SpoutExecutor;
import org.apache.storm.utils.Utils;
import org.junit.jupiter.api.Test;

/** An executor that is to end, in the loop that Storm runs it in. */
class StopSwitchTest {
    private final Spout spout = UsersEndTest.blank(Spout.class);
    private final Bolt bolt = UsersEndTest.blank(Bolt.class);
    private volatile boolean ticksWait;

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
        isInterruptedWhileItOpens(executor);
        assertTrue(spout.ended && ticksWait);
    }

    @Test
    void aBoltThatIsPreparedAfterItWasInterruptedIsCleanedUp() throws Exception {
        BoltExecutor executor = UsersEndTest.executor(BoltExecutor.class, bolt);
        bolt.asItEnds = () -> ticksWait = StopSwitch.of(executor).takesNothing();
        isInterruptedWhileItOpens(executor);
        assertTrue(bolt.ended && ticksWait);
    }
}

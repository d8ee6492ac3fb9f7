package nstorm.worker;

import static org.junit.jupiter.api.Assertions.assertEquals;

import java.lang.reflect.Proxy;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.stream.Stream;
import nstorm.hook.Faults;
import nstorm.memory.Declared;
import nstorm.wire.ExecutorId;
import nstorm.worker.OneWorker.Sink;
import nstorm.worker.OneWorker.Source;
import nstorm.worker.exit.StopSwitch;
import nstorm.worker.exit.UsersEnd;
import nstorm.worker.exit.UsersEndTest;
import nstorm.worker.routes.FakeWorker;
import nstorm.worker.storm.StormFields;
import org.apache.storm.cluster.IStormClusterState;
import org.apache.storm.daemon.Task;
import org.apache.storm.daemon.worker.WorkerState;
import org.apache.storm.executor.Executor;
import org.apache.storm.executor.ExecutorShutdown;
import org.apache.storm.executor.bolt.BoltExecutor;
import org.apache.storm.executor.spout.SpoutExecutor;
import org.apache.storm.hooks.BaseTaskHook;
import org.apache.storm.metrics2.StormMetricRegistry;
import org.apache.storm.stats.BoltExecutorStats;
import org.apache.storm.stats.SpoutExecutorStats;
import org.apache.storm.utils.JCQueue;
import org.apache.storm.utils.Utils;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.MethodSource;

class UserCleanupTest {
    private final AtomicInteger cleanedHooks = new AtomicInteger();
    private final AtomicInteger disconnected = new AtomicInteger();
    private Executor executor;

    @AfterEach
    void forget() {
        if (executor != null) {
            StopSwitch.forget(executor);
        }
    }

    static Stream<Object> notIds() {
        return Stream.of("sink", true, 7, Map.of("sink", true), Arrays.asList("sink", 7), Arrays.asList("sink", null));
    }

    @Test
    void componentsAreNamedInAList() {
        assertEquals(
                Set.of("sink", "store"), UserCleanup.components(Map.of("nstorm.cleanup", List.of("sink", "store"))));
        assertEquals(Set.of(), UserCleanup.components(Map.of("nstorm.cleanup", List.of())));
        assertEquals(Set.of(), UserCleanup.components(Map.of()));
    }

    @ParameterizedTest
    @MethodSource("notIds")
    void anythingElseNamesNone(Object given) {
        assertEquals(Set.of(), UserCleanup.components(Map.of("nstorm.cleanup", given)));
    }

    @ParameterizedTest
    @CsvSource({"true, 1", "false, 0"})
    void aSpoutsHooksAreCleanedUpWhereThatIsAllowedAndItIsClosedOnce(boolean allowed, int hooks) throws Exception {
        executor = UsersEndTest.executor(SpoutExecutor.class, new Source());
        UsersEndTest.set(SpoutExecutor.class, "stats", executor, new SpoutExecutorStats(1, 20));
        Source.CALLS.clear();
        endsAfterItClosed(allowed);
        assertEquals(List.of("close"), Source.CALLS);
        assertEquals(hooks, cleanedHooks.get());
    }

    @ParameterizedTest
    @CsvSource({"true, 1", "false, 0"})
    void soAreThoseOfABoltThatHasCleanedUpItself(boolean allowed, int hooks) throws Exception {
        executor = UsersEndTest.executor(BoltExecutor.class, new Sink());
        UsersEndTest.set(BoltExecutor.class, "stats", executor, new BoltExecutorStats(1, 20));
        int before = Sink.CLEANUPS.get();
        endsAfterItClosed(allowed);
        assertEquals(before + 1, Sink.CLEANUPS.get());
        assertEquals(hooks, cleanedHooks.get());
    }

    @Test
    void aHookThatThrowsKeepsNothingElseOpen() throws Exception {
        executor = UsersEndTest.executor(BoltExecutor.class, new Sink());
        UsersEndTest.set(BoltExecutor.class, "stats", executor, new BoltExecutorStats(1, 20));
        hook(() -> {
            throw new NoClassDefFoundError("the user's");
        });
        int before = Sink.CLEANUPS.get();
        long faults = Faults.count();
        ExecutorCopy copy = ended();
        UserCleanup.shutDown(copy, true);
        await();
        assertEquals(1, disconnected.get());
        assertEquals(1, cleanedHooks.get());
        assertEquals(before + 1, Sink.CLEANUPS.get());
        assertEquals(1, Faults.count() - faults);
    }

    @ParameterizedTest
    @CsvSource({"one, 1", "other, 0"})
    void whatWasBuiltForNothingHasHooksAsWell(String named, int hooks) throws Exception {
        executor = UsersEndTest.executor(BoltExecutor.class, new Sink());
        int before = Sink.CLEANUPS.get();
        JCQueue queue = connected();
        FakeWorker worker = new FakeWorker();
        worker.state.getTopologyConf().put("nstorm.cleanup", List.of(named));
        UsersEndTest.set(WorkerState.class, "metricRegistry", worker.state, new StormMetricRegistry());
        UsersEndTest.set(WorkerState.class, "port", worker.state, 6700);
        new ExecutorFactory(worker.state, worker.tables, null).discard(new ExecutorId(1, 1), queue, executor);
        await();
        assertEquals(1, disconnected.get());
        assertEquals(hooks, cleanedHooks.get());
        assertEquals(before, Sink.CLEANUPS.get(), "it was never prepared");
    }

    private void endsAfterItClosed(boolean cleanUp) throws Exception {
        ExecutorCopy copy = ended();
        StopSwitch stop = StopSwitch.of(executor);
        stop.stop(null, null, true);
        stop.wrap(null).call();
        UserCleanup.shutDown(copy, cleanUp);
        await();
        assertEquals(1, disconnected.get());
    }

    private void hook(Runnable cleanup) {
        UsersEnd.tasks(executor).get(0).getUserContext().addTaskHook(new BaseTaskHook() {
            @Override
            public void cleanup() {
                cleanup.run();
            }
        });
    }

    /** Has a hook and a connection of Storm's; the queue is its own. */
    private JCQueue connected() throws Exception {
        hook(cleanedHooks::incrementAndGet);
        JCQueue queue = new JCQueue("q", "q", 8, 0, 1, null, "t", "c", List.of(), 6700, null);
        ClassLoader loader = getClass().getClassLoader();
        Object connected =
                Proxy.newProxyInstance(loader, new Class<?>[] {IStormClusterState.class}, (proxy, method, args) -> {
                    disconnected.addAndGet(method.getName().equals("disconnect") ? 1 : 0);
                    return null;
                });
        UsersEndTest.set(Executor.class, "receiveQueue", executor, queue);
        UsersEndTest.set(Executor.class, "executorId", executor, List.of(1L, 1L));
        UsersEndTest.set(Executor.class, "componentId", executor, "one");
        UsersEndTest.set(Executor.class, "stormClusterState", executor, connected);
        return queue;
    }

    /** A copy that was opened, and whose thread has ended. */
    private ExecutorCopy ended() throws Exception {
        JCQueue queue = connected();
        UsersEndTest.set(Executor.class, "openOrPrepareWasCalled", executor, new AtomicBoolean(true));
        Utils.SmartThread thread = Utils.asyncLoop(() -> null, true, null, Thread.NORM_PRIORITY, false, true, "ends");
        ArrayList<Task> tasks = StormFields.get(StormFields.ID_TO_TASK, executor);
        tasks.removeIf(Objects::isNull);
        return new ExecutorCopy(
                new ExecutorShutdown(executor, List.of(thread), tasks, queue), false, true, Declared.of(Map.of()));
    }

    private static void await() throws InterruptedException {
        for (Thread one : Thread.getAllStackTraces().keySet()) {
            if (one.getName().startsWith("nstorm-cleanup-")) {
                one.join();
            }
        }
    }
}

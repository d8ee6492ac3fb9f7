package nstorm.worker;

import java.util.ArrayList;
import java.util.Collections;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.Future;
import java.util.concurrent.FutureTask;
import nstorm.hook.Faults;
import nstorm.load.Traffic;
import nstorm.memory.Declared;
import nstorm.proof.Memory;
import nstorm.wire.ExecutorId;
import nstorm.worker.exit.StopSwitch;
import nstorm.worker.exit.UsersEnd;
import nstorm.worker.routes.WorkerBackPressure;
import nstorm.worker.routes.WorkerTables;
import nstorm.worker.storm.ExecutorMetrics;
import nstorm.worker.storm.StormFields;
import org.apache.storm.Config;
import org.apache.storm.daemon.Task;
import org.apache.storm.daemon.worker.WorkerState;
import org.apache.storm.executor.Executor;
import org.apache.storm.executor.ExecutorShutdown;
import org.apache.storm.executor.spout.SpoutExecutor;
import org.apache.storm.utils.JCQueue;
import org.apache.storm.utils.ObjectReader;
import org.apache.storm.utils.Utils;
import org.apache.storm.utils.Utils.SmartThread;

/** Builds single executors in a running worker, each with a receive queue and a thread of its own. */
final class ExecutorFactory {
    private final WorkerState state;
    private final WorkerTables tables;
    private final WorkerBackPressure backPressure;
    private final boolean flushTuples;
    private final Declared declared;
    /** Of which components what the user has to clean up is cleaned up. */
    final Set<String> cleanedUp;

    final ClassesAhead classesAhead = new ClassesAhead();

    ExecutorFactory(WorkerState state, WorkerTables tables, WorkerBackPressure backPressure) {
        this.state = state;
        this.tables = tables;
        this.backPressure = backPressure;
        flushTuples = publishesFlushTuples(state.getTopologyConf());
        declared = Declared.of(state.getTopologyConf());
        cleanedUp = UserCleanup.components(state.getTopologyConf());
    }

    /** True if Storm puts a flush tuple into every queue at intervals, as {@code setupFlushTupleTimer} decides. */
    static boolean publishesFlushTuples(Map<String, Object> topologyConf) {
        boolean batches = ObjectReader.getInt(topologyConf.get(Config.TOPOLOGY_PRODUCER_BATCH_SIZE)) != 1
                || ObjectReader.getInt(topologyConf.get(Config.TOPOLOGY_TRANSFER_BATCH_SIZE)) != 1;
        return batches && ObjectReader.getLong(topologyConf.get(Config.TOPOLOGY_BATCH_FLUSH_INTERVAL_MILLIS)) != 0;
    }

    /** What the bolts of an executor remember; to be called on its thread, once they are prepared. */
    Memory memoryOf(Executor executor) {
        List<Task> tasks = UsersEnd.tasks(executor);
        Memory memory = new Memory(
                executor.getComponentId(),
                tasks.stream().map(Task::getTaskObject).toList(),
                tasks.stream().map(Task::getUserContext).toList(),
                declared,
                executor.getTopoConf());
        memory.prepared();
        return memory;
    }

    /** The copy of an executor that Storm itself has started. */
    ExecutorCopy of(ExecutorShutdown started) {
        UsersEnd.tasks(StormFields.get(StormFields.SHUTDOWN_EXECUTOR, started))
                .forEach(task -> classesAhead.opens(task.getTaskObject().getClass()));
        return new ExecutorCopy(started, flushTuples, false, declared);
    }

    /**
     * Begins to build queue and executor. The user's bolt is read and made on a thread of its own: that may take seconds, and the
     * caller has other moves to follow.
     *
     * @param waits whether it opens only once its old copy has ended, as a spout always does
     * @throws IllegalStateException if that cannot even begin; nothing of it is left then
     */
    Build begin(ExecutorId id, boolean waits) {
        JCQueue queue = makeQueue(id.toStorm());
        tables.addReceiveQueue(id, queue);
        FutureTask<Executor> made = new FutureTask<>(() -> build(id, waits));
        Thread thread = new Thread(made, "nstorm-build-" + id);
        thread.setDaemon(true);
        try {
            thread.start();
        } catch (OutOfMemoryError e) {
            discard(id, queue, null);
            throw new IllegalStateException("no thread to build it: " + e, e);
        }
        return new Build(id, queue, made);
    }

    private Executor build(ExecutorId id, boolean waits) throws Exception {
        Executor executor = Executor.mkExecutor(state, id.toStorm(), credentials());
        if (waits || executor instanceof SpoutExecutor) {
            UsersEnd.tasks(executor)
                    .forEach(task -> classesAhead.load(task.getTaskObject().getClass()));
        }
        return executor;
    }

    /** An executor that is being built. */
    record Build(ExecutorId id, JCQueue queue, Future<Executor> made) {}

    /**
     * The copy that was built. Its thread is not started yet, and it takes no tuples until it is routed to.
     *
     * @throws IllegalStateException if the user's classes or Storm threw anything; nothing of it is left then
     */
    ExecutorCopy finish(Build build) {
        ExecutorId id = build.id();
        JCQueue queue = build.queue();
        Executor executor = null;
        try {
            executor = build.made().get();
            for (int task = id.start(); task <= id.end(); task++) {
                Traffic.addSource(task);
                tables.addTask(task, queue);
                backPressure.watch(task, queue);
            }
            return new ExecutorCopy(withThread(executor, queue), flushTuples, true, declared);
        } catch (Throwable t) {
            // Of any kind: the user's classes are loaded and built here.
            discard(id, queue, executor);
            Throwable cause = t instanceof ExecutionException ? t.getCause() : t;
            throw new IllegalStateException("cannot build it: " + cause, cause);
        }
    }

    /** Takes back what was built for nothing; to be called once it is built. */
    void discard(Build build) {
        Executor executor = null;
        try {
            executor = build.made().get();
        } catch (InterruptedException | ExecutionException e) {
            // Then there is none.
        }
        discard(build.id(), build.queue(), executor);
    }

    /** Takes an executor back whose thread never ran: out of the worker's tables, and away from ZooKeeper. */
    void discard(ExecutorId id, JCQueue queue, Executor executorOrNull) {
        tables.removeReceiveQueue(id, queue);
        for (int task = id.start(); task <= id.end(); task++) {
            if (tables.removeTask(task, queue)) {
                backPressure.forget(task);
            }
        }
        ExecutorMetrics.remove(state.getMetricRegistry(), id, state.getPort());
        queue.close();
        if (executorOrNull != null) {
            StopSwitch.forget(executorOrNull);
            executorOrNull.getStormClusterState().disconnect();
            if (cleanedUp.contains(executorOrNull.getComponentId())) {
                UserCleanup.cleanUp(executorOrNull, false);
            }
        }
    }

    private JCQueue makeQueue(List<Long> stormId) {
        try {
            @SuppressWarnings("unchecked")
            Map<List<Long>, JCQueue> made = (Map<List<Long>, JCQueue>) StormFields.MAKE_RECEIVE_QUEUES.invoke(
                    state, state.getTopologyConf(), Collections.singleton(stormId), state.getTaskToComponent());
            return made.get(stormId);
        } catch (ReflectiveOperationException e) {
            throw new IllegalStateException("cannot build a receive queue for " + stormId, e);
        }
    }

    private Map<String, String> credentials() {
        return state.getCredentials() == null
                ? new HashMap<>()
                : state.getCredentials().get_creds();
    }

    /**
     * As {@code Executor.execute()}, its thread not started yet. A bolt that throws before it is prepared ends only its own thread. Stock
     * Storm would end the whole worker for a copy on which nothing depends yet.
     */
    private static ExecutorShutdown withThread(Executor executor, JCQueue queue) {
        Thread.UncaughtExceptionHandler stock = StormFields.get(StormFields.REPORT_ERROR_DIE, executor);
        Thread.UncaughtExceptionHandler careful = (thread, error) -> {
            if (executor.getOpenOrPrepareWasCalled().get()) {
                stock.uncaughtException(thread, error);
            } else {
                Faults.report("prepare of " + executor.getComponentId() + executor.getExecutorId(), error);
            }
        };
        Callable<?> loop = StopSwitch.of(executor)::openWhenAllowed;
        SmartThread thread = Utils.asyncLoop(
                loop,
                false,
                careful,
                Thread.NORM_PRIORITY,
                true,
                false,
                executor.getComponentId() + "-executor" + executor.getExecutorId());
        List<SmartThread> threads = new ArrayList<>(List.of(thread));
        return new ExecutorShutdown(executor, threads, StormFields.get(StormFields.ID_TO_TASK, executor), queue);
    }
}

package nstorm.worker.storm;

import java.lang.reflect.AccessibleObject;
import java.lang.reflect.Constructor;
import java.lang.reflect.Field;
import java.lang.reflect.Method;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.apache.storm.daemon.Acker;
import org.apache.storm.daemon.Task;
import org.apache.storm.daemon.worker.BackPressureTracker;
import org.apache.storm.daemon.worker.Worker;
import org.apache.storm.daemon.worker.WorkerState;
import org.apache.storm.daemon.worker.WorkerTransfer;
import org.apache.storm.executor.Executor;
import org.apache.storm.executor.ExecutorShutdown;
import org.apache.storm.executor.ExecutorTransfer;
import org.apache.storm.executor.bolt.BoltExecutor;
import org.apache.storm.executor.bolt.BoltOutputCollectorImpl;
import org.apache.storm.executor.spout.SpoutExecutor;
import org.apache.storm.messaging.netty.Client;
import org.apache.storm.metrics2.StormMetricRegistry;
import org.apache.storm.utils.JCQueue;

/**
 * Storm's private fields and methods that the worker hooks touch by reflection.
 *
 * <p>Loading this class loads Storm's: only after {@code HookInstaller} has checked {@code WorkerHooks.reflected()}.
 */
public final class StormFields {
    public static final Field ASSIGNMENT_ID = field(WorkerState.class, "assignmentId");
    public static final Field CONF = field(WorkerState.class, "conf");
    public static final Field LOCAL_EXECUTORS = field(WorkerState.class, "localExecutors");
    public static final Field LOCAL_TASK_IDS = field(WorkerState.class, "localTaskIds");
    public static final Field LOCAL_RECEIVE_QUEUES = field(WorkerState.class, "localReceiveQueues");
    public static final Field EXECUTOR_RECEIVE_QUEUES = field(WorkerState.class, "executorReceiveQueueMap");
    public static final Field TASK_TO_QUEUE = field(WorkerState.class, "taskToExecutorQueue");
    public static final Field OUTBOUND_TASKS = field(WorkerState.class, "outboundTasks");
    public static final Field TASK_TO_NODE_PORT = field(WorkerState.class, "cachedTaskToNodePort");
    public static final Field ENDPOINT_LOCK = field(WorkerState.class, "endpointSocketLock");
    public static final Field BP_TRACKER = field(WorkerState.class, "bpTracker");
    public static final Field WORKER_TRANSFER = field(WorkerState.class, "workerTransfer");
    public static final Field REFRESH_CONNECTIONS_TIMER = field(WorkerState.class, "refreshConnectionsTimer");
    public static final Field USER_TIMER = field(WorkerState.class, "userTimer");
    public static final Method MAKE_RECEIVE_QUEUES =
            method(WorkerState.class, "mkReceiveQueueMap", Map.class, Set.class, Map.class);
    public static final Field QUEUE_BATCHES = field(JCQueue.class, "thdLocalBatcher");
    public static final Field REMOTE_BACK_PRESSURE = field(WorkerTransfer.class, "remoteBackPressureStatus");
    public static final Field BP_TASKS = field(BackPressureTracker.class, "tasks");
    public static final Constructor<?> BP_STATE = constructor(
            BackPressureTracker.BackpressureState.class,
            JCQueue.class,
            Integer.class,
            String.class,
            StormMetricRegistry.class);
    public static final Method CONNECTED_CHANNEL = method(Client.class, "getConnectedChannel");
    public static final Field EXECUTORS_ATOM = field(Worker.class, "executorsAtom");
    public static final Field TRANSFER_QUEUES = field(ExecutorTransfer.class, "localReceiveQueues");
    public static final Field TRANSFER_BASE = field(ExecutorTransfer.class, "indexingBase");
    public static final Field TRANSFER_TO_FLUSH = field(ExecutorTransfer.class, "queuesToFlush");
    public static final Field SHUTDOWN_EXECUTOR = field(ExecutorShutdown.class, "executor");
    public static final Field SHUTDOWN_THREADS = field(ExecutorShutdown.class, "threads");
    public static final Field ID_TO_TASK = field(Executor.class, "idToTask");
    public static final Field REPORT_ERROR_DIE = field(Executor.class, "reportErrorDie");
    public static final Field SPOUT_ACTIVE = field(SpoutExecutor.class, "lastActive");
    public static final Field SPOUT_PENDING = field(SpoutExecutor.class, "pending");
    public static final Field SPOUT_COLLECTORS = field(SpoutExecutor.class, "outputCollectors");
    public static final Field BOLT_COLLECTOR = field(BoltExecutor.class, "outputCollector");
    public static final Field COLLECTOR_TASK = field(BoltOutputCollectorImpl.class, "task");
    public static final Field ACKER_PENDING = field(Acker.class, "pending");
    public static final Field TREE_XOR = field(Acker.class, "AckObject", "val");
    public static final Field TREE_SPOUT = field(Acker.class, "AckObject", "spoutTask");
    public static final Field TREE_FAILED = field(Acker.class, "AckObject", "failed");
    static final Field GROUPERS = field(Executor.class, "groupers");
    static final Field STREAM_TO_GROUPERS = field(Task.class, "streamToGroupers");
    public static final Field RATE_COUNTERS = field(StormMetricRegistry.class, "rateCounters");
    static final Field TASK_METRICS = field(StormMetricRegistry.class, "taskMetrics");
    static final List<Field> METRICS_BY_TASK = List.of(
            field(StormMetricRegistry.class, "taskIdGauges"),
            field(StormMetricRegistry.class, "taskIdMeters"),
            field(StormMetricRegistry.class, "taskIdCounters"),
            field(StormMetricRegistry.class, "taskIdTimers"),
            field(StormMetricRegistry.class, "taskIdHistograms"));

    private StormFields() {}

    @SuppressWarnings({"unchecked", "TypeParameterUnusedInFormals"})
    public static <T> T get(Field field, Object owner) {
        try {
            return (T) field.get(owner);
        } catch (IllegalAccessException e) {
            throw new IllegalStateException("cannot read " + field, e);
        }
    }

    /** Storm never trusts these finals as constants: they are plain instance fields. */
    public static void set(Field field, Object owner, Object value) {
        try {
            field.set(owner, value);
        } catch (IllegalAccessException e) {
            throw new IllegalStateException("cannot write " + field, e);
        }
    }

    private static Field field(Class<?> owner, String name) {
        try {
            return open(owner.getDeclaredField(name));
        } catch (NoSuchFieldException e) {
            throw new IllegalStateException("Storm has no field " + owner.getName() + "." + name, e);
        }
    }

    /** Of a class that Storm keeps private within another. */
    private static Field field(Class<?> around, String inner, String name) {
        try {
            return field(Class.forName(around.getName() + "$" + inner, false, around.getClassLoader()), name);
        } catch (ClassNotFoundException e) {
            throw new IllegalStateException("Storm has no class " + inner + " in " + around.getName(), e);
        }
    }

    private static Method method(Class<?> owner, String name, Class<?>... parameters) {
        try {
            return open(owner.getDeclaredMethod(name, parameters));
        } catch (NoSuchMethodException e) {
            throw new IllegalStateException("Storm has no method " + owner.getName() + "." + name, e);
        }
    }

    private static Constructor<?> constructor(Class<?> owner, Class<?>... parameters) {
        try {
            return open(owner.getDeclaredConstructor(parameters));
        } catch (NoSuchMethodException e) {
            throw new IllegalStateException("Storm has no such constructor of " + owner.getName(), e);
        }
    }

    private static <T extends AccessibleObject> T open(T member) {
        member.setAccessible(true);
        return member;
    }
}

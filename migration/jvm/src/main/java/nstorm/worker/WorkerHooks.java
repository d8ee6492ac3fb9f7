package nstorm.worker;

import java.util.List;
import java.util.Set;
import java.util.stream.Stream;
import nstorm.hook.Advised;
import nstorm.hook.HookSet;
import nstorm.hook.Symbol;

/** Which methods of a worker are hooked, and which private members the hooks touch; names only. */
public final class WorkerHooks implements HookSet {
    private static final String STATE = "org.apache.storm.daemon.worker.WorkerState";
    private static final String EXECUTOR = "org.apache.storm.executor.Executor";
    private static final String TRANSFER = "org.apache.storm.executor.ExecutorTransfer";
    private static final String BOLT_EXECUTOR = "org.apache.storm.executor.bolt.BoltExecutor";
    private static final String SPOUT_EXECUTOR = "org.apache.storm.executor.spout.SpoutExecutor";
    private static final String SPOUT_TUPLE = "Lorg/apache/storm/executor/spout/SpoutExecutor;"
            + "Lorg/apache/storm/daemon/Task;Ljava/lang/Long;Lorg/apache/storm/executor/TupleInfo;";
    private static final String TREE = "org.apache.storm.daemon.Acker$AckObject";
    private static final String ROTATING_MAP = "Lorg/apache/storm/utils/RotatingMap;";
    private static final String MAP = "Ljava/util/Map;";
    private static final String REGISTRY = "org.apache.storm.metrics2.StormMetricRegistry";
    private static final String CONCURRENT = "Ljava/util/concurrent/ConcurrentMap;";
    private static final String BACKPRESSURE = "org.apache.storm.daemon.worker.BackPressureTracker$BackpressureState";

    private static final List<Symbol> SYMBOLS = List.of(
            new Symbol(STATE, "conf", MAP),
            new Symbol(STATE, "assignmentId", "Ljava/lang/String;"),
            new Symbol(STATE, "localExecutors", "Ljava/util/Set;"),
            new Symbol(STATE, "localTaskIds", "Ljava/util/ArrayList;"),
            new Symbol(STATE, "localReceiveQueues", MAP),
            new Symbol(STATE, "executorReceiveQueueMap", MAP),
            new Symbol(STATE, "taskToExecutorQueue", MAP),
            new Symbol(STATE, "outboundTasks", "Ljava/util/Set;"),
            new Symbol(STATE, "cachedTaskToNodePort", "Ljava/util/concurrent/atomic/AtomicReference;"),
            new Symbol(STATE, "endpointSocketLock", "Ljava/util/concurrent/locks/ReentrantReadWriteLock;"),
            new Symbol(STATE, "bpTracker", "Lorg/apache/storm/daemon/worker/BackPressureTracker;"),
            new Symbol(STATE, "workerTransfer", "Lorg/apache/storm/daemon/worker/WorkerTransfer;"),
            new Symbol(STATE, "refreshConnectionsTimer", "Lorg/apache/storm/StormTimer;"),
            new Symbol(STATE, "userTimer", "Lorg/apache/storm/StormTimer;"),
            new Symbol(STATE, "mkReceiveQueueMap", "(Ljava/util/Map;Ljava/util/Set;Ljava/util/Map;)Ljava/util/Map;"),
            new Symbol(
                    "org.apache.storm.daemon.worker.WorkerTransfer",
                    "remoteBackPressureStatus",
                    "[Ljava/util/concurrent/atomic/AtomicBoolean;"),
            new Symbol(
                    "org.apache.storm.daemon.worker.WorkerTransfer",
                    "getTransferQueue",
                    "()Lorg/apache/storm/utils/JCQueue;"),
            new Symbol("org.apache.storm.daemon.worker.BackPressureTracker", "tasks", MAP),
            new Symbol(
                    BACKPRESSURE,
                    "<init>",
                    "(Lorg/apache/storm/utils/JCQueue;Ljava/lang/Integer;Ljava/lang/String;"
                            + "Lorg/apache/storm/metrics2/StormMetricRegistry;)V"),
            new Symbol(
                    "org.apache.storm.daemon.worker.Worker",
                    "executorsAtom",
                    "Ljava/util/concurrent/atomic/AtomicReference;"),
            new Symbol(
                    "org.apache.storm.messaging.netty.Client",
                    "getConnectedChannel",
                    "()Lorg/apache/storm/shade/io/netty/channel/Channel;"),
            new Symbol(TRANSFER, "localReceiveQueues", "Ljava/util/ArrayList;"),
            new Symbol(TRANSFER, "indexingBase", "I"),
            new Symbol(TRANSFER, "queuesToFlush", "Ljava/util/concurrent/atomic/AtomicReferenceArray;"),
            new Symbol(
                    "org.apache.storm.executor.ExecutorShutdown", "executor", "Lorg/apache/storm/executor/Executor;"),
            new Symbol("org.apache.storm.executor.ExecutorShutdown", "threads", "Ljava/util/List;"),
            new Symbol("org.apache.storm.executor.ExecutorShutdown", "taskDatas", "Ljava/util/ArrayList;"),
            new Symbol(EXECUTOR, "idToTask", "Ljava/util/ArrayList;"),
            new Symbol(EXECUTOR, "reportErrorDie", "Lorg/apache/storm/executor/error/ReportErrorAndDie;"),
            new Symbol(EXECUTOR, "groupers", "Ljava/util/List;"),
            new Symbol(SPOUT_EXECUTOR, "lastActive", "Ljava/util/concurrent/atomic/AtomicBoolean;"),
            new Symbol(SPOUT_EXECUTOR, "pending", ROTATING_MAP),
            new Symbol(SPOUT_EXECUTOR, "outputCollectors", "Ljava/util/List;"),
            new Symbol(BOLT_EXECUTOR, "outputCollector", "Lorg/apache/storm/executor/bolt/BoltOutputCollectorImpl;"),
            new Symbol(
                    "org.apache.storm.executor.bolt.BoltOutputCollectorImpl", "task", "Lorg/apache/storm/daemon/Task;"),
            new Symbol("org.apache.storm.daemon.Acker", "pending", ROTATING_MAP),
            new Symbol(TREE, "val", "J"),
            new Symbol(TREE, "spoutTask", "I"),
            new Symbol(TREE, "failed", "Z"),
            new Symbol("org.apache.storm.daemon.Task", "streamToGroupers", "Ljava/util/HashMap;"),
            new Symbol(REGISTRY, "rateCounters", "Ljava/util/Set;"),
            new Symbol(REGISTRY, "taskMetrics", CONCURRENT),
            new Symbol(REGISTRY, "taskIdGauges", CONCURRENT),
            new Symbol(REGISTRY, "taskIdMeters", CONCURRENT),
            new Symbol(REGISTRY, "taskIdCounters", CONCURRENT),
            new Symbol(REGISTRY, "taskIdTimers", CONCURRENT),
            new Symbol(REGISTRY, "taskIdHistograms", CONCURRENT),
            new Symbol("org.apache.storm.utils.JCQueue", "thdLocalBatcher", "Ljava/lang/ThreadLocal;"));

    @Override
    public List<Advised> advised() {
        String tuple = "org/apache/storm/tuple/AddressedTuple";
        return List.of(
                new Advised(STATE, "<init>", null, WorkerAdvice.StateBuilt.class),
                new Advised(
                        STATE,
                        "getLocalAssignment",
                        "(Lorg/apache/storm/cluster/IStormClusterState;"
                                + "Ljava/lang/String;)Lorg/apache/storm/generated/Assignment;",
                        WorkerAdvice.LocalAssignment.class),
                new Advised(
                        STATE,
                        "suicideIfLocalAssignmentsChanged",
                        "(Lorg/apache/storm/generated/Assignment;)V",
                        WorkerAdvice.AssignmentsChanged.class),
                new Advised(STATE, "refreshConnections", "()V", WorkerAdvice.RefreshConnections.class),
                new Advised(STATE, "transferLocalBatch", "(Ljava/util/ArrayList;)V", WorkerAdvice.LocalBatch.class),
                new Advised(STATE, "hasRemoteOutboundTasks", "()Z", WorkerAdvice.Always.class),
                new Advised(STATE, "isSingleWorker", "()Z", WorkerAdvice.Never.class),
                new Advised(
                        "org.apache.storm.daemon.worker.Worker",
                        "setupFlushTupleTimer",
                        "(Ljava/util/Map;Ljava/util/List;)V",
                        WorkerAdvice.Loaded.class),
                new Advised(
                        "org.apache.storm.daemon.worker.BackPressureTracker",
                        "getCurrStatus",
                        "()Lorg/apache/storm/messaging/netty/BackPressureStatus;",
                        WorkerAdvice.Status.class),
                new Advised(TRANSFER, "initLocalRecvQueues", "()V", WorkerAdvice.LocalQueues.class),
                new Advised(
                        TRANSFER, "tryTransfer", "(L" + tuple + ";Ljava/util/Queue;)Z", WorkerAdvice.Transferred.class),
                new Advised(
                        "org.apache.storm.utils.TransferDrainer",
                        "send",
                        "(Ljava/util/Map;Ljava/util/Map;)V",
                        WorkerAdvice.Send.class),
                new Advised(EXECUTOR, "accept", "(Ljava/lang/Object;)V", WorkerAdvice.Accept.class),
                new Advised(
                        BOLT_EXECUTOR, "call", "()Ljava/util/concurrent/Callable;", WorkerAdvice.ExecutorLoop.class),
                new Advised(
                        SPOUT_EXECUTOR, "call", "()Ljava/util/concurrent/Callable;", WorkerAdvice.ExecutorLoop.class),
                new Advised(
                        SPOUT_EXECUTOR, "ackSpoutMsg", "(" + SPOUT_TUPLE + ")V", WorkerAdvice.SpoutAcked.class, true),
                new Advised(
                        SPOUT_EXECUTOR,
                        "failSpoutMsg",
                        "(" + SPOUT_TUPLE + "Ljava/lang/String;)V",
                        WorkerAdvice.SpoutFailed.class,
                        true),
                new Advised(
                        "org.apache.storm.StormTimer",
                        "scheduleRecurring",
                        "(IILjava/lang/Runnable;)V",
                        WorkerAdvice.Recurring.class));
    }

    @Override
    public List<Symbol> reflected() {
        return SYMBOLS;
    }

    @Override
    public List<Symbol> written() {
        Set<String> tables = Set.of(
                "localExecutors",
                "localTaskIds",
                "localReceiveQueues",
                "executorReceiveQueueMap",
                "taskToExecutorQueue",
                "outboundTasks");
        return SYMBOLS.stream()
                .filter(one -> one.owner().equals(STATE) && tables.contains(one.member())
                        || one.member().equals("tasks")
                        || one.member().equals("thdLocalBatcher"))
                .toList();
    }

    @Override
    public List<Symbol> reliedOn() {
        return Stream.of(
                        STATE,
                        EXECUTOR,
                        TRANSFER,
                        SPOUT_EXECUTOR,
                        SPOUT_EXECUTOR + "$2",
                        "org.apache.storm.StormTimer",
                        "org.apache.storm.daemon.Acker",
                        "org.apache.storm.daemon.worker.BackPressureTracker",
                        BACKPRESSURE,
                        "org.apache.storm.daemon.worker.Worker",
                        "org.apache.storm.daemon.worker.WorkerTransfer",
                        BOLT_EXECUTOR,
                        "org.apache.storm.executor.bolt.BoltExecutor$1",
                        "org.apache.storm.serialization.KryoTupleSerializer",
                        "org.apache.storm.utils.JCQueue",
                        "org.apache.storm.utils.JCQueue$BatchInserter",
                        "org.apache.storm.utils.JCQueue$DirectInserter",
                        "org.apache.storm.utils.RotatingMap",
                        "org.apache.storm.utils.TransferDrainer")
                .map(type -> new Symbol(type, null, null))
                .toList();
    }
}

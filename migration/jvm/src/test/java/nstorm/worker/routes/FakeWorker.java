package nstorm.worker.routes;

import java.lang.reflect.Field;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicReference;
import java.util.concurrent.locks.ReentrantReadWriteLock;
import nstorm.wire.ExecutorId;
import nstorm.wire.Slot;
import org.apache.storm.Config;
import org.apache.storm.daemon.worker.WorkerState;
import org.apache.storm.daemon.worker.WorkerTransfer;
import org.apache.storm.generated.Bolt;
import org.apache.storm.generated.ComponentCommon;
import org.apache.storm.generated.NodeInfo;
import org.apache.storm.generated.StormTopology;
import org.apache.storm.generated.StreamInfo;
import org.apache.storm.messaging.IConnection;
import org.apache.storm.tuple.AddressedTuple;
import org.apache.storm.tuple.Fields;
import org.apache.storm.tuple.TupleImpl;
import org.apache.storm.utils.JCQueue;
import org.apache.storm.utils.TransferDrainer;
import org.apache.storm.utils.Utils;
import org.objenesis.ObjenesisStd;

/** Storm's state of a worker without its constructor: its own methods find what routes need. */
public final class FakeWorker {
    public static final Slot ME = new Slot("s1", 6700);
    static final Slot OTHER = new Slot("s2", 6701);
    /** The one task of the component that others send to. */
    static final int SINK = 3;

    private static final int SOURCE = 2;
    private static final int MOST_TASKS = 10;

    public final WorkerState state = new ObjenesisStd().newInstance(WorkerState.class);
    final WorkerTransfer transfer = new ObjenesisStd().newInstance(WorkerTransfer.class);
    final JCQueue transferQueue;
    final ReentrantReadWriteLock sends = new ReentrantReadWriteLock();
    final Map<Integer, NodeInfo> taskToNode = new ConcurrentHashMap<>();
    final Map<NodeInfo, IConnection> connections = new ConcurrentHashMap<>();
    public final WorkerTables tables;

    public FakeWorker() throws ReflectiveOperationException {
        this(1);
    }

    FakeWorker(int transferBatch) throws ReflectiveOperationException {
        Map<String, Object> conf = Utils.readDefaultConfig();
        conf.put(Config.TOPOLOGY_TRANSFER_BATCH_SIZE, transferBatch);
        transferQueue = queue(64, transferBatch);
        set(transfer, "transferQueue", transferQueue);
        set(transfer, "workerState", state);
        set(transfer, "drainer", new TransferDrainer());
        AtomicBoolean[] flags = new AtomicBoolean[MOST_TASKS];
        for (int i = 0; i < flags.length; i++) {
            flags[i] = new AtomicBoolean();
        }
        set(transfer, "remoteBackPressureStatus", flags);
        StormTopology topology = new StormTopology(new HashMap<>(), new HashMap<>(), new HashMap<>());
        for (String component : List.of("source", "sink")) {
            Bolt bolt = new Bolt();
            Map<String, StreamInfo> emits = new HashMap<>();
            emits.put("default", new StreamInfo(List.of("number"), false));
            emits.put("__system", new StreamInfo(List.of("event"), false));
            bolt.set_common(new ComponentCommon(new HashMap<>(), emits));
            topology.put_to_bolts(component, bolt);
        }
        Map<String, Fields> streams = Map.of("default", new Fields("number"), "__system", new Fields("event"));
        set(state, "conf", conf);
        set(state, "topologyConf", conf);
        set(state, "topologyId", "t-1-1");
        set(state, "assignmentId", ME.supervisor());
        set(state, "taskToComponent", new HashMap<>(Map.of(-1, "__system", SOURCE, "source", SINK, "sink")));
        set(state, "topology", topology);
        set(state, "systemTopology", topology);
        set(state, "componentToStreamToFields", Map.of("source", streams, "sink", streams));
        set(
                state,
                "componentToSortedTasks",
                Map.of("__system", List.of(-1), "source", List.of(SOURCE), "sink", List.of(SINK)));
        set(state, "localExecutors", new HashSet<>());
        set(state, "localTaskIds", new ArrayList<>(List.of(-1)));
        set(state, "localReceiveQueues", new HashMap<>());
        set(state, "executorReceiveQueueMap", new HashMap<>());
        set(state, "taskToExecutorQueue", new HashMap<>());
        set(state, "outboundTasks", new HashSet<>());
        set(state, "defaultSharedResources", new HashMap<>());
        set(state, "userSharedResources", new HashMap<>());
        set(state, "endpointSocketLock", sends);
        set(state, "cachedNodeToPortSocket", new AtomicReference<>(connections));
        set(state, "cachedTaskToNodePort", new AtomicReference<>(taskToNode));
        set(state, "cachedNodeToHost", new AtomicReference<>(new HashMap<>()));
        set(state, "workerTransfer", transfer);
        tables = new WorkerTables(state, MOST_TASKS - 1);
    }

    private static void set(Object owner, String name, Object value) throws ReflectiveOperationException {
        Field field = owner.getClass().getDeclaredField(name);
        field.setAccessible(true);
        field.set(owner, value);
    }

    static JCQueue queue(int size, int batch) {
        return new JCQueue("q", "q", size, 0, batch, null, "t", "c", List.of(), 6700, null);
    }

    /** What routes a worker without copies of its own. */
    TupleRouting routing() {
        return new TupleRouting(state, ME, tables, new LocalCopies() {
            @Override
            public Copy copyOf(ExecutorId executor) {
                return null;
            }

            @Override
            public Copy copyOf(int task) {
                return null;
            }
        });
    }

    void connect(Slot slot, IConnection connection) {
        connections.put(node(slot), connection);
    }

    static NodeInfo node(Slot slot) {
        return new NodeInfo(slot.supervisor(), Set.of((long) slot.port()));
    }

    AddressedTuple tuple(int dest, int number) {
        return new AddressedTuple(
                dest, new TupleImpl(state.getWorkerTopologyContext(), List.of(number), "source", SOURCE, "default"));
    }

    /** As Storm's Netty thread does with a batch that has come. */
    void transferLocalBatch(List<AddressedTuple> batch) throws Throwable {
        Method stock = WorkerState.class.getDeclaredMethod("transferLocalBatch", ArrayList.class);
        stock.setAccessible(true);
        try {
            stock.invoke(state, new ArrayList<>(batch));
        } catch (InvocationTargetException e) {
            throw e.getCause();
        }
    }
}

package nstorm.worker.routes;

import java.util.AbstractMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicReference;
import java.util.concurrent.atomic.AtomicReferenceArray;
import java.util.concurrent.locks.Lock;
import java.util.concurrent.locks.ReadWriteLock;
import java.util.function.IntFunction;
import java.util.stream.Collectors;
import nstorm.wire.ExecutorId;
import nstorm.wire.Slot;
import nstorm.worker.plan.PlanOverlay;
import nstorm.worker.storm.StormFields;
import org.apache.storm.daemon.worker.WorkerState;
import org.apache.storm.executor.ExecutorTransfer;
import org.apache.storm.generated.NodeInfo;
import org.apache.storm.messaging.ConnectionWithStatus;
import org.apache.storm.messaging.IConnection;
import org.apache.storm.messaging.TaskMessage;
import org.apache.storm.messaging.netty.Client;
import org.apache.storm.shade.io.netty.channel.Channel;
import org.apache.storm.utils.JCQueue;

/**
 * The tables by which a worker state finds executors, tasks and queues, swapped for tables that may change.
 *
 * <p>Storm fills them once, in the constructor, and then reads them from several threads without a lock. So each
 * one is swapped for a concurrent table of the same content. The reconciler's thread changes them, and the thread of misrouted tuples
 * removes the queues of executors that have ended.
 */
public final class WorkerTables {
    /** What Storm's Netty threads look queues up in. They would throw where they find none, and Storm would end the JVM. */
    private final class FoundQueues extends AbstractMap<Integer, JCQueue> {
        @Override
        public JCQueue get(Object task) {
            JCQueue queue = taskToQueue.get(task);
            return queue == null ? unowned : queue;
        }

        @Override
        public Set<Entry<Integer, JCQueue>> entrySet() {
            return taskToQueue.entrySet();
        }
    }

    /** For so long it waits for Storm's transfer thread, which may wait for a full connection. */
    private static final long TURN_MS = 5;

    public final Routes routes;
    private final Routes.TaskIds taskIds;
    private final Set<List<Long>> localExecutors;
    private final Map<List<Long>, JCQueue> receiveQueues;
    private final Map<Integer, JCQueue> taskToQueue;
    private final AtomicReference<Map<Integer, NodeInfo>> taskToNodePort;
    private final AtomicReference<Map<NodeInfo, IConnection>> connections;
    /** Whose shared lock Storm's transfer thread holds while it sends. */
    private final Lock sends;
    /** Takes what is for a task without a queue here: its queue may go after a batch was looked at. */
    private volatile JCQueue unowned;

    /** Swaps the tables of a worker state that has just been built. */
    public WorkerTables(WorkerState state, int maxTaskId) {
        routes = new Routes(maxTaskId);
        taskToQueue = new ConcurrentHashMap<>(StormFields.<Map<Integer, JCQueue>>get(StormFields.TASK_TO_QUEUE, state));
        StormFields.set(StormFields.TASK_TO_QUEUE, state, new FoundQueues());
        taskToQueue.forEach(routes::deliver);
        taskToQueue.forEach(routes::arrive);
        receiveQueues = swapMap(StormFields.EXECUTOR_RECEIVE_QUEUES, state);
        swapMap(StormFields.LOCAL_RECEIVE_QUEUES, state);
        localExecutors = ConcurrentHashMap.newKeySet();
        localExecutors.addAll(state.getLocalExecutors());
        StormFields.set(StormFields.LOCAL_EXECUTORS, state, localExecutors);
        taskIds = new Routes.TaskIds(state.getLocalTaskIds());
        StormFields.set(StormFields.LOCAL_TASK_IDS, state, taskIds);
        // Any task may become a neighbour: Storm connects only to those of the components that this worker sends to.
        Set<Integer> all = new HashSet<>(state.getTaskToComponent().keySet());
        all.removeIf(task -> task < 0);
        for (int end = PlanOverlay.FIRST_END; end >= PlanOverlay.LAST_END; end--) {
            all.add(end);
        }
        StormFields.set(StormFields.OUTBOUND_TASKS, state, all);
        taskToNodePort = StormFields.get(StormFields.TASK_TO_NODE_PORT, state);
        connections = state.getCachedNodeToPortSocket();
        sends = StormFields.<ReadWriteLock>get(StormFields.ENDPOINT_LOCK, state).writeLock();
    }

    private static <K, V> Map<K, V> swapMap(java.lang.reflect.Field field, WorkerState state) {
        Map<K, V> swapped = new ConcurrentHashMap<>(StormFields.<Map<K, V>>get(field, state));
        StormFields.set(field, state, swapped);
        return swapped;
    }

    /** The tasks of this worker, as Storm's threads see them. */
    public Routes.TaskIds taskIds() {
        return taskIds;
    }

    /** Gives an executor's transfer the shared table of local queues. */
    public void install(ExecutorTransfer transfer) {
        StormFields.set(StormFields.TRANSFER_TO_FLUSH, transfer, new AtomicReferenceArray<JCQueue>(routes.size()));
        StormFields.set(StormFields.TRANSFER_BASE, transfer, Routes.INDEXING_BASE);
        StormFields.set(StormFields.TRANSFER_QUEUES, transfer, routes);
    }

    /** Storm's executor constructor looks its queue up here. */
    public void addReceiveQueue(ExecutorId id, JCQueue queue) {
        receiveQueues.put(id.toStorm(), queue);
    }

    public void removeReceiveQueue(ExecutorId id, JCQueue queue) {
        receiveQueues.remove(id.toStorm(), queue);
    }

    void takeUnowned(JCQueue queue) {
        unowned = queue;
    }

    public synchronized void addTask(int task, JCQueue queue) {
        taskToQueue.put(task, queue);
        routes.arrive(task, queue);
    }

    /** False if the task has another queue by now: the executor has come back. */
    public synchronized boolean removeTask(int task, JCQueue queue) {
        boolean removed = closeTask(task, queue);
        forgetTask(task, queue);
        return removed;
    }

    /**
     * Storm finds the queue no more. A Netty thread that found it before has yet to flush its batch of it, and looks for that among the
     * arrivals. So it stays there until {@link #forgetTask}.
     *
     * @return as {@link #removeTask}
     */
    public synchronized boolean closeTask(int task, JCQueue queue) {
        JCQueue known = taskToQueue.get(task);
        return known != null && OrderGate.behind(known) == OrderGate.behind(queue) && taskToQueue.remove(task, known);
    }

    /** No thread holds the queue any more. */
    public synchronized void forgetTask(int task, JCQueue queue) {
        JCQueue known = routes.arrival(task);
        if (known != null && OrderGate.behind(known) == OrderGate.behind(queue)) {
            routes.arrive(task, null);
        }
    }

    /** Where what arrives for the task goes; null if it has no queue here. */
    JCQueue found(int task) {
        return taskToQueue.get(task);
    }

    public boolean hasTask(int task) {
        return taskToQueue.containsKey(task);
    }

    /** Whether what arrives for the task comes to this gate. */
    boolean isGate(int task, OrderGate gate) {
        return taskToQueue.get(task) == gate.direct;
    }

    /** From now on the task's tuples come to the queue itself. */
    synchronized void closeGate(int task, OrderGate gate) {
        if (taskToQueue.replace(task, gate.direct, gate.queue)) {
            routes.arrive(task, gate.queue);
        }
        LocalTurn turn = routes.turn(task);
        if (turn != null && turn.real() == gate.queue) {
            routes.deliver(task, turn.delivering() == null ? null : gate.queue);
        } else if (routes.queue(task) == gate.direct) {
            routes.deliver(task, gate.queue);
        }
    }

    /** From now on tuples of the executor go into these queues, one for each of its tasks. */
    public void claim(ExecutorId id, IntFunction<JCQueue> queues) {
        localExecutors.add(id.toStorm());
        taskIds.addAllOf(id.start(), id.end());
        deliver(id, queues);
    }

    private void deliver(ExecutorId id, IntFunction<JCQueue> queues) {
        for (int task = id.start(); task <= id.end(); task++) {
            routes.deliver(task, queues.apply(task));
        }
    }

    /**
     * Connections to the new owner come first: see {@link #stopDelivering}. The executor stays in this worker's heartbeats while its copy
     * lives. The new owner may not have read that it is the owner, and Nimbus takes an executor for dead that is in no worker's heartbeats.
     */
    public void renounce(ExecutorId id) {
        taskIds.removeAllOf(id.start(), id.end());
    }

    /** To be called after {@link #renounce} and a refresh of the connections, or tuples had nowhere to go. */
    public void stopDelivering(ExecutorId id, IntFunction<JCQueue> turns) {
        deliver(id, turns);
    }

    /** A copy has ended that was still delivered to, as a spout's is: what comes later waits for the next owner. */
    public void abandon(ExecutorId id, JCQueue dead, IntFunction<JCQueue> turns) {
        JCQueue queue = routes.queue(id.start());
        if (queue != null && OrderGate.behind(queue) == dead) {
            renounce(id);
            stopDelivering(id, turns);
        }
    }

    public void beginHeartbeats(ExecutorId id) {
        localExecutors.add(id.toStorm());
    }

    /** The executor's copy has ended: it leaves this worker's heartbeats. */
    public void endHeartbeats(ExecutorId id) {
        localExecutors.remove(id.toStorm());
    }

    public boolean delivers(ExecutorId id) {
        return routes.queue(id.start()) != null;
    }

    /** Whether Storm would take messages for the slot now; it drops them while a connection is being made. */
    public boolean isConnected(Slot slot) {
        return ready(slot) != null;
    }

    /** The slots for which that is so, of all that this worker has connections to. */
    public Set<Slot> connected() {
        return connections.get().entrySet().stream()
                .filter(one -> isReady(one.getValue()))
                .map(one -> PlanOverlay.slot(one.getKey()))
                .collect(Collectors.toSet());
    }

    private static boolean isReady(IConnection connection) {
        return !(connection instanceof ConnectionWithStatus known)
                || known.status() == ConnectionWithStatus.Status.Ready;
    }

    /**
     * Lets Storm connect again where a connection has died. Storm itself finds that out within 30 s, or as it sends, and then drops what it
     * sends. This must not happen to a worker that sends for a copy it has just got.
     */
    public void reconnect() {
        for (IConnection connection : connections.get().values()) {
            if (connection instanceof Client client && client.status() == ConnectionWithStatus.Status.Connecting) {
                channel(client);
            }
        }
    }

    /**
     * Sends a message to a slot's worker. False if no connection to it stands now, or it is full. Storm would wait there, and a worker that
     * is silent for long counts as dead.
     *
     * <p>Storm's connection is for one thread. What the transfer thread has put into its batch would come behind what that thread sends
     * next. The transfer thread sends under the shared lock.
     */
    public boolean send(Slot slot, TaskMessage message) {
        try {
            if (!sends.tryLock(TURN_MS, TimeUnit.MILLISECONDS)) {
                return false;
            }
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            return false;
        }
        try {
            IConnection to = ready(slot);
            if (to == null || !hasRoom(to)) {
                return false;
            }
            to.send(List.of(message).iterator());
            return true;
        } finally {
            sends.unlock();
        }
    }

    /** As Storm's transfer thread sends, and on that thread: waits while the connection is full; false if none stands. */
    boolean sendAll(Slot slot, List<TaskMessage> messages) {
        IConnection to = ready(slot);
        if (to != null) {
            to.send(messages.iterator());
        }
        return to != null;
    }

    private IConnection ready(Slot slot) {
        for (Map.Entry<NodeInfo, IConnection> one : connections.get().entrySet()) {
            if (PlanOverlay.slot(one.getKey()).equals(slot) && isReady(one.getValue())) {
                return one.getValue();
            }
        }
        return null;
    }

    private static boolean hasRoom(IConnection connection) {
        if (!(connection instanceof Client client)) {
            return true;
        }
        Channel channel = channel(client);
        return channel != null && channel.isWritable();
    }

    private static Channel channel(Client client) {
        try {
            return (Channel) StormFields.CONNECTED_CHANNEL.invoke(client);
        } catch (ReflectiveOperationException e) {
            throw new IllegalStateException("cannot connect again to " + client.getDstAddress(), e);
        }
    }

    /** The slot that this worker sends the task's tuples to; null if it knows of none. */
    Slot ownerOf(int task) {
        NodeInfo owner = taskToNodePort.get().get(task);
        return owner == null ? null : PlanOverlay.slot(owner);
    }
}

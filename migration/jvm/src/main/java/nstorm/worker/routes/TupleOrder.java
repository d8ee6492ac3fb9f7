package nstorm.worker.routes;

import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Queue;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;
import java.util.function.BooleanSupplier;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import java.util.stream.Stream;
import nstorm.wire.Entry;
import nstorm.wire.ExecutorId;
import nstorm.wire.Phase;
import nstorm.wire.Plan;
import nstorm.wire.Slot;
import nstorm.wire.Way;
import nstorm.worker.plan.PlanOverlay;
import nstorm.worker.routes.LocalCopies.Copy;
import nstorm.worker.storm.StormFields;
import org.apache.storm.daemon.worker.WorkerTransfer;
import org.apache.storm.generated.NodeInfo;
import org.apache.storm.messaging.TaskMessage;
import org.apache.storm.serialization.KryoTupleSerializer;
import org.apache.storm.task.WorkerTopologyContext;
import org.apache.storm.tuple.AddressedTuple;
import org.apache.storm.tuple.Tuple;
import org.apache.storm.utils.JCQueue;

/**
 * Keeps what one task sends another in the order in which it was sent while the other one moves. Sends the markers of this worker's
 * senders, and has an {@link OrderGate} before the queue of each copy of a moving executor.
 *
 * <p>The plan is followed by the reconciler's thread. Markers are sent by Storm's transfer thread, where this worker is no end of the
 * move, else by the senders' own threads ({@link LocalTurn}).
 */
public final class TupleOrder {
    private static final Set<Way> WAYS = Set.of(Way.LIVE, Way.CARRY, Way.DRAIN, Way.RENEW);
    private static final ArrayList<TaskMessage> NONE = new ArrayList<>();

    /** Where probes arrive, and below it one pseudo task for each worker that they are sent to. */
    static final int PROBES = -1200;

    private static final int MOST_PEERS = 700;

    /** What Storm's Netty thread publishes a probe to, behind all that came before it. */
    private final class Probes extends JCQueue {
        Probes() {
            super("nstorm-probes", "nstorm-probes", 2, 0, 1, null, "", "", List.of(), 0, null);
        }

        @Override
        public boolean tryPublish(Object tuple) {
            probed(((AddressedTuple) tuple).tuple);
            return true;
        }
    }

    /** A task that moves. */
    private static final class Moving {
        final String move;
        final int task;
        /** The other end of the move; null if this worker is none. */
        final Slot otherEnd;

        final Set<String> feeders;
        /** Tasks of this worker that may have sent it something. */
        final Set<Integer> senders = ConcurrentHashMap.newKeySet();
        /** Where the transfer thread has sent its tuples last. */
        volatile Slot lastSent;
        /** What was sent to the other end has come back: no connection stood. */
        volatile boolean cutOff;
        /** When the plan was followed last with the move in it; of the reconciler's thread. */
        long plannedNanos;
        /** The tasks of this worker that senders were last looked for among. */
        Object searched;

        Moving(Entry entry, int task, Slot me, Set<String> feeders, Slot owner) {
            move = entry.id();
            this.task = task;
            otherEnd = me.equals(entry.from()) ? entry.to() : me.equals(entry.to()) ? entry.from() : null;
            this.feeders = feeders;
            lastSent = owner;
        }

        /**
         * Whether nothing can come the old way any more. A sender closes it with its first tuple after the switch. That tuple may come to a
         * source whose move is over. Then it goes on as in the move, or the target would await it for long.
         */
        boolean over(Slot owner, long nowNanos, long lingerNanos) {
            return otherEnd == null || !otherEnd.equals(owner) || nowNanos - plannedNanos > lingerNanos;
        }
    }

    /** A marker that has come before this worker knows of its move, or when it has no gate any more. */
    private record Late(AddressedTuple marker, long nanos) {}

    /** A probe for a worker to which no connection stood. */
    private record Unsent(Slot to, byte[] probe, long nanos) {}

    private final TupleRouting routing;
    private final WorkerTables tables;
    private final JCQueue transferQueue;
    private final Map<Integer, Moving> moving = new ConcurrentHashMap<>();
    private final Map<ExecutorId, OrderGate> gates = new ConcurrentHashMap<>();
    /** Of copies that have ended, while their queues have no room for all that waited. */
    private final List<OrderGate> ended = new CopyOnWriteArrayList<>();

    private final Queue<Late> late = new ConcurrentLinkedQueue<>();
    private final Queue<Unsent> unsent = new ConcurrentLinkedQueue<>();
    /** The workers that probes are sent to, by their pseudo task. */
    private final List<Slot> peers = new CopyOnWriteArrayList<>();

    private KryoTupleSerializer serializer;
    /** Tuples that came without what their sender had sent before. */
    public final AtomicLong unordered = new AtomicLong();

    TupleOrder(TupleRouting routing) {
        this.routing = routing;
        tables = routing.tables;
        tables.addTask(PROBES, new Probes());
        transferQueue = StormFields.<WorkerTransfer>get(StormFields.WORKER_TRANSFER, routing.state)
                .getTransferQueue();
    }

    /** Whether all that serve the move keep the order. */
    private static boolean orders(Entry entry) {
        return entry.ordered()
                && WAYS.contains(entry.way())
                && entry.phase() != Phase.OPEN
                && entry.understood()
                && entry.voidReason() == null
                && OrderMarker.fits(entry.executor());
    }

    /** Follows the plan, before the routes do. */
    public void follow(Plan planOrNull) {
        Set<ExecutorId> executors = new HashSet<>();
        long now = System.nanoTime();
        if (planOrNull != null) {
            planOrNull.entries().stream().filter(TupleOrder::orders).forEach(entry -> {
                executors.add(entry.executor());
                follow(entry, now);
            });
        }
        long lingerNanos = TimeUnit.SECONDS.toNanos(routing.messageTimeoutSecs);
        moving.values()
                .removeIf(one -> one.plannedNanos != now && one.over(tables.ownerOf(one.task), now, lingerNanos));
        gates.forEach((id, gate) -> {
            Copy copy = routing.copies.copyOf(id);
            boolean alive = copy != null && copy.queue() == gate.queue;
            unordered.addAndGet(gate.tick(now, alive && copy.pauses()));
            if (!executors.contains(id) && gate.retire(alive)) {
                close(id, gate, alive ? copy : null);
            }
        });
        ended.removeIf(OrderGate::drained);
        late.removeIf(one -> goesOn(one.marker) || now - one.nanos > OrderGate.PATIENCE_NANOS);
        unsent.removeIf(one -> now - one.nanos > OrderGate.PATIENCE_NANOS || goesOn(one));
    }

    private boolean goesOn(Unsent one) {
        return tables.isConnected(one.to) && publish(new TaskMessage(peer(one.to), one.probe));
    }

    /** Puts a late marker behind all that its sender has sent here, from where it goes the way of that. */
    private boolean goesOn(AddressedTuple marker) {
        int task = OrderMarker.task(marker.dest);
        OrderGate gate = gate(task);
        if (gate != null) {
            return gate.oldWay.tryPublish(marker);
        }
        if (!atEnd(task)) {
            return false;
        }
        AddressedTuple going = new AddressedTuple(task, marker.tuple);
        JCQueue queue = tables.found(task);
        if (queue == null) {
            routing.misrouted.offer(going);
        }
        return queue == null || queue.tryFlush() && OrderGate.enter(queue, going);
    }

    private void follow(Entry entry, long now) {
        for (int task = entry.executor().start(); task <= entry.executor().end(); task++) {
            Moving one = moving.get(task);
            if (one == null || !one.move.equals(entry.id())) {
                one = new Moving(entry, task, routing.me, feeders(task), tables.ownerOf(task));
                moving.put(task, one);
                serializer();
            }
            one.plannedNanos = now;
            addSenders(one);
        }
        Copy copy = routing.copies.copyOf(entry.executor());
        if (entry.touches(routing.me) && copy != null) {
            open(copy, entry);
        }
    }

    private void addSenders(Moving one) {
        Object tasks = tables.taskIds().version();
        if (one.searched == tasks) {
            return;
        }
        for (int sender : tables.taskIds()) {
            if (one.feeders.contains(routing.state.getTaskToComponent().get(sender))) {
                one.senders.add(sender);
            }
        }
        one.searched = tasks;
    }

    private Set<String> feeders(int task) {
        WorkerTopologyContext context = context();
        return context.getSources(context.getComponentId(task)).keySet().stream()
                .map(stream -> stream.get_componentId())
                .collect(Collectors.toSet());
    }

    private void open(Copy copy, Entry entry) {
        OrderGate known = gates.get(copy.id());
        if (known != null && known.queue == copy.queue()) {
            if (entry.phase() == Phase.UNDO) {
                known.undone();
            }
            if (!known.move.equals(entry.id())) {
                // It has come here a moment ago, and something still waits before its queue.
                known.move = entry.id();
                guard(copy, known, entry);
            }
            return;
        }
        if (known != null) {
            // The queue of a copy that has ended: what waited goes on with it.
            unordered.addAndGet(known.end());
            ended.add(known);
        }
        // A copy that is renewed begins long after the old one has sent all that it emitted.
        boolean begins = routing.me.equals(entry.to()) && entry.phase() == Phase.PREPARE && entry.way() != Way.RENEW;
        OrderGate gate = new OrderGate(
                entry.id(),
                routing.me,
                copy.queue(),
                begins && !consumers(copy.id().start()).isEmpty(),
                this::takeUngated);
        gates.put(copy.id(), gate);
        guard(copy, gate, entry);
        for (int task = copy.id().start(); task <= copy.id().end(); task++) {
            tables.addTask(OrderMarker.oldWay(task), gate.oldWay);
            tables.addTask(task, gate.direct);
        }
    }

    private void guard(Copy copy, OrderGate gate, Entry entry) {
        copy.guard(gate, routing.handOver, probing(copy, routing.me.equals(entry.from()) ? entry.to() : null));
    }

    /** The tasks that an executor emits to. */
    private List<Integer> consumers(int task) {
        WorkerTopologyContext context = context();
        return context.getTargets(context.getComponentId(task)).values().stream()
                .flatMap(byComponent -> byComponent.keySet().stream())
                .distinct()
                .flatMap(component -> context.getComponentTasks(component).stream())
                .toList();
    }

    private List<JCQueue> consumersHere(int task) {
        return consumers(task).stream()
                .map(tables.routes::arrival)
                .filter(Objects::nonNull)
                .map(OrderGate::behind)
                .toList();
    }

    /** Nothing where this worker is not the source: in an undo what the target has emitted is not waited for. */
    private BooleanSupplier probing(Copy copy, Slot targetOrNull) {
        List<Integer> consumers = consumers(copy.id().start());
        if (targetOrNull == null || consumers.isEmpty()) {
            return () -> true;
        }
        Set<Slot> sent = new HashSet<>();
        return () -> {
            Set<Slot> all = consumers.stream()
                    .map(tables::ownerOf)
                    .filter(slot -> slot != null && !slot.equals(routing.me))
                    .collect(Collectors.toSet());
            all.add(targetOrNull);
            Tuple probe =
                    OrderMarker.probe(context(), new OrderMarker.Probe(copy.id().start(), all.size(), targetOrNull));
            all.forEach(slot -> {
                if (!sent.contains(slot) && sendToPeer(peer(slot), probe)) {
                    sent.add(slot);
                }
            });
            return sent.containsAll(all);
        };
    }

    /** From any thread. */
    private synchronized int peer(Slot slot) {
        if (!peers.contains(slot) && peers.size() < MOST_PEERS) {
            peers.add(slot);
        }
        return PROBES - 1 - peers.indexOf(slot);
    }

    static boolean isForPeer(int dest) {
        return dest < PROBES && dest >= PROBES - MOST_PEERS;
    }

    /** Sends a probe behind all that this thread has sent; false if there is no room. */
    boolean sendToPeer(int peer, Tuple probe) {
        return publish(new TaskMessage(peer, bytes(probe)));
    }

    /** Into no batch of this thread: there it might wait for long. */
    private boolean publish(TaskMessage message) {
        return flush() && transferQueue.tryPublishDirect(message);
    }

    /** Whether nothing is left in this thread's batch for other workers: a flush moves at least one of what is in it. */
    boolean flush() {
        for (int i = 0; i < routing.transferBatch; i++) {
            if (!transferQueue.tryFlush()) {
                return false;
            }
        }
        return true;
    }

    private void probed(Tuple tuple) {
        OrderMarker.Probe probe = OrderMarker.probe(tuple);
        if (probe == null) {
            return;
        }
        if (!probe.to().equals(routing.me)) {
            routing.misrouted.offer(new AddressedTuple(peer(probe.to()), tuple));
            return;
        }
        OrderGate gate = gate(probe.task());
        if (gate != null) {
            gate.probed(probe.workers(), consumersHere(probe.task()));
        }
    }

    private void close(ExecutorId id, OrderGate gate, Copy copyOrNull) {
        gates.remove(id, gate);
        for (int task = id.start(); task <= id.end(); task++) {
            tables.closeGate(task, gate);
            tables.removeTask(OrderMarker.oldWay(task), gate.oldWay);
        }
        if (copyOrNull != null) {
            copyOrNull.guard(null, null, null);
        }
    }

    /** The gate before the task's copy, if there is one here. */
    public OrderGate gate(int task) {
        return gates.values().stream()
                .filter(gate -> tables.isGate(task, gate))
                .findFirst()
                .orElse(null);
    }

    /** Whether this worker is an end of an ordered move of the task. */
    public boolean atEnd(int task) {
        Moving one = moving.get(task);
        return one != null && one.otherEnd != null;
    }

    /** Whether what goes to the other end of the task's move would get there; else it would come back again and again. */
    boolean reachesEnd(int task) {
        Moving one = moving.get(task);
        if (one == null || !one.cutOff || one.otherEnd == null) {
            return true;
        }
        one.cutOff = !tables.isConnected(one.otherEnd);
        return !one.cutOff;
    }

    /** What senders of this worker are to publish to from now on: to the copy here if it arrives, else to another worker. */
    public JCQueue turn(Copy copy, int task, boolean arrives) {
        OrderGate gate = gates.get(copy.id());
        Moving one = moving.get(task);
        if (gate == null || gate.queue != copy.queue() || one == null || one.otherEnd == null) {
            return arrives ? gate == null ? copy.queue() : gate.direct : null;
        }
        return new LocalTurn(
                gate,
                arrives,
                this::withSiblings,
                arrives
                        ? (source, closes) -> closes
                                ? transfer(task, OrderMarker.closes(context(), source, routing.me))
                                : gate.expect(source)
                        : (source, closes) -> closes
                                ? leave(gate, task, source, one.otherEnd)
                                : transfer(task, OrderMarker.opens(context(), source)));
    }

    private List<Integer> withSiblings(int source) {
        Copy copy = routing.copies.copyOf(source);
        return copy == null
                ? List.of(source)
                : IntStream.rangeClosed(copy.id().start(), copy.id().end())
                        .boxed()
                        .toList();
    }

    /** On the thread of a sender whose tuples may still be in a batch of its own: a flush moves at least one. */
    private boolean leave(OrderGate gate, int task, int source, Slot to) {
        for (int i = 0; i < routing.producerBatch; i++) {
            if (!gate.queue.tryFlush()) {
                return false;
            }
        }
        return gate.leave(new AddressedTuple(task, OrderMarker.closes(context(), source, to)));
    }

    /** Sends a tuple to the other end of the move, behind all that this thread has sent. */
    boolean transfer(int task, Tuple tuple) {
        return transfer(task, bytes(tuple));
    }

    boolean transfer(int task, byte[] tuple) {
        return publish(new TaskMessage(OrderMarker.oldWay(task), tuple));
    }

    private synchronized byte[] bytes(Tuple marker) {
        return serializer().serialize(marker);
    }

    /** Made ahead: it takes milliseconds that neither a sender nor the transfer thread has. */
    private synchronized KryoTupleSerializer serializer() {
        if (serializer == null) {
            serializer = new KryoTupleSerializer(routing.state.getTopologyConf(), context());
        }
        return serializer;
    }

    private WorkerTopologyContext context() {
        return routing.state.getWorkerTopologyContext();
    }

    /** Storm's transfer thread is about to send these messages. */
    public void onSend(Map<Integer, ArrayList<TaskMessage>> bundles, Map<Integer, NodeInfo> taskToNode) {
        for (Moving one : moving.values()) {
            ArrayList<TaskMessage> direct = bundles.getOrDefault(one.task, NONE);
            Slot owner = slot(taskToNode.get(one.task));
            if (direct.isEmpty() || owner == null) {
                continue;
            }
            if (one.otherEnd == null) {
                turn(one, owner);
            } else if ((tables.routes.queue(one.task) != null || owner.equals(routing.me))
                    && tables.sendAll(one.otherEnd, direct)) {
                // Sent before the route came here: it goes the way of what was sent before it, and before the markers
                // that end it. Storm's own refresh may have read the plan before this worker delivers by it. What was
                // taken back then would come late: what is sent after it, but before the route comes, goes the old way.
                direct.clear();
            }
        }
        for (Map.Entry<Integer, ArrayList<TaskMessage>> bundle : bundles.entrySet()) {
            if (OrderMarker.isOldWay(bundle.getKey()) && !bundle.getValue().isEmpty()) {
                sendOldWay(OrderMarker.task(bundle.getKey()), bundle.getValue(), taskToNode);
            }
        }
        for (Map.Entry<Integer, ArrayList<TaskMessage>> bundle : bundles.entrySet()) {
            if (isForPeer(bundle.getKey()) && !bundle.getValue().isEmpty()) {
                sendProbes(peers.get(PROBES - 1 - bundle.getKey()), bundle.getValue(), bundles, taskToNode);
            }
        }
    }

    /** Behind what goes to the same worker in this turn, which Storm would send afterwards. */
    private void sendProbes(
            Slot to,
            ArrayList<TaskMessage> probes,
            Map<Integer, ArrayList<TaskMessage>> bundles,
            Map<Integer, NodeInfo> taskToNode) {
        bundles.forEach((task, messages) -> {
            if (task >= 0
                    && !messages.isEmpty()
                    && to.equals(slot(taskToNode.get(task)))
                    && tables.sendAll(to, messages)) {
                messages.clear();
            }
        });
        List<TaskMessage> arriving = new ArrayList<>();
        probes.forEach(probe -> arriving.add(new TaskMessage(PROBES, probe.message())));
        probes.clear();
        if (!tables.sendAll(to, arriving)) {
            long now = System.nanoTime();
            arriving.forEach(probe -> unsent.add(new Unsent(to, probe.message(), now)));
        }
    }

    private static Slot slot(NodeInfo nodeOrNull) {
        return nodeOrNull == null ? null : PlanOverlay.slot(nodeOrNull);
    }

    /** Before the first tuple that goes to another worker than the last one: nothing of this worker overtakes it there. */
    private void turn(Moving one, Slot owner) {
        Slot last = one.lastSent;
        if (last == null || last.equals(owner)) {
            one.lastSent = owner;
            return;
        }
        List<TaskMessage> closes = new ArrayList<>();
        List<TaskMessage> opens = new ArrayList<>();
        int oldWay = OrderMarker.oldWay(one.task);
        for (int sender : one.senders) {
            closes.add(new TaskMessage(oldWay, bytes(OrderMarker.closes(context(), sender, owner))));
            opens.add(new TaskMessage(oldWay, bytes(OrderMarker.opens(context(), sender))));
        }
        if (tables.sendAll(last, closes)) {
            tables.sendAll(owner, opens);
        }
        one.lastSent = owner;
    }

    private void sendOldWay(int task, ArrayList<TaskMessage> messages, Map<Integer, NodeInfo> taskToNode) {
        Moving one = moving.get(task);
        Slot to = one != null && one.otherEnd != null ? one.otherEnd : slot(taskToNode.get(task));
        if (to != null && !to.equals(routing.me) && tables.sendAll(to, messages)) {
            messages.clear();
            return;
        }
        if (one != null) {
            one.cutOff = true;
        }
        List<TaskMessage> back = new ArrayList<>();
        messages.forEach(message -> back.add(new TaskMessage(task, message.message())));
        messages.clear();
        routing.takeBack(back);
    }

    /** Takes what has come by Netty under a pseudo task for which there is no gate here. */
    public void takeUngated(AddressedTuple tuple) {
        if (!OrderMarker.is(tuple.tuple)) {
            routing.misrouted.offer(new AddressedTuple(OrderMarker.task(tuple.dest), tuple.tuple));
            return;
        }
        Slot to = OrderMarker.closedFor(tuple.tuple);
        if (to != null && !to.equals(routing.me)) {
            late.add(new Late(tuple, System.nanoTime()));
        }
    }

    /** The tuples that wait before the queues of this worker. */
    public int parked() {
        return Stream.concat(gates.values().stream(), ended.stream())
                .mapToInt(OrderGate::parked)
                .sum();
    }
}

package nstorm.worker;

import static nstorm.worker.OneWorker.await;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.io.ObjectInputStream;
import java.io.Serializable;
import java.lang.ref.WeakReference;
import java.lang.reflect.Field;
import java.net.ServerSocket;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ThreadLocalRandom;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicReference;
import nstorm.hook.Faults;
import nstorm.state.FirstPass;
import nstorm.state.StateBytes;
import nstorm.state.Whole;
import nstorm.wire.ExecutorId;
import nstorm.wire.Phase;
import nstorm.wire.Plan;
import nstorm.wire.Slot;
import nstorm.wire.Way;
import nstorm.worker.OneWorker.Batch;
import nstorm.worker.OneWorker.Sink;
import nstorm.worker.OneWorker.Source;
import nstorm.worker.exit.StopSwitch;
import nstorm.worker.plan.PlanOverlay;
import nstorm.worker.routes.OrderGate;
import nstorm.worker.routes.OrderMarker;
import nstorm.worker.routes.TupleRouting;
import nstorm.worker.state.MoveKeys;
import nstorm.worker.state.PieceSender;
import nstorm.worker.state.StateArrivalsTest;
import nstorm.worker.state.StateTransfer;
import nstorm.worker.storm.StormFields;
import org.apache.storm.Config;
import org.apache.storm.StormTimer;
import org.apache.storm.cluster.ZKStateStorage;
import org.apache.storm.daemon.Task;
import org.apache.storm.daemon.worker.WorkerTransfer;
import org.apache.storm.executor.Executor;
import org.apache.storm.executor.IRunningExecutor;
import org.apache.storm.generated.NodeInfo;
import org.apache.storm.messaging.TaskMessage;
import org.apache.storm.serialization.KryoTupleDeserializer;
import org.apache.storm.serialization.KryoTupleSerializer;
import org.apache.storm.task.WorkerTopologyContext;
import org.apache.storm.tuple.AddressedTuple;
import org.apache.storm.utils.JCQueue;
import org.apache.storm.utils.RotatingMap;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** A worker under the plans of moves, each as seen from one of its ends. */
class ReconcilerIT {
    private static OneWorker one;

    /** A worker that cannot open its sample store follows plans all the same, and acknowledges once it can. */
    @BeforeAll
    static void startWithoutItsStore(@TempDir Path dir) throws Exception {
        Path inTheWay = Files.createFile(dir.resolve("w"));
        one = new OneWorker(dir);
        one.plan("early", one.elsewhere, one.worker.me, Phase.UNDO);
        await("no copy runs here", () -> !running());
        assertEquals("", one.ack());
        Files.delete(inTheWay);
        one.awaitAck("early", "STOPPED");
        one.settle();
    }

    @AfterAll
    static void end() throws Exception {
        one.close();
    }

    @AfterEach
    void onlyOneCopyRunsHere() throws Exception {
        Sink.prepareGate.countDown();
        Sink.failsInPrepare = false;
        Sink.failsWhenBuilt = false;
        Sink.takesMs = 0;
        Batch.waits = false;
        one.way = "live";
        one.ordered = false;
        one.settle();
        assertEquals(1, one.threadsOfSink().size(), one.threadsOfSink().toString());
    }

    private static boolean running() {
        return one.worker.copies.containsKey(one.id);
    }

    /** A move to here that is undone: afterwards no copy of the executor runs here. */
    private static void withoutCopy() throws Exception {
        one.plan("away", one.elsewhere, one.worker.me, Phase.UNDO);
        one.awaitAck("away", "STOPPED");
        assertFalse(running());
    }

    @Test
    void aCopyThatSwallowsTheInterruptInPrepareEndsWhenPrepareReturns() throws Exception {
        withoutCopy();
        Sink.prepareGate = new CountDownLatch(1);
        int prepares = Sink.PREPARES.get();
        one.plan("m", one.elsewhere, one.worker.me, Phase.PREPARE);
        await("in prepare()", () -> Sink.PREPARES.get() > prepares);
        ExecutorCopy copy = one.worker.copies.get(one.id);
        one.plan("m", one.elsewhere, one.worker.me, Phase.UNDO);
        one.awaitAck("m", "STUCK");
        long executed = Sink.EXECUTED.get();
        Sink.prepareGate.countDown();
        one.awaitAck("m", "STOPPED");
        assertEquals(executed, Sink.EXECUTED.get());
        assertEquals(List.of(), one.threadsOfSink());
        assertNull(one.worker.state.getExecutorReceiveQueueMap().get(one.id.toStorm()));
        assertEquals(0, StopSwitch.ATTENDED.get());
        Map<Integer, JCQueue> queues = StormFields.get(StormFields.TASK_TO_QUEUE, one.worker.state);
        await("its queue is forgotten", () -> queues.get(one.id.start()) != copy.queue());
    }

    @ParameterizedTest
    @ValueSource(booleans = {true, false})
    void aStartThatFailsIsTriedAgainWhileThePlanStands(boolean inPrepare) throws Exception {
        withoutCopy();
        Sink.failsInPrepare = inPrepare;
        Sink.failsWhenBuilt = !inPrepare;
        long before = Faults.count();
        one.plan("m", one.elsewhere, one.worker.me, Phase.PREPARE);
        await("two tries", () -> Faults.count() >= before + 2);
        one.awaitAck("m", "NONE");
        String reason = inPrepare ? "no connection to the user's database" : "NoClassDefFoundError";
        assertTrue(one.ack().contains(reason), one.ack());
        await("no copy of the failed start is left", () -> !running());
        Sink.failsInPrepare = false;
        Sink.failsWhenBuilt = false;
        one.awaitAck("m", "READY");
    }

    /** Storm drops what is sent where no connection stands yet: until then the source goes on. */
    @Test
    void tuplesGoToTheNewOwnerOnceAConnectionStands() throws Exception {
        Slot deaf = new Slot(one.worker.me.supervisor(), OneWorker.freePort());
        one.plan("m", one.worker.me, deaf, Phase.SWITCH);
        one.awaitAck("m", "NONE");
        one.awaitTuples();
        OneWorker.listen(deaf.port());
        one.awaitAck("m", "DRAINED");
    }

    /** A worker that another has not sent to for a while has restarted: the first tuple to it would be dropped. */
    @Test
    void aConnectionThatDiedIsMadeAgainBeforeATupleNeedsIt() throws Exception {
        Slot other = new Slot(one.worker.me.supervisor(), OneWorker.freePort());
        ServerSocket first = new ServerSocket(other.port());
        first.setSoTimeout(60_000);
        one.plan("m", one.worker.me, other, Phase.PREPARE);
        first.accept().close();
        first.close();
        await("the connection has died", () -> !one.worker.tables.isConnected(other));
        ServerSocket again = new ServerSocket(other.port());
        again.setSoTimeout(60_000);
        again.accept().close();
        again.close();
    }

    /** As at the limit of threads: everything is built, and then the thread cannot be started. */
    @Test
    void aStartThatFailsAtTheVeryEndLeavesNothing() throws Exception {
        withoutCopy();
        Field field = HookedWorker.class.getDeclaredField("running");
        field.setAccessible(true);
        Object shared = field.get(one.worker);
        int switches = entries(StopSwitch.class, "BY_EXECUTOR", null);
        int callbacks = entries(ZKStateStorage.class, "callbacks", one.worker.state.getStateStorage());
        long before = Faults.count();
        field.set(one.worker, new ArrayList<IRunningExecutor>() {
            @Override
            public boolean add(IRunningExecutor executor) {
                throw new OutOfMemoryError("unable to create native thread");
            }
        });
        one.plan("m", one.elsewhere, one.worker.me, Phase.PREPARE);
        await("two tries", () -> Faults.count() >= before + 2);
        one.plan("m", one.elsewhere, one.worker.me, Phase.UNDO);
        one.awaitAck("m", "STOPPED");
        field.set(one.worker, shared);
        assertFalse(running());
        assertEquals(List.of(), one.threadsOfSink());
        assertNull(one.worker.state.getExecutorReceiveQueueMap().get(one.id.toStorm()));
        assertEquals(switches, entries(StopSwitch.class, "BY_EXECUTOR", null));
        assertEquals(callbacks, entries(ZKStateStorage.class, "callbacks", one.worker.state.getStateStorage()));
    }

    private static int entries(Class<?> type, String map, Object owner) throws Exception {
        Field field = type.getDeclaredField(map);
        field.setAccessible(true);
        return ((Map<?, ?>) field.get(owner)).size();
    }

    @Test
    void aMoveThatHasSettledLeavesTheWorkerIdle() throws Exception {
        withoutCopy();
        one.plan("m", one.elsewhere, one.worker.me, Phase.PREPARE);
        one.awaitAck("m", "READY");
        one.plan("m", one.elsewhere, one.worker.me, Phase.SETTLE);
        one.awaitAck("m", "ROUTED");
        assertTrue(one.loop.reconciler.busy());
        one.planNothing();
        await("idle", () -> !one.loop.reconciler.busy());
        await("no look at what is sent", () -> !one.worker.expectsMisrouted());
    }

    @Test
    void aSourceSpeaksForItsExecutorUntilItsCopyHasStopped() throws Exception {
        for (Phase phase : List.of(Phase.SWITCH, Phase.DRAIN)) {
            one.plan("m", one.worker.me, one.elsewhere, phase);
            await("routed away", () -> one.elsewhere.equals(route()));
            assertTrue(inHeartbeats(), "Nimbus takes an executor for dead that is in no heartbeat");
        }
        one.plan("m", one.worker.me, one.elsewhere, Phase.STOP);
        one.awaitAck("m", "STOPPED");
        assertFalse(inHeartbeats());
        one.plan("back", one.worker.me, one.elsewhere, Phase.UNDO);
        one.awaitAck("back", "ROUTED");
        assertTrue(inHeartbeats());
    }

    private static boolean inHeartbeats() {
        return one.worker.state.getLocalExecutors().contains(one.id.toStorm());
    }

    @Test
    void aSourceThatHasDrainedOwnsTheExecutorAgainAfterUndo() throws Exception {
        AtomicBoolean flag = backPressure()[one.id.start()];
        one.plan("m", one.worker.me, one.elsewhere, Phase.SWITCH);
        await("routed away", () -> one.elsewhere.equals(route()));
        one.plan("m", one.worker.me, one.elsewhere, Phase.DRAIN);
        one.awaitAck("m", "DRAINED");
        ExecutorCopy copy = one.worker.copies.get(one.id);
        flag.set(true);
        one.plan("m", one.worker.me, one.elsewhere, Phase.UNDO);
        one.awaitAck("m", "ROUTED");
        one.awaitTuples();
        assertEquals(one.worker.me, route());
        assertEquals(copy, one.worker.copies.get(one.id));
        assertFalse(flag.get(), "held back by a flag of the dead target");
        one.plan("again", one.worker.me, one.elsewhere, Phase.DRAIN);
        one.awaitAck("again", "DRAINED");
        one.plan("again", one.worker.me, one.elsewhere, Phase.UNDO);
        one.awaitAck("again", "ROUTED");
    }

    private static void knownToCarry() throws Exception {
        await("it is known how it moves", () -> one.ack().contains("\"way\":\"carry\""));
        one.way = "carry";
    }

    private static JCQueue backlog() throws Exception {
        // 50 of them take 5 s, longer than a plan takes to be followed.
        Sink.takesMs = 100;
        JCQueue queue = one.worker.copies.get(one.id).queue();
        await("a backlog", () -> queue.size() > 100);
        return queue;
    }

    /** Storm's loop takes tuples as long as there are some, and more come all the time. */
    @Test
    void aSourceWhoseQueueIsNeverEmptySendsItsStateAllTheSame() throws Exception {
        knownToCarry();
        JCQueue queue = backlog();
        one.plan("m", one.worker.me, one.elsewhere, Phase.PREPARE);
        giveKey("m");
        await("what goes ahead is known", () -> one.worker.transfer.isSending("m"));
        assertTrue(queue.size() > 100);
        long before = Sink.EXECUTED.get();
        one.plan("m", one.worker.me, one.elsewhere, Phase.CARRY);
        one.awaitAck("m", "DRAINED");
        await("what waited has gone on", () -> queue.size() == 0);
        assertTrue(Sink.EXECUTED.get() - before < 50, "it has worked off its queue first");
        nothingIsExecuted();
        one.plan("m", one.worker.me, one.elsewhere, Phase.UNDO);
        one.awaitAck("m", "ROUTED");
        one.awaitTuples();
        assertEquals(0, StopSwitch.ATTENDED.get());
    }

    private static Sink sink() {
        List<Task> tasks = StormFields.get(
                StormFields.ID_TO_TASK, one.worker.copies.get(one.id).executor());
        return (Sink) tasks.get(0).getTaskObject();
    }

    private static void nothingIsExecuted() throws InterruptedException {
        long before = Sink.EXECUTED.get();
        Thread.sleep(200);
        assertEquals(before, Sink.EXECUTED.get());
    }

    @Test
    void aSourceWhoseStateHasGoneGoesOnWithItAfterUndo() throws Exception {
        knownToCarry();
        one.plan("m", one.worker.me, one.elsewhere, Phase.CARRY);
        one.awaitAck("m", "DRAINED");
        giveKey("m");
        ExecutorCopy copy = one.worker.copies.get(one.id);
        await("its state has been written", () -> one.worker.transfer.isSending("m"));
        await("what waited has gone on", () -> copy.queue().size() == 0);
        nothingIsExecuted();
        Sink sink = sink();
        long count = sink.count;
        one.plan("m", one.worker.me, one.elsewhere, Phase.UNDO);
        one.awaitAck("m", "ROUTED");
        one.awaitTuples();
        assertEquals(copy, one.worker.copies.get(one.id));
        assertEquals(sink, sink());
        assertTrue(sink.count > count);
    }

    /** The key that this worker has drawn as the target of move "m". */
    private static byte[] key() {
        return one.worker.transfer.keys.of("m");
    }

    /** Tells this worker the key of a move from here, as its target would. */
    private static byte[] giveKey(String move) throws Exception {
        await("the move is read", () -> plansMove(move));
        Plan plan = one.worker.overlay.plan();
        byte[] planKey = MoveKeys.planKey(plan, plan.entries().get(0));
        byte[] key = new byte[32];
        ThreadLocalRandom.current().nextBytes(key);
        StateBytes bytes = new StateBytes();
        bytes.write(key, 0, key.length);
        // It is not awaited before a pass has followed the plan.
        await("the key is taken", () -> {
            arrive(StateArrivalsTest.cut(move + "/key", planKey, bytes));
            return Arrays.equals(key, one.worker.transfer.keys.of(move));
        });
        return key;
    }

    private static boolean plansMove(String move) {
        Plan plan = one.worker.overlay.plan();
        return plan != null
                && plan.entries().size() == 1
                && plan.entries().get(0).id().equals(move);
    }

    /** Who has read the plan knows what the key of a source is offered under, and not the key. */
    @Test
    void aTargetTakesNothingUnderWhatThePlanSays() throws Exception {
        readyTarget(new StateBytes());
        Plan plan = one.worker.overlay.plan();
        byte[] planKey = MoveKeys.planKey(plan, plan.entries().get(0));
        one.plan("m", one.elsewhere, one.worker.me, Phase.CARRY);
        arrive(StateArrivalsTest.cut("m", planKey, Whole.save(List.of(new Sink()), Set.of("count"), null)));
        arrive(StateArrivalsTest.cut("m/proof", planKey, new StateBytes()));
        nothingIsExecuted();
        one.awaitAck("m", "ROUTED");
        arriveWhole(Whole.save(List.of(new Sink()), Set.of("count"), null));
        one.awaitAck("m", "LOADED");
    }

    /** A target that has started anew draws another key, and gets the state under that. */
    @Test
    void aSourceTakesTheNewestKey() throws Exception {
        knownToCarry();
        one.plan("m", one.worker.me, one.elsewhere, Phase.PREPARE);
        giveKey("m");
        one.plan("m", one.worker.me, one.elsewhere, Phase.CARRY);
        one.awaitAck("m", "DRAINED");
        giveKey("m");
        ExecutorCopy copy = one.worker.copies.get(one.id);
        await("what waited has gone on", () -> copy.queue().size() == 0);
        one.plan("m", one.worker.me, one.elsewhere, Phase.UNDO);
        one.awaitAck("m", "ROUTED");
        one.awaitTuples();
    }

    /** Has a target of move "m" that is READY, as its source has sent this ahead. */
    private static void readyTarget(StateBytes ahead) throws Exception {
        withoutCopy();
        one.way = "carry";
        one.plan("m", one.elsewhere, one.worker.me, Phase.PREPARE);
        await("the plan is read", () -> one.worker.overlay.plan().entries().size() == 1);
        String awaits = ",\"awaits_ahead\":true";
        await(
                "nothing else is missing",
                () -> one.ack().contains("{\"id\":\"m\",\"state\":\"NONE\"")
                        && one.ack().contains(awaits));
        arrive(StateArrivalsTest.cut("m/ahead", key(), ahead));
        one.awaitAck("m", "READY");
        assertFalse(one.ack().contains(awaits), one.ack());
    }

    /** A state, and that there is nothing to compare it with, as where its fields are declared. */
    private static void arriveWhole(StateBytes state) {
        arrive(StateArrivalsTest.cut("m", key(), state));
        arrive(StateArrivalsTest.cut("m/proof", key(), new StateBytes()));
    }

    private static void recall() throws Exception {
        one.plan("m", one.elsewhere, one.worker.me, Phase.RECALL);
        await(
                "the recall is read",
                () -> one.worker.overlay.plan().entries().get(0).phase() == Phase.RECALL);
    }

    @Test
    void aTargetTakesTheStateAndBeginsByItself() throws Exception {
        readyTarget(new StateBytes());
        one.plan("m", one.elsewhere, one.worker.me, Phase.CARRY);
        one.awaitAck("m", "ROUTED");
        nothingIsExecuted();
        Sink source = new Sink();
        source.count = 1L << 40;
        StateBytes state = Whole.save(List.of(source), Set.of("count"), null);
        arrive(StateArrivalsTest.cut("m", new byte[] {7}, state));
        nothingIsExecuted();
        one.awaitAck("m", "ROUTED");
        arriveWhole(state);
        one.awaitAck("m", "LOADED");
        one.awaitTuples();
        assertTrue(sink().count > 1L << 40);
        recall();
        one.awaitTuples();
        one.awaitAck("m", "LOADED");
        one.plan("m", one.elsewhere, one.worker.me, Phase.STOP);
        one.awaitAck("m", "ROUTED");
        one.awaitTuples();
    }

    private static void orderedTarget() throws Exception {
        withoutCopy();
        one.ordered = true;
        one.plan("m", one.elsewhere, one.worker.me, Phase.PREPARE);
        one.awaitAck("m", "READY");
        one.plan("m", one.elsewhere, one.worker.me, Phase.SWITCH);
        one.awaitAck("m", "ROUTED");
        await("the source's tuples wait", () -> one.worker.order.parked() > 0);
    }

    /** What this worker's own source had sent to the other end has gone nowhere, and its marker behind it. */
    @Test
    void aTargetTakesWhatComesDirectlyOnceTheSendersOldWayIsClosed() throws Exception {
        orderedTarget();
        nothingIsExecuted();
        long unordered = one.worker.order.unordered.get();
        int source = one.idOf("source").start();
        OrderGate gate = one.worker.order.gate(one.id.start());
        gate.forwarded(new AddressedTuple(
                one.id.start(),
                OrderMarker.closes(one.worker.state.getWorkerTopologyContext(), source, one.worker.me)));
        one.awaitTuples();
        assertEquals(unordered, one.worker.order.unordered.get());
        one.planNothing();
        await("the gate is gone", () -> one.worker.order.gate(one.id.start()) == null);
        one.awaitTuples();
    }

    @Test
    void aSenderWhoseOldWayIsDeadIsGivenUp() throws Exception {
        orderedTarget();
        long unordered = one.worker.order.unordered.get();
        one.awaitTuples();
        await("those that came before earlier ones are counted", () -> one.worker.order.unordered.get() > unordered);
    }

    /** Storm's own refresh may read the plan before the worker delivers by it: what its senders sent until then goes the old way. */
    @Test
    void whatIsSentBeforeTheRouteComesHereGoesTheOldWay() throws Exception {
        withoutCopy();
        one.ordered = true;
        one.plan("m", one.elsewhere, one.worker.me, Phase.PREPARE);
        one.awaitAck("m", "READY");
        await("it is connected", () -> one.worker.tables.isConnected(one.elsewhere));
        int task = one.id.start();
        assertFalse(one.worker.tables.delivers(one.id));
        Map<Integer, ArrayList<TaskMessage>> bundles =
                Map.of(task, new ArrayList<>(List.of(new TaskMessage(task, new byte[1]))));
        NodeInfo here = new NodeInfo(one.worker.me.supervisor(), Set.of((long) one.worker.me.port()));
        one.worker.order.onSend(bundles, Map.of(task, here));
        assertEquals(List.of(), bundles.get(task));
    }

    /** A marker that comes here to go on to the other end, as one of a sender in another worker. */
    private static void lateMarker() {
        int task = one.id.start();
        one.worker.order.takeUngated(new AddressedTuple(
                OrderMarker.oldWay(task),
                OrderMarker.closes(
                        one.worker.state.getWorkerTopologyContext(),
                        one.idOf("source").start(),
                        one.elsewhere)));
    }

    @Test
    void aMarkerThatComesBeforeThePlanGoesOnOnceTheSourceHasReadIt() throws Exception {
        long before = one.worker.misrouted.forwarded.get();
        one.ordered = true;
        lateMarker();
        Thread.sleep(200);
        assertEquals(before, one.worker.misrouted.forwarded.get());
        one.plan("m", one.worker.me, one.elsewhere, Phase.PREPARE);
        await("it goes on", () -> one.worker.misrouted.forwarded.get() > before);
    }

    /** An entry that keeps no order stands for none: Storm's own assignment is always to here. */
    @Test
    void aMarkerThatComesWhenTheMoveIsOverGoesOn() throws Exception {
        one.ordered = true;
        one.plan("m", one.worker.me, one.elsewhere, Phase.SWITCH);
        one.awaitAck("m", "DRAINED");
        one.plan("m", one.worker.me, one.elsewhere, Phase.STOP);
        await("the source ends", () -> !running());
        // Its queue and its move are remembered for as long. So the queue is forgotten a second before the move.
        Thread.sleep(1000);
        one.ordered = false;
        one.plan("m", one.worker.me, one.elsewhere, Phase.STOP);
        await("its gate is gone", () -> !one.worker.tables.hasTask(OrderMarker.oldWay(one.id.start())));
        await("its queue is not looked at any more", () -> one.worker.tables.routes.arrival(one.id.start()) == null);
        await("nothing waits", () -> one.worker.misrouted.parked() == 0);
        long before = one.worker.misrouted.forwarded.get();
        lateMarker();
        await("it goes on", () -> one.worker.misrouted.forwarded.get() > before);
    }

    /** Begins in CARRY, and is given up all the same, as where it counted as dead. */
    @Test
    void aTargetThatHasBegunEndsAtOnceInUndo() throws Exception {
        readyTarget(new StateBytes());
        one.plan("m", one.elsewhere, one.worker.me, Phase.CARRY);
        arriveWhole(Whole.save(List.of(new Sink()), Set.of("count"), null));
        one.awaitAck("m", "LOADED");
        backlog();
        long before = Sink.EXECUTED.get();
        one.plan("m", one.elsewhere, one.worker.me, Phase.UNDO);
        one.awaitAck("m", "STOPPED");
        assertTrue(Sink.EXECUTED.get() - before < 50, "it has worked off its queue first");
    }

    /** Takes as long to be read as a test lets it. */
    static final class Slow implements Serializable {
        static final CountDownLatch READING = new CountDownLatch(1);
        static final CountDownLatch GATE = new CountDownLatch(1);
        private static final long serialVersionUID = 1L;

        private void readObject(ObjectInputStream in) throws IOException, InterruptedException {
            READING.countDown();
            assertTrue(GATE.await(60, TimeUnit.SECONDS));
        }
    }

    @Test
    void aTargetThatHasReadItsStateAfterTheRecallDoesNotBegin() throws Exception {
        readyTarget(new StateBytes());
        one.plan("m", one.elsewhere, one.worker.me, Phase.CARRY);
        Sink source = new Sink();
        source.slow = new Slow();
        arriveWhole(Whole.save(List.of(source), Set.of("slow"), null));
        await("it reads its state", () -> Slow.READING.getCount() == 0);
        recall();
        Slow.GATE.countDown();
        await("it has read it", () -> one.worker.copies.get(one.id).state.isSet("m"));
        nothingIsExecuted();
        one.awaitAck("m", "ROUTED");
    }

    @Test
    void aStateThatComesAfterItsRecallIsForNobody() throws Exception {
        withoutCopy();
        one.way = "carry";
        one.plan("m", one.elsewhere, one.worker.me, Phase.CARRY);
        one.awaitAck("m", "ROUTED");
        byte[] key = key();
        recall();
        arrive(StateArrivalsTest.cut("m", key, Whole.save(List.of(new Sink()), Set.of("count"), null)));
        arrive(StateArrivalsTest.cut("m/proof", key, new StateBytes()));
        nothingIsExecuted();
        one.awaitAck("m", "ROUTED");
        one.plan("m", one.elsewhere, one.worker.me, Phase.UNDO);
        one.awaitAck("m", "STOPPED");
    }

    /** The source reads of CARRY first, as one on another node may. */
    @Test
    void aStateThatComesInPrepareIsTakenInCarry() throws Exception {
        readyTarget(new StateBytes());
        Sink source = new Sink();
        source.count = 1L << 40;
        arriveWhole(Whole.save(List.of(source), Set.of("count"), null));
        nothingIsExecuted();
        one.awaitAck("m", "READY");
        assertEquals(0, sink().count);
        one.plan("m", one.elsewhere, one.worker.me, Phase.CARRY);
        one.awaitAck("m", "LOADED");
        assertTrue(sink().count >= 1L << 40);
    }

    @Test
    void whatHasChangedSinceIsLaidOverWhatCameAhead() throws Exception {
        Sink source = new Sink();
        for (long i = 0; i < 20_000; i++) {
            source.held.put("word-" + i, 1000 + i);
        }
        FirstPass first = FirstPass.of(List.of(source), Set.of("count", "held"));
        readyTarget(first.write());
        assertNull(sink().held);
        source.held.put("word-7", 5000L);
        source.held.remove("word-8");
        source.held.put("new", 1L);
        StateBytes state = Whole.save(List.of(source), Set.of("count", "held"), first);
        assertTrue(state.size() < 2000, Integer.toString(state.size()));
        arriveWhole(state);
        one.plan("m", one.elsewhere, one.worker.me, Phase.CARRY);
        one.awaitAck("m", "LOADED");
        assertEquals(source.held, sink().held);
    }

    @Test
    void zerosThatCameAheadChangeNothing() throws Exception {
        StateBytes zeros = new StateBytes();
        zeros.write(new byte[3 * StateBytes.PIECE_BYTES], 0, 3 * StateBytes.PIECE_BYTES);
        readyTarget(zeros);
        Sink source = new Sink();
        source.count = 1L << 40;
        arriveWhole(Whole.save(List.of(source), Set.of("count"), null));
        one.plan("m", one.elsewhere, one.worker.me, Phase.CARRY);
        one.awaitAck("m", "LOADED");
        assertTrue(sink().count >= 1L << 40);
    }

    /** Else its source would stand still for a state that does not come in. */
    @Test
    void aTargetThatIsTooSmallForWhatGoesAheadAnswersInPrepare() throws Exception {
        withoutCopy();
        one.way = "carry";
        one.plan("m", one.elsewhere, one.worker.me, Phase.PREPARE);
        await("the plan is read", () -> one.worker.overlay.plan().entries().size() == 1);
        one.awaitAck("m", "NONE");
        StateBytes zeros = new StateBytes();
        zeros.write(new byte[StateBytes.PIECE_BYTES], 0, StateBytes.PIECE_BYTES);
        byte[] piece = StateArrivalsTest.cut("m/ahead", key(), zeros).get(0);
        arrive(List.of(StateArrivalsTest.ofLarger(piece, key(), Integer.MAX_VALUE)));
        Field answers = StateTransfer.class.getDeclaredField("answers");
        answers.setAccessible(true);
        Map<?, ?> sent = (Map<?, ?>) answers.get(one.worker.transfer);
        await("it answers", () -> sent.containsKey("m"));
        one.awaitAck("m", "NONE");
        one.plan("m", one.elsewhere, one.worker.me, Phase.CARRY);
        one.awaitAck("m", "REFUSED");
    }

    /** What waits for it goes back to the source; nothing of it is executed. */
    @Test
    void aTargetThatHoldsStillEndsAtOnceInUndo() throws Exception {
        withoutCopy();
        one.way = "carry";
        one.plan("m", one.elsewhere, one.worker.me, Phase.CARRY);
        one.awaitAck("m", "ROUTED");
        await("tuples wait", () -> one.worker.copies.get(one.id).queue().size() > 10);
        long before = Sink.EXECUTED.get();
        one.plan("m", one.elsewhere, one.worker.me, Phase.UNDO);
        one.awaitAck("m", "STOPPED");
        assertFalse(running());
        assertEquals(before, Sink.EXECUTED.get());
    }

    /** The heap may be full for a moment, and without this thread no move of the worker would ever end. */
    @Test
    void anOutOfMemoryErrorDoesNotEndTheThreadThatFollowsPlans() throws Exception {
        Field field = HookedWorker.class.getDeclaredField("copies");
        field.setAccessible(true);
        AtomicBoolean thrown = new AtomicBoolean();
        field.set(one.worker, new ConcurrentHashMap<>(one.worker.copies) {
            @Override
            public boolean isEmpty() {
                if (thrown.compareAndSet(false, true)) {
                    throw new OutOfMemoryError("Java heap space");
                }
                return super.isEmpty();
            }
        });
        await("a pass that failed", thrown::get);
        one.plan("m", one.elsewhere, one.elsewhereToo, Phase.DRAIN);
        one.awaitAck("m", "ROUTED");
    }

    /** Of two targets that could not take it, the third would not either. */
    @Test
    void aStateThatIsSentInVainTwicePinsItsExecutor() throws Exception {
        knownToCarry();
        for (String move : List.of("m1", "m2")) {
            assertNull(refusal());
            one.plan(move, one.worker.me, one.elsewhere, Phase.CARRY);
            giveKey(move);
            await("its state is there", () -> one.worker.transfer.isSending(move));
            one.awaitAck(move, "DRAINED");
            Thread.sleep(100);
            one.plan(move, one.worker.me, one.elsewhere, Phase.UNDO);
            one.awaitAck(move, "ROUTED");
            one.awaitTuples();
        }
        assertTrue(refusal().startsWith("its state went to a target 2 times"), refusal());
        // Another copy knows nothing of that.
        one.way = "live";
        withoutCopy();
    }

    /** Why it stays, but for what only says how it moves. */
    private static String refusal() {
        ExecutorCopy copy = one.worker.copies.get(one.id);
        return copy.state.fields() == null ? copy.pinned() : null;
    }

    /** As tuples that Netty has just brought. */
    private static void arrive(List<byte[]> pieces) {
        WorkerTopologyContext context = one.worker.state.getWorkerTopologyContext();
        KryoTupleSerializer out = new KryoTupleSerializer(one.worker.state.getTopologyConf(), context);
        KryoTupleDeserializer in = new KryoTupleDeserializer(one.worker.state.getTopologyConf(), context);
        ArrayList<AddressedTuple> batch = new ArrayList<>();
        for (byte[] piece : pieces) {
            TaskMessage message = PieceSender.message(piece, "sink", one.id, context, out);
            batch.add(new AddressedTuple(message.task(), in.deserialize(message.message())));
        }
        WorkerCalls.onBatch(batch);
        assertEquals(List.of(), batch);
    }

    private static ExecutorId batch() throws Exception {
        ExecutorId batch = one.idOf("batch");
        String way = "{\"executor\":[" + batch.start() + "," + batch.end() + "],\"way\":\"drain\"}";
        await("it is known how it moves", () -> one.ack().contains(way));
        one.way = "drain";
        return batch;
    }

    private static void isFilled() throws InterruptedException {
        long taken = Batch.TAKEN.sum();
        await("tuples in the batch", () -> Batch.TAKEN.sum() > taken + 10);
    }

    @Test
    void aSinkThatKeepsTuplesIsDrainedOnceItHasAckedThemAll() throws Exception {
        ExecutorId batch = batch();
        Batch.waits = true;
        isFilled();
        one.plan("m", batch, one.worker.me, one.elsewhere, Phase.DRAIN);
        await("routed away", () -> !one.worker.tables.delivers(batch));
        Thread.sleep(1500);
        one.awaitAck("m", "ROUTED");
        assertTrue(Batch.TAKEN.sum() > Batch.WRITTEN.sum());
        Batch.waits = false;
        one.awaitAck("m", "DRAINED");
        assertEquals(Batch.TAKEN.sum(), Batch.WRITTEN.sum());
        one.plan("m", batch, one.worker.me, one.elsewhere, Phase.UNDO);
        one.awaitAck("m", "ROUTED");
        isFilled();
        one.plan("m", batch, one.worker.me, one.elsewhere, Phase.DRAIN);
        one.awaitAck("m", "DRAINED");
        one.plan("m", batch, one.worker.me, one.elsewhere, Phase.STOP);
        one.awaitAck("m", "STOPPED");
        assertEquals(Batch.TAKEN.sum(), Batch.WRITTEN.sum());
    }

    @Test
    void aTargetThatKeepsTuplesAcksThemBeforeItEndsInUndo() throws Exception {
        ExecutorId batch = batch();
        one.plan("m", batch, one.elsewhere, one.worker.me, Phase.SWITCH);
        one.awaitAck("m", "ROUTED");
        Batch.waits = true;
        isFilled();
        one.plan("m", batch, one.elsewhere, one.worker.me, Phase.UNDO);
        await("routed away", () -> !one.worker.tables.delivers(batch));
        Thread.sleep(1500);
        assertTrue(one.worker.copies.containsKey(batch));
        Batch.waits = false;
        one.awaitAck("m", "STOPPED");
        assertEquals(Batch.TAKEN.sum(), Batch.WRITTEN.sum());
    }

    @Test
    void aTargetThatComesBackInUndoBuildsNoCopy() throws Exception {
        withoutCopy();
        int prepares = Sink.PREPARES.get();
        one.plan("m", one.elsewhere, one.worker.me, Phase.UNDO);
        one.awaitAck("m", "STOPPED");
        assertFalse(running());
        assertEquals(one.elsewhere, route());
        assertEquals(prepares, Sink.PREPARES.get());
    }

    @Test
    void aBystanderRoutesBackInUndo() throws Exception {
        one.plan("m", one.elsewhere, one.elsewhereToo, Phase.DRAIN);
        one.awaitAck("m", "ROUTED");
        await("routed to the target", () -> one.elsewhereToo.equals(route()));
        AtomicBoolean flag = backPressure()[one.id.start()];
        flag.set(true);
        one.plan("m", one.elsewhere, one.elsewhereToo, Phase.UNDO);
        one.awaitAck("m", "ROUTED");
        assertEquals(one.elsewhere, route());
        assertFalse(flag.get());
        // It is this worker's by Storm's assignment after all.
        one.plan("back", one.worker.me, one.elsewhere, Phase.UNDO);
        one.awaitAck("back", "ROUTED");
    }

    @Test
    void nothingIsChangedForAnEntryOfALaterVersion() throws Exception {
        one.plan("m", one.worker.me, one.elsewhere, Phase.SWITCH);
        await("routed away", () -> one.elsewhere.equals(route()));
        one.plan("m", one.worker.me, one.elsewhere, Phase.UNKNOWN);
        one.awaitAck("m", "NOT_UNDERSTOOD");
        assertEquals(one.elsewhere, route());
        assertTrue(running());
        one.plan("m", one.worker.me, one.elsewhere, Phase.UNDO);
        one.awaitAck("m", "ROUTED");
        one.plan("never", one.worker.me, one.elsewhere, Phase.UNKNOWN);
        one.awaitAck("never", "NOT_UNDERSTOOD");
        assertEquals(one.worker.me, route());
        one.awaitTuples();
    }

    @Test
    void aSourceThatCannotReachTheTargetGoesOnDelivering() throws Exception {
        one.plan("m", one.worker.me, new Slot("nowhere", 6700), Phase.SWITCH);
        one.awaitAck("m", "NONE");
        one.awaitTuples();
        assertEquals(one.worker.me, route());
        assertEquals(0, one.worker.misrouted.parked());
        one.plan("m", one.worker.me, new Slot("nowhere", 6700), Phase.UNDO);
        one.awaitAck("m", "ROUTED");
    }

    /** As after a rebalance that gave the tasks to other executors while no controller was there. */
    @Test
    void anEntryOfARangeThatIsNoExecutorTakesNobodysRoutes() throws Exception {
        ExecutorId wider = new ExecutorId(one.id.start(), one.id.end() + 1);
        one.plan("m", wider, one.elsewhere, one.worker.me, Phase.SWITCH);
        one.awaitAck("m", "STOPPED");
        assertTrue(one.worker.tables.delivers(one.id));
        one.awaitTuples();
        one.planNothing();
    }

    @Test
    void aPlanThatChangesNoOwnerRebuildsNoRoutes() throws Exception {
        one.settle();
        // The first plan with a move brings a connection to its other end, and so new routes.
        one.plan("m", one.worker.me, one.elsewhere, Phase.PREPARE);
        one.awaitAck("m", "READY");
        // Storm itself rebuilds them each 10 s, and waits for us here.
        StormTimer refreshes = StormFields.get(StormFields.REFRESH_CONNECTIONS_TIMER, one.worker.state);
        CountDownLatch held = new CountDownLatch(1);
        CountDownLatch gate = new CountDownLatch(1);
        refreshes.schedule(0, () -> {
            held.countDown();
            OneWorker.hold(gate);
        });
        await("Storm's refreshes wait", () -> held.getCount() == 0);
        try {
            Object before = routes().get();
            for (Phase phase : List.of(Phase.UNDO, Phase.PREPARE, Phase.UNDO, Phase.PREPARE)) {
                one.plan("m", one.worker.me, one.elsewhere, phase);
                one.awaitAck("m", phase == Phase.UNDO ? "ROUTED" : "READY");
            }
            assertSame(before, routes().get());
        } finally {
            gate.countDown();
        }
    }

    @Test
    void aStoppedExecutorIsFreedAtOnceAndItsBoltNotCleanedUp() throws Exception {
        WeakReference<Executor> executor =
                new WeakReference<>(one.worker.copies.get(one.id).executor());
        // Longer than any test waits: what still awaits late tuples then must not hold the executor.
        setMessageTimeout(3600);
        withoutCopy();
        setMessageTimeout(OneWorker.MESSAGE_TIMEOUT_SECS);
        await("collected", () -> {
            System.gc();
            return executor.get() == null;
        });
        assertEquals(0, Sink.CLEANUPS.get());
    }

    /** The calls that the spout has got since a move began, once there are as many as expected. */
    private static void assertCalls(int before, String... expected) throws Exception {
        await(
                List.of(expected) + " after " + Source.CALLS.subList(0, before),
                () -> Source.CALLS.size() >= before + expected.length);
        assertEquals(List.of(expected), Source.CALLS.subList(before, Source.CALLS.size()));
    }

    /** What an earlier test has sent to a worker that is not there times out only later. */
    private static long onceNothingFailsAnyMore() throws InterruptedException {
        long failed;
        do {
            failed = Source.FAILED.get();
            TimeUnit.SECONDS.sleep(2 * OneWorker.MESSAGE_TIMEOUT_SECS);
        } while (Source.FAILED.get() != failed);
        return failed;
    }

    @Test
    void aSpoutFinishesWhatIsPendingAndIsClosedOnce() throws Exception {
        ExecutorId spout = one.idOf("source");
        long failed = onceNothingFailsAnyMore();
        int before = Source.CALLS.size();
        one.plan("m", spout, one.worker.me, one.elsewhere, Phase.QUIET);
        one.awaitAck("m", "STOPPED");
        assertCalls(before, "deactivate", "close");
        assertEquals(Set.of(), Source.PENDING);
        assertEquals(failed, Source.FAILED.get());
        assertFalse(one.worker.tables.delivers(spout));
        one.plan("m", spout, one.worker.me, one.elsewhere, Phase.UNDO);
        one.awaitAck("m", "ROUTED");
        assertCalls(before, "deactivate", "close", "open", "activate");
        one.awaitTuples();
    }

    @Test
    void aSpoutThatWaitsForItsTuplesIsActivatedAgainByAnUndo() throws Exception {
        ExecutorId spout = one.idOf("source");
        Sink.forgets = true;
        long pending = Source.EMITTED.get();
        await("a tuple that is never acked", () -> Source.EMITTED.get() > pending + 10);
        assertEquals(-1, one.worker.copies.get(one.idOf("sink")).pendingTuples());
        await("they are reported", () -> one.worker.copies.get(spout).pendingTuples() > 5);
        int before = Source.CALLS.size();
        one.plan("m", spout, one.worker.me, one.elsewhere, Phase.QUIET);
        assertCalls(before, "deactivate");
        one.awaitAck("m", "ROUTED");
        Sink.forgets = false;
        one.plan("m", spout, one.worker.me, one.elsewhere, Phase.UNDO);
        one.awaitAck("m", "ROUTED");
        assertCalls(before, "deactivate", "activate");
        one.awaitTuples();
    }

    /** As where tuples wait in a window for those that come later. */
    @Test
    void aSpoutWhoseTuplesDoNotFinishIsKeptAndAfterTwoMovesStays() throws Exception {
        ExecutorId spout = one.idOf("source");
        Executor executor = one.worker.copies.get(spout).executor();
        int before = Source.CALLS.size();
        executor.getTopoConf().put(Config.TOPOLOGY_MESSAGE_TIMEOUT_SECS, 36);
        StormFields.SPOUT_PENDING.set(executor, new RotatingMap<Long, Object>(2) {
            @Override
            public int size() {
                return super.size() + 1;
            }
        });
        for (String move : List.of("m1", "m2")) {
            assertEquals("spout", one.worker.copies.get(spout).pinned());
            one.plan(move, spout, one.worker.me, one.elsewhere, Phase.QUIET);
            one.awaitAck(move, "REFUSED");
            one.plan(move, spout, one.worker.me, one.elsewhere, Phase.UNDO);
            one.awaitAck(move, "ROUTED");
        }
        executor.getTopoConf().put(Config.TOPOLOGY_MESSAGE_TIMEOUT_SECS, OneWorker.MESSAGE_TIMEOUT_SECS);
        assertCalls(before, "deactivate", "activate", "deactivate", "activate");
        assertEquals(Way.LIVE, one.worker.copies.get(spout).way());
        assertEquals(
                "in 2 moves nothing of what it had pending finished for 10 s, as where tuples wait in windows",
                one.worker.copies.get(spout).pinned());
        one.awaitTuples();
        closedHere(spout);
        // What was in flight when its map was replaced.
        Source.PENDING.clear();
    }

    @Test
    void whatIsPendingForTooLongFailsAtTheSpoutThatEmittedIt() throws Exception {
        ExecutorId spout = one.idOf("source");
        Sink.forgets = true;
        long pending = Source.EMITTED.get();
        await("a tuple that is never acked", () -> Source.EMITTED.get() > pending + 10);
        int before = Source.CALLS.size();
        one.plan("m", spout, one.worker.me, one.elsewhere, Phase.QUIET);
        one.awaitAck("m", "STOPPED");
        Sink.forgets = false;
        assertCalls(before, "deactivate", "close");
        assertEquals(Set.of(), Source.PENDING);
        one.plan("m", spout, one.worker.me, one.elsewhere, Phase.UNDO);
        one.awaitAck("m", "ROUTED");
    }

    /** Gives a spout to another worker and waits until its copy here is closed; returns how many calls it had got before. */
    private static int closedHere(ExecutorId spout) throws Exception {
        int before = Source.CALLS.size();
        one.plan("away", spout, one.elsewhere, one.worker.me, Phase.UNDO);
        one.awaitAck("away", "STOPPED");
        assertCalls(before, "deactivate", "close");
        return before;
    }

    @Test
    void aSpoutIsReadyUnopenedAndOpensWhenTheSourceIsClosed() throws Exception {
        ExecutorId spout = one.idOf("source");
        int before = closedHere(spout);
        for (Phase phase : List.of(Phase.PREPARE, Phase.QUIET)) {
            one.plan("m", spout, one.elsewhere, one.worker.me, phase);
            one.awaitAck("m", "READY");
        }
        one.plan("m", spout, one.elsewhere, one.worker.me, Phase.UNDO);
        one.awaitAck("m", "STOPPED");
        assertCalls(before, "deactivate", "close");
        one.plan("m", spout, one.elsewhere, one.worker.me, Phase.PREPARE);
        one.awaitAck("m", "READY");
        one.plan("m", spout, one.elsewhere, one.worker.me, Phase.STOP);
        one.awaitAck("m", "ROUTED");
        assertCalls(before, "deactivate", "close", "open", "activate");
        one.awaitTuples();
    }

    /** It holds its partition as soon as it is open, and no other task could open it. */
    @Test
    void aSpoutThatIsNotWantedAnyMoreWhenItHasOpenedIsClosed() throws Exception {
        ExecutorId spout = one.idOf("source");
        int before = closedHere(spout);
        Source.openGate = new CountDownLatch(1);
        one.plan("m", spout, one.elsewhere, one.worker.me, Phase.STOP);
        assertCalls(before, "deactivate", "close", "open");
        one.plan("m", spout, one.elsewhere, one.worker.me, Phase.UNDO);
        one.awaitAck("m", "STUCK");
        Source.openGate.countDown();
        one.awaitAck("m", "STOPPED");
        assertCalls(before, "deactivate", "close", "open", "close");
    }

    @Test
    void anAckerHandsItsTreesOnAsSoonAsItIsNoLongerRoutedTo() throws Exception {
        ExecutorId acker = one.idOf("__acker");
        long failed = Source.FAILED.get();
        Slot deaf = one.elsewhere;
        one.plan("m", acker, one.worker.me, deaf, Phase.SWITCH);
        one.awaitAck("m", "DRAINED");
        onceTheSpoutHasTakenWhatWaits();
        long acked = Source.ACKED.get();
        assertTrue(one.worker.copies.get(acker).alive());
        one.awaitTuples();
        assertEquals(acked, Source.ACKED.get(), "what the target alone knows of can be completed there only");
        one.plan("m", acker, one.worker.me, deaf, Phase.UNDO);
        one.awaitAck("m", "ROUTED");
        await("acks again", () -> Source.ACKED.get() > acked + 100);
        // What went to the deaf target is lost with it, and times out.
        await("timed out", () -> Source.FAILED.get() > failed);
    }

    /** Its thread emits after it has taken all that its queue held. */
    private static void onceTheSpoutHasTakenWhatWaits() throws Exception {
        JCQueue queue = one.worker.copies.get(one.idOf("source")).queue();
        await("the spout's queue is empty", () -> queue.size() == 0);
        long emitted = Source.EMITTED.get();
        await("the spout emits", () -> Source.EMITTED.get() > emitted + 1);
    }

    private static void setMessageTimeout(long secs) throws Exception {
        Field field = TupleRouting.class.getDeclaredField("messageTimeoutSecs");
        field.setAccessible(true);
        field.setLong(one.worker.routing, secs);
    }

    private static Slot route() {
        return PlanOverlay.slot(routes().get().get(one.id.start()));
    }

    private static AtomicReference<Map<Integer, NodeInfo>> routes() {
        return StormFields.get(StormFields.TASK_TO_NODE_PORT, one.worker.state);
    }

    private static AtomicBoolean[] backPressure() {
        WorkerTransfer transfer = StormFields.get(StormFields.WORKER_TRANSFER, one.worker.state);
        return StormFields.get(StormFields.REMOTE_BACK_PRESSURE, transfer);
    }
}

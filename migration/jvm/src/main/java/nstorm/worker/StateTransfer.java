package nstorm.worker;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.TimeUnit;
import nstorm.memory.BoltState;
import nstorm.wire.Entry;
import nstorm.wire.ExecutorId;
import nstorm.wire.Phase;
import nstorm.wire.Plan;
import nstorm.wire.Way;
import org.apache.storm.daemon.StormCommon;
import org.apache.storm.messaging.TaskMessage;
import org.apache.storm.serialization.KryoTupleSerializer;
import org.apache.storm.task.WorkerTopologyContext;
import org.apache.storm.tuple.AddressedTuple;
import org.apache.storm.tuple.TupleImpl;

/**
 * Carries what bolts keep from the source of a move to its target, as tuples for a pseudo task over Storm's connection
 * between the two workers. A connection may drop them, so they are sent again until the plan goes on.
 *
 * <p>All but {@link #isPiece} and {@link #take} is the reconciler's thread's.
 */
final class StateTransfer {
    /** Not a route's: no connection is kept for it. */
    private static final int TASK = WorkerTables.LAST_END - 1;
    /** Each time twice as long as before: while no controller goes on with the plan this has no end. */
    private static final long AGAIN_NANOS = TimeUnit.SECONDS.toNanos(3);
    private static final int DOUBLED_MAX = 6;
    /** A connection that is full blocks who sends: other moves of this worker must not wait for more than a piece. */
    private static final long PASS_NANOS = TimeUnit.MILLISECONDS.toNanos(5);

    private static final int REHEARSALS = 3;
    private static final int REHEARSED_ENTRIES = 10_000;

    /** Of a move from here: its state once it was asked for, the next piece of it, and when the last one was sent. */
    private static final class Leaving {
        volatile byte[] state;
        long crc;
        int next;
        int times;
        long sentNanos;

        boolean sent() {
            return state != null && (times > 0 || next == StateArrivals.pieces(state));
        }
    }

    private final HookedWorker worker;
    private final StateArrivals arrivals = new StateArrivals();
    private final Map<String, Leaving> leaving = new ConcurrentHashMap<>();
    private Map<String, byte[]> keys = Map.of();
    private KryoTupleSerializer serializer;
    private boolean rehearses;
    private volatile boolean rehearsed;

    StateTransfer(HookedWorker worker) {
        this.worker = worker;
    }

    static boolean isPiece(AddressedTuple tuple) {
        return tuple.dest == TASK;
    }

    /** Takes a piece that has just come by Netty. */
    void take(AddressedTuple tuple) {
        try {
            arrivals.take((byte[]) tuple.tuple.getValue(0));
        } catch (IOException | RuntimeException | OutOfMemoryError e) {
            Faults.report("taking a piece of a bolt's state", e);
        }
    }

    /**
     * What only they know who read the plan: the cluster's id is random, and is sent nowhere where tuples are.
     */
    static byte[] key(Plan plan, Entry entry) {
        return String.join("/", plan.cluster(), plan.topology(), entry.id(), entry.executor().toString(),
                Long.toString(entry.baseStartSecs())).getBytes(StandardCharsets.UTF_8);
    }

    /** Forgets moves that have gone on. */
    void follow(Plan planOrNull) {
        Map<String, byte[]> coming = new HashMap<>();
        Map<String, byte[]> going = new HashMap<>();
        boolean carries = !rehearses && worker.copies.values().stream().anyMatch(copy -> copy.way() == Way.CARRY);
        for (Entry entry : planOrNull == null ? List.<Entry>of() : planOrNull.entries()) {
            // Its source may have read of CARRY before this worker has.
            boolean carried = entry.way() == Way.CARRY && (entry.phase() == Phase.PREPARE || entry.phase() == Phase.CARRY);
            carries |= carried && entry.touches(worker.me);
            if (carried && entry.to().equals(worker.me)) {
                coming.put(entry.id(), key(planOrNull, entry));
            } else if (carried || entry.phase() == Phase.RECALL) {
                going.put(entry.id(), key(planOrNull, entry));
            }
            Leaving back = entry.phase() == Phase.UNDO ? leaving.get(entry.id()) : null;
            ExecutorCopy copy = worker.copies.get(entry.executor());
            if (back != null && back.sent() && copy != null) {
                copy.sentInVain();
            }
        }
        if (carries && !rehearses) {
            rehearse();
        }
        arrivals.await(coming);
        leaving.keySet().retainAll(going.keySet());
        keys = going;
    }

    /** Whether this JVM has done once what a pause would else wait for. */
    boolean rehearsed() {
        return rehearsed;
    }

    /** Once in a JVM, before a first state travels: what is not loaded and compiled yet would take half a second of its pause. */
    private void rehearse() {
        rehearses = true;
        Thread thread = new Thread(() -> {
            try {
                for (int i = 0; i < REHEARSALS; i++) {
                    new Rehearsal().run();
                }
            } catch (IOException | RuntimeException | Error e) {
                Faults.report("rehearsing the travel of a state", e);
            }
            rehearsed = true;
        }, "nstorm-rehearsal");
        thread.setDaemon(true);
        try {
            serializer();
            thread.start();
        } catch (RuntimeException | Error e) {
            // As at the limit of threads: a first pause is longer then, and moves go on.
            rehearsed = true;
            Faults.report("rehearsing the travel of a state", e);
        }
    }

    private KryoTupleSerializer serializer() {
        if (serializer == null) {
            serializer = new KryoTupleSerializer(worker.state.getTopologyConf(), worker.state.getWorkerTopologyContext());
        }
        return serializer;
    }

    /** A bolt that keeps a map, and sends it to itself. */
    private static final class Rehearsal {
        private final byte[] key = new byte[1];
        private Map<String, Long> kept = new HashMap<>();

        void run() throws IOException {
            for (long i = 0; i < REHEARSED_ENTRIES; i++) {
                kept.put(Long.toString(i), i);
            }
            byte[] state = BoltState.save(List.of(this), Set.of("kept"));
            StateArrivals arrivals = new StateArrivals();
            arrivals.await(Map.of("", key));
            for (int i = 0; i < StateArrivals.pieces(state); i++) {
                arrivals.take(StateArrivals.piece("", key, state, StateArrivals.crc(state), i));
            }
            BoltState.load(arrivals.whole(""), List.of(this));
        }
    }

    /** At the source in CARRY: asks the copy for its state, and sends some more of it. */
    void send(Entry entry, ExecutorCopy copy) {
        Leaving state = leaving.get(entry.id());
        if (state == null) {
            leaving.put(entry.id(), new Leaving());
            copy.saveState();
            return;
        }
        try {
            if (state.state == null) {
                state.state = copy.takeSavedState();
                state.crc = state.state == null ? 0 : StateArrivals.crc(state.state);
            }
            if (state.state != null) {
                sendSome(state, entry, copy.component);
            }
            if (state.sent()) {
                copy.handOnQueue(worker.handOver);
            }
        } catch (OutOfMemoryError e) {
            // Sent whole, it may be at work at the target.
            if (!state.sent()) {
                state.state = null;
                copy.refuse("sending", e);
            }
        }
    }

    /** Whether the state of a move from here has been asked for. */
    boolean leaves(String move) {
        return leaving.containsKey(move);
    }

    /** Whether the state of a move from here has been written. */
    boolean isSending(String move) {
        Leaving state = leaving.get(move);
        return state != null && state.state != null;
    }

    private void sendSome(Leaving state, Entry entry, String component) {
        int pieces = StateArrivals.pieces(state.state);
        if (state.next == pieces) {
            if (System.nanoTime() - state.sentNanos < AGAIN_NANOS << Math.min(state.times, DOUBLED_MAX)) {
                return;
            }
            state.next = 0;
            state.times++;
        }
        long untilNanos = System.nanoTime() + PASS_NANOS;
        do {
            byte[] piece = StateArrivals.piece(entry.id(), keys.get(entry.id()), state.state, state.crc, state.next);
            if (!worker.tables.send(entry.to(), message(entry.executor(), component, piece))) {
                return;
            }
            state.next++;
            state.sentNanos = System.nanoTime();
        } while (state.next < pieces && System.nanoTime() - untilNanos < 0);
    }

    /** At the target in CARRY: gives the copy the state once it is whole. */
    void load(Entry entry, ExecutorCopy copy) {
        byte[] state = arrivals.whole(entry.id());
        if (state != null) {
            copy.loadState(state);
        } else if (arrivals.tooLarge(entry.id()) && !copy.refused()) {
            copy.refuse("taking", new OutOfMemoryError("no room for it"));
        }
    }

    private TaskMessage message(ExecutorId from, String component, byte[] piece) {
        return message(piece, component, from, worker.state.getWorkerTopologyContext(), serializer());
    }

    static TaskMessage message(byte[] piece, String component, ExecutorId from, WorkerTopologyContext context,
            KryoTupleSerializer serializer) {
        // Each component has Storm's own stream, of one value.
        TupleImpl tuple = new TupleImpl(context, List.of(piece), component, from.start(), StormCommon.SYSTEM_STREAM_ID);
        return new TaskMessage(TASK, serializer.serialize(tuple));
    }
}

package nstorm.worker;

import java.io.IOException;
import java.io.Serializable;
import java.nio.charset.StandardCharsets;
import java.security.SecureRandom;
import java.util.Arrays;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.Callable;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;
import nstorm.memory.Declared;
import nstorm.proof.Departure;
import nstorm.proof.Memory;
import nstorm.state.BoltState;
import nstorm.state.FirstMaps;
import nstorm.state.FirstPass;
import nstorm.state.StateBytes;
import nstorm.state.StateClasses;
import nstorm.wire.Entry;
import nstorm.wire.ExecutorId;
import nstorm.wire.Phase;
import nstorm.wire.Plan;
import nstorm.wire.Slot;
import nstorm.wire.Way;
import org.apache.storm.daemon.StormCommon;
import org.apache.storm.messaging.TaskMessage;
import org.apache.storm.serialization.KryoTupleSerializer;
import org.apache.storm.task.WorkerTopologyContext;
import org.apache.storm.tuple.AddressedTuple;
import org.apache.storm.tuple.TupleImpl;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Carries what bolts keep from the source of a move to its target, as tuples for a pseudo task over Storm's connection
 * between the two workers. A connection may drop them, so they are sent again until the plan goes on.
 *
 * <p>All but {@link #isPiece} and {@link #take} is the reconciler's thread's.
 */
final class StateTransfer {
    private static final Logger LOG = LoggerFactory.getLogger(StateTransfer.class);

    /** Not a route's: no connection is kept for it. */
    private static final int TASK = WorkerTables.LAST_END - 1;
    /** What the name of a move has behind it where what goes ahead of its state is meant. */
    private static final String AHEAD = "/ahead";
    /** Where what the target compares with is meant, and where the target's word is why it does not take the state. */
    private static final String PROOF = "/proof";
    private static final String ANSWER = "/answer";
    /** Where the key is meant that the target has drawn for all the others. */
    private static final String KEY = "/key";
    private static final int KEY_BYTES = 32;
    private static final SecureRandom CHANCE = new SecureRandom();
    private static final int ANSWER_MAX = 1000;
    /** Each time twice as long as before: while no controller goes on with the plan this has no end. */
    private static final long AGAIN_NANOS = TimeUnit.SECONDS.toNanos(3);
    /** Shorter: the target may not have read of the move yet, and then keeps nothing of it. */
    private static final long AHEAD_AGAIN_NANOS = TimeUnit.MILLISECONDS.toNanos(100);
    private static final int DOUBLED_MAX = 6;
    /** Other moves of this worker wait meanwhile. */
    private static final long PASS_NANOS = TimeUnit.MILLISECONDS.toNanos(20);

    private static final int LARGE_BYTES = 8 << 20;
    /** What is not loaded and compiled yet would take half a second of a pause. A JVM that has just started is too busy to compile it. */
    private static final int REHEARSED_MOVES = 3;
    private static final int REHEARSALS = 5;
    /** A loop is compiled for good only after so many turns in all; less where a state may not be that large. */
    private static final int REHEARSED_ENTRIES = Math.min(100_000, BoltState.SIZE_MAX_BYTES >> 9);

    /** Bytes on their way from here: the next piece of them, and when the first and the last one was sent. */
    private static final class Outgoing {
        final String name;
        final StateBytes bytes;
        final long crc;
        final long againNanos;
        final long sinceNanos;
        int next;
        int times;
        long begunNanos;
        long sentNanos;

        Outgoing(String name, StateBytes bytes, long againNanos, long sinceNanos) {
            this.name = name;
            this.bytes = bytes;
            this.againNanos = againNanos;
            this.sinceNanos = sinceNanos;
            crc = bytes.crc();
        }

        boolean sent() {
            return times > 0 || next == bytes.pieces();
        }

        /** Its target has started anew, and knows nothing of it. */
        void again() {
            times = sent() ? times + 1 : 0;
            next = 0;
        }

        /** Whether it is time to send all of it again; large bytes take a while to arrive and to be read. */
        boolean due() {
            long pauseNanos = Math.max(againNanos, 2 * (sentNanos - begunNanos));
            return System.nanoTime() - sentNanos > pauseNanos << Math.min(times, DOUBLED_MAX);
        }
    }

    /** A move from here: what goes ahead of its state, once that is known and written, and the state, once it was asked for. */
    private static final class Leaving {
        volatile boolean looked;
        volatile FirstPass firstPass;
        volatile Outgoing ahead;
        boolean writes;
        boolean asked;
        Outgoing state;
        Outgoing proof;

        boolean sent() {
            return state != null && state.sent();
        }

        void again() {
            for (Outgoing one : new Outgoing[] {ahead, state, proof}) {
                if (one != null) {
                    one.again();
                }
            }
        }

        void inVain(ExecutorCopy copy) {
            if (sent()) {
                copy.sentInVain();
            } else if (!asked && firstPass != null) {
                copy.aheadInVain();
            }
        }
    }

    /** What came here ahead of a state: maps, or null if nothing does. */
    private static final class Ahead {
        volatile FirstMaps maps;
        volatile boolean read;
    }

    private final HookedWorker worker;
    private final StateArrivals arrivals = new StateArrivals();
    private final Map<String, Leaving> leaving = new ConcurrentHashMap<>();
    private final Map<String, Ahead> ahead = new ConcurrentHashMap<>();
    private final Map<String, byte[]> proofs = new HashMap<>();
    private final Map<String, Outgoing> answers = new HashMap<>();
    /** The key of each move whose state comes here, drawn by this worker, or goes from here, once its target has said it. */
    private final Map<String, byte[]> keys = new ConcurrentHashMap<>();
    private final Map<String, Outgoing> offers = new HashMap<>();
    private final Map<String, byte[]> planKeys = new HashMap<>();
    private KryoTupleSerializer serializer;
    private final AtomicInteger rehearsedMoves = new AtomicInteger();
    private final AtomicBoolean padded = new AtomicBoolean();

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
     * What the target sends its key under, so that nobody puts the source off who has not read the plan: the cluster's id is random, and is sent
     * nowhere where tuples are.
     */
    static byte[] planKey(Plan plan, Entry entry) {
        return String.join("/", plan.cluster(), plan.topology(), entry.id(), entry.executor().toString(),
                Long.toString(entry.baseStartSecs())).getBytes(StandardCharsets.UTF_8);
    }

    /** Forgets moves that have gone on. */
    void follow(Plan planOrNull) {
        Map<String, byte[]> coming = new HashMap<>();
        Set<String> going = new HashSet<>();
        planKeys.clear();
        for (Entry entry : planOrNull == null ? List.<Entry>of() : planOrNull.entries()) {
            // Its source may have read of CARRY before this worker has.
            boolean carried = entry.way() == Way.CARRY && (entry.phase() == Phase.PREPARE || entry.phase() == Phase.CARRY);
            if (carried && entry.to().equals(worker.me)) {
                byte[] key = keys.computeIfAbsent(entry.id(), id -> draw());
                List.of("", AHEAD, PROOF).forEach(part -> coming.put(entry.id() + part, key));
                planKeys.put(entry.id(), planKey(planOrNull, entry));
            } else if (carried || entry.phase() == Phase.RECALL) {
                going.add(entry.id());
            }
            if (entry.way() == Way.CARRY && entry.from().equals(worker.me)) {
                coming.put(entry.id() + KEY, planKey(planOrNull, entry));
                takeKey(entry);
                if (keys.containsKey(entry.id())) {
                    coming.put(entry.id() + ANSWER, keys.get(entry.id()));
                }
                takeAnswer(entry);
            }
            Leaving back = entry.phase() == Phase.UNDO ? leaving.get(entry.id()) : null;
            ExecutorCopy copy = worker.copies.get(entry.executor());
            if (back != null && copy != null) {
                back.inVain(copy);
            }
        }
        arrivals.await(coming);
        ahead.keySet().retainAll(coming.keySet());
        answers.keySet().retainAll(coming.keySet());
        offers.keySet().retainAll(coming.keySet());
        proofs.keySet().retainAll(coming.keySet());
        leaving.keySet().retainAll(going);
        keys.keySet().removeIf(move -> !coming.containsKey(move) && !coming.containsKey(move + KEY));
    }

    private static byte[] draw() {
        byte[] key = new byte[KEY_BYTES];
        CHANCE.nextBytes(key);
        return key;
    }

    private static StateBytes bytes(byte[] all, int length) {
        StateBytes bytes = new StateBytes();
        bytes.write(all, 0, length);
        return bytes;
    }

    /** The key of a move from or to here; null as long as it is not known. */
    byte[] keyOrNull(String move) {
        return keys.get(move);
    }

    /** At the target: tells the source the key of all that is to come. Storm's connection leads to the slot that Storm itself names. */
    private void offerKey(Entry entry) {
        ExecutorCopy copy = worker.copies.get(entry.executor());
        byte[] key = keys.get(entry.id());
        if (copy != null && key != null) {
            Outgoing offer = offers.computeIfAbsent(entry.id(),
                    id -> new Outgoing(id + KEY, bytes(key, key.length), AHEAD_AGAIN_NANOS, System.nanoTime()));
            sendSome(offer, planKeys.get(entry.id()), entry, entry.from(), copy.component);
        }
    }

    /** At the source: the newest counts, which a target that has started anew has drawn. */
    private void takeKey(Entry entry) {
        byte[] key = arrivals.whole(entry.id() + KEY);
        if (key == null) {
            return;
        }
        arrivals.again(entry.id() + KEY);
        byte[] before = key.length == KEY_BYTES ? keys.put(entry.id(), key) : key;
        Leaving move = leaving.get(entry.id());
        if (before != null && move != null && !Arrays.equals(before, key)) {
            move.again();
        }
    }

    /** At the target: whether nothing is left to do before the state of a move may come. */
    boolean awaits(String move) {
        Ahead came = ahead.get(move);
        return came != null && came.read;
    }

    /** One at a time, for the heap it takes. */
    private static synchronized void rehearseSome() throws IOException {
        for (int i = 0; i < REHEARSALS; i++) {
            new Rehearsal().run();
        }
    }

    /**
     * Does before a pause what would be done in it: compiles code, and has the collector look at a large state's new objects. If it
     * fails, the pause is longer.
     */
    private void prepare(long bytes) {
        try {
            if (rehearsedMoves.incrementAndGet() <= REHEARSED_MOVES) {
                rehearseSome();
            }
            if (bytes >= LARGE_BYTES) {
                EarlyCollection.provoke();
            }
        } catch (IOException | RuntimeException | Error e) {
            Faults.report("preparing the travel of a state", e);
        }
    }

    /** Does something long on a thread of its own; the other thing where that fails, as at the limit of threads. */
    private static void beside(String what, Callable<Void> work, Runnable otherwise) {
        Runnable contained = () -> {
            try {
                work.call();
            } catch (Exception | Error e) {
                Faults.report(what, e);
                otherwise.run();
            }
        };
        try {
            Thread thread = new Thread(contained, "nstorm-state");
            thread.setDaemon(true);
            thread.start();
        } catch (OutOfMemoryError e) {
            Faults.report(what, e);
            otherwise.run();
        }
    }

    private KryoTupleSerializer serializer() {
        if (serializer == null) {
            serializer = new KryoTupleSerializer(worker.state.getTopologyConf(), worker.state.getWorkerTopologyContext());
        }
        return serializer;
    }

    /** A bolt that keeps a map, and sends it to itself. */
    private static final class Rehearsal implements Serializable {
        private static final long serialVersionUID = 1L;
        private static final Declared UNDECLARED = Declared.of(Map.of());
        private final transient byte[] key = new byte[1];
        private Map<String, Long> kept = new HashMap<>();

        void run() throws IOException {
            for (long i = 0; i < REHEARSED_ENTRIES; i++) {
                kept.put(Long.toString(i), i);
            }
            FirstPass first = FirstPass.of(List.of(this), Set.of("kept"));
            byte[] ahead = travel(first.write());
            kept.replaceAll((word, count) -> count % 8 == 0 ? (Long) (count + 1) : count);
            BoltState.load(travel(BoltState.save(List.of(this), Set.of("kept"), first, null, classes())), List.of(this), classes(), FirstMaps.orNull(ahead));
            Memory memory = new Memory("rehearsal", List.of(this), List.of(), UNDECLARED);
            memory.prepared();
            kept.put("one more", 1L);
            Departure departure = memory.depart(null);
            memory.arrive(travel(departure.state()), null, departure.proof());
        }

        private static StateClasses classes() {
            return new StateClasses(Set.of(), UNDECLARED);
        }

        private byte[] travel(StateBytes bytes) throws IOException {
            StateArrivals arrivals = new StateArrivals();
            arrivals.await(Map.of("", key));
            long crc = bytes.crc();
            for (int i = 0; i < bytes.pieces(); i++) {
                arrivals.take(StateArrivals.piece("", key, bytes, crc, i));
            }
            return arrivals.whole("");
        }
    }

    /** At the source in PREPARE: sends ahead what of its state can tell later what has changed, while its bolts go on. */
    void sendAhead(Entry entry, ExecutorCopy copy) {
        Leaving move = leaving.get(entry.id());
        if (move == null) {
            Leaving begun = new Leaving();
            leaving.put(entry.id(), begun);
            copy.lookAhead(first -> {
                begun.firstPass = first;
                begun.looked = true;
            });
        } else if (move.ahead != null) {
            sendSome(move.ahead, entry, copy.component);
        } else if (move.looked && !move.writes) {
            move.writes = true;
            writeAhead(move, entry, copy.aboutBytes());
        }
    }

    private void writeAhead(Leaving move, Entry entry, long aboutBytes) {
        FirstPass first = move.firstPass;
        long nowNanos = System.nanoTime();
        Runnable nothing = () -> {
            move.firstPass = null;
            move.ahead = new Outgoing(entry.id() + AHEAD, new StateBytes(), AHEAD_AGAIN_NANOS, nowNanos);
        };
        beside("writing what goes ahead of a state", () -> {
            StateBytes written = first == null ? padding(aboutBytes) : first.write();
            prepare(Math.max(written.size(), aboutBytes));
            move.ahead = new Outgoing(entry.id() + AHEAD, written, AHEAD_AGAIN_NANOS, nowNanos);
            return null;
        }, nothing);
    }

    /**
     * Zeros, once, as many as a large state has bytes that goes in one pass: the first bytes that a JVM sends take twice as long as
     * the next, and these do so before the pause.
     */
    private StateBytes padding(long aboutBytes) {
        StateBytes zeros = new StateBytes();
        if (aboutBytes >= LARGE_BYTES && padded.compareAndSet(false, true)) {
            byte[] piece = new byte[StateBytes.PIECE_BYTES];
            for (long left = Math.min(aboutBytes, BoltState.SIZE_MAX_BYTES); left >= piece.length; left -= piece.length) {
                zeros.write(piece, 0, piece.length);
            }
        }
        return zeros;
    }

    /** At the target from PREPARE on: reads what has come ahead of the state. */
    void takeAhead(Entry entry) {
        offerKey(entry);
        byte[] bytes = arrivals.whole(entry.id() + AHEAD);
        if (bytes == null) {
            return;
        }
        Ahead came = new Ahead();
        ahead.put(entry.id(), came);
        // If something came and cannot be read, the move is undone at its limit.
        beside("reading what came ahead of a state", () -> {
            came.maps = FirstMaps.orNull(bytes);
            prepare(bytes.length);
            came.read = true;
            return null;
        }, () -> came.read = bytes.length == 0);
    }

    /** At the source in CARRY: asks the copy for its state, and sends some more of it. */
    void send(Entry entry, ExecutorCopy copy) {
        Leaving move = leaving.computeIfAbsent(entry.id(), id -> new Leaving());
        if (!move.asked) {
            move.asked = true;
            copy.saveState(move.ahead == null ? null : move.firstPass);
            return;
        }
        StateBytes saved = copy.takeSavedState();
        if (saved != null) {
            move.state = new Outgoing(entry.id(), saved, AGAIN_NANOS, copy.stillNanos());
        }
        byte[] proved = copy.takeSavedProof();
        if (proved != null) {
            move.proof = new Outgoing(entry.id() + PROOF, bytes(proved, proved.length), AGAIN_NANOS, copy.stillNanos());
        }
        if (move.state != null) {
            sendSome(move.state, entry, copy.component);
        }
        if (move.proof != null && move.sent()) {
            sendSome(move.proof, entry, copy.component);
        }
        if (move.sent() && !worker.tables.delivers(entry.executor())) {
            copy.handOnQueue(worker.handOver);
        }
        if (move.state != null && move.state.times > 0 && move.ahead != null) {
            // A target that has started anew has neither.
            sendSome(move.ahead, entry, copy.component);
        }
    }

    /** Whether the state of a move from here has been asked for. */
    boolean asked(String move) {
        Leaving known = leaving.get(move);
        return known != null && known.asked;
    }

    /** Whether something of the state of a move from here has been written. */
    boolean isSending(String move) {
        Leaving known = leaving.get(move);
        return known != null && (known.ahead != null || known.state != null);
    }

    private void sendSome(Outgoing out, Entry entry, String component) {
        byte[] key = keys.get(entry.id());
        if (key != null) {
            sendSome(out, key, entry, entry.to(), component);
        }
    }

    private void sendSome(Outgoing out, byte[] key, Entry entry, Slot to, String component) {
        int pieces = out.bytes.pieces();
        if (out.next == pieces) {
            if (!out.due()) {
                return;
            }
            out.next = 0;
            out.times++;
        }
        long nowNanos = System.nanoTime();
        out.begunNanos = out.next == 0 ? nowNanos : out.begunNanos;
        boolean before = out.sent();
        do {
            byte[] piece = StateArrivals.piece(out.name, key, out.bytes, out.crc, out.next);
            if (!worker.tables.send(to, message(entry.executor(), component, piece))) {
                return;
            }
            out.next++;
            out.sentNanos = System.nanoTime();
        } while (out.next < pieces && out.sentNanos - nowNanos < PASS_NANOS);
        if (out.sent() && !before) {
            LOG.info("state_sent move={} executor={} to={} bytes={} ms={}", out.name, entry.executor(), to, out.bytes.size(),
                    TimeUnit.NANOSECONDS.toMillis(System.nanoTime() - out.sinceNanos));
        }
    }

    /** At the target in CARRY: gives the copy the state once it is whole. */
    void load(Entry entry, ExecutorCopy copy) {
        takeAhead(entry);
        Ahead came = ahead.get(entry.id());
        byte[] state = came != null && came.read ? arrivals.whole(entry.id()) : null;
        byte[] proof = arrivals.whole(entry.id() + PROOF);
        if (proof != null) {
            proofs.put(entry.id(), proof);
        }
        if (state != null) {
            copy.loadState(entry.id(), state, came.maps);
        } else if (copy.hasState(entry.id()) && proofs.containsKey(entry.id())) {
            copy.compareState(entry.id(), proofs.remove(entry.id()));
        }
        for (String name : List.of(entry.id(), entry.id() + AHEAD, entry.id() + PROOF)) {
            String why = arrivals.refusal(name);
            if (why != null && !copy.refused() && !copy.begunWith(entry.id())) {
                copy.refuse("taking", new IOException(why));
            }
        }
    }

    /** At the target: tells the source why it does not take the state, so that this is not tried with every other target. */
    void answer(Entry entry, ExecutorCopy copy) {
        Outgoing answer = answers.computeIfAbsent(entry.id(), id -> {
            byte[] text = copy.refusal().getBytes(StandardCharsets.UTF_8);
            return new Outgoing(id + ANSWER, bytes(text, Math.min(text.length, ANSWER_MAX)), AHEAD_AGAIN_NANOS, System.nanoTime());
        });
        sendSome(answer, keys.get(entry.id()), entry, entry.from(), copy.component);
    }

    private void takeAnswer(Entry entry) {
        byte[] answer = arrivals.whole(entry.id() + ANSWER);
        ExecutorCopy copy = worker.copies.get(entry.executor());
        if (answer != null && copy != null) {
            String text = new String(answer, 0, Math.min(answer.length, ANSWER_MAX), StandardCharsets.UTF_8);
            copy.refusedByTarget(text.replaceAll("\\p{Cntrl}", " "));
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

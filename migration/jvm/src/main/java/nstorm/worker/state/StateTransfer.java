package nstorm.worker.state;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.Callable;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.TimeUnit;
import java.util.function.Function;
import nstorm.hook.Faults;
import nstorm.state.FirstMaps;
import nstorm.state.FirstPass;
import nstorm.state.StateBytes;
import nstorm.wire.Entry;
import nstorm.wire.ExecutorId;
import nstorm.wire.Phase;
import nstorm.wire.Plan;
import nstorm.wire.Slot;
import nstorm.wire.Way;
import nstorm.worker.plan.Desired.Action;
import nstorm.worker.plan.Desired.Part;
import nstorm.worker.routes.HandOver;
import nstorm.worker.routes.WorkerTables;
import org.apache.storm.daemon.worker.WorkerState;
import org.apache.storm.tuple.AddressedTuple;

/**
 * Carries what bolts keep from the source of a move to its target. It goes as tuples for a pseudo task over Storm's connection between the
 * two workers. A connection may drop them, so they are sent again until the plan goes on.
 *
 * <p>All but {@link #isPiece} and {@link #take} is the reconciler's thread's.
 */
public final class StateTransfer {
    /** What the name of a move has behind it where what goes ahead of its state is meant. */
    private static final String AHEAD = "/ahead";
    /** Where what the target compares with is meant, and where the target's word is why it does not take the state. */
    private static final String PROOF = "/proof";

    private static final String ANSWER = "/answer";
    private static final int ANSWER_MAX = 1000;
    /** A JVM that has stood still for long may have been given up, and others may have followed its plan. */
    private static final long FRESH_NANOS = TimeUnit.SECONDS.toNanos(1);

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

        void undone(CopyState state) {
            if (sent()) {
                state.undoneAfterSent();
            } else if (!asked && firstPass != null) {
                state.undoneAfterAhead();
            }
        }
    }

    /** What came here ahead of a state: maps, or null if nothing does. */
    private static final class Ahead {
        volatile FirstMaps maps;
        volatile boolean read;
    }

    private final Slot me;
    private final WorkerTables tables;
    private final HandOver handOver;
    private final Function<ExecutorId, CopyState> copies;
    private final StateArrivals arrivals = new StateArrivals();
    private final Map<String, Leaving> leaving = new ConcurrentHashMap<>();
    private final Map<String, Ahead> ahead = new ConcurrentHashMap<>();
    private final Map<String, byte[]> proofs = new HashMap<>();
    private final Map<String, Outgoing> answers = new HashMap<>();
    private final PieceSender sender;
    private final Rehearsal rehearsal;
    public final MoveKeys keys;

    /** @param copies what the bolts of each executor keep here, or null for one without a copy */
    public StateTransfer(
            WorkerState worker,
            Slot me,
            WorkerTables tables,
            HandOver handOver,
            Function<ExecutorId, CopyState> copies) {
        this.me = me;
        this.tables = tables;
        this.handOver = handOver;
        this.copies = copies;
        sender = new PieceSender(worker, tables);
        rehearsal = new Rehearsal(worker.getTopologyConf());
        keys = new MoveKeys(arrivals, sender);
    }

    public static boolean isPiece(AddressedTuple tuple) {
        return tuple.dest == PieceSender.TASK;
    }

    /** Takes a piece that has just come by Netty. */
    public void take(AddressedTuple tuple) {
        try {
            arrivals.take((byte[]) tuple.tuple.getValue(0));
        } catch (IOException | RuntimeException | OutOfMemoryError e) {
            Faults.report("taking a piece of a bolt's state", e);
        }
    }

    /** Forgets moves that have gone on. */
    public void follow(Plan planOrNull) {
        Map<String, byte[]> coming = new HashMap<>();
        Set<String> going = new HashSet<>();
        for (Entry entry : planOrNull == null ? List.<Entry>of() : planOrNull.entries()) {
            // Its source may have read of CARRY before this worker has.
            boolean carried =
                    entry.way() == Way.CARRY && (entry.phase() == Phase.PREPARE || entry.phase() == Phase.CARRY);
            if (carried && entry.to().equals(me)) {
                byte[] key = keys.draw(planOrNull, entry);
                List.of("", AHEAD, PROOF).forEach(part -> coming.put(entry.id() + part, key));
            } else if (carried || entry.phase() == Phase.RECALL) {
                going.add(entry.id());
            }
            if (entry.way() == Way.CARRY && entry.from().equals(me)) {
                coming.put(MoveKeys.name(entry.id()), MoveKeys.planKey(planOrNull, entry));
                takeKey(entry);
                if (keys.of(entry.id()) != null) {
                    coming.put(entry.id() + ANSWER, keys.of(entry.id()));
                }
                takeAnswer(entry);
            }
            Leaving back = entry.phase() == Phase.UNDO ? leaving.get(entry.id()) : null;
            CopyState copy = copies.apply(entry.executor());
            if (back != null && copy != null) {
                back.undone(copy);
            }
        }
        arrivals.await(coming);
        ahead.keySet().retainAll(coming.keySet());
        answers.keySet().retainAll(coming.keySet());
        proofs.keySet().retainAll(coming.keySet());
        leaving.keySet().retainAll(going);
        keys.retain(move -> coming.containsKey(move) || coming.containsKey(MoveKeys.name(move)));
    }

    /** At the source: what was sent under another key was sent to a target that has started once more since. */
    private void takeKey(Entry entry) {
        Leaving move = leaving.get(entry.id());
        if (keys.take(entry.id()) && move != null) {
            move.again();
        }
    }

    /** At the target: whether nothing is left to do before the state of a move may come. */
    public boolean awaits(String move) {
        Ahead came = ahead.get(move);
        return came != null && came.read;
    }

    /** Does something long on a thread of its own; the other thing where that fails, as at the limit of threads. */
    private static void apart(String what, Callable<Void> work, Runnable otherwise) {
        Runnable contained = () -> {
            try {
                work.call();
            } catch (Throwable e) {
                Faults.contained(what, e);
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

    /**
     * In PREPARE the source sends ahead what it can; in CARRY it sends its state, and the target takes it and begins. In RECALL
     * neither does any more, and the reconciler's thread alone decides whether the target had begun. What fails takes its own move back,
     * and no other's pass.
     *
     * @param polledNanos when this worker last looked at its plan
     */
    public void carry(Part part, CopyState copyOrNull, long polledNanos) {
        Entry entry = part.entry();
        if (copyOrNull == null || entry == null || entry.way() != Way.CARRY) {
            return;
        }
        try {
            if (entry.phase() == Phase.PREPARE) {
                prepare(part, copyOrNull);
            } else if (entry.phase() == Phase.CARRY) {
                carryOver(part, copyOrNull, polledNanos);
            }
        } catch (RuntimeException | OutOfMemoryError e) {
            copyOrNull.refuse("carrying", e);
        }
    }

    private void prepare(Part part, CopyState copy) {
        if (part.action() == Action.PREPARE) {
            takeAhead(part.entry(), copy);
            // Its source learns it while its bolts still work, and the move is undone at its limit.
            String why = arrivals.tooLarge(part.entry().id() + AHEAD);
            if (why != null) {
                answer(part.entry(), why, copy.component);
            }
        } else if (part.action() == Action.RUN && copy.ready() && copy.fields() != null) {
            sendAhead(part.entry(), copy);
        }
    }

    private void carryOver(Part part, CopyState copy, long polledNanos) {
        Entry entry = part.entry();
        if (part.action() == Action.CARRY && copy.holdsStill()) {
            send(entry, copy);
        } else if (part.action() == Action.RUN && copy.ready()) {
            load(entry, copy);
            if (copy.refused()) {
                answer(entry, copy.refusal(), copy.component);
            }
            if (copy.loadedWith(entry.id()) && !copy.refused() && System.nanoTime() - polledNanos < FRESH_NANOS) {
                copy.begin(entry.id());
            }
        }
    }

    /** At the source in PREPARE: sends ahead those parts of its state that can later show what has changed, while its bolts go on. */
    private void sendAhead(Entry entry, CopyState copy) {
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
            move.ahead = new Outgoing(entry.id() + AHEAD, new StateBytes(), Outgoing.AHEAD_AGAIN_NANOS, nowNanos);
        };
        apart(
                "writing what goes ahead of a state",
                () -> {
                    StateBytes written = first == null ? rehearsal.padding(aboutBytes) : first.write();
                    rehearsal.beforePause(Math.max(written.size(), aboutBytes));
                    move.ahead = new Outgoing(entry.id() + AHEAD, written, Outgoing.AHEAD_AGAIN_NANOS, nowNanos);
                    return null;
                },
                nothing);
    }

    /** At the target from PREPARE on: reads what has come ahead of the state. */
    private void takeAhead(Entry entry, CopyState copy) {
        keys.offer(entry, copy.component);
        byte[] bytes = arrivals.whole(entry.id() + AHEAD);
        if (bytes == null) {
            return;
        }
        Ahead came = new Ahead();
        ahead.put(entry.id(), came);
        // If something came and cannot be read, the move is undone at its limit.
        apart(
                "reading what came ahead of a state",
                () -> {
                    came.maps = FirstMaps.orNull(bytes);
                    rehearsal.beforePause(bytes.length);
                    came.read = true;
                    return null;
                },
                () -> came.read = bytes.length == 0);
    }

    /** At the source in CARRY: asks the copy for its state, and sends some more of it. */
    private void send(Entry entry, CopyState copy) {
        Leaving move = leaving.computeIfAbsent(entry.id(), id -> new Leaving());
        if (!move.asked) {
            move.asked = true;
            copy.save(move.ahead == null ? null : move.firstPass);
            return;
        }
        StateBytes saved = copy.takeSaved();
        if (saved != null) {
            move.state = new Outgoing(entry.id(), saved, Outgoing.AGAIN_NANOS, copy.stillNanos());
        }
        byte[] proved = copy.takeSavedProof();
        if (proved != null) {
            move.proof =
                    Outgoing.of(entry.id() + PROOF, proved, proved.length, Outgoing.AGAIN_NANOS, copy.stillNanos());
        }
        if (move.state != null) {
            sendSome(move.state, entry, copy.component);
        }
        if (move.proof != null && move.sent()) {
            sendSome(move.proof, entry, copy.component);
        }
        if (move.sent() && !tables.delivers(entry.executor())) {
            copy.handOnQueue(handOver);
        }
        if (move.state != null && move.state.repeats() && move.ahead != null) {
            // A target that has started once more has neither.
            sendSome(move.ahead, entry, copy.component);
        }
    }

    /** Whether the state of a move from here has been asked for. */
    public boolean asked(String move) {
        Leaving known = leaving.get(move);
        return known != null && known.asked;
    }

    /** Whether something of the state of a move from here has been written. */
    public boolean isSending(String move) {
        Leaving known = leaving.get(move);
        return known != null && (known.ahead != null || known.state != null);
    }

    private void sendSome(Outgoing out, Entry entry, String component) {
        byte[] key = keys.of(entry.id());
        if (key != null) {
            sender.send(out, key, entry, entry.to(), component);
        }
    }

    /** At the target in CARRY: gives the copy the state once it is whole. */
    private void load(Entry entry, CopyState copy) {
        takeAhead(entry, copy);
        Ahead came = ahead.get(entry.id());
        byte[] state = came != null && came.read ? arrivals.whole(entry.id()) : null;
        byte[] proof = arrivals.whole(entry.id() + PROOF);
        if (proof != null) {
            proofs.put(entry.id(), proof);
        }
        if (state != null) {
            copy.load(entry.id(), state, came.maps);
        } else if (copy.isSet(entry.id()) && proofs.containsKey(entry.id())) {
            copy.compare(entry.id(), proofs.remove(entry.id()));
        }
        for (String name : List.of(entry.id(), entry.id() + AHEAD, entry.id() + PROOF)) {
            String why = arrivals.refusal(name);
            if (why != null && !copy.refused() && !copy.begunWith(entry.id())) {
                copy.refuse("taking", new IOException(why));
            }
        }
    }

    /** At the target: reports to the source why it does not take the state, so that this is not tried with every other target. */
    private void answer(Entry entry, String why, String component) {
        Outgoing answer = answers.computeIfAbsent(entry.id(), id -> {
            byte[] text = why.getBytes(StandardCharsets.UTF_8);
            return Outgoing.of(
                    id + ANSWER,
                    text,
                    Math.min(text.length, ANSWER_MAX),
                    Outgoing.AHEAD_AGAIN_NANOS,
                    System.nanoTime());
        });
        sender.send(answer, keys.of(entry.id()), entry, entry.from(), component);
    }

    private void takeAnswer(Entry entry) {
        byte[] answer = arrivals.whole(entry.id() + ANSWER);
        CopyState copy = copies.apply(entry.executor());
        if (answer != null && copy != null) {
            String text = new String(answer, 0, Math.min(answer.length, ANSWER_MAX), StandardCharsets.UTF_8);
            copy.refusedByTarget(text.replaceAll("\\p{Cntrl}", " "));
        }
    }
}

package nstorm.worker.state;

import java.io.IOException;
import java.io.Serializable;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;
import nstorm.hook.Faults;
import nstorm.memory.Declared;
import nstorm.proof.Departure;
import nstorm.proof.Memory;
import nstorm.state.BoltState;
import nstorm.state.FirstMaps;
import nstorm.state.FirstPass;
import nstorm.state.StateBytes;
import nstorm.state.StateClasses;

/**
 * What a JVM does for the first time in a pause takes longer. If the topology wants it, it is done once before, while the bolt works.
 * That costs CPU, heap and traffic in the first moves of each JVM.
 */
final class Rehearsal {
    private static final String KEY = "nstorm.state.rehearsed";
    private static final int LARGE_BYTES = 8 << 20;
    /** What is not loaded and compiled yet would take half a second of a pause. A JVM that has just started is too busy to compile it. */
    private static final int REHEARSED_MOVES = 3;

    private static final int REHEARSALS = 5;
    /** A loop is fully compiled only after this number of turns in all; less where a state may not be that large. */
    private static final int REHEARSED_ENTRIES = Math.min(100_000, BoltState.SIZE_MAX_BYTES >> 9);

    private final boolean wanted;
    private final AtomicInteger moves = new AtomicInteger();
    private final AtomicBoolean padded = new AtomicBoolean();

    Rehearsal(Map<String, Object> topologyConf) {
        wanted = Boolean.TRUE.equals(topologyConf.get(KEY));
    }

    /**
     * Does before a pause what would be done in it: compiles code, and has the collector look at a large state's new objects. If it
     * fails, the pause is longer.
     */
    void beforePause(long bytes) {
        try {
            if (wanted && moves.incrementAndGet() <= REHEARSED_MOVES) {
                rehearse();
            }
            if (bytes >= LARGE_BYTES) {
                EarlyCollection.provoke();
            }
        } catch (IOException | RuntimeException | Error e) {
            Faults.report("preparing the travel of a state", e);
        }
    }

    /**
     * Zeros, once, as many as the bytes of a large state that goes in one pass. The first bytes that a JVM sends take twice as long as the
     * next, and these do so before the pause.
     */
    StateBytes padding(long aboutBytes) {
        StateBytes zeros = new StateBytes();
        if (wanted && aboutBytes >= LARGE_BYTES && padded.compareAndSet(false, true)) {
            byte[] piece = new byte[StateBytes.PIECE_BYTES];
            for (long left = Math.min(aboutBytes, BoltState.SIZE_MAX_BYTES);
                    left >= piece.length;
                    left -= piece.length) {
                zeros.write(piece, 0, piece.length);
            }
        }
        return zeros;
    }

    /** One at a time in a JVM, for the heap it takes. */
    private static synchronized void rehearse() throws IOException {
        for (int i = 0; i < REHEARSALS; i++) {
            new Counts().travel();
        }
    }

    /** A bolt that keeps a map, and sends it to itself. */
    static final class Counts implements Serializable {
        private static final long serialVersionUID = 1L;
        private static final Declared UNDECLARED = Declared.of(Map.of());
        private final transient byte[] key = new byte[1];
        Map<String, Long> kept = new HashMap<>();

        void travel() throws IOException {
            for (long i = 0; i < REHEARSED_ENTRIES; i++) {
                kept.put(Long.toString(i), i);
            }
            FirstPass first = FirstPass.of(List.of(this), Set.of("kept"));
            byte[] ahead = arrived(first.write());
            kept.replaceAll((word, count) -> count % 8 == 0 ? (Long) (count + 1) : count);
            StateBytes saved = BoltState.save(List.of(this), Set.of("kept"), first, null, classes());
            BoltState.load(arrived(saved), List.of(this), classes(), FirstMaps.orNull(ahead));
            Memory memory = new Memory("rehearsal", List.of(this), List.of(), UNDECLARED);
            memory.prepared();
            kept.put("one more", 1L);
            Departure departure = memory.depart(null);
            memory.arrive(arrived(departure.state()), null, departure.proof());
        }

        private static StateClasses classes() {
            return new StateClasses(Set.of(), UNDECLARED);
        }

        private byte[] arrived(StateBytes bytes) throws IOException {
            StateArrivals arrivals = new StateArrivals();
            arrivals.await(Map.of("", key));
            long crc = bytes.crc();
            for (int i = 0; i < bytes.pieces(); i++) {
                arrivals.take(StateArrivals.piece("", key, bytes, crc, i));
            }
            return arrivals.whole("");
        }
    }
}

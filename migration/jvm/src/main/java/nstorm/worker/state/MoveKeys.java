package nstorm.worker.state;

import java.nio.charset.StandardCharsets;
import java.security.SecureRandom;
import java.util.Arrays;
import java.util.HashMap;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.function.Predicate;
import nstorm.wire.Entry;
import nstorm.wire.Plan;

/** The key of each move whose state comes here, drawn by this worker, or goes from here, once its target has sent it. */
public final class MoveKeys {
    /** What the name of a move has behind it where the key is meant that the target has drawn for all the others. */
    private static final String KEY = "/key";

    private static final int KEY_BYTES = 32;
    private static final SecureRandom CHANCE = new SecureRandom();

    private final StateArrivals arrivals;
    private final PieceSender sender;
    private final Map<String, byte[]> keys = new ConcurrentHashMap<>();
    private final Map<String, byte[]> planKeys = new HashMap<>();
    private final Map<String, Outgoing> offers = new HashMap<>();

    MoveKeys(StateArrivals arrivals, PieceSender sender) {
        this.arrivals = arrivals;
        this.sender = sender;
    }

    /**
     * The secret with which the target sends its key, so that only a reader of the plan can misdirect the source. The
     * cluster's id is random, and is sent nowhere where tuples are.
     */
    public static byte[] planKey(Plan plan, Entry entry) {
        return String.join(
                        "/",
                        plan.cluster(),
                        plan.topology(),
                        entry.id(),
                        entry.executor().toString(),
                        Long.toString(entry.baseStartSecs()))
                .getBytes(StandardCharsets.UTF_8);
    }

    /** The name under which the key of a move comes. */
    static String name(String move) {
        return move + KEY;
    }

    /** Null as long as it is not known. */
    public byte[] of(String move) {
        return keys.get(move);
    }

    /** At the target. */
    byte[] draw(Plan plan, Entry entry) {
        planKeys.put(entry.id(), planKey(plan, entry));
        return keys.computeIfAbsent(entry.id(), id -> {
            byte[] key = new byte[KEY_BYTES];
            CHANCE.nextBytes(key);
            return key;
        });
    }

    /** At the target: sends it to the source. Storm's connection leads to the slot that Storm itself names. */
    void offer(Entry entry, String component) {
        byte[] key = keys.get(entry.id());
        if (key != null) {
            Outgoing offer = offers.computeIfAbsent(
                    entry.id(),
                    id -> Outgoing.of(name(id), key, key.length, Outgoing.AHEAD_AGAIN_NANOS, System.nanoTime()));
            sender.send(offer, planKeys.get(entry.id()), entry, entry.from(), component);
        }
    }

    /** At the source: the newest counts, which a target that has started once more has drawn. Whether there was another before. */
    boolean take(String move) {
        byte[] key = arrivals.whole(name(move));
        if (key == null) {
            return false;
        }
        arrivals.again(name(move));
        byte[] before = key.length == KEY_BYTES ? keys.put(move, key) : key;
        return before != null && !Arrays.equals(before, key);
    }

    /** Forgets the keys of all other moves. */
    void retain(Predicate<String> moves) {
        keys.keySet().removeIf(moves.negate());
        offers.keySet().removeIf(moves.negate());
        planKeys.keySet().removeIf(moves.negate());
    }
}

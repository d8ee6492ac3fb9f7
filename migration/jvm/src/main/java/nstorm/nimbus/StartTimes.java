package nstorm.nimbus;

import java.util.Collection;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.function.Function;
import nstorm.nimbus.Placement.Move;
import nstorm.wire.ExecutorId;
import nstorm.wire.Slot;

/**
 * Which executors keep the start times they have.
 *
 * <p>Nimbus gives new ones to every executor of a slot whose set changes. That would void the other entries of the
 * slot, and a death there would go unnoticed for {@code nimbus.task.launch.secs}.
 */
final class StartTimes {

    private StartTimes() {}

    /** The executors of the slots whose set differs by these moves and by nothing else. */
    static Set<ExecutorId> kept(Map<ExecutorId, Slot> before, Map<ExecutorId, Slot> after, Collection<Move> moves) {
        Map<ExecutorId, Slot> moved = new HashMap<>(before);
        for (Move move : moves) {
            moved.replace(move.executor(), move.from(), move.to());
        }
        Map<Slot, Set<ExecutorId>> expected = bySlot(moved);
        Set<ExecutorId> kept = new HashSet<>();
        bySlot(after).forEach((slot, executors) -> {
            if (executors.equals(expected.get(slot))) {
                kept.addAll(executors);
            }
        });
        return kept;
    }

    private static Map<Slot, Set<ExecutorId>> bySlot(Map<ExecutorId, Slot> slots) {
        Map<Slot, Set<ExecutorId>> bySlot = new HashMap<>();
        slots.forEach((executor, slot) ->
                bySlot.computeIfAbsent(slot, key -> new HashSet<>()).add(executor));
        return bySlot;
    }

    /** Storm's executors by ours. */
    static <V> Map<ExecutorId, Slot> read(Map<List<Long>, V> storm, Function<V, Slot> slot) {
        Map<ExecutorId, Slot> read = new HashMap<>();
        storm.forEach((executor, place) -> read.put(ExecutorId.of(executor), slot.apply(place)));
        return read;
    }
}

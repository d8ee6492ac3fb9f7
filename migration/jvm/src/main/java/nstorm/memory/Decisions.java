package nstorm.memory;

import java.util.BitSet;
import java.util.HashMap;
import java.util.HashSet;
import java.util.Map;
import java.util.Set;

/**
 * What decides that something is done with kept tuples: a size, a tick, a time, or what the input carries.
 *
 * <p>The search begins at the place where it is done. It goes up through branches that only ask whether there is
 * something, and through callers, to the first that decides.
 */
final class Decisions {
    private enum By {
        INPUT,
        CALLER,
        OTHER
    }

    private final Origins origins;
    private final Map<String, Machine> machines;
    /** By method, the places from which it is called. */
    private final Map<String, Set<String>> callers = new HashMap<>();
    /** By place, what is acked, failed or emitted there. */
    private final Map<String, BitSet> acts = new HashMap<>();

    Decisions(Origins origins, Map<String, Machine> machines) {
        this.origins = origins;
        this.machines = machines;
    }

    /** @param placeOrNull of the call in the code of a method that is followed */
    void entered(String method, String placeOrNull) {
        if (placeOrNull != null) {
            callers.computeIfAbsent(method, key -> new HashSet<>()).add(placeOrNull);
        }
    }

    void act(String place, BitSet of) {
        acts.computeIfAbsent(place, key -> new BitSet()).or(of);
    }

    /** Notes the fields of which what the input carries alone lets tuples go. */
    void judge(Findings findings) {
        if (findings.tuples.isEmpty()) {
            return;
        }
        Set<String> byInput = new HashSet<>();
        int before = -1;
        while (before != byInput.size()) {
            before = byInput.size();
            callers.forEach((method, places) -> {
                if (places.stream().anyMatch(place -> isByInput(place, byInput, findings.tuples))) {
                    byInput.add(method);
                }
            });
        }
        acts.forEach((place, of) -> {
            if (isByInput(place, byInput, findings.tuples)) {
                origins.fieldsOf(of).forEach(findings::looksUp);
            }
        });
    }

    private boolean isByInput(String place, Set<String> methods, Set<String> tuples) {
        int colon = place.lastIndexOf(':');
        String method = place.substring(0, colon);
        By by = deciding(machines.get(method), Integer.parseInt(place.substring(colon + 1)), tuples, new BitSet());
        return by == By.INPUT || by == By.CALLER && methods.contains(method);
    }

    private By deciding(Machine machine, int instruction, Set<String> tuples, BitSet seen) {
        if (machine.branches.isTooLarge()) {
            return By.OTHER;
        }
        BitSet branches = machine.branches.deciding(instruction);
        branches.andNot(seen);
        seen.or(branches);
        By found = branches.isEmpty() ? By.CALLER : By.OTHER;
        for (int branch : branches.stream().toArray()) {
            By one = of(machine, branch, tuples, seen);
            found = one.compareTo(found) < 0 ? one : found;
        }
        return found;
    }

    private By of(Machine machine, int branch, Set<String> tuples, BitSet seen) {
        BitSet decides = machine.deciding.getOrDefault(branch, new BitSet());
        boolean kept = origins.fieldsOf(decides).stream().anyMatch(tuples::contains);
        boolean onlyAsks = kept && !machine.comparesTwo(branch)
                || machine.branches.deciding(branch).get(branch);
        if (onlyAsks) {
            return deciding(machine, branch, tuples, seen);
        }
        return !kept && origins.isOfInput(decides) && !decides.get(Origins.TICK) ? By.INPUT : By.OTHER;
    }
}

package nstorm.trial;

import java.io.IOException;
import java.lang.reflect.Field;
import java.lang.reflect.Modifier;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import java.util.stream.Collectors;
import nstorm.memory.BoltMemory;
import nstorm.memory.KeptTuples;
import nstorm.memory.MoveWay;
import nstorm.proof.Departure;
import nstorm.state.StateSize;
import nstorm.state.Whole;

/**
 * A bolt works, and is then moved by the product's own classes as a worker would, from one side to another. A copy that nobody touches
 * takes the same
 * tuples: what comes out has to be the same.
 *
 * <p>What one host and one JVM cannot show: another host's clock, files, addresses and process ids, what the JVM itself keeps (system
 * properties, its
 * threads), databases, and what another executor does to static fields. Of those only the way is judged.
 */
final class Trial {
    static final int BEFORE = 12;
    private static final int OVERLAP = 3;
    private static final int AFTER = 12;
    private static final int TICKS = 3;

    /**
     * What became of it.
     *
     * @param why why it stays, or moves as it does
     * @param difference what comes out otherwise than of the copy that nobody touched; null if nothing
     */
    record Outcome(Way way, String why, String difference) {}

    private final Copy source;
    private final Copy target;
    private final Copy untouched;
    private final int before;

    private Trial(String type, Map<String, byte[]> made, int before) {
        this.before = before;
        byte[] submitted = new Side(made).submitted(type);
        source = new Copy(new Side(made), submitted, true);
        target = new Copy(new Side(made), submitted, true);
        untouched = new Copy(new Side(made), submitted, false);
    }

    /** Moves a bolt after so many tuples. */
    static Outcome of(String type, Map<String, byte[]> made, int before) {
        Trial trial = new Trial(type, made, before);
        try {
            return trial.move();
        } finally {
            List.of(trial.source, trial.target, trial.untouched).forEach(copy -> copy.bolt.cleanup());
        }
    }

    private Outcome move() {
        source.memory.read();
        source.take(0, before);
        size();
        MoveWay way = source.memory.way();
        if (way.tuples() != null) {
            return drain(way);
        }
        String why = way.pinned();
        if (why == null) {
            why = source.memory.changedSincePrepared();
            if (why == null) {
                // Some senders know of the new copy later than others: until then the old one works on.
                source.take(before, before + OVERLAP);
                return compared(Way.LIVE, null, target, before + OVERLAP);
            }
            way = source.memory.way();
        }
        return way.state() == null ? compared(Way.STAYS, why, source, before) : carry(why);
    }

    /** As a worker does each minute, between two tuples. */
    private void size() {
        Set<String> fields = Arrays.stream(
                        BoltMemory.user(source.bolt).getClass().getDeclaredFields())
                .filter(field -> !Modifier.isStatic(field.getModifiers()))
                .map(Field::getName)
                .collect(Collectors.toSet());
        try {
            StateSize.aboutBytes(List.of(source.bolt), fields);
        } catch (IOException e) {
            // It is not known how large it is.
        }
    }

    private Outcome carry(String why) {
        try {
            Departure departure = source.memory.depart(null);
            target.memory.arrive(Whole.of(departure.state()), null, departure.proof());
            return compared(
                    departure.fields().isEmpty() ? Way.STOPPED : Way.CARRY,
                    why + " " + departure.fields(),
                    target,
                    before);
        } catch (IOException e) {
            return compared(Way.STAYS, e.getMessage(), source, before);
        }
    }

    /** Feeds the copy that works from now on, from this tuple. */
    private Outcome compared(Way way, String why, Copy working, int from) {
        untouched.take(0, from);
        int seen = untouched.outputs.size();
        int noted = working.outputs.size();
        untouched.take(from, from + AFTER);
        working.take(from, from + AFTER);
        untouched.tick();
        working.tick();
        List<String> right = untouched.outputs.subList(seen, untouched.outputs.size());
        List<String> found = working.outputs.subList(noted, working.outputs.size());
        return new Outcome(way, why, right.equals(found) ? null : "right is " + right + ", not " + found);
    }

    /** The old copy gets ticks alone until it keeps no tuple; which tuples stand in which batch is chance. */
    private Outcome drain(MoveWay way) {
        for (int i = 0; i < TICKS && !KeptTuples.none(List.of(source.bolt), way.tuples()); i++) {
            source.tick();
        }
        boolean moves =
                KeptTuples.none(List.of(source.bolt), way.tuples()) && source.memory.changedSincePrepared() == null;
        Copy working = moves ? target : source;
        working.take(before, before + AFTER);
        untouched.take(0, before + AFTER);
        working.tick();
        untouched.tick();
        List<String> found = each(moves ? List.of(source, target) : List.of(source));
        List<String> right = each(List.of(untouched));
        return new Outcome(
                moves ? Way.DRAIN : Way.STAYS,
                Objects.toString(way.pinned()),
                right.equals(found) ? null : "right is " + right + ", not " + found);
    }

    private static List<String> each(List<Copy> copies) {
        return copies.stream()
                .flatMap(copy -> copy.outputs.stream())
                .flatMap(line -> line.startsWith("emit")
                        ? List.of(line.replaceAll(".*\\[\\[|\\].*", "").split(", ")).stream()
                        : List.of(line).stream())
                .filter(line -> !line.equals("ack -1"))
                .sorted()
                .toList();
    }
}

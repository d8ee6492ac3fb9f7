package nstorm.trial;

import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.ArrayList;
import java.util.EnumMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ThreadLocalRandom;
import nstorm.trial.Maker.Keeps;
import nstorm.trial.Maker.Made;
import nstorm.trial.Trial.Outcome;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.condition.EnabledIfSystemProperty;

/** Bolts made from seeds: none moves and emits something else afterwards, and most that can move do. */
class MadeBoltsTest {
    private static final long SEED = 39;
    private static final int OF_A_KIND = 100;

    private final Map<Keeps, Map<Way, Integer>> ways = new EnumMap<>(Keeps.class);
    private final List<String> wrong = new ArrayList<>();

    private void round(long seed, int ofAKind) {
        List<Made> bolts = new ArrayList<>();
        for (Keeps keeps : Keeps.values()) {
            bolts.addAll(Maker.many(seed, keeps, ofAKind));
        }
        Map<String, byte[]> code = Compiler.compile(bolts);
        for (Made bolt : bolts) {
            Way way = move(seed, bolt, code, Trial.BEFORE);
            ways.computeIfAbsent(bolt.keeps(), key -> new EnumMap<>(Way.class)).merge(way, 1, Integer::sum);
            // Before its first tuple it looks as if it kept nothing.
            if (bolt.keeps() == Keeps.HARD) {
                move(seed, bolt, code, 0);
            }
        }
        System.out.println("made bolts: seed " + seed + ", " + wrong.size() + " wrong, so far " + ways);
    }

    private Way move(long seed, Made bolt, Map<String, byte[]> code, int before) {
        Outcome outcome;
        try {
            outcome = Trial.of(bolt.type(), code, before);
        } catch (RuntimeException | LinkageError | StackOverflowError e) {
            outcome = new Outcome(Way.STAYS, null, "threw " + e);
        }
        if (outcome.difference() != null) {
            wrong.add("explore.seed " + seed + ", after " + before + " tuples: " + outcome + "\n" + bolt.text());
        }
        return outcome.way();
    }

    private void nothingIsWrong() {
        assertTrue(wrong.isEmpty(), () -> wrong.size() + " move wrongly:\n" + String.join("\n", wrong));
    }

    private void move(Keeps keeps, double share, Way... right) {
        int count = 0;
        for (Way way : right) {
            count += ways.get(keeps).getOrDefault(way, 0);
        }
        assertTrue(count >= share * OF_A_KIND, ways::toString);
    }

    @Test
    void theSameBoltsEachTime() {
        round(SEED, OF_A_KIND);
        nothingIsWrong();
        move(Keeps.NOTHING, 0.9, Way.LIVE, Way.STOPPED);
        move(Keeps.PLAIN, 0.8, Way.CARRY);
    }

    /** For `make explore`: until something is found, or those of one seed. */
    @Test
    @EnabledIfSystemProperty(named = "explore", matches = "true")
    void othersEachTime() {
        Long seed = Long.getLong("explore.seed");
        do {
            round(seed == null ? ThreadLocalRandom.current().nextLong(1L << 32) : seed, 20);
        } while (wrong.isEmpty() && seed == null);
        nothingIsWrong();
    }
}

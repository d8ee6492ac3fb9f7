package nstorm.trial.bolts;

import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;

/** An enum for itself, with something in it that the whole JVM shares. */
enum Ledger {
    FAST,
    SLOW;

    final Map<String, Integer> counts = new ConcurrentHashMap<>();
    long sum;

    Integer count(String word) {
        return counts.get(word);
    }
}

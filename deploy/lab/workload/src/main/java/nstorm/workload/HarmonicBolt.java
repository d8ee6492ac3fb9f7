package nstorm.workload;

import java.util.HashMap;
import java.util.Map;
import org.apache.storm.task.TopologyContext;

/** Counts words, and for each computes a harmonic number: 1 + 1/2 + … + 1/n. All it needs is CPU. */
final class HarmonicBolt extends CountBolt {
    private final Map<String, Double> sums = new HashMap<>();
    private int terms;

    @Override
    void open(Map<String, Object> conf, TopologyContext context) {
        super.open(conf, context);
        terms = WordCount.integer(conf, "workload.harmonic.terms", 10_000);
    }

    @Override
    void counted(String word) {
        sums.merge(word, harmonic(terms), Double::sum);
    }

    /** The terms in this order: the lab adds them up in the same one and finds the same last bit. */
    static double harmonic(int terms) {
        double sum = 0;
        for (int k = 1; k <= terms; k++) {
            sum += 1.0 / k;
        }
        return sum;
    }

    @Override
    Map<String, ?> kept() {
        return Map.of("counts", super.kept().get("counts"), "sums", sums);
    }
}

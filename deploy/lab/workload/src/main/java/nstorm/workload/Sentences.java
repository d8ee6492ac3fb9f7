package nstorm.workload;

import java.util.Arrays;
import java.util.Random;
import java.util.stream.Collectors;
import java.util.stream.IntStream;

/** Sentences of made-up words whose frequencies follow Zipf's law: the k-th word comes as often as 1/k^exponent. */
final class Sentences {
    private static final int COUNT = 4096;

    private Sentences() {
    }

    /** The seed alone makes the words, seed and task the sentences, so all tasks speak one language. */
    static String[] of(long seed, int task, int vocabulary, int wordsPerSentence, double exponent) {
        String[] words = new Random(seed).ints(vocabulary, 0, Integer.MAX_VALUE)
            .mapToObj(number -> Integer.toString(number, 36)).toArray(String[]::new);
        double[] cumulative = IntStream.rangeClosed(1, vocabulary).mapToDouble(k -> Math.pow(k, -exponent)).toArray();
        Arrays.parallelPrefix(cumulative, Double::sum);
        Random random = new Random(31 * seed + task);
        return IntStream.range(0, COUNT).mapToObj(i -> IntStream.range(0, wordsPerSentence)
            .mapToObj(j -> words[sample(cumulative, random)]).collect(Collectors.joining(" "))).toArray(String[]::new);
    }

    private static int sample(double[] cumulative, Random random) {
        int place = Arrays.binarySearch(cumulative, random.nextDouble() * cumulative[cumulative.length - 1]);
        return place < 0 ? -place - 1 : Math.min(place + 1, cumulative.length - 1);
    }
}

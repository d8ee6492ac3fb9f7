package nstorm.workload;

import java.util.Arrays;
import java.util.Map;
import java.util.Random;
import java.util.stream.Collectors;
import java.util.stream.IntStream;

/** Sentences of made-up words whose frequencies follow Zipf's law: the k-th word comes as often as 1/k^exponent. */
final class Sentences {
    /** What follows it in a sentence only makes it as long as asked for. */
    static final char FILLER = '\t';

    private static final int COUNT = 4096;
    private static final int POOL_BYTES = 4 << 20;

    private Sentences() {}

    static String[] of(Map<String, Object> conf, int task) {
        int seed = WordCount.integer(conf, WordCount.SEED, 1);
        int vocabulary = WordCount.integer(conf, WordCount.VOCABULARY, 1000);
        int bytes = WordCount.integer(conf, WordCount.SENTENCE_BYTES, 0);
        int wanted = WordCount.integer(conf, WordCount.LINES, COUNT);
        int count = bytes > 0 ? Math.max(16, Math.min(wanted, POOL_BYTES / bytes)) : wanted;
        Shift shift = new Shift(
                WordCount.integer(conf, WordCount.SHIFT_LINES, count),
                WordCount.integer(conf, WordCount.SHIFT_WORDS, 0),
                WordCount.integer(conf, WordCount.WORDS, vocabulary));
        String[] sentences = of(
                seed,
                task,
                vocabulary,
                WordCount.integer(conf, WordCount.SENTENCE_WORDS, 5),
                WordCount.number(conf, WordCount.ZIPF_EXPONENT, 1),
                count,
                shift);
        if (bytes > 0) {
            fill(sentences, bytes, new Random(~(31L * seed + task)));
        }
        return sentences;
    }

    /** The seed alone makes the words, seed and task the sentences, so all tasks speak one language. */
    static String[] of(long seed, int task, int vocabulary, int wordsPerSentence, double exponent) {
        return of(seed, task, vocabulary, wordsPerSentence, exponent, COUNT, new Shift(COUNT, 0, vocabulary));
    }

    private static String[] of(
            long seed, int task, int vocabulary, int wordsPerSentence, double exponent, int count, Shift shift) {
        String[] words = words(seed, shift.words);
        double[] cumulative = cumulative(vocabulary, exponent);
        Random random = new Random(31 * seed + task);
        return IntStream.range(0, count)
                .mapToObj(i -> IntStream.range(0, wordsPerSentence)
                        .mapToObj(j -> words[shift.place(sample(cumulative, random), i)])
                        .collect(Collectors.joining(" ")))
                .toArray(String[]::new);
    }

    static String[] words(long seed, int count) {
        return new Random(seed)
                .ints(count, 0, Integer.MAX_VALUE)
                .mapToObj(number -> Integer.toString(number, 36))
                .toArray(String[]::new);
    }

    static double[] cumulative(int vocabulary, double exponent) {
        double[] cumulative = IntStream.rangeClosed(1, vocabulary)
                .mapToDouble(k -> Math.pow(k, -exponent))
                .toArray();
        Arrays.parallelPrefix(cumulative, Double::sum);
        return cumulative;
    }

    static int sample(double[] cumulative, Random random) {
        int place = Arrays.binarySearch(cumulative, random.nextDouble() * cumulative[cumulative.length - 1]);
        return place < 0 ? -place - 1 : Math.min(place + 1, cumulative.length - 1);
    }

    /** The part of a sentence that is words. */
    static String withoutFiller(String sentence) {
        int end = sentence.indexOf(FILLER);
        return end < 0 ? sentence : sentence.substring(0, end);
    }

    /** Makes every sentence exactly so long, with letters that no compression makes short. */
    private static void fill(String[] sentences, int bytes, Random random) {
        for (int i = 0; i < sentences.length; i++) {
            int missing = bytes - sentences[i].length();
            if (missing < 0) {
                throw new IllegalArgumentException(WordCount.SENTENCE_BYTES + ": the words alone have "
                        + sentences[i].length() + " bytes, so " + bytes + " are too few");
            }
            if (missing > 0) {
                StringBuilder filled =
                        new StringBuilder(bytes).append(sentences[i]).append(FILLER);
                random.ints(missing - 1L, '!', '~' + 1).forEach(letter -> filled.append((char) letter));
                sentences[i] = filled.toString();
            }
        }
    }

    /** How the words change along the lines: after a number of lines the whole ranking moves on by a number of words. */
    private record Shift(int everyLines, int byWords, int words) {
        int place(int rank, int line) {
            return (int) ((rank + (long) (line / everyLines) * byWords) % words);
        }
    }
}

package nstorm.workload;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;

import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.function.Function;
import java.util.stream.Collectors;
import org.junit.jupiter.api.Test;

final class SentencesTest {
    @Test
    void wordsFollowZipf() {
        String[] sentences = Sentences.of(1, 3, 100, 5, 1);
        Map<String, Long> counts = Arrays.stream(sentences)
                .flatMap(s -> Arrays.stream(s.split(" ")))
                .collect(Collectors.groupingBy(Function.identity(), Collectors.counting()));
        long[] falling =
                counts.values().stream().mapToLong(Long::longValue).sorted().toArray();
        double most = falling[falling.length - 1];
        assertEquals(4096 * 5, Arrays.stream(falling).sum());
        assertEquals(4096 * 5 / 5.187, most, most * 0.05);
        assertEquals(0.5, falling[falling.length - 2] / most, 0.05);
    }

    @Test
    void theSeedDecides() {
        assertArrayEquals(Sentences.of(4, 1, 50, 3, 1), Sentences.of(4, 1, 50, 3, 1));
    }

    @Test
    void theDefaultIsWhatItWasBeforeThereWereSettings() {
        assertArrayEquals(Sentences.of(1, 7, 1000, 5, 1), Sentences.of(Map.of(), 7));
    }

    @Test
    void aSentenceIsAsLongAsAskedForAndHasTheSameWords() {
        String[] plain = Sentences.of(Map.of(), 7);
        String[] filled = Sentences.of(Map.of(WordCount.SENTENCE_BYTES, 2000), 7);
        assertEquals((4 << 20) / 2000, filled.length);
        for (int i = 0; i < filled.length; i++) {
            assertEquals(2000, filled[i].length());
            assertEquals(plain[i], Sentences.withoutFiller(filled[i]));
        }
    }

    @Test
    void aSentenceThatIsTooLongIsRefused() {
        Map<String, Object> conf = Map.of(WordCount.SENTENCE_BYTES, 10);
        assertThrows(IllegalArgumentException.class, () -> Sentences.of(conf, 7));
    }

    /** All ranks are the first, so each sentence has a single word: the hottest at that time. */
    @Test
    void theHottestWordChanges() {
        Map<String, Object> conf = Map.of(
                WordCount.ZIPF_EXPONENT,
                100,
                WordCount.SENTENCE_WORDS,
                1,
                WordCount.VOCABULARY,
                10,
                WordCount.LINES,
                16,
                WordCount.SHIFT_LINES,
                4,
                WordCount.SHIFT_WORDS,
                5);
        String[] names = Sentences.words(1, 10);
        String[] hottest = Sentences.of(conf, 7);
        for (int i = 0; i < 16; i++) {
            assertEquals(names[i / 4 % 2 * 5], hottest[i]);
        }
    }

    @Test
    void newWordsComeEveryPeriod() {
        Map<String, Object> conf = Map.of(
                WordCount.VOCABULARY,
                10,
                WordCount.LINES,
                40,
                WordCount.SHIFT_LINES,
                20,
                WordCount.SHIFT_WORDS,
                10,
                WordCount.WORDS,
                20);
        List<String> names = List.of(Sentences.words(1, 20));
        String[] sentences = Sentences.of(conf, 7);
        for (int i = 0; i < 40; i++) {
            for (String word : sentences[i].split(" ")) {
                assertEquals(i / 20, names.indexOf(word) / 10);
            }
        }
    }
}

package nstorm.workload;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;

import java.util.Arrays;
import java.util.Map;
import java.util.function.Function;
import java.util.stream.Collectors;
import org.junit.jupiter.api.Test;

final class SentencesTest {
    @Test
    void wordsFollowZipf() {
        String[] sentences = Sentences.of(1, 3, 100, 5, 1);
        Map<String, Long> counts = Arrays.stream(sentences).flatMap(s -> Arrays.stream(s.split(" ")))
            .collect(Collectors.groupingBy(Function.identity(), Collectors.counting()));
        long[] falling = counts.values().stream().mapToLong(Long::longValue).sorted().toArray();
        double most = falling[falling.length - 1];
        assertEquals(4096 * 5, Arrays.stream(falling).sum());
        assertEquals(4096 * 5 / 5.187, most, most * 0.05);
        assertEquals(0.5, falling[falling.length - 2] / most, 0.05);
    }

    @Test
    void theSeedDecides() {
        assertArrayEquals(Sentences.of(4, 1, 50, 3, 1), Sentences.of(4, 1, 50, 3, 1));
    }
}

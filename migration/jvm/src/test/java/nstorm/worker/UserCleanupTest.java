package nstorm.worker;

import static org.junit.jupiter.api.Assertions.assertEquals;

import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

class UserCleanupTest {
    static Stream<Object> notIds() {
        return Stream.of("sink", true, 7, Map.of("sink", true), Arrays.asList("sink", 7), Arrays.asList("sink", null));
    }

    @Test
    void componentsAreNamedInAList() {
        assertEquals(
                Set.of("sink", "store"), UserCleanup.components(Map.of("nstorm.cleanup", List.of("sink", "store"))));
        assertEquals(Set.of(), UserCleanup.components(Map.of("nstorm.cleanup", List.of())));
        assertEquals(Set.of(), UserCleanup.components(Map.of()));
    }

    @ParameterizedTest
    @MethodSource("notIds")
    void anythingElseNamesNone(Object given) {
        assertEquals(Set.of(), UserCleanup.components(Map.of("nstorm.cleanup", given)));
    }
}

package nstorm.workload;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.Map;
import java.util.Set;
import java.util.stream.Collectors;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

final class WorkloadsTest {
    @ParameterizedTest
    @ValueSource(
            strings = {
                "wordcount",
                "counters",
                "unacked",
                "drift",
                "harmonic",
                "heap",
                "batches",
                "slow-prepare",
                "connections",
                "threads",
                "windows",
                "page-views",
                "trident"
            })
    void aTopologyIsBuiltThatStormCanSend(String name) {
        assertFalse(Workloads.build(name, Map.of()).get_bolts().isEmpty());
    }

    @Test
    void anUnknownNameIsRefusedWithThoseThereAre() {
        String refusal = assertThrows(IllegalArgumentException.class, () -> Workloads.build("count", Map.of()))
                .getMessage();
        assertEquals("no workload count, there are [batches, connections", refusal.substring(0, 50));
    }

    /** Trident keeps its batches in ZooKeeper under the name of the stream. */
    @Test
    void noTwoTopologiesOfTridentShareTheirState() {
        Set<String> one = Workloads.build("trident", Map.of()).get_bolts().keySet();
        Set<String> other = Workloads.build("trident", Map.of()).get_bolts().keySet();
        assertEquals(
                Set.of(),
                one.stream()
                        .filter(id -> id.contains("lines") && other.contains(id))
                        .collect(Collectors.toSet()));
        assertTrue(one.stream().anyMatch(id -> id.startsWith("$spoutcoord-spout-lines-")), one::toString);
    }

    @Test
    void harmonicNumbersAreSumsOfFractions() {
        assertEquals(1 + 1.0 / 2 + 1.0 / 3, HarmonicBolt.harmonic(3));
    }

    @Test
    void theSharedClientAnswersUntilAnyOfThemClosesIt() {
        SharedClient one = SharedClient.get();
        assertEquals("word", SharedClient.get().ask("word"));
        one.close();
        assertThrows(IllegalStateException.class, () -> SharedClient.get().ask("word"));
    }
}

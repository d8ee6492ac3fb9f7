package nstorm.workload;

import static org.junit.jupiter.api.Assertions.assertEquals;

import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.ObjectOutputStream;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

final class HeapBoltTest {
    private static CountBolt counted(String kind, int words) {
        Map<String, Object> conf =
                Map.of("workload.heap.kind", kind, "workload.heap.mb", 1, "workload.heap.chunk.bytes", 1 << 19);
        CountBolt bolt = HeapBolt.of(conf);
        bolt.open(conf, null);
        for (int i = 0; i < words; i++) {
            bolt.counted("a");
        }
        return bolt;
    }

    @Test
    void arraysFillUpToTheirLimit() {
        assertEquals(Map.of("counts", Map.of(), "held", 1), counted("arrays", 1).kept());
        assertEquals(Map.of("counts", Map.of(), "held", 2), counted("arrays", 9).kept());
    }

    @Test
    void aMapFillsUpToItsLimitAndEachWordAddsOne() {
        assertEquals(
                Map.of("counts", Map.of(), "held", 19_000, "added", 1L),
                counted("map", 1).kept());
        assertEquals(
                Map.of("counts", Map.of(), "held", 38_000, "added", 50_000L),
                counted("map", 50_000).kept());
    }

    @ParameterizedTest
    @ValueSource(strings = {"arrays", "map"})
    void whatIsKeptTakesItsSizeInAnObjectStream(String kind) throws IOException {
        ByteArrayOutputStream written = new ByteArrayOutputStream();
        new ObjectOutputStream(written).writeObject(counted(kind, 2));
        assertEquals(1 << 20, written.size(), 50_000);
    }
}

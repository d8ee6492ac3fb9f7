package nstorm.worker;

import static org.junit.jupiter.api.Assertions.assertEquals;

import java.util.Map;
import org.apache.storm.Config;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

class ExecutorFactoryTest {
    @ParameterizedTest
    @CsvSource({"1, 1, 1, false", "100, 1, 1, true", "1, 100, 1, true", "100, 100, 1, true", "100, 100, 0, false"})
    void flushTuplesComeWhereStormSaysSo(int producerBatch, int transferBatch, long intervalMs, boolean come) {
        assertEquals(
                come,
                ExecutorFactory.publishesFlushTuples(Map.of(
                        Config.TOPOLOGY_PRODUCER_BATCH_SIZE, producerBatch,
                        Config.TOPOLOGY_TRANSFER_BATCH_SIZE, transferBatch,
                        Config.TOPOLOGY_BATCH_FLUSH_INTERVAL_MILLIS, intervalMs)));
    }
}

package nstorm.workload;

import static org.junit.jupiter.api.Assertions.assertEquals;

import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

final class LatenciesTest {
    /** The same pairs are in tests/unit/deploy/test_ledger.py, which turns buckets back into microseconds. */
    @ParameterizedTest
    @CsvSource({
        "-5,0",
        "0,0",
        "15,15",
        "16,16",
        "31,31",
        "32,32",
        "33,32",
        "34,33",
        "1000,111",
        "1023,111",
        "1024,112",
        "1000000,270",
        "30000000,348"
    })
    void aLatencyHasItsBucket(long micros, int bucket) {
        assertEquals(bucket, Latencies.bucket(micros));
    }

    @ParameterizedTest
    @CsvSource({"9223372036854775807"})
    void noLatencyIsTooLong(long micros) {
        assertEquals(Latencies.BUCKETS - 1, Latencies.bucket(micros));
    }
}

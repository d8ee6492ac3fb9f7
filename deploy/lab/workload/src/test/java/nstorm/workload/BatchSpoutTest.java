package nstorm.workload;

import static org.junit.jupiter.api.Assertions.assertEquals;

import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

final class BatchSpoutTest {
    /** Five batches a second. */
    @ParameterizedTest
    @CsvSource({"2,20", "3.5,35", "150,1500", "0,0"})
    void aRateIsKeptHoweverShortTheBatches(double tps, long inTenSeconds) {
        BatchSpout.Due due = new BatchSpout.Due();
        long lines = 0;
        for (int batch = 0; batch < 50; batch++) {
            lines += due.lines(tps, 0.2);
        }
        assertEquals(inTenSeconds, lines, 1);
    }

    @Test
    void lessThanALineIsLeftOver() {
        BatchSpout.Due due = new BatchSpout.Due();
        assertEquals(1, due.lines(1.75, 1));
        assertEquals(0, due.lines(0, 1));
        assertEquals(1, due.lines(1, 0.25));
    }
}

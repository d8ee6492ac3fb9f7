package nstorm.workload;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.List;
import org.junit.jupiter.api.Test;

final class SpoutLedgerTest {
    private final SpoutLedger ledger = new SpoutLedger(7, System.currentTimeMillis());

    @Test
    void everyIdIsCountedOnce() {
        long first = ledger.emit();
        long second = ledger.emit();
        long third = ledger.emit();
        ledger.ack(first);
        ledger.ack(first);
        ledger.fail(second);
        ledger.ack(second);
        ledger.ack(third + 1);
        assertEquals("{\"task\":7,\"emitted\":3,\"acked\":1,\"failed\":1,\"double_acked\":3}", ledger.totals());
    }

    @Test
    void aMillionInFlightAreEnough() {
        for (int i = 0; i < 1 << 20; i++) {
            assertEquals(i, ledger.emit());
        }
        assertEquals(-1, ledger.emit());
        ledger.ack(0);
        assertEquals(1 << 20, ledger.emit());
    }

    @Test
    void everySecondHasAWindow() {
        long nowMillis = System.currentTimeMillis();
        ledger.ack(ledger.emit());
        List<String> windows = ledger.takeWindows(nowMillis + 3_000);
        assertTrue(windows.size() == 3 || windows.size() == 4, windows::toString);
        assertEquals(1, windows.stream().filter(window -> window.contains("\"acked\":1")).count());
        assertEquals(List.of(), ledger.takeWindows(nowMillis + 3_000));
    }
}

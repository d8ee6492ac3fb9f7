package nstorm.workload;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.ArrayList;
import java.util.Arrays;
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
        List<String> windows = of("\"t_s\"", ledger.takeWindows(nowMillis + 3_000));
        assertTrue(windows.size() == 3 || windows.size() == 4, windows::toString);
        assertEquals(
                1,
                windows.stream()
                        .filter(window -> window.contains("\"acked\":1"))
                        .count());
        assertEquals(List.of(), ledger.takeWindows(nowMillis + 3_000));
    }

    @Test
    void everySlotIsWrittenOnce() {
        long nextSecond = System.currentTimeMillis() / 1000 + 1;
        ledger.takeWindows(nextSecond * 1000);
        assertEquals(List.of(slots(nextSecond, 0, 20)), ledger.takeWindows(nextSecond * 1000 + 200));
        assertEquals(List.of(), ledger.takeWindows(nextSecond * 1000 + 209));
        List<String> rest = of("slots_of_s", ledger.takeWindows(nextSecond * 1000 + 1_015));
        assertEquals(List.of(slots(nextSecond, 20, 100), slots(nextSecond + 1, 0, 1)), rest);
    }

    @Test
    void aTimeBeforeTheLastAcksClosesNoSlotOfTheirs() {
        long nextSecond = System.currentTimeMillis() / 1000 + 1;
        ledger.takeWindows(nextSecond * 1000);
        assertEquals(List.of(), ledger.takeWindows(nextSecond * 1000 - 1));
        assertEquals(List.of(slots(nextSecond, 0, 20)), ledger.takeWindows(nextSecond * 1000 + 200));
    }

    @Test
    void everyAckIsInOneSlot() {
        List<String> rows = new ArrayList<>();
        for (int i = 0; i < 50; i++) {
            ledger.ack(ledger.emit());
            rows.addAll(ledger.takeWindows(System.currentTimeMillis() + 10 * (i % 3)));
        }
        ledger.ack(0);
        rows.addAll(ledger.takeWindows(System.currentTimeMillis() + 2_000));
        int acked = of("slots_of_s", rows).stream()
                .map(row -> row.substring(row.indexOf('[') + 1, row.indexOf(']')))
                .flatMap(counts -> Arrays.stream(counts.split(",")))
                .mapToInt(Integer::parseInt)
                .sum();
        assertEquals(50, acked);
    }

    private static List<String> of(String key, List<String> rows) {
        return rows.stream().filter(row -> row.contains(key)).toList();
    }

    private static String slots(long second, int first, int end) {
        String none = "0,".repeat(end - first - 1) + "0";
        return "{\"slots_of_s\":" + second + ",\"task\":7,\"first\":" + first + ",\"acked\":[" + none + "]}";
    }
}

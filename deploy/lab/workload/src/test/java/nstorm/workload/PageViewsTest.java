package nstorm.workload;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;

import java.util.Arrays;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

final class PageViewsTest {
    /** The same lines are in tests/unit/deploy/test_workloads.py. */
    @ParameterizedTest
    @CsvSource({
        "6.0.0.1 GET /a 200 browser,true",
        "7.0.0.1 GET /a 200 robot,false",
        "7.0.0.1 POST /a 200 browser,false",
        "7.0.0.1 GET /a 404 browser,false",
        "7.0.0.1 GET /a.png 200 browser,false"
    })
    void aViewIsOfAPageByAPerson(String line, boolean view) {
        assertEquals(view, ParseBolt.isView(line.split(" ")));
    }

    @ParameterizedTest
    @CsvSource({"5.0.0.1,africa", "6.0.0.1,america", "223.255.255.1,europe"})
    void anAddressHasARegion(String address, String region) {
        assertEquals(region, PlaceBolt.region(address));
    }

    @Test
    void someOfTheLogAreViewsAndTheSeedDecides() {
        String[] lines = PageViews.lines(Map.of(), 3);
        double views = Arrays.stream(lines)
                .filter(line -> ParseBolt.isView(line.split(" ")))
                .count();
        assertEquals(0.8 * 0.9 * 0.95 * 0.875, views / lines.length, 0.03);
        assertArrayEquals(lines, PageViews.lines(Map.of(), 3));
    }
}

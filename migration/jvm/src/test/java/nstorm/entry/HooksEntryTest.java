package nstorm.entry;

import static org.junit.jupiter.api.Assertions.assertEquals;

import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

class HooksEntryTest {

    @ParameterizedTest
    @CsvSource({"1.8, 8", "9, 9", "11, 11", "17, 17", "25, 25"})
    void theFeatureIsTakenFromBothFormsOfTheVersion(String version, int feature) {
        assertEquals(feature, HooksEntry.feature(version));
    }
}

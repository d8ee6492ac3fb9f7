package nstorm.entry;

import static org.junit.jupiter.api.Assertions.assertEquals;

import java.lang.reflect.Field;
import java.util.Arrays;
import net.bytebuddy.ClassFileVersion;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.objectweb.asm.Opcodes;

class HooksEntryTest {

    @ParameterizedTest
    @CsvSource({"1.8, 8", "9, 9", "11, 11", "17, 17", "25, 25"})
    void theFeatureIsTakenFromBothFormsOfTheVersion(String version, int feature) {
        assertEquals(feature, HooksEntry.feature(version));
    }

    /** A later version of both knows a later Java: then this constant is to be raised. */
    @Test
    void theNewestJavaIsTheLastThatByteBuddyAndAsmKnow() throws Exception {
        assertEquals(HooksEntry.NEWEST_JAVA, newest(Opcodes.class));
        assertEquals(HooksEntry.NEWEST_JAVA, newest(net.bytebuddy.jar.asm.Opcodes.class));
        assertEquals(
                HooksEntry.NEWEST_JAVA,
                ClassFileVersion.ofJavaVersion(HooksEntry.NEWEST_JAVA).getJavaVersion());
    }

    private static int newest(Class<?> opcodes) {
        return Arrays.stream(opcodes.getFields())
                .map(Field::getName)
                .filter(name -> name.matches("V\\d\\d"))
                .mapToInt(name -> Integer.parseInt(name.substring(1)))
                .max()
                .orElseThrow();
    }
}

package nstorm.trial;

import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.Map;
import java.util.stream.Stream;
import nstorm.trial.Trial.Outcome;
import org.junit.jupiter.api.DynamicTest;
import org.junit.jupiter.api.TestFactory;

/** Bolts that people write: each moves in a way that is right for it, or stays. */
class CasesTest {
    private static List<Class<?>> cases() throws IOException {
        List<Class<?>> cases = new ArrayList<>();
        Path folder = Path.of("target/test-classes/nstorm/trial/bolts");
        try (Stream<Path> files = Files.list(folder)) {
            for (Path file : files.sorted().toList()) {
                String name =
                        "nstorm.trial.bolts." + file.getFileName().toString().replaceFirst("\\.class$", "");
                try {
                    Class<?> type = Class.forName(name, false, CasesTest.class.getClassLoader());
                    if (type.isAnnotationPresent(Right.class)) {
                        cases.add(type);
                    }
                } catch (ClassNotFoundException e) {
                    throw new IllegalStateException(e);
                }
            }
        }
        cases.sort(Comparator.comparing(Class::getName));
        assertTrue(cases.size() > 120, "found " + cases.size());
        return cases;
    }

    @TestFactory
    Stream<DynamicTest> eachMovesRightOrStays() throws IOException {
        return cases().stream()
                .map(type -> DynamicTest.dynamicTest(type.getName().replaceFirst(".*\\.", ""), () -> check(type)));
    }

    private static void check(Class<?> type) {
        List<Way> right = List.of(type.getAnnotation(Right.class).value());
        Outcome worked = Trial.of(type.getName(), Map.of(), Trial.BEFORE);
        assertNull(worked.difference(), () -> type.getSimpleName() + " " + worked);
        assertTrue(
                worked.way() == Way.STAYS || right.contains(worked.way()),
                () -> type.getSimpleName() + ", right is " + right + ": " + worked);
        Outcome fresh = Trial.of(type.getName(), Map.of(), 0);
        assertNull(fresh.difference(), () -> type.getSimpleName() + " before its first tuple: " + fresh);
        assertTrue(
                fresh.way() != Way.LIVE || right.contains(Way.LIVE),
                () -> type.getSimpleName() + " before its first tuple: " + fresh);
    }
}

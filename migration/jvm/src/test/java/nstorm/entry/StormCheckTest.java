package nstorm.entry;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;

import java.net.URL;
import java.net.URLClassLoader;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Set;
import java.util.TreeSet;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** What is no Storm that the hooks know: named in one sentence. */
class StormCheckTest {

    @Test
    void aReleaseIsRight() {
        assertNull(StormCheck.wrong(Set.of("2.8.3")));
        assertNull(StormCheck.wrong(Set.of("3.1.0-SNAPSHOT")));
    }

    @Test
    void twoVersionsAreRefused() {
        assertEquals(
                "the class path has Storm 2.7.1 and 2.8.3, and needs to have one version",
                StormCheck.wrong(new TreeSet<>(Set.of("2.8.3", "2.7.1"))));
    }

    @Test
    void aServerOfAnotherVersionThanItsClientIsRefused(@TempDir Path dir) throws Exception {
        write(dir, "org/apache/storm/utils/Utils.class", "");
        write(dir, "storm-client-version-info.properties", "version=2.7.1");
        write(dir, "META-INF/maven/org.apache.storm/storm-server/pom.properties", "version=2.8.3");
        try (URLClassLoader classPath =
                new URLClassLoader(new URL[] {dir.toUri().toURL()}, null)) {
            assertEquals(
                    "runs stock Storm: the class path has Storm 2.7.1 and 2.8.3, and needs to have one version",
                    StormCheck.of(Role.NIMBUS, classPath).toString());
        }
        write(dir, "storm-client-version-info.properties", "");
        try (URLClassLoader classPath =
                new URLClassLoader(new URL[] {dir.toUri().toURL()}, null)) {
            assertEquals(
                    "runs stock Storm: its Storm has no version: storm-client-version-info.properties names none",
                    StormCheck.of(Role.NIMBUS, classPath).toString());
        }
    }

    private static void write(Path dir, String name, String text) throws Exception {
        Path file = dir.resolve(name);
        Files.createDirectories(file.getParent());
        Files.writeString(file, text);
    }

    @Test
    void aVendorsBuildIsRefused() {
        assertEquals(
                "Storm 2.8.3-acme is a vendor's build, and no release of Apache",
                StormCheck.wrong(Set.of("2.8.3-acme")));
    }

    @Test
    void aJarWithoutAVersionIsRefused() {
        String sentence = "its Storm has no version: storm-client-version-info.properties names none";
        assertEquals(sentence, StormCheck.wrong(Set.of()));
        assertEquals(sentence, StormCheck.wrong(Set.of("")));
    }

    @Test
    void aRelocatedStormIsRefused() throws Exception {
        try (URLClassLoader empty = new URLClassLoader(new URL[0], null)) {
            assertEquals(
                    "runs stock Storm: the class path has no org.apache.storm; a relocated Storm has no hooks",
                    StormCheck.of(Role.WORKER, empty).toString());
        }
    }
}

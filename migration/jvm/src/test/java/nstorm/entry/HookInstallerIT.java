package nstorm.entry;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.File;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import nstorm.hook.HookStatus;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** The packaged jar in JVMs of its own. */
class HookInstallerIT {

    @TempDir
    Path dir;

    @BeforeEach
    void mainClass() throws Exception {
        Files.writeString(dir.resolve("Main.java"), """
            public class Main {
                public static void main(String[] args) {
                    System.out.println("refused=" + System.getProperty("nstorm.refused"));
                }
            }
            """);
    }

    private List<String> lines(String role, String classPath) throws Exception {
        Process java = new ProcessBuilder(
                        System.getProperty("java.home") + "/bin/java",
                        "-javaagent:" + System.getProperty("hooks.jar") + "=role=" + role,
                        "-cp",
                        classPath,
                        dir.resolve("Main.java").toString())
                .redirectErrorStream(true)
                .start();
        String out = new String(java.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
        assertEquals(0, java.waitFor(), out);
        return out.lines().toList();
    }

    private static String classPath(String without) {
        return Stream.of(System.getProperty("java.class.path").split(File.pathSeparator))
                .filter(jar -> without == null || !jar.contains(without))
                .collect(Collectors.joining(File.pathSeparator));
    }

    @Test
    void saysThatItIsActive() throws Exception {
        assertEquals(
                List.of(
                        "nstorm: hooks " + HookStatus.VERSION + " active in this supervisor, verified for Storm 2.8.3",
                        "refused=null"),
                lines("supervisor", classPath(null)));
    }

    @Test
    void withoutASymbolItRunsStockAndSaysWhichInOneLine() throws Exception {
        List<String> lines = lines("supervisor", classPath("storm-server"));
        assertEquals(2, lines.size(), lines.toString());
        assertTrue(
                lines.get(0)
                        .startsWith("nstorm: this JVM runs stock Storm: Storm 2.8.3 has no "
                                + "org.apache.storm.daemon.supervisor.Supervisor.launch ()V and "),
                lines.get(0));
        assertTrue(lines.get(1).startsWith("refused=Storm 2.8.3 has no org.apache.storm."), lines.get(1));
    }

    @Test
    void anyOtherJvmHearsNothing() throws Exception {
        assertEquals(List.of("refused=null"), lines("other", classPath(null)));
    }
}

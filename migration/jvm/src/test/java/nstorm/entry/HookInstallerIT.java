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
import org.objectweb.asm.ClassReader;
import org.objectweb.asm.ClassWriter;
import org.objectweb.asm.Opcodes;
import org.objectweb.asm.tree.ClassNode;
import org.objectweb.asm.tree.InsnNode;

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
    void withOneInstructionMoreItMovesNothingAndNamesTheMethod() throws Exception {
        String slot = "org.apache.storm.daemon.supervisor.Slot";
        ClassNode type = new ClassNode();
        new ClassReader(slot).accept(type, 0);
        type.methods.stream()
                .filter(method -> method.name.equals("handleRunning"))
                .forEach(method -> method.instructions.insert(new InsnNode(Opcodes.NOP)));
        ClassWriter changed = new ClassWriter(0);
        type.accept(changed);
        Path file = dir.resolve("changed").resolve(slot.replace('.', '/') + ".class");
        Files.createDirectories(file.getParent());
        Files.write(file, changed.toByteArray());
        assertEquals(
                List.of(
                        "nstorm: hooks " + HookStatus.VERSION + " active in this supervisor, moves nothing: "
                                + "Storm 2.8.3 has code that these hooks do not know: Slot.handleRunning",
                        "refused=null"),
                lines("supervisor", dir.resolve("changed") + File.pathSeparator + classPath(null)));
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

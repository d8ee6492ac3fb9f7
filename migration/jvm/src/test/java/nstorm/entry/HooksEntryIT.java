package nstorm.entry;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import java.io.InputStream;
import java.io.OutputStream;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.jar.JarEntry;
import java.util.jar.JarFile;
import java.util.jar.JarOutputStream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** The packaged jar's entry, in JVMs that the hooks are not made for. */
class HooksEntryIT {
    private static final Path JAR = Path.of(System.getProperty("hooks.jar"));
    private static final String ENTRY = "nstorm/entry/HooksEntry.class";
    private static final int JAVA_8 = 52;

    private static List<String> version(Path java, Path jar, String... options) throws Exception {
        List<String> command = new ArrayList<>(List.of(java.toString(), "-javaagent:" + jar + "=role=worker"));
        command.addAll(List.of(options));
        command.add("-version");
        Process process = new ProcessBuilder(command).redirectErrorStream(true).start();
        String out = new String(process.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
        assertEquals(0, process.waitFor(), out);
        return out.lines().toList();
    }

    private static Path java11() {
        Path java = Path.of(System.getProperty("java11"));
        assumeTrue(Files.isExecutable(java), "no Java 11 at " + java + " (make test fetches it where there is one)");
        return java;
    }

    @Test
    void theEntryIsOfJava8() throws Exception {
        try (JarFile jar = new JarFile(JAR.toFile());
                InputStream entry = jar.getInputStream(jar.getEntry(ENTRY))) {
            assertEquals(
                    "nstorm.entry.HooksEntry",
                    jar.getManifest().getMainAttributes().getValue("Premain-Class"));
            assertEquals(JAVA_8, ByteBuffer.wrap(entry.readNBytes(8)).getShort(6));
        }
    }

    @Test
    void java11RunsStockStormAndSaysSo() throws Exception {
        List<String> lines = version(java11(), JAR);
        assertEquals(
                "nstorm: Java 11 is too old for the hooks (17 or later is needed): this JVM runs stock Storm",
                lines.get(0));
        assertTrue(lines.get(1).startsWith("openjdk version \"11."), lines.toString());
    }

    @Test
    void java11LoadsNoOtherClassOfOurs() throws Exception {
        List<String> loaded = version(java11(), JAR, "-Xlog:class+load").stream()
                .filter(line -> line.contains(" nstorm."))
                .toList();
        assertEquals(1, loaded.size(), loaded.toString());
        assertTrue(loaded.get(0).contains(" nstorm.entry.HooksEntry "), loaded.get(0));
    }

    @Test
    void aJarWithoutItsHooksStopsNoJvm(@TempDir Path dir) throws Exception {
        Path bare = dir.resolve("bare.jar");
        try (JarFile jar = new JarFile(JAR.toFile());
                OutputStream file = Files.newOutputStream(bare);
                JarOutputStream out = new JarOutputStream(file, jar.getManifest())) {
            out.putNextEntry(new JarEntry(ENTRY));
            out.write(jar.getInputStream(jar.getEntry(ENTRY)).readAllBytes());
        }
        List<String> lines = version(Path.of(System.getProperty("java.home"), "bin", "java"), bare);
        assertEquals(
                "nstorm: this JVM runs stock Storm: the hooks could not be started: "
                        + "java.lang.ClassNotFoundException: nstorm.entry.HookInstaller",
                lines.get(0));
    }
}

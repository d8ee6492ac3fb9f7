package nstorm.entry;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.function.Consumer;
import net.bytebuddy.dynamic.ClassFileLocator;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import org.objectweb.asm.ClassReader;
import org.objectweb.asm.ClassWriter;
import org.objectweb.asm.Opcodes;
import org.objectweb.asm.tree.ClassNode;
import org.objectweb.asm.tree.InsnNode;
import org.objectweb.asm.tree.MethodNode;

/** The fingerprints in the jar against the registry's jars; {@code -Dfingerprints=write} makes them. */
class FingerprintsTest {
    private static final Path FILE = Path.of("src/main/resources/nstorm/entry/fingerprints.txt");
    private static final Set<Role> MOVING = Set.of(Role.WORKER, Role.SUPERVISOR, Role.NIMBUS);

    private static String made() throws IOException {
        Map<String, Map<String, StringBuilder>> codes = new TreeMap<>();
        for (String version : StormJars.versions().keySet()) {
            try (ClassFileLocator jars = StormJars.of(version)) {
                Map<String, String> hashes = new TreeMap<>();
                for (Role role : MOVING) {
                    hashes.putAll(Fingerprints.hashes(role.hooks(), jars));
                }
                hashes.forEach((method, hash) -> codes.computeIfAbsent(method, each -> new LinkedHashMap<>())
                        .computeIfAbsent(hash, each -> new StringBuilder(hash))
                        .append(' ')
                        .append(version));
            }
        }
        StringBuilder text = new StringBuilder();
        text.append(
                "# The code of Storm's methods that the hooks are woven into or rely on: hash, and versions with it or"
                        + " all.\n");
        text.append("# Made from the registry's jars by FingerprintsTest with -Dfingerprints=write.\n");
        String all = " " + String.join(" ", StormJars.versions().keySet());
        text.append("versions").append(all).append('\n');
        String[] last = {""};
        codes.forEach((method, byHash) -> {
            int dot = method.lastIndexOf('.', method.indexOf('('));
            String owner = method.substring(0, dot);
            if (!owner.equals(last[0])) {
                text.append(owner).append('\n');
                last[0] = owner;
            }
            byHash.values()
                    .forEach(each -> text.append(' ')
                            .append(method.substring(dot + 1))
                            .append(' ')
                            .append(each.toString().replace(all, ""))
                            .append('\n'));
        });
        return text.toString();
    }

    @Test
    void theyAreThoseOfTheRegistrysJars() throws Exception {
        if ("write".equals(System.getProperty("fingerprints"))) {
            Files.createDirectories(FILE.getParent());
            Files.writeString(FILE, made());
        }
        assertEquals(made(), Files.readString(FILE));
    }

    private static ClassFileLocator jars() throws IOException {
        return StormJars.of("2.8.3");
    }

    @ParameterizedTest
    @EnumSource(names = {"WORKER", "SUPERVISOR", "NIMBUS"})
    void eachVersionIsKnownByItsCode(Role role) throws Exception {
        for (String version : StormJars.versions().keySet()) {
            try (ClassFileLocator jars = StormJars.of(version)) {
                Fingerprints.Verdict verdict = Fingerprints.shipped().of(role.hooks(), jars);
                assertEquals(List.of(), verdict.unknown());
                assertTrue(verdict.versions().contains(version), version + ": " + verdict);
            }
        }
    }

    private static Fingerprints.Verdict changed(Role role, String type, Consumer<ClassNode> change) throws IOException {
        try (ClassFileLocator jars = jars()) {
            ClassNode node = new ClassNode();
            new ClassReader(jars.locate(type).resolve()).accept(node, 0);
            change.accept(node);
            ClassWriter writer = new ClassWriter(0);
            node.accept(writer);
            ClassFileLocator other =
                    new ClassFileLocator.Compound(ClassFileLocator.Simple.of(type, writer.toByteArray()), jars);
            return Fingerprints.shipped().of(role.hooks(), other);
        }
    }

    private static MethodNode method(ClassNode type, String name) {
        return type.methods.stream()
                .filter(one -> one.name.equals(name))
                .findFirst()
                .orElseThrow();
    }

    @Test
    void oneInstructionMoreIsNamed() throws Exception {
        Fingerprints.Verdict verdict = changed(
                Role.SUPERVISOR,
                "org.apache.storm.daemon.supervisor.Slot",
                type -> method(type, "handleRunning").instructions.insert(new InsnNode(Opcodes.NOP)));
        assertEquals(List.of("Slot.handleRunning"), verdict.unknown());
    }

    /** The body of a lambda is a method of its own, whose name has a number. */
    @Test
    void oneInstructionMoreInALambdaNamesItsMethod() throws Exception {
        Fingerprints.Verdict verdict = changed(
                Role.NIMBUS,
                "org.apache.storm.daemon.nimbus.HeartbeatCache",
                type -> type.methods.stream()
                        .filter(one -> one.name.startsWith("lambda$"))
                        .findFirst()
                        .orElseThrow()
                        .instructions
                        .insert(new InsnNode(Opcodes.NOP)));
        assertEquals(1, verdict.unknown().size(), verdict.toString());
        assertTrue(verdict.unknown().get(0).startsWith("HeartbeatCache."), verdict.toString());
    }

    @Test
    void debugDataDoesNotCount() throws Exception {
        Fingerprints.Verdict verdict = changed(Role.SUPERVISOR, "org.apache.storm.daemon.supervisor.Slot", type -> {
            type.sourceFile = "Other.java";
            type.methods.forEach(one -> one.localVariables = null);
        });
        assertEquals(List.of(), verdict.unknown());
        assertTrue(verdict.versions().contains("2.8.3"), verdict.toString());
    }

    @Test
    void aMethodThatIsNoMoreIsNamed() throws Exception {
        Fingerprints.Verdict verdict = changed(
                Role.WORKER,
                "org.apache.storm.utils.RotatingMap",
                type -> type.methods.removeIf(one -> one.name.equals("rotate")));
        assertEquals(List.of("RotatingMap.rotate"), verdict.unknown());
    }

    @Test
    void classesOfTwoVersionsFitNone() throws Exception {
        try (ClassFileLocator old = StormJars.of("2.6.0");
                ClassFileLocator jars = jars()) {
            String type = "org.apache.storm.daemon.worker.WorkerState";
            ClassFileLocator mixed = new ClassFileLocator.Compound(
                    ClassFileLocator.Simple.of(type, old.locate(type).resolve()), jars);
            assertEquals(
                    Set.of(),
                    Fingerprints.shipped().of(Role.WORKER.hooks(), mixed).versions());
        }
    }
}

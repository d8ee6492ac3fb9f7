package nstorm.entry;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import net.bytebuddy.jar.asm.ClassReader;
import net.bytebuddy.jar.asm.ClassWriter;
import net.bytebuddy.jar.asm.Opcodes;
import net.bytebuddy.jar.asm.commons.ClassRemapper;
import net.bytebuddy.jar.asm.commons.Remapper;
import org.junit.jupiter.api.Test;

/** The packages of the jar need each other in one direction only, as their class files show. */
class PackageCirclesTest {

    private static String packageOf(String type) {
        return type.substring(0, type.lastIndexOf('/'));
    }

    private static Map<String, Set<String>> needs(List<byte[]> classFiles) {
        Map<String, Set<String>> needs = new TreeMap<>();
        for (byte[] classFile : classFiles) {
            ClassReader reader = new ClassReader(classFile);
            Set<String> needed = needs.computeIfAbsent(packageOf(reader.getClassName()), key -> new TreeSet<>());
            reader.accept(
                    new ClassRemapper(new ClassWriter(0), new Remapper(Opcodes.ASM9) {
                        @Override
                        public String map(String type) {
                            if (type.startsWith("nstorm/")) {
                                needed.add(packageOf(type));
                            }
                            return type;
                        }
                    }),
                    0);
        }
        return needs;
    }

    @Test
    void noPackageNeedsOneThatNeedsIt() throws Exception {
        Map<String, Set<String>> needs = needs(OwnClasses.of("nstorm/"));
        assertTrue(needs.get("nstorm/worker").contains("nstorm/wire"), "the class files are read: " + needs);
        needs.forEach((from, needed) -> needed.remove(from));
        // Packages that need no other are taken away until none is left, or only those in and above circles.
        while (needs.values().removeIf(Set::isEmpty)) {
            needs.values().forEach(needed -> needed.retainAll(needs.keySet()));
        }
        assertEquals(Map.of(), needs, "circles, and the packages above them");
    }
}

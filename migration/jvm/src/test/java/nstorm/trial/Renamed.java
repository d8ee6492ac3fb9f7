package nstorm.trial;

import java.util.Map;
import java.util.TreeMap;
import net.bytebuddy.jar.asm.ClassReader;
import net.bytebuddy.jar.asm.ClassWriter;
import net.bytebuddy.jar.asm.Opcodes;
import net.bytebuddy.jar.asm.commons.ClassRemapper;
import net.bytebuddy.jar.asm.commons.Remapper;

/** The code of one class under the name of another, as of another version of it. */
final class Renamed {
    private Renamed() {}

    /** Those classes of one name and nested in it, with all that they name. */
    static Map<String, byte[]> of(Map<String, byte[]> code, String from, String to) {
        Map<String, byte[]> renamed = new TreeMap<>();
        code.forEach((name, bytes) -> {
            if (name.equals(from) || name.startsWith(from + "$")) {
                renamed.put(
                        to + name.substring(from.length()), of(bytes, from.replace('.', '/'), to.replace('.', '/')));
            }
        });
        return renamed;
    }

    private static byte[] of(byte[] code, String from, String to) {
        ClassWriter writer = new ClassWriter(0);
        new ClassReader(code)
                .accept(
                        new ClassRemapper(writer, new Remapper(Opcodes.ASM9) {
                            @Override
                            public String map(String type) {
                                return type.equals(from) || type.startsWith(from + "$")
                                        ? to + type.substring(from.length())
                                        : type;
                            }
                        }),
                        0);
        return writer.toByteArray();
    }
}

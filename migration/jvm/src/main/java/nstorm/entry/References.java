package nstorm.entry;

import java.util.Collection;
import java.util.LinkedHashSet;
import java.util.Set;
import net.bytebuddy.jar.asm.ClassReader;
import net.bytebuddy.jar.asm.ClassWriter;
import net.bytebuddy.jar.asm.Opcodes;
import net.bytebuddy.jar.asm.commons.ClassRemapper;
import net.bytebuddy.jar.asm.commons.Remapper;
import nstorm.hook.Symbol;

/**
 * What our bytecode links to in Storm, found by reading it.
 *
 * <p>The idea is that of muzzle in the OpenTelemetry Java agent: a symbol that code uses cannot be forgotten
 * in a list. A remapper is asked about every name in a class file, so one that maps nothing sees them all.
 */
final class References extends Remapper {

    private final Set<Symbol> found = new LinkedHashSet<>();

    private References() {
        super(Opcodes.ASM9);
    }

    /** The symbols of Storm, and of the metrics library it brings, that some class files refer to. */
    static Set<Symbol> of(Collection<byte[]> classFiles) {
        References references = new References();
        for (byte[] classFile : classFiles) {
            new ClassReader(classFile).accept(new ClassRemapper(new ClassWriter(0), references), 0);
        }
        return references.found;
    }

    @Override
    public String map(String type) {
        add(type, null, null);
        return type;
    }

    @Override
    public String mapFieldName(String owner, String name, String descriptor) {
        add(owner, name, descriptor);
        return name;
    }

    @Override
    public String mapMethodName(String owner, String name, String descriptor) {
        add(owner, name, descriptor);
        return name;
    }

    private void add(String owner, String member, String descriptor) {
        if (owner.startsWith("org/apache/storm/") || owner.startsWith("com/codahale/metrics/")) {
            found.add(new Symbol(owner.replace('/', '.'), member, descriptor));
        }
    }
}

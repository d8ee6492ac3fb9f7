package nstorm.entry;

import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.util.ArrayList;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.function.Predicate;
import org.objectweb.asm.ClassReader;
import org.objectweb.asm.ClassWriter;
import org.objectweb.asm.Handle;
import org.objectweb.asm.Opcodes;
import org.objectweb.asm.tree.AbstractInsnNode;
import org.objectweb.asm.tree.ClassNode;
import org.objectweb.asm.tree.InvokeDynamicInsnNode;
import org.objectweb.asm.tree.MethodNode;

/**
 * Hashes of methods' code. Each method is written alone into a new class, without debug data. Otherwise the other
 * methods would number its constants. The bodies of its lambdas belong to it.
 */
final class CodeHash {
    private static final int BYTES = 8;
    private static final int NO_CODE = Opcodes.ACC_ABSTRACT | Opcodes.ACC_NATIVE | Opcodes.ACC_SYNTHETIC;

    private final ClassNode type = new ClassNode();

    private CodeHash(byte[] classFile) {
        new ClassReader(classFile).accept(type, ClassReader.SKIP_DEBUG | ClassReader.SKIP_FRAMES);
    }

    /** The hashes of the methods that are wanted, by name and descriptor. */
    static Map<String, String> of(byte[] classFile, Predicate<MethodNode> wanted) {
        CodeHash hashing = new CodeHash(classFile);
        Map<String, String> hashes = new TreeMap<>();
        for (MethodNode method : hashing.type.methods) {
            if ((method.access & NO_CODE) == 0 && wanted.test(method)) {
                hashes.put(method.name + method.desc, hashing.hash(method));
            }
        }
        return hashes;
    }

    private String hash(MethodNode method) {
        ClassWriter alone = new ClassWriter(0);
        alone.visit(Opcodes.V17, Opcodes.ACC_PUBLIC, type.name, null, "java/lang/Object", null);
        List<MethodNode> parts = new ArrayList<>(List.of(method));
        for (int i = 0; i < parts.size(); i++) {
            MethodNode part = parts.get(i);
            addLambdas(part, parts);
            part.visibleAnnotations = null;
            part.invisibleAnnotations = null;
            part.visibleParameterAnnotations = null;
            part.invisibleParameterAnnotations = null;
            part.accept(alone.visitMethod(part.access, "part" + i, part.desc, null, null));
        }
        try {
            byte[] digest = MessageDigest.getInstance("SHA-256").digest(alone.toByteArray());
            return HexFormat.of().formatHex(digest, 0, BYTES);
        } catch (NoSuchAlgorithmException e) {
            throw new IllegalStateException("this Java has no SHA-256", e);
        }
    }

    /** The compiler numbers lambdas through the class: here they have the number of their place in the method. */
    private void addLambdas(MethodNode method, List<MethodNode> parts) {
        for (AbstractInsnNode instruction : method.instructions) {
            if (!(instruction instanceof InvokeDynamicInsnNode call)) {
                continue;
            }
            for (int i = 0; i < call.bsmArgs.length; i++) {
                if (call.bsmArgs[i] instanceof Handle handle && isLambda(handle)) {
                    call.bsmArgs[i] = new Handle(
                            handle.getTag(),
                            handle.getOwner(),
                            "part" + parts.size(),
                            handle.getDesc(),
                            handle.isInterface());
                    type.methods.stream()
                            .filter(body -> body.name.equals(handle.getName()) && body.desc.equals(handle.getDesc()))
                            .forEach(parts::add);
                }
            }
        }
    }

    private boolean isLambda(Handle handle) {
        return handle.getOwner().equals(type.name) && handle.getName().startsWith("lambda$");
    }
}

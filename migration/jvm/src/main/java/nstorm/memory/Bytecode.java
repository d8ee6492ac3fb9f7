package nstorm.memory;

import java.io.IOException;
import java.io.InputStream;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.regex.Pattern;
import net.bytebuddy.jar.asm.ClassReader;
import net.bytebuddy.jar.asm.ClassVisitor;
import net.bytebuddy.jar.asm.FieldVisitor;
import net.bytebuddy.jar.asm.Handle;
import net.bytebuddy.jar.asm.Label;
import net.bytebuddy.jar.asm.MethodVisitor;
import net.bytebuddy.jar.asm.Opcodes;

/** The code of classes as their loader would load them, read once each; never the JDK's. */
final class Bytecode {
    /** A position in the code, not an instruction. */
    static final int LABEL = -1;
    private static final int API = Opcodes.ASM9;

    /** One instruction: what is not its own is null or 0. */
    record Instruction(int opcode, int number, String owner, String name, String type, List<Label> targets, Handle lambda) {
    }

    record Method(String owner, String name, String type, int access, List<Instruction> code, List<Label> handlers) {
        boolean isStatic() {
            return (access & Opcodes.ACC_STATIC) != 0;
        }

        boolean hasCode() {
            return (access & (Opcodes.ACC_ABSTRACT | Opcodes.ACC_NATIVE)) == 0;
        }

        boolean isNative() {
            return (access & Opcodes.ACC_NATIVE) != 0;
        }
    }

    /**
     * @param constants the fields that are static and final
     * @param immutable those of them that are set to what nobody can change
     * @param keeps whether an object has a field of its own that may become another, or lead to something
     */
    record Type(String name, String superName, List<String> interfaces, int access, Map<String, Method> methods, Set<String> constants,
            Set<String> immutable, boolean keeps) {
    }

    private static final String STORM = "org/apache/storm/";
    private static final Pattern IMMUTABLE = Pattern.compile(
            "java/util/(List|Set|Map)\\.(of|copyOf|ofEntries)|java/util/Collections\\.(unmodifiable|empty|singleton).*"
            + "|com/google/common/collect/Immutable.*\\.(of|copyOf|build)");

    private final ClassLoader loader;
    private final CodeBase codeBase;
    private final Map<String, Type> types = new HashMap<>();

    /** @param codeBase what is read besides Storm's own classes: a library would take seconds, and then say nothing */
    Bytecode(ClassLoader loader, CodeBase codeBase) {
        this.loader = loader;
        this.codeBase = codeBase;
    }

    static boolean isOfTheJdk(String name) {
        return name.startsWith("java/") || name.startsWith("javax/") || name.startsWith("jdk/") || name.startsWith("sun/")
                || name.startsWith("com/sun/") || name.startsWith("[");
    }

    /** The class, or null: one of the JDK, of a library, or one whose code cannot be found. */
    Type type(String nameOrNull) {
        if (nameOrNull == null || isOfTheJdk(nameOrNull) || !codeBase.has(nameOrNull) && !nameOrNull.startsWith(STORM)) {
            return null;
        }
        if (!types.containsKey(nameOrNull)) {
            types.put(nameOrNull, read(nameOrNull));
        }
        return types.get(nameOrNull);
    }

    /** The method that a call on this very class runs, or null if none is found outside the JDK. */
    Method method(String className, String name, String type) {
        for (Type at = type(className); at != null; at = type(at.superName)) {
            Method found = at.methods.get(name + type);
            if (found != null && (found.hasCode() || found.isNative())) {
                return found;
            }
        }
        return defaultMethod(className, name + type);
    }

    private Method defaultMethod(String className, String key) {
        for (Type at = type(className); at != null; at = type(at.superName)) {
            for (String one : at.interfaces) {
                Type face = type(one);
                Method found = face == null ? null : face.methods.get(key);
                found = found == null || !found.hasCode() ? defaultMethod(one, key) : found;
                if (found != null) {
                    return found;
                }
            }
        }
        return null;
    }

    /** Whether each object of the class is one of {@code other}, too. */
    boolean isA(String className, String other) {
        if (className.equals(other) || other.equals("java/lang/Object")) {
            return true;
        } else if (className.startsWith("[") || other.startsWith("[")) {
            return false;
        }
        Type type = type(className);
        if (type == null) {
            return Bytecode.isOfTheJdk(className) && Bytecode.isOfTheJdk(other) && jdk(other).isAssignableFrom(jdk(className));
        }
        return type.superName != null && isA(type.superName, other)
                || type.interfaces.stream().anyMatch(one -> isA(one, other));
    }

    /** The types of the JDK and of what cannot be read that a class extends or implements. */
    List<String> foreignParents(String className) {
        List<String> found = new ArrayList<>();
        Type type = type(className);
        if (type == null) {
            found.add(className);
            return found;
        }
        if (type.superName != null) {
            found.addAll(foreignParents(type.superName));
        }
        type.interfaces.forEach(one -> found.addAll(foreignParents(one)));
        return found;
    }

    static Class<?> jdk(String name) {
        try {
            return Class.forName(name.replace('/', '.'), false, ClassLoader.getPlatformClassLoader());
        } catch (ClassNotFoundException e) {
            throw new Undecided("cannot find " + name.replace('/', '.'));
        }
    }

    private Type read(String name) {
        try (InputStream file = loader.getResourceAsStream(name + ".class")) {
            return file == null ? null : read(new ClassReader(file));
        } catch (IOException e) {
            return null;
        }
    }

    private static Type read(ClassReader reader) {
        Map<String, Method> methods = new HashMap<>();
        Set<String> constants = new HashSet<>();
        boolean[] keeps = new boolean[1];
        reader.accept(new ClassVisitor(API) {
            @Override
            public FieldVisitor visitField(int access, String name, String type, String signature, Object value) {
                if ((access & Opcodes.ACC_STATIC) != 0 && (access & Opcodes.ACC_FINAL) != 0) {
                    constants.add(name);
                } else if ((access & Opcodes.ACC_STATIC) == 0) {
                    boolean plain = type.length() == 1 || Known.isConstant(type.substring(1, type.length() - 1));
                    keeps[0] |= (access & Opcodes.ACC_FINAL) == 0 || !plain;
                }
                return null;
            }

            @Override
            public MethodVisitor visitMethod(int access, String name, String type, String signature, String[] exceptions) {
                Method method = new Method(reader.getClassName(), name, type, access, new ArrayList<>(), new ArrayList<>());
                methods.put(name + type, method);
                return new Recorder(method);
            }
        }, ClassReader.SKIP_DEBUG | ClassReader.SKIP_FRAMES);
        return new Type(reader.getClassName(), reader.getSuperName(), List.of(reader.getInterfaces()), reader.getAccess(), methods, constants, immutable(methods.get("<clinit>()V")),
                keeps[0]);
    }

    static boolean comparesTextsByIdentity(Method method) {
        Instruction before = null;
        for (Instruction now : method.code()) {
            boolean compares = now.opcode() == Opcodes.IF_ACMPEQ || now.opcode() == Opcodes.IF_ACMPNE;
            if (compares && before != null && (before.opcode() == Opcodes.LDC && before.name() != null
                    || before.opcode() == Opcodes.GETSTATIC && before.type().equals("Ljava/lang/String;"))) {
                return true;
            }
            before = now.opcode() == LABEL ? before : now;
        }
        return false;
    }

    private static Set<String> immutable(Method initialiserOrNull) {
        Set<String> found = new HashSet<>();
        Instruction before = null;
        for (Instruction now : initialiserOrNull == null ? List.<Instruction>of() : initialiserOrNull.code()) {
            if (now.opcode() == Opcodes.PUTSTATIC && before != null && (before.opcode() == Opcodes.INVOKESTATIC || before.opcode() == Opcodes.INVOKEVIRTUAL)
                    && IMMUTABLE.matcher(before.owner() + "." + before.name()).matches()) {
                found.add(now.name());
            }
            before = now.opcode() == LABEL ? before : now;
        }
        return found;
    }

    /** Writes the instructions of one method down. */
    private static final class Recorder extends MethodVisitor {
        private final Method method;

        Recorder(Method method) {
            super(API);
            this.method = method;
        }

        private void add(int opcode, int number, String owner, String name, String type, List<Label> targets, Handle lambda) {
            method.code.add(new Instruction(opcode, number, owner, name, type, targets, lambda));
        }

        @Override
        public void visitInsn(int opcode) {
            add(opcode, 0, null, null, null, List.of(), null);
        }

        @Override
        public void visitIntInsn(int opcode, int operand) {
            add(opcode, operand, null, null, null, List.of(), null);
        }

        @Override
        public void visitVarInsn(int opcode, int variable) {
            add(opcode, variable, null, null, null, List.of(), null);
        }

        @Override
        public void visitTypeInsn(int opcode, String type) {
            add(opcode, 0, type, null, null, List.of(), null);
        }

        @Override
        public void visitFieldInsn(int opcode, String owner, String name, String type) {
            add(opcode, 0, owner, name, type, List.of(), null);
        }

        @Override
        public void visitMethodInsn(int opcode, String owner, String name, String type, boolean isInterface) {
            add(opcode, 0, owner, name, type, List.of(), null);
        }

        @Override
        public void visitInvokeDynamicInsn(String name, String type, Handle bootstrap, Object... arguments) {
            boolean lambda = bootstrap.getOwner().equals("java/lang/invoke/LambdaMetafactory");
            add(Opcodes.INVOKEDYNAMIC, 0, bootstrap.getOwner(), name, type, List.of(), lambda ? (Handle) arguments[1] : null);
        }

        @Override
        public void visitJumpInsn(int opcode, Label label) {
            add(opcode, 0, null, null, null, List.of(label), null);
        }

        @Override
        public void visitLabel(Label label) {
            add(LABEL, 0, null, null, null, List.of(label), null);
        }

        @Override
        public void visitLdcInsn(Object value) {
            add(Opcodes.LDC, value instanceof Long || value instanceof Double ? 2 : 1, null, value instanceof String text ? text : null, null,
                    List.of(), null);
        }

        @Override
        public void visitIincInsn(int variable, int increment) {
            add(Opcodes.NOP, 0, null, null, null, List.of(), null);
        }

        @Override
        public void visitTableSwitchInsn(int min, int max, Label otherwise, Label... labels) {
            visitLookupSwitchInsn(otherwise, new int[0], labels);
        }

        @Override
        public void visitLookupSwitchInsn(Label otherwise, int[] keys, Label[] labels) {
            List<Label> targets = new ArrayList<>(List.of(labels));
            targets.add(otherwise);
            add(Opcodes.LOOKUPSWITCH, 0, null, null, null, targets, null);
        }

        @Override
        public void visitMultiANewArrayInsn(String type, int dimensions) {
            add(Opcodes.MULTIANEWARRAY, dimensions, type, null, null, List.of(), null);
        }

        @Override
        public void visitTryCatchBlock(Label start, Label end, Label handler, String type) {
            method.handlers.add(handler);
        }
    }
}

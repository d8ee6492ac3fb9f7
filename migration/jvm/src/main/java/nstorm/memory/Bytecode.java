package nstorm.memory;

import java.io.IOException;
import java.io.InputStream;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.function.Predicate;
import java.util.regex.Pattern;
import java.util.stream.Stream;
import java.util.stream.StreamSupport;
import org.objectweb.asm.ClassReader;
import org.objectweb.asm.Handle;
import org.objectweb.asm.Opcodes;
import org.objectweb.asm.tree.AbstractInsnNode;
import org.objectweb.asm.tree.ClassNode;
import org.objectweb.asm.tree.FieldInsnNode;
import org.objectweb.asm.tree.FieldNode;
import org.objectweb.asm.tree.InsnList;
import org.objectweb.asm.tree.InvokeDynamicInsnNode;
import org.objectweb.asm.tree.LdcInsnNode;
import org.objectweb.asm.tree.MethodInsnNode;
import org.objectweb.asm.tree.MethodNode;
import org.objectweb.asm.tree.TypeInsnNode;
import org.objectweb.asm.tree.VarInsnNode;

/** The code of classes as their loader would load them, read once each; never the JDK's. */
final class Bytecode {
    /** A field that is read or set, or a method that is called; the lambda that a call makes, or null. */
    record Instruction(int opcode, String owner, String name, String type, Handle lambda) {
        static Instruction of(AbstractInsnNode node) {
            if (node instanceof FieldInsnNode field) {
                return new Instruction(field.getOpcode(), field.owner, field.name, field.desc, null);
            } else if (node instanceof MethodInsnNode call) {
                return new Instruction(call.getOpcode(), call.owner, call.name, call.desc, null);
            }
            InvokeDynamicInsnNode made = (InvokeDynamicInsnNode) node;
            boolean lambda = made.bsm.getOwner().equals("java/lang/invoke/LambdaMetafactory");
            return new Instruction(
                    made.getOpcode(),
                    made.bsm.getOwner(),
                    made.name,
                    made.desc,
                    lambda ? (Handle) made.bsmArgs[1] : null);
        }
    }

    record Method(String owner, MethodNode node) {
        String name() {
            return node.name;
        }

        String type() {
            return node.desc;
        }

        int access() {
            return node.access;
        }

        boolean isStatic() {
            return (node.access & Opcodes.ACC_STATIC) != 0;
        }

        boolean hasCode() {
            return (node.access & (Opcodes.ACC_ABSTRACT | Opcodes.ACC_NATIVE)) == 0;
        }

        boolean isNative() {
            return (node.access & Opcodes.ACC_NATIVE) != 0;
        }

        boolean names(Predicate<String> text) {
            return instructions(this)
                    .anyMatch(one -> one instanceof LdcInsnNode constant
                            && constant.cst instanceof String named
                            && text.test(named));
        }
    }

    /**
     * @param constants the fields that are static and final, of an enum all that are final
     * @param immutable those of them that are set to what nobody can change
     * @param made the classes of those of them that are set to a new object
     * @param keeps whether an object has a field of its own that may become another, or lead to something
     */
    record Type(
            String name,
            String superName,
            List<String> interfaces,
            int access,
            Map<String, Method> methods,
            Set<String> constants,
            Set<String> immutable,
            Map<String, String> made,
            boolean keeps) {}

    private static final String STORM = "org/apache/storm/";
    private static final Pattern IMMUTABLE = Pattern.compile(
            "java/util/(List|Set|Map)\\.(of|copyOf|ofEntries)|java/util/Collections\\.(unmodifiable|empty|singleton).*"
                    + "|com/google/common/collect/Immutable.*\\.(of|copyOf|build)");

    private final ClassLoader loader;
    private final CodeBase codeBase;
    private final Map<String, Type> types = new HashMap<>();

    /** @param codeBase the classes that are read in addition to Storm's own: a library would take seconds, and then decide nothing */
    Bytecode(ClassLoader loader, CodeBase codeBase) {
        this.loader = loader;
        this.codeBase = codeBase;
    }

    static boolean isOfTheJdk(String name) {
        return name.startsWith("java/")
                || name.startsWith("javax/")
                || name.startsWith("jdk/")
                || name.startsWith("sun/")
                || name.startsWith("com/sun/")
                || name.startsWith("[");
    }

    /** The class, or null: one of the JDK, of a library, or one whose code cannot be found. */
    Type type(String nameOrNull) {
        if (nameOrNull == null
                || isOfTheJdk(nameOrNull)
                || !codeBase.has(nameOrNull) && !nameOrNull.startsWith(STORM)) {
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

    /** Whether each object of the class is also one of {@code other}. */
    boolean isA(String className, String other) {
        if (className.equals(other) || other.equals("java/lang/Object")) {
            return true;
        } else if (className.startsWith("[") || other.startsWith("[")) {
            return false;
        }
        Type type = type(className);
        if (type == null) {
            return Bytecode.isOfTheJdk(className)
                    && Bytecode.isOfTheJdk(other)
                    && jdk(other).isAssignableFrom(jdk(className));
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

    /** The names of the classes within a class, with slashes. */
    static List<String> within(Class<?> type) {
        String name = LiveTypes.nameOf(type);
        ClassNode node = new ClassNode();
        try (InputStream file = type.getClassLoader().getResourceAsStream(name + ".class")) {
            new ClassReader(file).accept(node, ClassReader.SKIP_CODE | ClassReader.SKIP_DEBUG);
        } catch (IOException e) { // also where there is no such file
            throw new Undecided("cannot read " + type.getName());
        }
        return node.innerClasses.stream()
                .filter(one -> name.equals(one.outerName))
                .map(one -> one.name)
                .toList();
    }

    private Type read(String name) {
        try (InputStream file = loader.getResourceAsStream(name + ".class")) {
            return file == null ? null : read(new ClassReader(file));
        } catch (IOException e) {
            return null;
        }
    }

    private static Type read(ClassReader reader) {
        ClassNode node = new ClassNode();
        reader.accept(node, ClassReader.SKIP_DEBUG | ClassReader.SKIP_FRAMES);
        Map<String, Method> methods = new HashMap<>();
        node.methods.forEach(method -> methods.put(method.name + method.desc, new Method(node.name, method)));
        Set<String> constants = new HashSet<>();
        Set<String> immutable = new HashSet<>();
        Map<String, String> made = new HashMap<>();
        constants(methods.get("<clinit>()V"), immutable, made);
        boolean keeps = false;
        for (FieldNode field : node.fields) {
            boolean isFinal = (field.access & Opcodes.ACC_FINAL) != 0;
            if ((field.access & Opcodes.ACC_STATIC) == 0) {
                boolean plain =
                        field.desc.length() == 1 || Known.isConstant(field.desc.substring(1, field.desc.length() - 1));
                keeps |= !isFinal || !plain;
            }
            if (isFinal && ((field.access & Opcodes.ACC_STATIC) != 0 || (node.access & Opcodes.ACC_ENUM) != 0)) {
                constants.add(field.name);
                int privateStatic = Opcodes.ACC_PRIVATE | Opcodes.ACC_STATIC;
                boolean tableOfEnum =
                        (node.access & Opcodes.ACC_ENUM) != 0 && (field.access & privateStatic) == privateStatic;
                // The compiler's are such as the table of a switch over an enum; an enum's own finds constants.
                if ((field.access & Opcodes.ACC_SYNTHETIC) != 0 || tableOfEnum) {
                    immutable.add(field.name);
                }
            }
        }
        made.keySet().retainAll(constants);
        return new Type(
                node.name, node.superName, node.interfaces, node.access, methods, constants, immutable, made, keeps);
    }

    private static Stream<AbstractInsnNode> instructions(Method method) {
        return StreamSupport.stream(method.node.instructions.spliterator(), false);
    }

    /** The instruction before, without marks of places in the code; null if there is none. */
    private static AbstractInsnNode before(AbstractInsnNode node) {
        AbstractInsnNode before = node.getPrevious();
        while (before != null && before.getOpcode() < 0) {
            before = before.getPrevious();
        }
        return before;
    }

    /** Whether references are compared of which one is a text, a number or the like, as far as that shows. What has travelled is another object. */
    static boolean comparesValuesByIdentity(Method method) {
        return instructions(method)
                .filter(one -> one.getOpcode() == Opcodes.IF_ACMPEQ || one.getOpcode() == Opcodes.IF_ACMPNE)
                .map(Bytecode::before)
                .anyMatch(second -> {
                    AbstractInsnNode first = takesNothing(second) ? before(second) : null;
                    // Of two variables it is most often a short cut of equals, and javac gives one slot to several.
                    return !(isLoad(first) && isLoad(second))
                            && (givesValue(second, method) || givesValue(first, method));
                });
    }

    private static boolean isLoad(AbstractInsnNode node) {
        return node != null && node.getOpcode() == Opcodes.ALOAD;
    }

    /** Whether what stands before it on the stack is what the instruction before it has made. */
    private static boolean takesNothing(AbstractInsnNode node) {
        return node != null
                && (node.getOpcode() == Opcodes.ALOAD
                        || node.getOpcode() == Opcodes.GETSTATIC
                        || node.getOpcode() == Opcodes.LDC);
    }

    private static boolean givesValue(AbstractInsnNode node, Method method) {
        return node instanceof VarInsnNode load && load.getOpcode() == Opcodes.ALOAD
                ? isParameterOfValue(load.var, method)
                        || instructions(method)
                                .anyMatch(one -> one instanceof VarInsnNode store
                                        && store.getOpcode() == Opcodes.ASTORE
                                        && store.var == load.var
                                        && givesValue(before(store)))
                : givesValue(node);
    }

    private static boolean isParameterOfValue(int variable, Method method) {
        int next = method.isStatic() ? 0 : 1;
        for (org.objectweb.asm.Type type : org.objectweb.asm.Type.getArgumentTypes(method.type())) {
            if (next == variable) {
                return isValue(type);
            }
            next += type.getSize();
        }
        return false;
    }

    private static boolean givesValue(AbstractInsnNode node) {
        if (node instanceof LdcInsnNode constant) {
            return constant.cst instanceof String;
        } else if (node instanceof FieldInsnNode field) {
            // What is declared as one of the JDK's interfaces, or as Object, may hold a value. An enum's constant is of
            // its owner's type.
            boolean any = field.getOpcode() == Opcodes.GETSTATIC
                    && field.desc.startsWith("Ljava/")
                    && !field.desc.equals("L" + field.owner + ";");
            return any || isValue(org.objectweb.asm.Type.getType(field.desc));
        } else if (node instanceof MethodInsnNode call) {
            return isValue(org.objectweb.asm.Type.getReturnType(call.desc));
        }
        return node instanceof TypeInsnNode cast && cast.getOpcode() == Opcodes.CHECKCAST && Known.isValue(cast.desc);
    }

    private static boolean isValue(org.objectweb.asm.Type type) {
        return Known.isValue(type.getInternalName());
    }

    /** What static fields are set to, where that is what the call just before has made: no jump leads between the two. */
    private static void constants(Method initialiserOrNull, Set<String> immutable, Map<String, String> made) {
        for (AbstractInsnNode now : initialiserOrNull == null ? new InsnList() : initialiserOrNull.node.instructions) {
            if (now.getOpcode() == Opcodes.PUTSTATIC && now.getPrevious() instanceof MethodInsnNode by) {
                String field = ((FieldInsnNode) now).name;
                if (IMMUTABLE.matcher(by.owner + "." + by.name).matches()) {
                    immutable.add(field);
                } else if (by.name.equals("<init>")) {
                    made.merge(field, by.owner, (one, other) -> one.equals(other) ? one : "");
                }
            }
        }
    }
}

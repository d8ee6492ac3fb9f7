package nstorm.memory;

import java.util.ArrayList;
import java.util.BitSet;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import nstorm.memory.Bytecode.Instruction;
import nstorm.memory.Bytecode.Method;
import org.objectweb.asm.Opcodes;
import org.objectweb.asm.Type;
import org.objectweb.asm.tree.AbstractInsnNode;
import org.objectweb.asm.tree.LdcInsnNode;
import org.objectweb.asm.tree.MethodNode;
import org.objectweb.asm.tree.TryCatchBlockNode;
import org.objectweb.asm.tree.TypeInsnNode;
import org.objectweb.asm.tree.analysis.Analyzer;
import org.objectweb.asm.tree.analysis.AnalyzerException;
import org.objectweb.asm.tree.analysis.BasicInterpreter;
import org.objectweb.asm.tree.analysis.BasicValue;
import org.objectweb.asm.tree.analysis.Frame;
import org.objectweb.asm.tree.analysis.Interpreter;

/** Runs one method over origins in place of values, each way through it at once: ASM's analysis finds where each value may come from. */
final class Machine extends Interpreter<Machine.Value> {
    /** What the method does that reaches beyond its own variables. */
    interface Effects {
        BitSet load(BitSet objectOrNull, Instruction field);

        void store(BitSet objectOrNull, Instruction field, BitSet value);

        BitSet loadElement(BitSet array);

        /** Of what numbers and texts are made that are made of this. */
        BitSet values(BitSet of);

        /** One decides by these what to do, or which element it takes. */
        void compare(BitSet one, BitSet other);

        void storeElement(BitSet array, BitSet value);

        BitSet make(String place, String type);

        /** A call; its object is the first of the arguments, if there is one. */
        BitSet call(String place, Instruction call, List<BitSet> arguments);

        BitSet dynamic(String place, Instruction call, List<BitSet> arguments);

        void raise(BitSet exception);

        BitSet raised();
    }

    /** Never changed once it is made: the analysis compares values to see whether anything is new. */
    record Value(int getSize, BitSet origins) implements org.objectweb.asm.tree.analysis.Value {}

    private static final BitSet NOTHING = new BitSet();
    private static final Value UNSET = new Value(1, NOTHING);
    private static final long VALUES_MAX = 2_000_000;

    /** Knows how large the result of each instruction is. */
    private final BasicInterpreter sizes = new BasicInterpreter();

    private final Origins origins;
    private final Effects effects;
    final Method method;
    final BitSet returned = new BitSet();
    /** Whether it answers by the names by which a tick is known. */
    final boolean asksForTicks;

    final Branches branches;
    /** By instruction that branches, what decides where to. */
    final Map<Integer, BitSet> deciding = new HashMap<>();
    /** What it is given, by variable. */
    private final List<BitSet> given = new ArrayList<>();

    Machine(Method method, Origins origins, Effects effects) {
        super(Opcodes.ASM9);
        this.method = method;
        this.origins = origins;
        this.effects = effects;
        asksForTicks = method.type().endsWith(")Z") && method.names(Known::isOfTicks);
        branches = new Branches(method.node().instructions.size());
    }

    /** Widens what the method may be given, the object first. */
    void given(List<BitSet> arguments) {
        int variable = 0;
        int next = 0;
        if (!method.isStatic()) {
            origins.grow(given(variable++), arguments.get(next++));
        }
        for (Type type : Type.getArgumentTypes(method.type())) {
            origins.grow(given(variable), next < arguments.size() ? arguments.get(next) : NOTHING);
            variable += type.getSize();
            next++;
        }
    }

    private BitSet given(int variable) {
        while (given.size() <= variable) {
            given.add(new BitSet());
        }
        return given.get(variable);
    }

    void run() {
        MethodNode node = method.node();
        // The analysis keeps all variables and the stack of each instruction.
        if ((long) node.instructions.size() * (node.maxLocals + node.maxStack) > VALUES_MAX) {
            throw new Undecided("has a method too large to look into, " + method.owner() + "." + method.name());
        }
        try {
            new Analyzer<>(this) {
                @Override
                protected void newControlFlowEdge(int from, int to) {
                    branches.edge(from, to);
                }
            }.analyze(method.owner(), node);
        } catch (AnalyzerException e) {
            // So it wraps what an effect has thrown.
            throw e.getCause() instanceof RuntimeException thrown
                    ? thrown
                    : new Undecided("has code that cannot be read in " + method.owner());
        }
    }

    boolean comparesTwo(int branch) {
        int opcode = method.node().instructions.get(branch).getOpcode();
        return opcode >= Opcodes.IF_ICMPEQ && opcode <= Opcodes.IF_ACMPNE;
    }

    private void decides(AbstractInsnNode branch, BitSet value) {
        deciding.computeIfAbsent(method.node().instructions.indexOf(branch), key -> new BitSet())
                .or(effects.values(value));
    }

    private String place(AbstractInsnNode instruction) {
        return method.owner() + "." + method.name() + method.type() + ":"
                + method.node().instructions.indexOf(instruction);
    }

    private static Value sized(BasicValue likeOrNull, BitSet origins) {
        return likeOrNull == null ? null : new Value(likeOrNull.getSize(), origins);
    }

    private static Value of(Type type, BitSet origins) {
        return type.getSort() == Type.VOID ? null : new Value(type.getSize(), (BitSet) origins.clone());
    }

    @Override
    public Value newValue(Type typeOrNull) {
        return typeOrNull == null ? UNSET : of(typeOrNull, NOTHING);
    }

    @Override
    public Value newParameterValue(boolean isInstanceMethod, int variable, Type type) {
        return of(type, given(variable));
    }

    @Override
    public Value newExceptionValue(TryCatchBlockNode block, Frame<Value> handlerFrame, Type exceptionType) {
        return of(exceptionType, effects.raised());
    }

    @Override
    public Value newOperation(AbstractInsnNode instruction) throws AnalyzerException {
        BitSet made = switch (instruction.getOpcode()) {
            case Opcodes.GETSTATIC -> effects.load(null, Instruction.of(instruction));
            case Opcodes.LDC -> Known.isOfTicks(((LdcInsnNode) instruction).cst) ? Walk.of(Origins.TICK) : NOTHING;
            case Opcodes.NEW -> effects.make(place(instruction), ((TypeInsnNode) instruction).desc);
            default -> NOTHING;
        };
        return sized(sizes.newOperation(instruction), made);
    }

    @Override
    public Value copyOperation(AbstractInsnNode instruction, Value value) {
        return value;
    }

    @Override
    public Value unaryOperation(AbstractInsnNode instruction, Value value) throws AnalyzerException {
        BitSet result = NOTHING;
        switch (instruction.getOpcode()) {
            case Opcodes.GETFIELD -> result = effects.load(value.origins, Instruction.of(instruction));
            case Opcodes.PUTSTATIC -> effects.store(null, Instruction.of(instruction), value.origins);
            case Opcodes.NEWARRAY, Opcodes.ANEWARRAY -> result = effects.make(place(instruction), null);
            case Opcodes.CHECKCAST -> {
                boolean constant = Known.isConstant(((TypeInsnNode) instruction).desc);
                result = constant ? effects.values(value.origins) : value.origins;
            }
            case Opcodes.ARRAYLENGTH, Opcodes.INSTANCEOF -> result = effects.values(value.origins);
            case Opcodes.IFEQ,
                    Opcodes.IFNE,
                    Opcodes.IFLT,
                    Opcodes.IFGE,
                    Opcodes.IFGT,
                    Opcodes.IFLE,
                    Opcodes.IFNULL,
                    Opcodes.IFNONNULL,
                    Opcodes.TABLESWITCH,
                    Opcodes.LOOKUPSWITCH -> decides(instruction, value.origins);
            case Opcodes.ATHROW -> effects.raise(value.origins);
            default -> result = value.origins; // of a number, another one
        }
        return sized(sizes.unaryOperation(instruction, BasicValue.REFERENCE_VALUE), result);
    }

    @Override
    public Value binaryOperation(AbstractInsnNode instruction, Value first, Value second) throws AnalyzerException {
        BitSet result = NOTHING;
        switch (instruction.getOpcode()) {
            case Opcodes.PUTFIELD -> effects.store(first.origins, Instruction.of(instruction), second.origins);
            case Opcodes.AALOAD -> {
                effects.compare(first.origins, second.origins);
                result = effects.loadElement(first.origins);
            }
            case Opcodes.BALOAD,
                    Opcodes.CALOAD,
                    Opcodes.SALOAD,
                    Opcodes.IALOAD,
                    Opcodes.LALOAD,
                    Opcodes.FALOAD,
                    Opcodes.DALOAD -> result = effects.values(first.origins);
            case Opcodes.IF_ICMPEQ,
                    Opcodes.IF_ICMPNE,
                    Opcodes.IF_ICMPLT,
                    Opcodes.IF_ICMPGE,
                    Opcodes.IF_ICMPGT,
                    Opcodes.IF_ICMPLE,
                    Opcodes.IF_ACMPEQ,
                    Opcodes.IF_ACMPNE -> {
                effects.compare(first.origins, second.origins);
                decides(instruction, first.origins);
                decides(instruction, second.origins);
            }
            case Opcodes.LCMP, Opcodes.FCMPL, Opcodes.FCMPG, Opcodes.DCMPL, Opcodes.DCMPG -> {
                effects.compare(first.origins, second.origins);
                result = merge(first, second).origins;
            }
            default -> result = merge(first, new Value(first.getSize, second.origins)).origins;
        }
        return sized(
                sizes.binaryOperation(instruction, BasicValue.REFERENCE_VALUE, BasicValue.REFERENCE_VALUE), result);
    }

    @Override
    public Value ternaryOperation(AbstractInsnNode instruction, Value array, Value index, Value value) {
        effects.storeElement(array.origins, value.origins);
        return null;
    }

    @Override
    public Value naryOperation(AbstractInsnNode instruction, List<? extends Value> values) {
        if (instruction.getOpcode() == Opcodes.MULTIANEWARRAY) {
            return new Value(1, effects.make(place(instruction), null));
        }
        Instruction call = Instruction.of(instruction);
        List<BitSet> arguments = new ArrayList<>();
        for (Value value : values) {
            arguments.add(value.origins);
        }
        BitSet result = call.opcode() == Opcodes.INVOKEDYNAMIC
                ? effects.dynamic(place(instruction), call, arguments)
                : effects.call(place(instruction), call, arguments);
        return of(Type.getReturnType(call.type()), result);
    }

    @Override
    public void returnOperation(AbstractInsnNode instruction, Value value, Value expected) {
        origins.grow(returned, value.origins);
    }

    @Override
    public Value merge(Value one, Value other) {
        if (one.getSize != other.getSize) {
            return UNSET;
        }
        BitSet both = (BitSet) one.origins.clone();
        both.or(other.origins);
        return both.equals(one.origins) ? one : new Value(one.getSize, both);
    }
}

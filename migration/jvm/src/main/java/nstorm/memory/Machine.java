package nstorm.memory;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.BitSet;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import net.bytebuddy.jar.asm.Label;
import net.bytebuddy.jar.asm.Opcodes;
import net.bytebuddy.jar.asm.Type;
import nstorm.memory.Bytecode.Instruction;
import nstorm.memory.Bytecode.Method;

/**
 * Runs one method over origins in place of values, each way through it at once. What a variable may ever hold is one
 * set; a long or double takes two places, the second empty.
 */
final class Machine {
    /** What the method does that reaches beyond its own variables. */
    interface Effects {
        BitSet load(BitSet object, Instruction field);

        void store(BitSet object, Instruction field, BitSet value);

        BitSet loadElement(BitSet array);

        void storeElement(BitSet array, BitSet value);

        BitSet make(String place, String type);

        /** @param arguments the object first, if there is one */
        BitSet call(String place, Instruction call, List<BitSet> arguments);

        BitSet dynamic(String place, Instruction call, List<BitSet> arguments);

        void raise(BitSet exception);

        BitSet raised();
    }

    private static final BitSet NOTHING = new BitSet();
    /** Pops and pushes of the instructions that only calculate. */
    private static final Map<Integer, int[]> CALCULATING = calculating();

    private final Origins origins;
    private final Effects effects;
    final Method method;
    final BitSet returned = new BitSet();
    private final List<BitSet> variables = new ArrayList<>();
    private final Map<Label, List<BitSet>> stacks = new HashMap<>();
    private List<BitSet> stack = new ArrayList<>();

    Machine(Method method, Origins origins, Effects effects) {
        this.method = method;
        this.origins = origins;
        this.effects = effects;
    }

    /** Widens what the method may be given, the object first. */
    void given(List<BitSet> arguments) {
        int variable = 0;
        int next = 0;
        if (!method.isStatic()) {
            origins.grow(variable(variable++), arguments.get(next++));
        }
        for (Type type : Type.getArgumentTypes(method.type())) {
            origins.grow(variable(variable), next < arguments.size() ? arguments.get(next) : NOTHING);
            variable += type.getSize();
            next++;
        }
    }

    private BitSet variable(int number) {
        while (variables.size() <= number) {
            variables.add(new BitSet());
        }
        return variables.get(number);
    }

    void run() {
        method.handlers().forEach(handler -> meet(handler, List.of(effects.raised())));
        stack = new ArrayList<>();
        for (int i = 0; i < method.code().size(); i++) {
            Instruction now = method.code().get(i);
            if (now.opcode() == Bytecode.LABEL) {
                arrive(now.targets().get(0));
            } else if (stack != null) {
                step(now, method.owner() + "." + method.name() + method.type() + ":" + i);
            }
        }
    }

    private void arrive(Label label) {
        if (stack != null) {
            meet(label, stack);
        }
        List<BitSet> known = stacks.get(label);
        if (known != null) {
            stack = new ArrayList<>();
            known.forEach(value -> stack.add((BitSet) value.clone()));
        }
    }

    private void meet(Label label, List<BitSet> with) {
        List<BitSet> known = stacks.get(label);
        if (known == null) {
            known = new ArrayList<>();
            for (int i = 0; i < with.size(); i++) {
                known.add(new BitSet());
            }
            stacks.put(label, known);
            origins.changed = true;
        }
        for (int i = 0; i < Math.min(known.size(), with.size()); i++) {
            origins.grow(known.get(i), with.get(i));
        }
    }

    private BitSet pop() {
        return stack.remove(stack.size() - 1);
    }

    private void pop(int places) {
        for (int i = 0; i < places; i++) {
            pop();
        }
    }

    private void push(BitSet value, int size) {
        if (size > 0) {
            stack.add(value);
        }
        if (size > 1) {
            stack.add(NOTHING);
        }
    }

    private BitSet popValue(Type type) {
        if (type.getSize() > 1) {
            pop();
        }
        return pop();
    }

    private void step(Instruction now, String place) {
        int opcode = now.opcode();
        int[] calculation = CALCULATING.get(opcode);
        if (calculation != null) {
            pop(calculation[0]);
            for (int i = 0; i < calculation[1]; i++) {
                push(NOTHING, 1);
            }
            return;
        }
        switch (opcode) {
            case Opcodes.NOP, Opcodes.INSTANCEOF, Opcodes.ARRAYLENGTH -> onTop(opcode);
            case Opcodes.LDC -> push(NOTHING, now.number());
            case Opcodes.ILOAD, Opcodes.FLOAD -> push(NOTHING, 1);
            case Opcodes.LLOAD -> push((BitSet) variable(now.number()).clone(), 2);
            case Opcodes.DLOAD -> push(NOTHING, 2);
            case Opcodes.ALOAD -> push((BitSet) variable(now.number()).clone(), 1);
            case Opcodes.ISTORE, Opcodes.FSTORE, Opcodes.POP, Opcodes.MONITORENTER, Opcodes.MONITOREXIT -> pop();
            case Opcodes.LSTORE -> {
                pop();
                origins.grow(variable(now.number()), pop());
            }
            case Opcodes.DSTORE, Opcodes.POP2 -> pop(2);
            case Opcodes.ASTORE -> origins.grow(variable(now.number()), pop());
            case Opcodes.AALOAD -> {
                pop();
                push(effects.loadElement(pop()), 1);
            }
            case Opcodes.IASTORE, Opcodes.FASTORE, Opcodes.BASTORE, Opcodes.CASTORE, Opcodes.SASTORE -> storeElement(1);
            case Opcodes.LASTORE, Opcodes.DASTORE -> storeElement(2);
            case Opcodes.AASTORE -> {
                BitSet value = pop();
                pop();
                effects.storeElement(pop(), value);
            }
            case Opcodes.GETSTATIC -> push(effects.load(null, now), Type.getType(now.type()).getSize());
            case Opcodes.PUTSTATIC -> effects.store(null, now, popValue(Type.getType(now.type())));
            case Opcodes.GETFIELD -> push(effects.load(pop(), now), Type.getType(now.type()).getSize());
            case Opcodes.PUTFIELD -> {
                BitSet value = popValue(Type.getType(now.type()));
                effects.store(pop(), now, value);
            }
            case Opcodes.NEW -> push(effects.make(place, now.owner()), 1);
            case Opcodes.NEWARRAY, Opcodes.ANEWARRAY -> {
                pop();
                push(effects.make(place, null), 1);
            }
            case Opcodes.MULTIANEWARRAY -> {
                pop(now.number());
                push(effects.make(place, null), 1);
            }
            case Opcodes.CHECKCAST -> {
                BitSet value = pop();
                push(Known.isConstant(now.owner()) ? NOTHING : value, 1);
            }
            case Opcodes.INVOKEDYNAMIC -> push(effects.dynamic(place, now, arguments(now, true)),
                    Type.getReturnType(now.type()).getSize());
            case Opcodes.INVOKESTATIC -> push(effects.call(place, now, arguments(now, true)),
                    Type.getReturnType(now.type()).getSize());
            case Opcodes.INVOKEVIRTUAL, Opcodes.INVOKEINTERFACE, Opcodes.INVOKESPECIAL -> push(
                    effects.call(place, now, arguments(now, false)), Type.getReturnType(now.type()).getSize());
            case Opcodes.DUP, Opcodes.DUP_X1, Opcodes.DUP_X2, Opcodes.DUP2, Opcodes.DUP2_X1, Opcodes.DUP2_X2 -> duplicate(opcode);
            case Opcodes.SWAP -> stack.add(stack.size() - 2, pop());
            default -> leave(now);
        }
    }

    private void onTop(int opcode) {
        if (opcode != Opcodes.NOP) {
            pop();
            push(NOTHING, 1);
        }
    }

    private void storeElement(int size) {
        pop(size + 1);
        effects.storeElement(pop(), NOTHING);
    }

    private List<BitSet> arguments(Instruction call, boolean isStatic) {
        Type[] types = Type.getArgumentTypes(call.type());
        List<BitSet> arguments = new ArrayList<>();
        for (int i = types.length - 1; i >= 0; i--) {
            arguments.add(0, popValue(types[i]));
        }
        if (!isStatic) {
            arguments.add(0, pop());
        }
        return arguments;
    }

    private void duplicate(int opcode) {
        int many = opcode >= Opcodes.DUP2 ? 2 : 1;
        int under = opcode - (many == 2 ? Opcodes.DUP2 : Opcodes.DUP);
        List<BitSet> top = new ArrayList<>(stack.subList(stack.size() - many, stack.size()));
        stack.addAll(stack.size() - many - under, top);
    }

    /** Jumps, and ends of the method. */
    private void leave(Instruction now) {
        int opcode = now.opcode();
        if (opcode >= Opcodes.IFEQ && opcode <= Opcodes.IFLE || opcode == Opcodes.IFNULL || opcode == Opcodes.IFNONNULL
                || opcode == Opcodes.LOOKUPSWITCH) {
            pop();
        } else if (opcode >= Opcodes.IF_ICMPEQ && opcode <= Opcodes.IF_ACMPNE) {
            pop(2);
        } else if (opcode == Opcodes.ARETURN) {
            origins.grow(returned, pop());
        } else if (opcode == Opcodes.LRETURN) {
            pop();
            origins.grow(returned, pop());
        } else if (opcode == Opcodes.ATHROW) {
            effects.raise(pop());
        } else if (opcode != Opcodes.GOTO && (opcode < Opcodes.IRETURN || opcode > Opcodes.RETURN)) {
            throw new Undecided("instruction " + opcode + " in " + method.owner());
        }
        now.targets().forEach(target -> meet(target, stack));
        boolean goesOn = opcode <= Opcodes.IF_ACMPNE || opcode == Opcodes.IFNULL || opcode == Opcodes.IFNONNULL;
        if (!goesOn) {
            stack = null;
        }
    }

    private static Map<Integer, int[]> calculating() {
        Map<Integer, int[]> all = new HashMap<>();
        put(all, 0, 1, 1, 8);
        put(all, 0, 2, 9, 10, 14, 15);
        put(all, 0, 1, 11, 13, 16, 17);
        for (int loads : new int[] {46, 48, 51, 52, 53}) {
            put(all, 2, 1, loads, loads);
        }
        put(all, 2, 2, 47, 47, 49, 49);
        for (int of = 96; of <= 112; of += 4) {
            put(all, 2, 1, of, of, of + 2, of + 2);
            put(all, 4, 2, of + 1, of + 1, of + 3, of + 3);
        }
        put(all, 0, 0, 116, 119);
        put(all, 2, 1, 120, 120, 122, 122, 124, 124, 126, 126, 128, 128, 130, 130);
        put(all, 3, 2, 121, 121, 123, 123, 125, 125);
        put(all, 4, 2, 127, 127, 129, 129, 131, 131);
        put(all, 1, 2, 133, 133, 135, 135, 140, 141);
        put(all, 1, 1, 134, 134, 139, 139, 145, 147);
        put(all, 2, 1, 136, 137, 142, 142, 144, 144, 149, 150);
        put(all, 2, 2, 138, 138, 143, 143);
        put(all, 4, 1, 148, 148, 151, 152);
        return all;
    }

    private static void put(Map<Integer, int[]> all, int pops, int pushes, int... ranges) {
        for (int i = 0; i < ranges.length; i += 2) {
            for (int opcode = ranges[i]; opcode <= ranges[i + 1]; opcode++) {
                all.put(opcode, new int[] {pops, pushes});
            }
        }
    }

    @Override
    public String toString() {
        return method.owner() + "." + method.name() + Arrays.asList(Type.getArgumentTypes(method.type()));
    }
}

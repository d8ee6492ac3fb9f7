package nstorm.memory;

import static org.junit.jupiter.api.Assertions.assertDoesNotThrow;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import org.junit.jupiter.api.Test;
import org.objectweb.asm.Opcodes;
import org.objectweb.asm.tree.MethodNode;

class MachineTest {
    /** A method that adds to its variables in turn, as a compiler of a language writes them. */
    private static Machine machine(int instructions, int variables) {
        MethodNode node = new MethodNode(Opcodes.ACC_STATIC, "made", "()V", null, null);
        node.visitInsn(Opcodes.ICONST_0);
        node.visitVarInsn(Opcodes.ISTORE, 0);
        for (int i = 0; i < instructions; i++) {
            node.visitIincInsn(0, 1);
        }
        node.visitInsn(Opcodes.RETURN);
        node.visitMaxs(1, variables);
        return new Machine(new Bytecode.Method("Made", node), new Origins(), null);
    }

    @Test
    void aMethodWhoseAnalysisWouldFillTheHeapIsNotLookedInto() {
        Undecided thrown = assertThrows(Undecided.class, machine(20_000, 200)::run);
        assertTrue(thrown.getMessage().contains("Made.made"), thrown.getMessage());
        assertDoesNotThrow(machine(20_000, 20)::run);
    }

    @Test
    void whatAnEffectThrowsComesOutAsItIs() {
        MethodNode node = new MethodNode(Opcodes.ACC_STATIC, "made", "()V", null, null);
        node.visitFieldInsn(Opcodes.GETSTATIC, "Other", "field", "LOther;");
        node.visitInsn(Opcodes.POP);
        node.visitInsn(Opcodes.RETURN);
        node.visitMaxs(1, 0);
        assertThrows(
                NullPointerException.class, new Machine(new Bytecode.Method("Made", node), new Origins(), null)::run);
    }
}

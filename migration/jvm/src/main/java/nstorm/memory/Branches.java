package nstorm.memory;

import java.util.BitSet;

/** Which branches of a method decide directly whether an instruction runs. Instructions are numbered; exceptions are no branches here. */
final class Branches {
    /** Each instruction has two sets with a bit for each instruction: 1 MB in all. */
    private static final int INSTRUCTIONS_MAX = 2000;

    private final int count;
    private final BitSet[] next;
    /** For each instruction those that run after it on every way. */
    private BitSet[] always;

    Branches(int count) {
        this.count = Math.min(count, INSTRUCTIONS_MAX + 1);
        next = new BitSet[this.count];
    }

    boolean isTooLarge() {
        return count > INSTRUCTIONS_MAX;
    }

    void edge(int from, int to) {
        if (!isTooLarge()) {
            next[from] = next[from] == null ? new BitSet() : next[from];
            always = next[from].get(to) ? always : null;
            next[from].set(to);
        }
    }

    /** The branches of which one way leads to it for sure, and another may not. */
    BitSet deciding(int instruction) {
        find();
        BitSet found = new BitSet();
        for (int branch = 0; branch < count; branch++) {
            boolean passes = branch != instruction && always[branch].get(instruction);
            if (next[branch] != null
                    && next[branch].cardinality() > 1
                    && !passes
                    && next[branch].stream().anyMatch(one -> always[one].get(instruction))) {
                found.set(branch);
            }
        }
        return found;
    }

    private void find() {
        if (always != null) {
            return;
        }
        always = new BitSet[count];
        for (int i = 0; i < count; i++) {
            always[i] = new BitSet();
            always[i].set(next[i] == null ? i : 0, next[i] == null ? i + 1 : count);
        }
        boolean changed = true;
        while (changed) {
            changed = false;
            for (int i = count - 1; i >= 0; i--) {
                changed |= next[i] != null && narrow(i);
            }
        }
    }

    private boolean narrow(int instruction) {
        BitSet all = new BitSet();
        all.set(0, count);
        next[instruction].stream().forEach(one -> all.and(always[one]));
        all.set(instruction);
        boolean changed = !all.equals(always[instruction]);
        always[instruction] = all;
        return changed;
    }
}

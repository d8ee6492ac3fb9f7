package nstorm.wire;

/**
 * One move of one executor, as the plan carries it.
 *
 * @param baseSlot      the slot Storm's assignment had when the move was made
 * @param baseStartSecs the start time it had then
 * @param voidReason    why Storm won, or null while the entry is not void
 */
public record Entry(String id, ExecutorId executor, Slot from, Slot to, Phase phase,
                    Slot baseSlot, long baseStartSecs, String voidReason) {

    /**
     * Whether the entry counts, given Storm's own assignment of its executor.
     *
     * @param now what Storm assigns, before any plan is laid over it; null if the executor is unassigned
     */
    public boolean counts(Assigned now) {
        if (voidReason != null || now == null) {
            return false;
        }
        boolean asInBase = now.slot().equals(baseSlot) && now.startSecs() == baseStartSecs;
        return asInBase || (phase.absorbed() && now.slot().equals(to));
    }

    /** Where tuples for the executor go while the entry counts. */
    public Slot owner() {
        return phase.routesToTarget() ? to : from;
    }

    /** Whether the slot is an end of the move. */
    public boolean touches(Slot slot) {
        return slot.equals(from) || slot.equals(to);
    }
}

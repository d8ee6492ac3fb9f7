package nstorm.wire;

import java.io.IOException;
import nstorm.wire.json.JsonInput;
import nstorm.wire.json.WireException;

/**
 * One move of one executor, as the plan carries it.
 *
 * @param baseSlot      the slot Storm's assignment had when the move was made
 * @param baseStartSecs the start time it had then
 * @param voidReason    why Storm won, or null while the entry is not void
 * @param opens         the host of {@code to} if the topology had no worker there, else null
 * @param ordered       whether the workers keep the order of what each task sends the executor
 */
public record Entry(
        String id,
        ExecutorId executor,
        Slot from,
        Slot to,
        Phase phase,
        Slot baseSlot,
        long baseStartSecs,
        String voidReason,
        Way way,
        String opens,
        boolean ordered) {

    /** A live move between workers. */
    public Entry(
            String id,
            ExecutorId executor,
            Slot from,
            Slot to,
            Phase phase,
            Slot baseSlot,
            long baseStartSecs,
            String voidReason) {
        this(id, executor, from, to, phase, baseSlot, baseStartSecs, voidReason, Way.LIVE, null, false);
    }

    /** Whether phase and way are known here. */
    public boolean understood() {
        return phase != Phase.UNKNOWN && way != Way.UNKNOWN;
    }

    /**
     * Whether the entry counts, given Storm's own assignment of its executor; never if it is not understood.
     *
     * @param now what Storm assigns, before any plan is laid over it; null if the executor is unassigned
     */
    public boolean counts(Assigned now) {
        if (voidReason != null || now == null || !understood()) {
            return false;
        }
        boolean asInBase = now.slot().equals(baseSlot) && now.startSecs() == baseStartSecs;
        return asInBase || (phase.absorbed() && now.slot().equals(to));
    }

    /** Where tuples for the executor go while the entry counts. */
    public Slot owner() {
        return phase.routesToTarget() ? to : from;
    }

    /** Whether what the target holds only one copy may hold: it opens in STOP, once the source's copy is closed. */
    public boolean opensLate() {
        return way == Way.SPOUT || way == Way.RENEW;
    }

    /** Whether Nimbus may put the executor at the target: what opens late may still go back in STOP. */
    public boolean absorbable() {
        return phase.absorbed() && !(phase == Phase.STOP && opensLate());
    }

    /** Whether the slot is an end of the move. */
    public boolean touches(Slot slot) {
        return slot.equals(from) || slot.equals(to);
    }

    static Entry read(JsonInput in) throws IOException, WireException {
        String id = null;
        ExecutorId executor = null;
        Slot from = null;
        Slot to = null;
        Phase phase = null;
        Assigned base = null;
        String voidReason = null;
        Way way = Way.LIVE;
        String opens = null;
        boolean ordered = false;
        in.beginObject();
        for (String key = in.nextKey(); key != null; key = in.nextKey()) {
            switch (key) {
                case "id" -> id = in.name();
                case "executor" -> executor = ExecutorId.read(in);
                case "from" -> from = Slot.read(in);
                case "to" -> to = Slot.read(in);
                case "phase" -> phase = Phase.of(in.text());
                case "base" -> base = Assigned.read(in);
                case "void" -> voidReason = in.textOrNull();
                case "way" -> way = Way.of(in.text());
                case "opens" -> opens = in.nameOrNull();
                case "ordered" -> ordered = in.flag();
                default -> in.pass();
            }
        }
        in.required(base, "base");
        return new Entry(
                in.required(id, "id"),
                in.required(executor, "executor"),
                in.required(from, "from"),
                in.required(to, "to"),
                in.required(phase, "phase"),
                base.slot(),
                base.startSecs(),
                voidReason,
                way,
                opens,
                ordered);
    }
}

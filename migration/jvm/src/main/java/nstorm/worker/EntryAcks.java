package nstorm.worker;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.TimeUnit;
import nstorm.wire.Assigned;
import nstorm.wire.Entry;
import nstorm.wire.ExecutorId;
import nstorm.wire.Phase;
import nstorm.wire.Plan;
import nstorm.wire.Slot;
import nstorm.wire.Way;
import nstorm.wire.report.EntryAck;
import nstorm.wire.report.EntryState;
import nstorm.worker.plan.Desired.Action;
import nstorm.worker.plan.Desired.Part;
import nstorm.worker.plan.RefusedOpens;

/** How far this worker is with each of its {@link Desired} parts. */
final class EntryAcks {
    private static final long OTHERS_NANOS = TimeUnit.SECONDS.toNanos(5);

    private final HookedWorker worker;
    private final RefusedOpens refusedOpens;
    private boolean emptied;
    /** Since when a target waits for connections to others; 0 if none does. */
    private long awaitedNanos;

    EntryAcks(HookedWorker worker, RefusedOpens refusedOpens) {
        this.worker = worker;
        this.refusedOpens = refusedOpens;
    }

    /** What to acknowledge after a pass. */
    List<EntryAck> of(Plan planOrNull, List<Part> parts, Map<ExecutorId, Assigned> assigned) {
        emptied = worker.emptied();
        if (parts.stream().noneMatch(part -> part.action() == Action.PREPARE)) {
            awaitedNanos = 0;
        }
        List<EntryAck> acks = new ArrayList<>();
        List<Entry> unknown = planOrNull == null ? List.of() : planOrNull.notUnderstood();
        for (Part part : parts) {
            if (part.entry() != null
                    && unknown.stream()
                            .noneMatch(entry -> entry.id().equals(part.entry().id()))) {
                acks.add(ack(part.entry(), state(part), assigned, awaitsAhead(part)));
            }
        }
        unknown.forEach(entry -> acks.add(ack(entry, EntryState.NOT_UNDERSTOOD, assigned, false)));
        return acks;
    }

    private static EntryAck ack(
            Entry entry, EntryState state, Map<ExecutorId, Assigned> assigned, boolean awaitsAhead) {
        Assigned now = assigned.get(entry.executor());
        return new EntryAck(entry.id(), state, now == null ? null : now.slot(), awaitsAhead);
    }

    private EntryState state(Part part) {
        ExecutorCopy copy = worker.copyOf(part.executor());
        boolean here = worker.tables.delivers(part.executor());
        return switch (part.action()) {
            case PREPARE -> mayFollow(part) && !awaitsAhead(part) ? EntryState.READY : EntryState.NONE;
            case RUN ->
                refusedOpens.contains(part)
                        ? EntryState.REFUSED
                        : copy != null && copy.stopping()
                                ? copy.stuck() ? EntryState.STUCK : EntryState.NONE
                                : !here
                                        ? EntryState.NONE
                                        : ahead(part.entry())
                                                ? proved(part.entry(), copy)
                                                : running(part.entry(), copy);
            case CARRY ->
                here
                        ? EntryState.NONE
                        : copy == null
                                ? EntryState.STOPPED
                                : copy.state.refused() ? EntryState.REFUSED : EntryState.DRAINED;
            case DRAIN ->
                here
                        ? EntryState.NONE
                        : copy == null || copy.drain.drained(CopyDrain.DRAINED_MS, worker.handOver)
                                ? EntryState.DRAINED
                                : EntryState.ROUTED;
            case FINISH ->
                copy == null
                        ? gone(part)
                        : copy.stuck()
                                ? EntryState.STUCK
                                : copy.drain.staysOpen() ? EntryState.REFUSED : EntryState.ROUTED;
            case STOP, RETIRE -> copy == null ? gone(part) : copy.stuck() ? EntryState.STUCK : EntryState.ROUTED;
            case WATCH ->
                ahead(part.entry()) || !worker.overlay.reaches(part.entry()) ? EntryState.NONE : EntryState.ROUTED;
        };
    }

    /** In PREPARE a source looks whether its bolts may be in two places at once: later it would be too late. */
    private static EntryState proved(Entry entry, ExecutorCopy copyOrNull) {
        if (entry.phase() != Phase.PREPARE || entry.way() != Way.LIVE || copyOrNull == null || !copyOrNull.ready()) {
            return EntryState.NONE;
        }
        Boolean proved = copyOrNull.state.provedLive(entry.id());
        return proved == null ? EntryState.NONE : proved ? EntryState.READY : EntryState.REFUSED;
    }

    /**
     * Whether the phase after PREPARE may come, but for what the source sends ahead. Once it has, as in QUIET, nothing is waited for any
     * more.
     */
    private boolean mayFollow(Part part) {
        ExecutorCopy copy = worker.copyOf(part.executor());
        return copy != null
                && copy.prepared(worker.active())
                && (part.entry().phase() != Phase.PREPARE || reachesOthers());
    }

    private boolean awaitsAhead(Part part) {
        Entry entry = part.entry();
        return part.action() == Action.PREPARE
                && entry.phase() == Phase.PREPARE
                && entry.way() == Way.CARRY
                && !worker.transfer.awaits(entry.id())
                && mayFollow(part);
    }

    /** A worker that is there is connected to soon; one that is away may stay so, and nothing can be lost to it. */
    private boolean reachesOthers() {
        Set<Slot> reached = worker.tables.connected();
        if (worker.overlay.assigned().values().stream()
                .map(Assigned::slot)
                .allMatch(slot -> slot.equals(worker.me) || reached.contains(slot))) {
            awaitedNanos = 0;
            return true;
        }
        long now = System.nanoTime();
        awaitedNanos = awaitedNanos == 0 ? now : awaitedNanos;
        return now - awaitedNanos > OTHERS_NANOS;
    }

    /** True while nothing is asked of any worker but the target. */
    private static boolean ahead(Entry entry) {
        return entry.phase() == Phase.OPEN || entry.phase() == Phase.PREPARE;
    }

    private static EntryState running(Entry entry, ExecutorCopy copyOrNull) {
        if (entry.phase().absorbed()) {
            return copyOrNull != null && copyOrNull.ready() ? EntryState.ROUTED : EntryState.NONE;
        }
        if (entry.phase() != Phase.CARRY && entry.phase() != Phase.RECALL || copyOrNull == null) {
            return EntryState.ROUTED;
        }
        return copyOrNull.state.begunWith(entry.id())
                ? EntryState.LOADED
                : copyOrNull.state.refused() ? EntryState.REFUSED : EntryState.ROUTED;
    }

    /** Once it is STOPPED, Storm may end a worker that has nothing left: until then it hands tuples on. */
    private EntryState gone(Part part) {
        boolean opened = part.action() == Action.RETIRE && part.entry().opens() != null;
        boolean closing = (part.action() == Action.STOP || opened) && worker.copies.isEmpty();
        return closing && !emptied ? EntryState.ROUTED : EntryState.STOPPED;
    }
}

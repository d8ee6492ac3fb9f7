package nstorm.worker;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.TimeUnit;
import nstorm.hook.Faults;
import nstorm.wire.Assigned;
import nstorm.wire.ExecutorId;
import nstorm.wire.Plan;
import nstorm.wire.Slot;
import nstorm.wire.Way;
import nstorm.wire.report.EntryAck;
import nstorm.worker.plan.Desired;
import nstorm.worker.plan.Desired.Action;
import nstorm.worker.plan.Desired.Part;
import nstorm.worker.plan.FailedStarts;
import nstorm.worker.plan.MovedExecutors;
import nstorm.worker.plan.Owners;
import nstorm.worker.plan.RefusedOpens;

/**
 * Makes this worker match its {@link Desired} parts: starts, routes, drains and stops single executors
 * until reality fits. Phases are only successive desired states.
 */
final class Reconciler {
    /** Longer: a source that has not read of the undo yet still forwards to this copy. */
    private static final long RETIRED_MS = 1000;

    private static final long STATUS_NANOS = TimeUnit.SECONDS.toNanos(1);
    private static final int FAILED_OPENS_MAX = 2;
    private static final long OPEN_NANOS = TimeUnit.SECONDS.toNanos(30);

    private final HookedWorker worker;
    private final MovedExecutors moved;
    private final Owners owners = new Owners();
    private final FailedStarts failedStarts = new FailedStarts();
    private final RefusedOpens refusedOpens = new RefusedOpens();
    private final EntryAcks acks;
    private Map<ExecutorId, Assigned> routedFrom = Map.of();
    private Map<ExecutorId, Slot> routedOver = Map.of();
    private Set<Slot> connectedTo = Set.of();
    private long statusNanos = System.nanoTime();

    Reconciler(HookedWorker worker) {
        this.worker = worker;
        moved = new MovedExecutors(worker.me);
        acks = new EntryAcks(worker, refusedOpens);
    }

    /** One pass; returns what to acknowledge. */
    List<EntryAck> pass() {
        long polledNanos = System.nanoTime();
        boolean newer = worker.overlay.poll();
        Plan plan = worker.overlay.plan();
        Map<ExecutorId, Assigned> assigned = worker.overlay.assigned();
        reapStopped();
        moved.follow(plan, executor -> settled(executor, assigned.get(executor)));
        if (busy()) {
            worker.expectMisrouted();
            worker.tables.reconnect();
        } else {
            worker.copies.values().forEach(copy -> copy.state.size());
        }
        List<Part> parts = Desired.of(assigned, plan, worker.me, moved.unsettled());
        Map<ExecutorId, Slot> laid = worker.overlay.laid();
        refusedOpens.follow(parts, assigned, this::cannotOpen);
        for (Part part : parts) {
            prepare(part, Desired.holdsStill(part, assigned.get(part.executor()), worker.me));
        }
        worker.discardBuilds(id ->
                parts.stream().anyMatch(part -> wanted(part) && part.executor().equals(id)));
        worker.order.follow(plan);
        worker.transfer.follow(plan);
        // Before the routes: these take some milliseconds, in which the bolt's own thread writes its state.
        parts.forEach(part -> worker.transfer.carry(part, worker.stateOf(part.executor()), polledNanos));
        Set<Slot> ends = worker.overlay.ends();
        boolean changed = assigned != routedFrom || !laid.equals(routedOver) || !ends.equals(connectedTo);
        boolean rerouted = route(parts, changed);
        routedFrom = assigned;
        routedOver = laid;
        connectedTo = ends;
        if (newer) {
            worker.routing.planAdvanced();
        }
        if (changed) {
            owners.changed(plan, assigned).forEach(worker.backPressure::clearFlags);
        }
        sendBackPressure(plan, rerouted);
        for (Part part : parts) {
            retire(part);
        }
        return acks.of(plan, parts, assigned);
    }

    /** True while something is under way that should be looked at often. */
    boolean busy() {
        return moved.busy(worker.overlay.plan());
    }

    /** True if nothing is left to do of any plan that was read. */
    boolean atRest() {
        return !busy() && worker.holdsNothing();
    }

    /** True while an executor works nowhere until this worker has done its part. */
    boolean pausing() {
        return moved.pausing(worker.overlay.plan());
    }

    /** True while this worker should ask for Storm's own assignment more often than Storm does. */
    boolean settling() {
        return moved.settling(worker.overlay.plan());
    }

    /** True if each executor is one that a plan moves to or from here: then no difference is a reason to die. */
    boolean explains(Set<ExecutorId> difference) {
        return moved.explains(worker.overlay.plan(), difference);
    }

    private boolean settled(ExecutorId executor, Assigned nowOrNull) {
        ExecutorCopy copy = worker.copyOf(executor);
        boolean assignedHere = nowOrNull != null && nowOrNull.slot().equals(worker.me);
        // One that is stopping, such as a spout in close() when its move is undone, makes room for a new copy first.
        return assignedHere ? worker.tables.delivers(executor) && (copy == null || !copy.stopping()) : copy == null;
    }

    private void reapStopped() {
        for (ExecutorCopy copy : new ArrayList<>(worker.copies.values())) {
            boolean failed = moved.contains(copy.id()) && !copy.ready() && !copy.alive() && !copy.stopping();
            if (failed) {
                failedStarts.add(copy.id(), System.nanoTime());
            }
            if (failed || copy.stopping() && !copy.alive()) {
                worker.takeDown(copy);
            }
        }
    }

    private boolean cannotOpen(ExecutorId executor) {
        ExecutorCopy copy = worker.copyOf(executor);
        return failedStarts.times(executor) >= FAILED_OPENS_MAX || copy != null && copy.opensFor(OPEN_NANOS);
    }

    private void prepare(Part part, boolean still) {
        ExecutorId executor = part.executor();
        ExecutorCopy copy = worker.copyOf(executor);
        if (refusedOpens.contains(part)) {
            if (copy != null) {
                copy.stop(worker.handOver);
            }
            return;
        }
        boolean ends = part.action() == Action.STOP || part.action() == Action.RETIRE;
        if (copy != null && !ends) {
            copy.state.holdStill(still && !worksOn(part, copy));
        }
        if (!wanted(part) || copy != null && copy.ready()) {
            failedStarts.forget(executor);
        } else if (copy == null && !failedStarts.mustWait(executor, System.nanoTime())) {
            try {
                worker.start(executor, still, waits(part));
            } catch (IllegalStateException e) {
                failedStarts.add(executor, System.nanoTime());
                Faults.report("starting executor " + executor, e);
            }
        }
        ExecutorCopy now = worker.copyOf(executor);
        if (part.action() == Action.RUN && now != null) {
            worker.run(now);
        }
    }

    private static boolean wanted(Part part) {
        return part.action() == Action.PREPARE || part.action() == Action.RUN;
    }

    /** Until this worker owns it; a spout always does. */
    private static boolean waits(Part part) {
        return part.entry() != null && part.entry().way() == Way.RENEW;
    }

    /** In an undo such a copy ends at once: the source works again with the state as it was, and two must not. */
    private static boolean begun(Part part, ExecutorCopy copy) {
        return part.entry() != null && copy.state.begunWith(part.entry().id());
    }

    /** A target that has begun, and a source whose state nobody has asked for, as it reaches no new owner. */
    private boolean worksOn(Part part, ExecutorCopy copy) {
        return part.action() == Action.RUN && begun(part, copy)
                || mustGoOn(part) && !worker.transfer.asked(part.entry().id());
    }

    /** Switches routes; a source renounces, connects to the new owner and only then stops delivering. */
    private boolean route(List<Part> parts, boolean changed) {
        List<Part> leaving = new ArrayList<>();
        boolean claimed = false;
        for (Part part : parts) {
            ExecutorCopy copy = worker.copyOf(part.executor());
            boolean here = worker.tables.delivers(part.executor());
            if (part.action() == Action.RUN && copy != null && copy.receives() && !copy.stopping() && !here) {
                copy.drain.keep();
                worker.claim(copy);
                claimed = true;
            } else if (part.action() != Action.RUN
                    && part.action() != Action.FINISH
                    && here
                    && copy != null
                    && !mustGoOn(part)) {
                // Without a copy of exactly this range the tasks are another executor's: a rebalance gave it others.
                worker.tables.renounce(part.executor());
                leaving.add(part);
            }
        }
        if (changed || claimed || !leaving.isEmpty()) {
            worker.state.refreshConnections();
        }
        for (Part part : leaving) {
            ExecutorCopy copy = worker.copyOf(part.executor());
            if (copy != null && part.action() != Action.RETIRE) {
                copy.drain.forward(
                        worker.handOver,
                        part.action() == Action.DRAIN
                                && worker.order.atEnd(part.executor().start()));
            }
            worker.stopDelivering(part.executor(), copy);
        }
        if (claimed || !leaving.isEmpty()) {
            worker.regroup();
        }
        return claimed || !leaving.isEmpty();
    }

    /** No route leads to the new owner yet: better no ack than tuples that no worker takes. The move is undone at its limit. */
    private boolean mustGoOn(Part part) {
        return part.entry() != null && !worker.overlay.reaches(part.entry());
    }

    private void sendBackPressure(Plan planOrNull, boolean rerouted) {
        // Also in SETTLE: the last status of the old owner may arrive after the new one's first. Its flag would hold
        // back every sender to the task until the new owner's next status.
        boolean due = System.nanoTime() - statusNanos > STATUS_NANOS
                && planOrNull != null
                && planOrNull.entries().stream().anyMatch(entry -> entry.touches(worker.me));
        if (rerouted || due) {
            worker.backPressure.send();
            statusNanos = System.nanoTime();
        }
    }

    private void retire(Part part) {
        ExecutorCopy copy = worker.copyOf(part.executor());
        if (copy == null || copy.stopping() || mustGoOn(part)) {
            return;
        }
        if (part.action() == Action.DRAIN) {
            copy.drain.drained(CopyDrain.DRAINED_MS, worker.handOver);
        } else if (part.action() == Action.FINISH) {
            copy.drain.finish(worker.handOver);
        } else if (part.action() == Action.STOP
                || part.action() == Action.RETIRE
                        && (!copy.ready()
                                || copy.spout()
                                || copy.state.holdsStill()
                                || begun(part, copy)
                                || copy.drain.drained(RETIRED_MS, worker.handOver)
                                || copy.drain.emptyingFor(worker.routing.messageTimeoutSecs))) {
            copy.stop(worker.handOver);
        }
    }
}

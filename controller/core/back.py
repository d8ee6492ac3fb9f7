"""Takes runs of moves back that were for the worse, before any policy is asked."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

from controller.core.capacity import Capacity
from controller.core.case import Budget, TopologyCase
from controller.core.cluster import Cluster, LoadSnapshot, place_after
from controller.core.decision import Decision, Outcome, Vetoes
from controller.core.fit import Fit
from controller.core.limits import Limits
from controller.core.openable import opened_slot
from controller.core.picture import Picture
from controller.core.proposals import proposals
from controller.core.runs import OwnMove, Watch
from controller.core.spaces import overfilled, uses_of
from controller.core.veto import row_of
from migration.model import Slot

# The executors have just moved, and this is why they have to move again.
_PASSED_OVER = frozenset({Outcome.COOLDOWN})
# These end with time, so that the way back waits for them: a worker that is left ends soon.
_WAITS = frozenset(
    {
        Outcome.CAPPED,
        Outcome.MOVE_IN_FLIGHT,
        Outcome.NO_WORKER_IN_SLOT,
        Outcome.STAND_BACK,
    }
)


def back_each(
    cases: Sequence[TopologyCase],
    watches: Mapping[str, Watch],
    limits: Limits,
    budget: Budget,
    *,
    free: Collection[Slot],  # the slots where a move may start a worker
    capacity: Capacity,
    begins: Collection[str],  # topologies whose moves begin; advice takes none from another
) -> tuple[list[TopologyCase], Budget, dict[str, str]]:
    """Decide about the topologies that have a run to take back; also why one stays.

    The vetoes are those of a policy, but for the cool-down. What fits alone goes first, and what
    has to wait goes later. Where nothing fits alone, all goes at once, as long as no worker gets
    too full.
    """
    found: list[TopologyCase] = []
    stays: dict[str, str] = {}
    for case in cases:
        watch, made = watches[case.id], case.picture
        asked = made and case.vetoes and case.drain is None and watch.is_returning
        if not asked or made is None or case.vetoes is None:
            found.append(case)
            continue
        # Storm may have replaced an executor by others since.
        here = made.snapshot.executors
        moves = [one for one in watch.back if not one.goes_back and str(one.executor) in here]
        if not moves:
            found.append(case)
            continue
        vetoes = case.vetoes.without(_PASSED_OVER)
        to_open = {one.source for one in moves} - set(case.view.observation.slots)
        opened = [opened_slot(case.view, slot, capacity) for slot in sorted(to_open & set(free))]
        cluster = made.cluster.with_opened(*(one for one in opened if one is not None))
        decision = _back(cluster, made, moves, vetoes, limits=limits, budget=budget)
        if decision.outcome is Outcome.NO_LOW_WORKER:
            stays[case.id] = decision.reason
            found.append(case)
            continue
        why = watch.refused[-1].why
        decision = replace(decision, reason=f"a run of moves goes back, {why}: {decision.reason}")
        found.append(replace(case, back=decision))
        if case.id in begins:
            budget = budget.without(len(decision.moves))
    return found, budget, stays


def _back(
    cluster: Cluster,
    made: Picture,
    moves: Sequence[OwnMove],
    vetoes: Vetoes,
    *,
    limits: Limits,
    budget: Budget,
) -> Decision:
    """Choose what goes back now; NO_LOW_WORKER where it never will."""
    snapshot = made.snapshot
    ways, held = _ways(cluster, snapshot, moves, vetoes)
    fit = Fit.of(cluster, snapshot, limits)
    if (full := _full_again(fit, snapshot, ways)) is not None:
        ways, held = [], Decision(Outcome.NO_LOW_WORKER, full)
    if held is not None and not ways:
        return held
    most = min(budget.free_moves, made.view.allowed.room)
    if most <= 0:
        return Decision(Outcome.MOVE_IN_FLIGHT, "it waits for moves under way")
    steps = list[tuple[int, int]]()
    for row, worker in ways:
        if len(steps) < most and fit.has_room(row, worker, fit.may_fill):
            fit = fit.moved(row, worker)
            steps.append((row, worker))
    if not steps and held is not None:
        return held  # those that wait may make the room
    if not steps:
        too_full = _too_full(fit, snapshot, ways)
        if too_full is not None:
            return Decision(Outcome.NO_LOW_WORKER, too_full)
        if not budget.may_exceed and len(ways) > most:
            reason = f"an exchange of {len(ways)} moves waits until no other is under way"
            return Decision(Outcome.MOVE_IN_FLIGHT, reason)
        steps = ways
    back = proposals(cluster, snapshot, steps)
    reason = f"{len(steps)} of {len(moves)} executors go back"
    return Decision(Outcome.WOULD_MOVE, reason, back, is_exchange=steps is ways)


def _ways(
    cluster: Cluster, snapshot: LoadSnapshot, moves: Sequence[OwnMove], vetoes: Vetoes
) -> tuple[list[tuple[int, int]], Decision | None]:
    """List what may go back now, as rows and workers, and why others wait, or one never will."""
    rows, workers = row_of(snapshot.executors), {name: w for w, name in enumerate(cluster.workers)}
    ways: list[tuple[int, int]] = []
    waits: Decision | None = None
    for one in moves:
        executor, source = str(one.executor), str(one.source)
        veto = vetoes.executors.get(executor) or vetoes.workers.get(source)
        if source not in workers:
            return [], Decision(Outcome.NO_LOW_WORKER, f"{source} cannot be opened again")
        if veto is None:
            ways.append((rows[executor], workers[source]))
        elif veto.outcome in _WAITS:
            waits = waits or Decision(veto.outcome, veto.reason)
        else:
            return [], Decision(Outcome.NO_LOW_WORKER, veto.reason)
    return ways, waits


def _full_again(fit: Fit, snapshot: LoadSnapshot, ways: Sequence[tuple[int, int]]) -> str | None:
    """Name a space that would be above `load.high`, and fuller than now, after some moves."""
    place, high = place_after(snapshot.place, ways), fit.high_share()
    for one in uses_of(fit.cluster, snapshot):
        if one.overfilled_at(place, high):
            return f"with all of it back, {one.space.shown} would be above {high:g}"
    return None


def _too_full(fit: Fit, snapshot: LoadSnapshot, ways: Sequence[tuple[int, int]]) -> str | None:
    """Name what a placement would fill too much that has all moves taken back."""
    place = place_after(snapshot.place, ways)
    fuller = fit.placed(place).overfilled(fit)
    if fuller is not None:
        return f"with all of it back, {fuller}"
    full = overfilled(fit, snapshot, place)
    return None if full is None else f"with all of it back, {full} would be too full"

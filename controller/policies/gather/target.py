"""The policy `gather`: relieve, walk to the target under way, look for one, else as `greedy`."""

import zlib
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache, partial

import numpy as np

from controller.core.cluster import Cluster, Ints, LoadSnapshot
from controller.core.decision import Decision, Outcome
from controller.core.fit import SURE, made_of
from controller.core.limits import Limits
from controller.core.moved import applied
from controller.core.proposals import proposals
from controller.core.view import View
from controller.policies.gather.goal import Target, digest
from controller.policies.gather.problem import Problem
from controller.policies.gather.route import Route, Step, next_steps
from controller.policies.greedy import choose_greedy, empties, relieving
from controller.policies.options import TargetOptions
from controller.policies.single_move import disjoint


@dataclass(frozen=True, slots=True)
class TargetMemory:
    """The target that one decision leaves to the next.

    `target` is the placement under way. `seen` are the placements that the load and traffic of
    `load` was seen on; with live, never still traffic only the last one.
    """

    target: Target | None = None
    load: int = 0
    seen: frozenset[int] = frozenset()

    def with_snapshot(self, cluster: Cluster, snapshot: LoadSnapshot) -> "TargetMemory":
        """Note a placement; what was seen under another load is forgotten."""
        rates = np.array([zlib.crc32(snapshot.traffic.tps.tobytes())])  # the fastest hash there is
        load = digest(
            snapshot.executors,
            cluster.workers,
            *made_of(cluster, snapshot),
            rates,  # other pairs would have other rates
        )
        seen = self.seen if load == self.load else frozenset()
        return replace(self, load=load, seen=seen | {digest(snapshot.place)})


Propose = Callable[[], Target | None]
IsHeld = Callable[[Decision], bool]
# The next step towards a target, and whether less is too full at its end than today.
Followed = tuple[Decision | None, bool]
STAYS: Followed = None, False


def target(
    cluster: Cluster,
    snapshot: LoadSnapshot,
    limits: Limits,
    options: TargetOptions,
    *,
    memory: TargetMemory,
    propose: Propose,
    is_held: IsHeld = lambda _: False,
) -> tuple[Decision, TargetMemory]:
    """Relieve hot workers, else make one move to a near-optimal placement, else as `greedy`.

    Up to `max_moves` moves, or one exchange, however many have part in it. `memory` is what the
    last decision left, with this snapshot noted; the one returned is for the next decision.
    `propose` gives a target, or None if there is none (yet); it is asked only while none is under
    way. What `is_held` does not begin, and drops no target.

    On frozen traffic no placement comes back. Placements without a target under way fall strictly
    by (excess of hot workers, weighted cost). A move of `greedy` lowers it. So does a target from
    where it is adopted to where it ends. A relief drops a target whose end does not relieve. Where
    a full worker gets fuller by the noise of its load, the excess counts as the same, and the cost
    falls. A way ends at the best placement on it, and one that would come through a placement
    already seen is not adopted. The first of two moves of `greedy` that gain together might lead
    into the middle of an earlier way: it is not made then. Every step of a way is one that was
    foreseen. A move for room raises the cost. It leaves more room, and nothing else may leave less.

    Where rates have a variance, a worker is hot, and a gain counts, only beyond its noise.
    """
    view = View.of(cluster, snapshot, limits)
    best = cache(partial(disjoint, choose_greedy, view))
    hot, full = view.reserve.hot(view.fit).tolist(), view.reserve.too_full(view.fit)
    goal = memory.target
    decision, relieves = _follow(view, options, goal, adopts=False) if goal else STAYS
    if decision is None:
        goal = propose()
        # A search runs outside of the cycle and answers late: its target must be worth it now.
        decision, relieves = _follow(view, options, goal, adopts=True) if goal else STAYS
    is_hot = not relieves and any(relieving(view, worker).executors.size for worker in hot)
    if is_hot or empties(view):
        relief = best()
        # Else each would fill a link too much, and the move is one for traffic.
        if relief.moves and relief.moves[0].source in {cluster.workers[worker] for worker in full}:
            return relief, replace(memory, target=goal if is_held(relief) else None)
    if decision is None:
        decision = _unless_seen(best(), cluster, snapshot, memory)
        return decision, replace(memory, target=None)
    warnings = best().warnings if full else ()
    return replace(decision, warnings=warnings), replace(memory, target=goal)


def _unless_seen(
    decision: Decision, cluster: Cluster, snapshot: LoadSnapshot, memory: TargetMemory
) -> Decision:
    """Make no move back to a placement that was left."""
    if (
        not decision.moves
        or digest(applied(decision.moves, cluster, snapshot).place) not in memory.seen
    ):
        return decision
    reason = f"it would lead back to a placement that was left, though {decision.reason}"
    return Decision(Outcome.NOTHING_TO_GAIN, reason, (), decision.warnings)


def _follow(view: View, options: TargetOptions, goal: Target, *, adopts: bool) -> Followed:
    """Make the next step, if the target is neither reached, gone nor out of reach, and gains."""
    way = goal.on(view.cluster, view.snapshot)
    if way is None:
        return STAYS
    # Since it was searched, room may have been made: where it begins it leaves as much as today.
    input_tps = None if adopts else goal.input_tps
    problem = Problem.of(view.cluster, view.snapshot, view.limits, options, input_tps)
    end = problem.start.copy()
    end[way.executors] = way.goals
    left = problem.today_tps - problem.cost_tps(end)
    relieved = problem.excess_at(end) < problem.excess_at(problem.start)
    full = goal.full_on(view.cluster, problem.fit.on_the_way)
    steps, is_exchange = _steps(replace(problem, full=full), way, view.limits.max_moves)
    away = int((problem.start[way.executors] != way.goals).sum())
    least = 0.0
    if adopts:
        fuller = problem.excess_at(end) > problem.excess_at(problem.start)
        if fuller or problem.reserve.refuses(end):
            return STAYS
        least = options.gain_frac * problem.today_tps + problem.price_tps * away
        least += _doubt_tps(view, problem, end)
    if not steps or (left <= least and not relieved):
        return STAYS
    moves = proposals(view.cluster, view.snapshot, steps)
    named = ", ".join(f"{move.executor} from {move.source} to {move.target}" for move in moves)
    # Where nothing crosses, a way may still go on to relieve a hot worker.
    share = left / problem.today_tps if problem.today_tps else 0.0
    gain = f"gains {view.limits.gain(left)} more, {share:.1%} of what crosses today"
    if left <= 0:
        gain = "leaves more room than this placement on the way to it"
    reason = f"towards a target that {gain}, by {away} executor{'s' * (away != 1)}: {named}"
    decision = Decision(
        Outcome.WOULD_MOVE, reason, moves, is_exchange=is_exchange, relieves=relieved
    )
    return decision, relieved


def _doubt_tps(view: View, problem: Problem, end: Ints) -> float:
    """Compute what the gain of a placement over today's may be too high."""
    traffic = view.snapshot.traffic
    if traffic.var is None:
        return 0.0
    now, then = (
        problem.distance.apart(place[traffic.source], place[traffic.target])
        for place in (problem.start, end)
    )
    size = problem.reserve.size
    closer = then - now if size is None else (then - now) * size
    return SURE * float(np.sqrt((traffic.var * closer**2).sum()))


def _steps(problem: Problem, way: Route, most: int) -> tuple[tuple[Step, ...], bool]:
    """Take up to `most` steps, no executor and no two nodes twice; or an exchange, and True."""
    fit = problem.fit
    taken: list[Step] = []
    used: set[tuple[int, int]] = set()
    while len(taken) < most and (steps := next_steps(problem, fit, way)):
        if len(steps) > 1:
            return (tuple(taken), False) if taken else (steps, True)
        ((e, worker),) = steps
        ends = _between(problem, int(fit.place[e]), worker)
        if ends in used or e in {moved for moved, _ in taken}:
            break
        fit = fit.moved(e, worker)
        taken.append((e, worker))
        used.add(ends)
    return tuple(taken), False


def _between(problem: Problem, one: int, other: int) -> tuple[int, int]:
    a, b = int(problem.node_of[one]), int(problem.node_of[other])
    return min(a, b), max(a, b)

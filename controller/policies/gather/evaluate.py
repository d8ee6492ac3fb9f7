"""Decides whether a placement is worth going to."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from controller.core.cluster import Cluster, Ints, LoadSnapshot
from controller.core.fit import Fit
from controller.core.limits import Limits
from controller.core.moved import applied
from controller.policies.gather.goal import Answer, Target, digest
from controller.policies.gather.problem import TIE, Problem
from controller.policies.gather.route import Route, next_steps, route
from controller.policies.gather.search import search
from controller.policies.greedy import greedy
from controller.policies.options import TargetOptions

# Up to this many executors, `greedy` is followed to its end, so that a target is never worse.
GREEDY_EXECUTORS = 60
# A way is cut to the moves that its best placement has made. Without the others it may lead
# elsewhere, so it is walked again: this many walks at most.
CUTS = 3


@dataclass(frozen=True, slots=True)
class TargetQuestion:
    """Which placement is worth going to."""

    cluster: Cluster
    snapshot: LoadSnapshot
    limits: Limits
    options: TargetOptions
    seen: frozenset[int]

    @property
    def topology(self) -> str:
        return self.snapshot.topology

    @property
    def failed(self) -> Answer:
        return Answer(None)

    def answer(self) -> Answer:
        found = find(self.cluster, self.snapshot, self.limits, self.options, self.seen)
        at_best = Fit.of(self.cluster, self.snapshot, self.limits).growth_at_best
        return replace(found, at_best=at_best)


def find(
    cluster: Cluster,
    snapshot: LoadSnapshot,
    limits: Limits,
    options: TargetOptions,
    seen: frozenset[int] = frozenset(),
) -> Answer:
    """Search for a placement that gains enough and can be reached; no target if none is worth it.

    The way may not come through the placements `seen`, each by its `digest`. Takes long (annealing,
    the order of all moves), so a live run does it parallel to the cycle. The way is walked to its
    end here: on frozen traffic it can be walked as it is.
    """
    problem = Problem.of(cluster, snapshot, limits, options)
    least_gain = options.gain_frac * problem.today_tps
    if len(cluster.workers) < 2 or problem.today_tps <= 0 or not problem.free.any():
        return Answer(None)
    place = search(problem, least_gain, _end_of_greedy(cluster, snapshot, limits))
    if place is None:
        return Answer(None)
    way = route(problem, place)
    target = _worth(cluster, snapshot, problem, options, _walkable(problem, way, seen))
    gain = problem.today_tps - problem.cost_tps(place) - (target.gain_tps if target else 0.0)
    if gain <= least_gain or problem.excess_at(place) > problem.excess_at(problem.start):
        return Answer(target)
    beyond = f"a placement that gains {limits.gain(gain)} more is known and out of reach"
    return Answer(target, f"{beyond}: {_missing(cluster, snapshot, problem, way)}")


def _worth(
    cluster: Cluster,
    snapshot: LoadSnapshot,
    problem: Problem,
    options: TargetOptions,
    walkable: tuple[Route, float] | None,
) -> Target | None:
    """Name a way that gains enough."""
    if walkable is None:
        return None
    way, above_tps = walkable
    end = problem.start.copy()
    end[way.executors] = way.goals
    gain = problem.today_tps - problem.cost_tps(end)
    least_gain = options.gain_frac * problem.today_tps
    if gain - problem.price_tps * len(way.executors) <= least_gain:
        return None
    # What the way costs must be back once as many decisions have passed as it takes.
    if not options.detours and above_tps > gain * len(way.executors):
        return None
    return Target(
        tuple(snapshot.executors[e] for e in way.executors),
        tuple(cluster.workers[w] for w in way.goals),
        gain,
        tuple(
            (cluster.workers[w], float(problem.full[w])) for w in np.flatnonzero(problem.stays_high)
        ),
        None if cluster.node_cores is None else problem.fit.keeps * problem.total_tps,
    )


def _missing(cluster: Cluster, snapshot: LoadSnapshot, problem: Problem, way: Route) -> str:
    """Return what would let a way be gone to its end."""
    place = [problem.start, *(place for place, _ in _walk(problem, way))][-1]
    waiting = way.only(place[way.executors] != way.goals)
    if not waiting.executors.size:
        return "on the way it costs more than to stay, or comes back to where it was"
    fit = problem.fit.placed(place)
    missing = fit.lacks(waiting.executors, waiting.goals)
    least = int(np.argmin(missing))
    executor = snapshot.executors[waiting.executors[least]]
    worker = cluster.workers[waiting.goals[least]]
    wait = f"{len(waiting.executors)} of its {len(way.executors)} executors wait for room"
    ends = int(waiting.executors[least]), int(waiting.goals[least])
    if (lacking := fit.why_no_memory(*ends)) is not None:
        return f"{wait}; {executor} cannot go to {worker}: {lacking}"
    return f"{wait}; {missing[least]:.2g} cores more on {worker} would let {executor} go there"


def _end_of_greedy(cluster: Cluster, snapshot: LoadSnapshot, limits: Limits) -> tuple[Ints, ...]:
    if len(snapshot.executors) > GREEDY_EXECUTORS:
        return ()
    limits, seen = replace(limits, max_moves=1), set[bytes]()
    while (decision := greedy(cluster, snapshot, limits)).moves:
        # Should a placement come back, the search would never end.
        if (place := snapshot.place.tobytes()) in seen:
            break
        seen.add(place)
        snapshot = applied(decision.moves, cluster, snapshot)
    return (snapshot.place,)


def _walkable(problem: Problem, way: Route, seen: frozenset[int]) -> tuple[Route, float] | None:
    """Cut a way off where it is best, so that no placement on it is better than its end.

    Gives also by how much its placements cost more than today's, all added up.
    """
    for _ in range(CUTS):
        best, least = problem.start, (problem.excess_at(problem.start), 0.0)
        end, above_tps = problem.start, 0.0
        for place, key in _walk(problem, way):
            if digest(place) in seen:
                break
            end = place
            above_tps += key[1]
            if key < least:
                best, least = place, key
        kept = way.only(best[way.executors] == way.goals)
        if len(kept.executors) == len(way.executors) and (end == best).all():
            return (way, above_tps) if len(way.executors) else None
        way = kept
    return None


def _walk(problem: Problem, way: Route) -> Iterator[tuple[Ints, tuple[float, float]]]:
    """Walk until nothing fits; yields each placement with its excess and its cost above today's."""
    fit, cost = problem.fit, 0.0
    noise = TIE * problem.total_tps
    while steps := next_steps(problem, fit, way):
        for e, worker in steps:
            cost -= problem.gain_tps(fit.place, e, worker)
            fit = fit.moved(e, worker)
        # Steps of noise would make placements differ that are the same.
        yield fit.place, (problem.excess(fit), round(cost / noise) * noise)

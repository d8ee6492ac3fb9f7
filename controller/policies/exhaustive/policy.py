"""Finds the best placement of a small topology by looking at all that could be better."""

from math import inf, log2

import numpy as np

from controller.core.classify import TIE, TOLERANCE_CORES, Limits
from controller.core.cluster import Cluster, Floats, Ints, LoadSnapshot
from controller.core.decision import Decision, Outcome
from controller.errors import PolicyError
from controller.policies.exhaustive.problem import PlacementProblem
from controller.policies.placement import as_decision

# Two to this power placements at most: 10 movable executors on 4 workers, or 6 on 8. Where
# all talk to all, little can be left out, and more would take minutes.
MOST_BITS = 20


def exhaustive(cluster: Cluster, snapshot: LoadSnapshot, limits: Limits) -> Decision:
    """Decide for a placement than which there is none better that fills no worker above `high`.

    Today's placement is kept if it is as good as any. No moves, with what is missing, if no
    placement fits. Raises PolicyError, which says how much is too much, if it would take too long.
    """
    movable, workers = int(snapshot.is_movable.sum()), len(cluster.workers)
    if movable * log2(workers) > MOST_BITS:
        raise PolicyError(
            f"policy exhaustive: {movable} movable executors on {workers} workers are "
            f"{workers}^{movable} placements, more than 2^{MOST_BITS}; take a smaller snapshot"
        )
    problem = PlacementProblem.of(cluster, snapshot, limits)
    best = search(problem, snapshot.place)
    if best is None:
        return _missing(snapshot, problem, limits)
    before, after = problem.cost_tps(snapshot.place), problem.cost_tps(best)
    why = f"exhaustive search: weighted traffic {before:.6g} before, {after:.6g} t/s at best"
    return as_decision(cluster, snapshot, best, why)


def search(problem: PlacementProblem, start: Ints) -> Ints | None:
    """Find a cheapest placement, None if none fits; `start` wins if it fits and none is cheaper.

    Branch and bound. Executors that talk most go first. Of places that are alike and empty one is
    tried. What is not placed yet costs at least its traffic with what is placed, at its best place.
    """
    state = _Search(problem, start)
    state.descend(0, 0.0, np.zeros((len(start), len(problem.node_of))))
    return state.best


class _Search:
    def __init__(self, problem: PlacementProblem, start: Ints) -> None:
        self.problem, self.start = problem, start
        places, nodes = len(problem.node_of), len(problem.node_cores)
        self.traffic = np.zeros((len(start), len(start)))
        np.add.at(self.traffic, (problem.one, problem.other), problem.tps)
        self.traffic += self.traffic.T
        self.slack_tps = TIE * max(float(problem.tps.sum()), 1.0)
        self.distance = problem.distance()
        # Executors without a choice go first, then those that talk most.
        choices = problem.allowed.sum(axis=1)
        self.order = np.lexsort((-self.traffic.sum(axis=1), choices > 1))
        self.kinds = _kinds(problem)
        self.place = start.copy()
        self.used, self.at_node = np.zeros(places), np.zeros(nodes)
        self.on_place, self.on_node = np.zeros(places, np.int64), np.zeros(nodes, np.int64)
        self.best: Ints | None = None
        self.best_tps = inf
        if problem.fits(start):
            self.best, self.best_tps = start, problem.cost_tps(start)

    def descend(self, depth: int, cost_tps: float, with_placed: Floats) -> None:
        """Place the next executor everywhere it may be; `with_placed` is what each would cost."""
        if depth == len(self.order):
            self.best, self.best_tps = self.place.copy(), cost_tps
            return
        e, rest = int(self.order[depth]), self.order[depth + 1 :]
        for w in self._candidates(e, with_placed[e]):
            now_tps = cost_tps + float(with_placed[e, w])
            further = with_placed + self.traffic[e][:, None] * self.distance[w]
            bound = now_tps + float(further[rest].min(axis=1).sum())
            if bound < self.best_tps - self.slack_tps:
                self._put(e, w, 1)
                self.descend(depth + 1, now_tps, further)
                self._put(e, w, -1)

    def _candidates(self, e: int, cost: Floats) -> list[int]:
        """List places with room, cheapest first, one of each kind; today's before its likes."""
        problem, cpu = self.problem, self.problem.cpu_cores[e]
        room = self.used + cpu <= problem.place_cores + TOLERANCE_CORES
        room &= (self.at_node + cpu <= problem.node_cores + TOLERANCE_CORES)[problem.node_of]
        fitting = np.flatnonzero(room & problem.allowed[e]).tolist()
        fitting.sort(key=lambda w: (float(cost[w]), w != self.start[e], w))
        one_of_each: dict[tuple[object, ...], int] = {}
        for w in fitting:
            one_of_each.setdefault(self._alike(w), w)
        return list(one_of_each.values())

    def _alike(self, w: int) -> tuple[object, ...]:
        node = int(self.problem.node_of[w])
        if self.on_place[w]:
            return (w,)
        return (node, self.kinds[w][-1]) if self.on_node[node] else self.kinds[w]

    def _put(self, e: int, w: int, sign: int) -> None:
        node = self.problem.node_of[w]
        self.place[e] = w
        self.used[w] += sign * self.problem.cpu_cores[e]
        self.at_node[node] += sign * self.problem.cpu_cores[e]
        self.on_place[w] += sign
        self.on_node[node] += sign


def _kinds(problem: PlacementProblem) -> list[tuple[object, ...]]:
    """Describe every place by its node's likeness and its own; alike are equal."""
    free = problem.allowed[problem.allowed.sum(axis=1) > 1]
    own = [(float(c), free[:, w].tobytes()) for w, c in enumerate(problem.place_cores)]
    node = [
        (float(cores), tuple(sorted(own[w] for w in np.flatnonzero(problem.node_of == n))))
        for n, cores in enumerate(problem.node_cores)
    ]
    return [(node[n], own[w]) for w, n in enumerate(problem.node_of)]


def _missing(snapshot: LoadSnapshot, problem: PlacementProblem, limits: Limits) -> Decision:
    biggest = int(np.argmax(snapshot.cpu_cores))
    need, high = float(snapshot.cpu_cores[biggest]), limits.high_frac
    reason = (
        f"resources are missing: no placement keeps every worker within {high:g} of its CPU; "
        f"{snapshot.cpu_cores.sum():.3g} cores are in use, {problem.place_cores.sum():.3g} may be"
    )
    if need > problem.place_cores.max() + TOLERANCE_CORES:
        name = f"{snapshot.executors[biggest]} ({snapshot.component_of[biggest]})"
        reason = (
            f"resources are missing: {name} alone needs {need:.3g} cores, more than {high:g} of "
            "any worker"
        )
    return Decision(Outcome.NO_LOW_WORKER, f"exhaustive search: {reason}")

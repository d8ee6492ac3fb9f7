"""The way from today's placement to a better one: in which order, and what to do if nothing fits.

The order is fixed when a target is adopted. Which step comes next is then read off the placement,
so a step that was refused, or that Storm or an operator made, disturbs nothing.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from heapq import heappop, heappush
from itertools import islice
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from controller.core.cluster import Floats, Ints, place_after
from controller.core.declared import TOLERANCE_MB
from controller.core.fit import Fit
from controller.policies.gather.problem import Problem

# Executors of a group gain little one by one and much together. A chain looks this many ahead.
CHAIN = 24
# Executors that move at once, at most: each of them is twice in memory for a moment. So an exchange
# of more is only looked for where there is none of few.
AT_ONCE = 4, 16, 32
# This number of executors is tried as the first of one, and with each this number of exchanges.
MOST_BEGUN, MOST_TRIED = 20, 200

Step = tuple[int, int]


@dataclass(frozen=True, slots=True, eq=False)
class Route:
    """Executors in order, and the workers that they go to."""

    executors: Ints  # (D,)
    goals: Ints  # (D,)

    def only(self, keep: NDArray[np.bool_]) -> "Route":
        return Route(self.executors[keep], self.goals[keep])


def route(problem: Problem, target: Ints) -> Route:
    """Order the moves to a placement: always the chain to one node that gains most per move.

    It has all that have to move; what fits when is not looked at here.
    """
    chains = _Chains(problem, target)
    picked: list[int] = []
    while chains.goal_nodes.any():
        node = int(np.argmax(chains.mean))
        if chains.stale[node]:
            chains.look(node)
        else:
            picked += chains.take(node)
    executors = np.array(picked, dtype=np.int64)
    return Route(executors, target[executors])


def next_steps(problem: Problem, fit: Fit, way: Route) -> tuple[Step, ...]:
    """Choose what moves next from a placement: executors and workers.

    The first of the route that fits, and overfills no link, space or memory. If nothing does,
    executors that wait for each other's places move at once. Empty if the route is at its end or
    nothing helps.
    """
    may = (fit.place[way.executors] != way.goals) & problem.free[way.executors]
    waiting = way.only(may & problem.is_open[way.goals])
    fits = fit.fits(waiting.executors, waiting.goals, fit.on_the_way)
    for first in np.flatnonzero(fits)[:MOST_BEGUN]:
        step = int(waiting.executors[first]), int(waiting.goals[first])
        if not problem.reserve.bars(place_after(fit.place, [step])):
            return (step,)
    for look in (_exchange, _all_between):
        steps = look(problem, fit, waiting)
        after = place_after(fit.place, steps)
        if steps and not (fit.overfills_memory(after) or problem.reserve.bars(after)):
            return steps
    return ()


def _exchange(problem: Problem, fit: Fit, waiting: Route) -> tuple[Step, ...]:
    """Find executors that fit if they move at once: few, or else more.

    So a big one changes places with two small ones, and three go in a ring.
    """
    goal = dict(zip(waiting.executors.tolist(), waiting.goals.tolist(), strict=True))
    left, changes = _changes(problem, fit, waiting)
    leaving = dict[int, list[int]]()
    for e, change in changes.items():
        for unit in change.homes:
            leaving.setdefault(unit, []).append(e)

    def with_first(first: int, most: int) -> tuple[int, ...]:
        """Look at what leaves the least cores too much, then at the fewest executors.

        The fullest worker must lose another one that waits. Of many alike this is a shortest ring.
        """
        # What is too much in all places, executors that move, what each place lacks.
        queue: list[tuple[float, int, int, tuple[int, ...], dict[int, float]]] = []
        tried: set[frozenset[tuple[int, float]]] = set()

        def look_at(moving: tuple[int, ...], lacks: Mapping[int, float]) -> None:
            e, after = moving[-1], dict(lacks)
            for unit, one in changes[e].more.items():
                after[unit] = round(after.get(unit, -left[unit]) + one, 9)
            full = [lack for lack in after.values() if lack > 0]
            # Other executors that come to the same loads lead to nothing else.
            loads = frozenset(after.items())
            if len(moving) + len(full) <= most and loads not in tried:  # each relieves one worker
                tried.add(loads)
                heappush(queue, (round(sum(full), 9), len(moving), len(tried), moving, after))

        look_at((first,), {})
        for _ in range(MOST_TRIED):
            if not queue:
                break
            lack, *_, moving, lacks = heappop(queue)
            if lack <= 0 and _fit_together(problem, fit, moving, goal):
                return moving
            if lack <= 0:
                continue
            fullest = max(lacks, key=lacks.__getitem__)
            for e in leaving.get(fullest, ()):
                if e not in moving:
                    look_at((*moving, e), lacks)
        return ()

    begun = ((first, most) for most in AT_ONCE for first in islice(goal, MOST_BEGUN))
    found = next(filter(None, (with_first(*one) for one in begun)), ())
    return tuple((e, goal[e]) for e in found)


class _Change(NamedTuple):
    """The places that a move leaves, and what it changes in each place, by their indices."""

    homes: tuple[int, ...]
    more: dict[int, float]


def _changes(problem: Problem, fit: Fit, waiting: Route) -> tuple[list[float], dict[int, _Change]]:
    """Give what is left in each place, in cores, and what the move of each executor changes.

    Places are those whose CPU workers use. Where memory is declared, nodes follow, with all that is
    declared as much as all that is used.
    """
    unit_of, node_of, home = fit.cluster.unit_of, fit.cluster.node_of, fit.place[waiting.executors]
    left = fit.by_unit(fit.left(problem.full)).tolist()
    more = fit.more(waiting.executors, waiting.goals)
    used = waiting.executors, unit_of[home], unit_of[waiting.goals], *more
    found = {
        e: _Change((one,), {there: came} if one == there else {there: came, one: went})
        for e, one, there, came, went in zip(*(column.tolist() for column in used), strict=True)
    }
    if fit.memory is None:
        return left, found
    each_mb = fit.memory.each_mb
    cores = float(fit.demand.sum()) / max(float(each_mb.sum()), TOLERANCE_MB)
    ends = len(left) + node_of[home], len(left) + node_of[waiting.goals]
    declared = waiting.executors, *ends, each_mb[waiting.executors] * cores
    for e, one, there, need in zip(*(column.tolist() for column in declared), strict=True):
        if one != there:
            change = {**found[e].more, there: need, one: -need}
            found[e] = _Change((*found[e].homes, one), change)
    return left + (fit.memory.left_mb(fit.place) * cores).tolist(), found


def _fit_together(
    problem: Problem, fit: Fit, moving: tuple[int, ...], goal: Mapping[int, int]
) -> bool:
    """Check that executors fit if they move at once: what each brings was counted alone."""
    if fit.traffic is None:
        return True
    executors = np.array(moving, np.int64)
    goals = np.array([goal[e] for e in moving], np.int64)
    return bool(fit.fits_together(executors, goals, problem.full).all())


def _all_between(problem: Problem, fit: Fit, waiting: Route) -> tuple[Step, ...]:
    """Give all that wait between the fewest workers that no other waits for, if they fit."""
    unit_of = fit.cluster.unit_of
    group = np.arange(len(fit.cluster.unit_cores))
    ends = unit_of[fit.place[waiting.executors]], unit_of[waiting.goals]
    while (group[ends[0]] != group[ends[1]]).any():
        least = np.minimum(group[ends[0]], group[ends[1]])
        for units in ends:
            np.minimum.at(group, units, least)
    each = fit.fits_together(waiting.executors, waiting.goals, problem.full)
    fits = np.ones(len(group), np.bool_)
    fits[unit_of] = each
    groups, count = np.unique(group[ends[1]], return_counts=True)
    for one in groups[np.argsort(count, kind="stable")]:
        together = waiting.executors[group[ends[1]] == one]
        if len(together) <= AT_ONCE[-1] and fits[group == one].all():
            goals = waiting.goals[group[ends[1]] == one]
            return tuple(zip(together.tolist(), goals.tolist(), strict=True))
    return ()


class _Chains:
    """For each node the best beginning of a greedy chain of moves to it.

    `gain` is what each executor's own move would gain now. `goal_node` is the node it still has to
    go to, or -1; `goal_nodes` counts those by node. `mean` is the gain per move of the chain of a
    node: infinite until it was looked at, so that every node is. Gains have changed since on
    `stale` nodes.
    """

    def __init__(self, problem: Problem, target: Ints) -> None:
        self.problem, self.target = problem, target
        self.place = problem.start.copy()
        owner, near = problem.graph.owner, problem.distance.near
        peers = self.place[problem.graph.peers]
        closer = near(target[owner], peers) - near(self.place[owner], peers)
        gains = closer * problem.graph.counted_tps
        self.gain = np.bincount(owner, gains, len(target)).astype(np.float64)
        self.goal_node = np.where(target != self.place, problem.node_of[target], -1)
        away = self.goal_node[self.goal_node >= 0]
        self.goal_nodes = np.bincount(away, minlength=len(problem.fit.cluster.nodes))
        self.mean = np.where(self.goal_nodes > 0, np.inf, -np.inf)
        self.stale = self.goal_nodes > 0
        self.chain: dict[int, list[int]] = {}

    def look(self, node: int) -> None:
        """Build the chain to a node and keep its beginning of highest mean gain."""
        members = np.flatnonzero(self.goal_node == node)
        gain = np.full(len(self.place), -np.inf)
        gain[members] = self.gain[members]
        picked: list[int] = []
        means: list[float] = []
        total = 0.0
        for _ in range(min(CHAIN, len(members))):
            e = int(members[np.argmax(gain[members])])
            total += float(gain[e])
            picked.append(e)
            means.append(total / len(picked))
            gain[e] = -np.inf
            peers, change = self.changes(e)
            gain[peers] += change
        best = int(np.argmax(means))
        self.chain[node], self.mean[node] = picked[: best + 1], means[best]
        self.stale[node] = False

    def take(self, node: int) -> list[int]:
        """Make the moves of a chain and mark the nodes to which chains have changed."""
        for e in self.chain[node]:
            peers, change = self.changes(e)
            self.gain[peers] += change
            nodes = self.goal_node[peers]
            self.stale[nodes[nodes >= 0]] = True
            self.place[e] = self.target[e]
            self.goal_node[e] = -1
            self.goal_nodes[node] -= 1
        self.stale[node] = self.goal_nodes[node] > 0
        self.mean[node] = np.inf if self.stale[node] else -np.inf
        return self.chain[node]

    def changes(self, e: int) -> tuple[Ints, Floats]:
        """Compute what a move of e changes in the gains of the executors it talks to."""
        problem, row = self.problem, self.problem.graph.row(e)
        peers = problem.graph.peers[row]
        goals, at = self.target[peers], self.place[peers]
        new, old, near = int(self.target[e]), int(self.place[e]), problem.distance.near
        change = near(new, goals) - near(new, at)
        change -= near(old, goals) - near(old, at)
        return peers, change * problem.graph.counted_tps[row]

"""Moves executors away from hosts that operators drain, before any policy is asked."""

from collections import Counter, defaultdict
from collections.abc import Collection, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from controller.core.capacity import Spare
from controller.core.case import Budget, TopologyCase, shift
from controller.core.cluster import Cluster
from controller.core.decision import Decision, Outcome
from controller.core.excluded import Excluded
from controller.core.fit import Fit, with_others
from controller.core.limits import Limits
from controller.core.picture import Picture
from controller.core.proposals import proposals
from migration.model import ExecutorId, Slot


def drain_each(
    cases: Sequence[TopologyCase],
    drained: tuple[str, ...],  # hosts
    excluded: Excluded,  # with ids of nodes in place of hosts
    limits: Limits,
    budget: Budget,
    *,
    rests: Collection[tuple[str, ExecutorId]] = (),
) -> tuple[list[TopologyCase], Budget]:
    """Decide about the topologies that have executors to move from a drained host.

    It wants only what is allowed, so that a move that is refused takes none from another topology.
    A topology sees what those before it take along. What `rests` after a move waits: it may have
    come back, and would again.
    Where no worker has room, a slot is opened, and no other on its node.
    """
    found: list[TopologyCase] = []
    closed = excluded.drained | excluded.hosts
    shifted: defaultdict[str, float] = defaultdict(float)  # cores, by node
    for case in cases:
        made = case.picture if drained and case.drain_stop is None else None
        leaving = _leaving(made, excluded.drained, case.resting(rests)) if made else []
        if made is None or not leaving:
            found.append(case)
            continue
        most = min(budget.free_moves, case.view.allowed.room)
        to_open = [one for one in case.slots if one.node not in closed]
        cluster = with_others(made.cluster, shifted)
        beside = replace(made, layout=replace(made.layout, cluster=cluster))
        pace = replace(limits, max_moves=most)
        bad = case.restarted.workers
        decision = _drain(beside, leaving, excluded, pace, to_open, bad=bad)
        shift(shifted, made, decision.moves)
        cause = f"host{'s' * (len(drained) > 1)} {', '.join(drained)} drained"
        decision = replace(decision, reason=f"{cause}: {decision.reason}")
        found.append(replace(case, drain=decision))
        budget = budget.without(len(decision.moves))
        targets = {move.target for move in decision.moves}
        closed |= {one.node for one in to_open if one.worker in targets}
    return found, budget


def _leaving(made: Picture, drained: Collection[str], resting: Collection[str]) -> list[int]:
    """List the executors on drained nodes that a move may take away now."""
    snapshot = made.snapshot
    stays = {*made.view.allowed.vetoes.executors, *resting}
    here = _workers_at(made.cluster, drained)[snapshot.place]
    return [e for e in np.flatnonzero(here).tolist() if snapshot.executors[e] not in stays]


def _is_open(made: Picture, closed: Collection[str], bad: Collection[str]) -> NDArray[np.bool_]:
    """Mark the workers that may be given an executor, shape (S,)."""
    vetoes = {*made.view.allowed.vetoes.workers, *bad}
    is_allowed = np.array([name not in vetoes for name in made.cluster.workers])
    return is_allowed & ~_workers_at(made.cluster, closed)


def _workers_at(cluster: Cluster, nodes: Collection[str]) -> NDArray[np.bool_]:
    """Mark the workers of these nodes, shape (S,)."""
    return np.array([node in nodes for node in cluster.nodes])[cluster.node_of]


def _drain(
    made: Picture,
    leaving: list[int],
    excluded: Excluded,
    limits: Limits,
    to_open: Sequence[Spare],
    *,
    bad: Collection[str],  # workers that start again and again
) -> Decision:
    cluster, snapshot, allowed = made.cluster, made.snapshot, made.view.allowed
    running = len(cluster.workers)
    cluster = cluster.with_opened(*to_open)
    if limits.max_moves <= 0:
        return Decision(Outcome.MOVE_IN_FLIGHT, "executors wait for moves under way")
    fit = Fit.of(cluster, snapshot, limits)
    may_come = _is_open(made, excluded.drained | excluded.hosts, bad)
    is_open = np.append(may_come, [True] * len(to_open))
    limit = np.where(is_open, fit.may_fill, -np.inf)
    # What leaves may bring more hops to where it leaves than it takes away: that must empty.
    leaves = np.where(is_open, fit.may_fill, np.inf)
    left: Counter[str] = Counter()
    # The largest first: a small one still finds room at the end.
    leaving.sort(key=lambda e: (-fit.demand[e], e))
    steps: list[tuple[int, int]] = []
    for e in leaving:
        # A worker that runs comes before one that has to be started.
        largest, source = fit.largest_for(e, limit), cluster.workers[snapshot.place[e]]
        to = int(np.argmax(largest[:running]))
        if not (is_open[to] and fit.has_room(e, to, leaves)):
            to = int(np.argmax(largest))
        if len(steps) == limits.max_moves or not (is_open[to] and fit.has_room(e, to, leaves)):
            continue
        if allowed.is_last(Slot.parse(source), left[source]):
            continue
        left[source] += 1
        fit = fit.moved(e, to)
        steps.append((e, to))
    if steps:
        reason = f"{len(leaving)} of its executors may leave"
        return Decision(Outcome.WOULD_MOVE, reason, proposals(cluster, snapshot, steps))
    smallest = leaving[-1]
    reason = f"{snapshot.executors[smallest]} {fit.why_nowhere(smallest, limit)}"
    return Decision(Outcome.NO_LOW_WORKER, reason)

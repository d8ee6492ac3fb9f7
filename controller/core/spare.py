"""Chooses the free slot that may be opened where workers are too full."""

from collections.abc import Collection, Sequence
from dataclasses import replace

import numpy as np

from controller.core.capacity import Spare
from controller.core.case import TopologyCase
from controller.core.cluster import Cluster, LoadSnapshot
from controller.core.decision import Outcome, Vetoes
from controller.core.picture import Picture
from controller.core.spaces import any_full
from migration.model import ExecutorId, Slot


def spare_each(
    cases: Sequence[TopologyCase],
    closed: Collection[str],  # nodes
    *,
    free: Collection[Slot],  # the slots where a move may start a worker
    rests: Collection[tuple[str, ExecutorId]],  # topology and executor of recent moves
) -> list[TopologyCase]:
    """Lay a free slot into the pictures that have a worker above the limit; each opens one at once.

    It is on the node with the most room. What moves there counts against all that the node runs.
    """
    moves = [move for case in cases if case.drain for move in case.drain.moves]
    taken = {Slot.parse(move.target) for move in moves}.intersection(free)
    opening = {slot for case in cases for slot in case.view.observation.opened} | taken
    closed = {*closed, *(slot.supervisor for slot in opening)}
    found: list[TopologyCase] = []
    for case in cases:
        made = case.picture if free and case.stop is None and case.drain is None else None
        if made is None or not (made.fit.is_high.any() or any_full(made.fit, made.snapshot)):
            found.append(case)
            continue
        spare = _spare(case, made, closed, case.resting(rests))
        cluster = replace(made.cluster, spare=spare)
        layout = replace(made.layout, cluster=cluster)
        found.append(replace(case, picture=replace(made, layout=layout)))
    return found


def _spare(
    case: TopologyCase,
    made: Picture,
    closed: Collection[str],
    resting: Collection[str],
) -> Spare | str:
    """Choose the slot to open, or give the reason why there is none."""
    observation, (version, who) = case.view.observation, case.view.observation.speaks
    if not observation.can_open:
        return f"{who} speaks version {version} of the protocol, which opens none"
    if observation.opened:
        return f"{min(observation.opened)} is being opened"
    memory = made.fit.memory
    full = set[str]() if memory is None else memory.full(made.snapshot.place)
    slots = [slot for slot in case.slots if slot.node not in closed and slot.node not in full]
    spare: Spare | str = "none is on a host that may take a worker more"
    if slots:
        room, is_high = made.fit.room_by_node(), bool(made.fit.is_high.any())
        # One more worker of a host brings no CPU, so where that is short it comes last.
        used = {slot.supervisor for slot in observation.slots} if is_high else set[str]()
        spare = max(slots, key=lambda slot: (slot.node not in used, room[slot.node]))
    return _unsettled(made, resting) or spare


def _unsettled(made: Picture, resting: Collection[str]) -> str | None:
    """Name a worker whose load must be measured again before another is opened; None without.

    It is above the limit and has an executor that moved recently, or it has no others: then it
    was opened for them.
    """
    snapshot, workers = made.snapshot, made.cluster.workers
    moved = np.array([name in resting for name in snapshot.executors], bool)
    new = np.bincount(snapshot.place[moved], minlength=len(workers))
    opened = new == np.bincount(snapshot.place, minlength=len(workers))
    found = np.flatnonzero((new > 0) & (opened | made.fit.is_high))
    if not found.size:
        return None
    what = "all executors" if opened[found[0]] else "an executor"
    return f"{what} of {workers[found[0]]} moved recently"


def with_emptied(cluster: Cluster, snapshot: LoadSnapshot, vetoes: Vetoes) -> Cluster:
    """Take for spare, of a file's workers without executors, the one with the most CPU.

    It is on a node where the topology has no other, and nothing else is in its way.
    """
    count = np.bincount(cluster.node_of[snapshot.place], minlength=len(cluster.nodes))
    empty = [
        cluster.emptied(w)
        for w in np.flatnonzero(count[cluster.node_of] == 0).tolist()
        if cluster.closed[w] is None
        and vetoes.workers[cluster.workers[w]].outcome is Outcome.NO_WORKER_IN_SLOT
    ]
    if not empty and cluster.spare is None:
        return cluster
    return replace(cluster, spare=max(empty, key=lambda one: one.capacity, default=None))

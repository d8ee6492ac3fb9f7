"""Tells placements, moves and plans into each other."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from migration.model import ExecutorId, Phase, Plan, Publication, Slot


@dataclass(frozen=True, slots=True, order=True)
class Move:
    """One executor from a slot to another."""

    executor: ExecutorId
    source: Slot
    target: Slot


def diff(before: Mapping[ExecutorId, Slot], after: Mapping[ExecutorId, Slot]) -> tuple[Move, ...]:
    """List the moves that lead from one placement to another.

    Parameters
    ----------
    before, after : mapping of ExecutorId to Slot
        Placements of the same executors.

    Returns
    -------
    tuple of Move
        In the order of the executors.

    Raises
    ------
    KeyError
        An executor is in `before` only.
    """
    return tuple(
        Move(executor, slot, after[executor])
        for executor, slot in sorted(before.items())
        if after[executor] != slot
    )


def apply(before: Mapping[ExecutorId, Slot], moves: Iterable[Move]) -> dict[ExecutorId, Slot]:
    """Make moves, the inverse of `diff`.

    Parameters
    ----------
    before : mapping of ExecutorId to Slot
        A placement.
    moves : iterable of Move
        At most one an executor.

    Returns
    -------
    dict of ExecutorId to Slot
        The placement after them.
    """
    return {**before, **{move.executor: move.target for move in moves}}


def settled_placement(publication: Publication, plan: Plan | None) -> dict[ExecutorId, Slot]:
    """Tell where each executor will be once the moves under way have ended.

    Parameters
    ----------
    publication : Publication
        Storm's own assignment.
    plan : Plan or None
        The moves laid over it.

    Returns
    -------
    dict of ExecutorId to Slot
        Without executors that Storm has not assigned.

    Notes
    -----
    A target is filled from the start of a move, so that the next decision leaves it the room.
    """
    placed = {p.executor: p for p in publication.executors if p.slot is not None}
    placement = {executor: p.slot for executor, p in placed.items() if p.slot is not None}
    for entry in plan.entries if plan else ():
        storm = placed.get(entry.executor)
        if storm and entry.phase is not Phase.UNDO and entry.counts(storm.slot, storm.start_secs):
            placement[entry.executor] = entry.target
    return placement

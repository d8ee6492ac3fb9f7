"""The protocol of a move as a pure machine: what is seen goes in, the next plan comes out.

It reads no clock and keeps nothing: the caller holds the `Flight`, writes the plan of a `Step` with
a compare-and-set, and takes the step's flight once that has worked. After any other result it reads
the plan again and resumes from it; every phase can be resumed by anyone.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from enum import StrEnum

from migration.events import HAPPENED, Case, Progress, Sight
from migration.model import (
    ABSORBED,
    Entry,
    EntryState,
    NodeAcks,
    Phase,
    Plan,
    Publication,
    Timing,
)
from migration.table import LEAVE, VOID, Transition, transitions_from


class Outcome(StrEnum):
    """How a move ended."""

    MOVED = "MOVED"
    UNDONE = "UNDONE"
    VOID = "VOID"


@dataclass(frozen=True, slots=True)
class Flight:
    """A plan as it is written, the epoch of its leader, and the progress of its entries."""

    plan: Plan
    epoch: int
    progress: tuple[Progress, ...] = ()


@dataclass(frozen=True, slots=True)
class Event:
    """Something that happened to an entry: the entry before, and how long its phase lasted."""

    entry: Entry
    name: str
    next: str
    reason: str
    phase_s: float


@dataclass(frozen=True, slots=True)
class Left:
    """An entry that has left the plan; no duration if an earlier leader made the move."""

    entry: Entry
    outcome: Outcome
    reason: str
    duration_s: float | None


@dataclass(frozen=True, slots=True)
class Step:
    """The result of one look.

    Parameters
    ----------
    plan : Plan or None
        To be written with a compare-and-set at version `plan.version - 1`; None: no change.
    flight : Flight
        To be held from now on, if there was nothing to write or the write has worked.
    left : tuple of Left
        The entries that the plan no longer has.
    events : tuple of Event
        What happened.
    """

    plan: Plan | None
    flight: Flight
    left: tuple[Left, ...] = ()
    events: tuple[Event, ...] = ()


def resume(plan: Plan, epoch: int, now_s: float) -> Flight:
    """Take a plan over, from the store or from an earlier leader; all limits start anew.

    Parameters
    ----------
    plan : Plan
        The plan as it is written.
    epoch : int
        The epoch under which this leader writes.
    now_s : float
        Monotonic seconds.

    Returns
    -------
    Flight
        What to hold.
    """
    progress = tuple(
        Progress(entry.id, None, now_s, plan.stamp, plan.stamp) for entry in plan.entries
    )
    return Flight(plan, epoch, progress)


def begin(flight: Flight, entries: Iterable[Entry], now_s: float) -> Step:
    """Add moves that `migration.moves.validate_move` has allowed.

    Parameters
    ----------
    flight : Flight
        The plan so far.
    entries : iterable of Entry
        The moves, in PREPARE.
    now_s : float
        Monotonic seconds.

    Returns
    -------
    Step
        The plan with them.

    Raises
    ------
    ModelError
        If the plan has an entry of such an id or executor.
    """
    added = tuple(entries)
    plan = flight.plan.followed_by((*flight.plan.entries, *added), flight.epoch)
    made = (Progress(entry.id, now_s, now_s, plan.stamp, plan.stamp) for entry in added)
    return Step(plan, replace(flight, plan=plan, progress=(*flight.progress, *made)))


def step(
    flight: Flight,
    publication: Publication | None,
    fresh_acks: Iterable[NodeAcks],
    now_s: float,
    timing: Timing,
) -> Step:
    """Look once at everything and say what to write.

    Parameters
    ----------
    flight : Flight
        What is held.
    publication : Publication or None
        The newest one; None if the topology has none, then nothing is done.
    fresh_acks : iterable of NodeAcks
        Of all nodes, those that are at most `timing.ack_fresh_s` old.
    now_s : float
        Monotonic seconds.
    timing : Timing
        The limits.

    Returns
    -------
    Step
        The next plan, or none.
    """
    if publication is None or publication.status != "ACTIVE":
        # READY never comes in an inactive topology: what is judged again gets its full time again.
        waiting = tuple(replace(one, since_s=now_s, routed_s=None) for one in flight.progress)
        return Step(None, replace(flight, progress=waiting))
    sight = Sight.of(publication, flight.plan.cluster, fresh_acks)
    looks = [
        _look(Case(entry, one, sight, now_s, timing))
        for entry, one in zip(flight.plan.entries, flight.progress, strict=True)
    ]
    return _gathered(flight, looks, now_s)


@dataclass(frozen=True, slots=True)
class _Look:
    """What became of one entry: None as the next entry says that it leaves."""

    before: Entry
    after: Entry | None
    progress: Progress
    event: Event | None


def _look(case: Case) -> _Look:
    case = replace(case, progress=_noted(case))
    entry, progress = case.entry, case.progress
    for row in transitions_from(entry.phase, void=entry.void is not None):
        if HAPPENED[row.event](case):
            event = _event(case, row.event, row.next, row.reason)
            return _Look(entry, _moved_on(entry, row), _remembering(progress, row), event)
    if case.state(entry.source) is EntryState.STUCK and not progress.stuck:
        event = _event(case, "stuck", entry.phase, "the source's thread is stuck in user code")
        return _Look(entry, entry, replace(progress, stuck=True), event)
    return _Look(entry, entry, progress, None)


def _noted(case: Case) -> Progress:
    """Remember since when what is seen has been so."""
    entry, progress, target = case.entry, case.progress, case.sight.workers.get(case.entry.target)
    incarnation = progress.target_incarnation
    if target is not None and (entry.phase is Phase.PREPARE or incarnation is None):
        incarnation = target.incarnation
    settling = entry.phase in ABSORBED and case.absorbed()
    return replace(
        progress,
        target_incarnation=incarnation,
        routed_s=_since(progress.routed_s, case.ends_routed(), case.now_s),
        absorbed_s=_since(progress.absorbed_s, settling, case.now_s),
    )


def _since(before_s: float | None, true_now: bool, now_s: float) -> float | None:
    if not true_now:
        return None
    return now_s if before_s is None else before_s


def _event(case: Case, name: str, following: str, reason: str) -> Event:
    return Event(case.entry, name, following, reason, case.now_s - case.progress.since_s)


def _moved_on(entry: Entry, row: Transition) -> Entry | None:
    if row.next == LEAVE:
        return None
    if row.next == VOID:
        return replace(entry, void=row.reason)
    return replace(entry, phase=Phase(row.next))


def _remembering(progress: Progress, row: Transition) -> Progress:
    return replace(progress, undo_reason=row.reason) if row.next == Phase.UNDO else progress


def _gathered(flight: Flight, looks: list[_Look], now_s: float) -> Step:
    entries = tuple(look.after for look in looks if look.after is not None)
    changed = entries != flight.plan.entries
    plan = flight.plan.followed_by(entries, flight.epoch) if changed else flight.plan
    progress = tuple(
        look.progress
        if look.after == look.before
        else replace(look.progress, since_s=now_s, written=plan.stamp, routed_s=None)
        for look in looks
        if look.after is not None
    )
    return Step(
        plan if changed else None,
        replace(flight, plan=plan, progress=progress),
        tuple(_left(look, now_s) for look in looks if look.after is None),
        tuple(look.event for look in looks if look.event is not None),
    )


def _left(look: _Look, now_s: float) -> Left:
    entry, progress = look.before, look.progress
    reason = look.event.reason if look.event is not None else ""
    outcome = Outcome.MOVED
    if entry.void is not None:
        outcome, reason = Outcome.VOID, entry.void
    elif entry.phase is Phase.UNDO:
        outcome, reason = Outcome.UNDONE, progress.undo_reason or "an earlier leader undid it"
    duration_s = None if progress.began_s is None else now_s - progress.began_s
    return Left(entry, outcome, reason, duration_s)

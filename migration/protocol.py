"""The protocol of a move as a pure machine: what is seen goes in, the next plan comes out.

Invariant: at every moment each executor has exactly one owner that every worker agrees on or can
reach. The owner has a copy that runs or a queue that holds its tuples. No copy runs elsewhere than
at an end of its move. So any mix of two successive phases among the workers is consistent, and a
step may be taken again. A phase that others may have applied is left only by a step that is
consistent with both.

The machine reads no clock and keeps nothing. The caller holds the `HeldPlan`, and writes the plan
of a `Step` with a compare-and-set. Once that has worked it takes the step's held plan. After any
other result it reads the plan again and resumes from it; every phase can be resumed by any leader.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from enum import StrEnum

from msgspec import structs

from migration.events import EVENTS, ObservedEntry, Progress, who
from migration.model import (
    ABSORBED,
    STANDS_STILL,
    Entry,
    EntryState,
    NodeAcks,
    Phase,
    Plan,
    Publication,
    Timing,
)
from migration.observation import Observation
from migration.table import LEAVE, VOID, Transition, transitions_from


class MoveOutcome(StrEnum):
    MOVED = "MOVED"
    UNDONE = "UNDONE"
    VOID = "VOID"


@dataclass(frozen=True, slots=True)
class HeldPlan:
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
class FinishedMove:
    """An entry that has left the plan; no duration if an earlier leader made the move."""

    entry: Entry
    outcome: MoveOutcome
    reason: str
    duration_s: float | None


@dataclass(frozen=True, slots=True)
class Step:
    """The result of one look.

    `plan` is to be written with a compare-and-set at version `plan.version - 1`; None: no change.
    `held_plan` is to be held from then on, `finished` are the entries that the plan no longer has.
    """

    plan: Plan | None
    held_plan: HeldPlan
    finished: tuple[FinishedMove, ...] = ()
    events: tuple[Event, ...] = ()


def following(plan: Plan, entries: tuple[Entry, ...], epoch: int) -> Plan:
    """Make the plan that a leader of this epoch writes next, with these entries.

    A `ModelError` if two of them have one id or one executor.
    """
    return Plan(plan.cluster, epoch, plan.version + 1, plan.topology, entries)


def resume(plan: Plan, epoch: int, now_s: float) -> HeldPlan:
    """Take a plan over, from the store or from an earlier leader; all limits restart.

    The epoch is that of this leader; `now_s` are monotonic seconds.
    """
    progress = tuple(
        Progress(entry.id, None, now_s, plan.stamp, plan.stamp) for entry in plan.entries
    )
    return HeldPlan(plan, epoch, progress)


def begin(held_plan: HeldPlan, entries: Iterable[Entry], now_s: float) -> Step:
    """Add moves that may begin; `now_s` are monotonic seconds.

    A `ModelError` if the plan has an entry of such an id or executor.
    """
    added = tuple(entries)
    plan = following(held_plan.plan, (*held_plan.plan.entries, *added), held_plan.epoch)
    made = (Progress(entry.id, now_s, now_s, plan.stamp, plan.stamp) for entry in added)
    return Step(plan, replace(held_plan, plan=plan, progress=(*held_plan.progress, *made)))


def step(
    held_plan: HeldPlan,
    publication: Publication,
    fresh_acks: Iterable[NodeAcks],
    now_s: float,
    timing: Timing,
) -> Step:
    """Look once at everything and return what to write; `now_s` are monotonic seconds.

    `fresh_acks` are of all nodes and at most `timing.ack_fresh_s` old. In an inactive topology only
    moves whose copies stand still go on. None goes on while an entry is of a later version: a
    controller of that version has to end it.
    """
    entries = held_plan.plan.entries
    known = all(entry.understood for entry in entries)
    active = publication.status == "ACTIVE"
    observation = Observation.of(publication, held_plan.plan, fresh_acks)
    looks = [
        _judge(ObservedEntry(entry, one, observation, now_s, timing))
        if known and (active or (entry.phase in STANDS_STILL and entry.void is None))
        else _rests(entry, one, now_s)
        for entry, one in zip(entries, held_plan.progress, strict=True)
    ]
    return _next_step(held_plan, looks, now_s)


@dataclass(frozen=True, slots=True)
class _Judged:
    """One entry after a look: None as the next entry means that it leaves."""

    before: Entry
    after: Entry | None
    progress: Progress
    event: Event | None


def _rests(entry: Entry, progress: Progress, now_s: float) -> _Judged:
    # READY never comes in an inactive topology: what is judged again gets its full time again.
    return _Judged(entry, entry, replace(progress, since_s=now_s, routed_s=None), None)


def _judge(observed: ObservedEntry) -> _Judged:
    observed = replace(observed, progress=_noted(observed))
    entry, progress = observed.entry, observed.progress
    for row in transitions_from(entry.phase, entry.way, void=entry.void is not None):
        if EVENTS[row.event](observed):
            missing = ", ".join(who(observed, row.event))
            reason = f"{row.reason}: {missing}" if missing else row.reason
            event = _event(observed, row.event, row.next, reason)
            if row.next in (Phase.RECALL, Phase.UNDO):
                progress = replace(progress, undo_reason=progress.undo_reason or reason)
            return _Judged(entry, _next_entry(entry, row), progress, event)
    if observed.state(entry.source) is EntryState.STUCK and not progress.stuck:
        event = _event(observed, "stuck", entry.phase, "the source's thread is stuck in user code")
        return _Judged(entry, entry, replace(progress, stuck=True), event)
    return _Judged(entry, entry, progress, None)


def _noted(observed: ObservedEntry) -> Progress:
    """Remember since when what is seen has been so."""
    entry, progress = observed.entry, observed.progress
    target = observed.observation.workers.get(entry.target)
    incarnation = progress.target_incarnation
    if target is not None and (entry.phase is Phase.PREPARE or incarnation is None):
        incarnation = target.incarnation
    routed = {Phase.STOP: observed.all_routed, Phase.UNDO: observed.all_back}.get(
        entry.phase, observed.ends_routed
    )
    settling = entry.phase in ABSORBED and observed.absorbed()
    return replace(
        progress,
        target_incarnation=incarnation,
        routed_s=_since(progress.routed_s, routed(), observed.now_s),
        absorbed_s=_since(progress.absorbed_s, settling, observed.now_s),
    )


def _since(before_s: float | None, true_now: bool, now_s: float) -> float | None:
    if not true_now:
        return None
    return now_s if before_s is None else before_s


def _event(observed: ObservedEntry, name: str, following: str, reason: str) -> Event:
    return Event(
        observed.entry, name, following, reason, observed.now_s - observed.progress.since_s
    )


def _next_entry(entry: Entry, row: Transition) -> Entry | None:
    if row.next == LEAVE:
        return None
    if row.next == VOID:
        return structs.replace(entry, void=row.reason)
    return structs.replace(entry, phase=Phase(row.next))


def _next_step(held_plan: HeldPlan, looks: list[_Judged], now_s: float) -> Step:
    entries = tuple(look.after for look in looks if look.after is not None)
    changed = entries != held_plan.plan.entries
    plan = following(held_plan.plan, entries, held_plan.epoch) if changed else held_plan.plan
    progress = tuple(
        look.progress
        if look.after == look.before
        else replace(look.progress, since_s=now_s, written=plan.stamp, routed_s=None)
        for look in looks
        if look.after is not None
    )
    return Step(
        plan if changed else None,
        replace(held_plan, plan=plan, progress=progress),
        tuple(_finished(look, now_s) for look in looks if look.after is None),
        tuple(look.event for look in looks if look.event is not None),
    )


def _finished(look: _Judged, now_s: float) -> FinishedMove:
    entry, progress = look.before, look.progress
    reason = look.event.reason if look.event is not None else ""
    outcome = MoveOutcome.MOVED
    if entry.void is not None:
        outcome, reason = MoveOutcome.VOID, entry.void
    elif entry.phase is Phase.UNDO:
        outcome, reason = MoveOutcome.UNDONE, progress.undo_reason or "an earlier leader undid it"
    duration_s = None if progress.began_s is None else now_s - progress.began_s
    return FinishedMove(entry, outcome, reason, duration_s)

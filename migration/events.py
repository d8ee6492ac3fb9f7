"""The events of a move, found in Storm's assignment and the answers of the JVMs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from migration import MigrationError
from migration.model import (
    OPENS_LATE,
    SOURCE_OWNS,
    Entry,
    EntryState,
    Phase,
    PlanVersion,
    Slot,
    Timing,
    Way,
)
from migration.observation import Observation, SlotStatus
from migration.table import TRANSITIONS, limit_s

# A move goes back from there at once: what follows fits to whatever a silent end has applied.
_AT_ONCE = SOURCE_OWNS | {Phase.CARRY}
_HAS_COPY = frozenset({EntryState.ROUTED, EntryState.DRAINED, EntryState.REFUSED})
_ROUTED = _HAS_COPY | {EntryState.STOPPED}

PROVES_SINCE = 2  # the version of the protocol in which the source of a live move looks first


@dataclass(frozen=True, slots=True)
class Progress:
    """A leader's memory of one entry; `_s` are monotonic seconds of its own clock."""

    id: str
    began_s: float | None  # when the move was made; None if an earlier leader made it
    since_s: float  # when the phase was written, or when this leader took over
    # The plans that wrote the entry and its phase, or later ones: older answers do not count.
    made: PlanVersion
    written: PlanVersion
    target_incarnation: str | None = None  # the target's JVM that was ready
    # Since when both ends route to the target (in STOP all workers do, in UNDO all to the source),
    # and Storm has the executor there.
    routed_s: float | None = None
    absorbed_s: float | None = None
    stuck: bool = False  # whether the source's thread is stuck in user code, reported once
    undo_reason: str | None = None
    cancelled: bool = False  # by an operator


@dataclass(frozen=True, slots=True)
class ObservedEntry:
    """One entry, and all that can be known about it."""

    entry: Entry
    progress: Progress
    observation: Observation
    now_s: float
    timing: Timing

    def state(self, slot: Slot) -> EntryState | None:
        """Return a live worker's answer to the phase, None if there is none yet."""
        ack = self.observation.workers.get(slot)
        if ack is None or ack.stamp < self.progress.written:
            return None
        found = ack.find(self.entry.id)
        return EntryState.NONE if found is None else found.state

    def awaits_ahead(self) -> bool:
        """Return whether the target lacks nothing but what the source sends of its state."""
        ack = self.observation.workers.get(self.entry.target)
        found = None if ack is None else ack.find(self.entry.id)
        return found is not None and found.awaits_ahead is True

    def status(self, slot: Slot) -> SlotStatus:
        return self.observation.status(slot)

    def heard(self, slot: Slot) -> bool:
        """Return whether the worker has answered the phase; if not, it may be in any phase."""
        return self.state(slot) is not None

    def dead(self, slot: Slot) -> bool:
        return self.status(slot) in (SlotStatus.ABSENT, SlotStatus.UNASSIGNED)

    def ends(self) -> tuple[Slot, Slot]:
        return self.entry.source, self.entry.target

    def ends_heard(self) -> bool:
        return all(self.heard(end) for end in self.ends())

    def ends_heard_or_dead(self) -> bool:
        return all(self.heard(end) or self.dead(end) for end in self.ends())

    def bystanders(self) -> list[Slot]:
        return [slot for slot in self.observation.live if slot not in self.ends()]

    def absorbed(self) -> bool:
        placed = self.observation.placed.get(self.entry.executor)
        return placed is not None and placed.slot == self.entry.target

    def refreshed(self) -> bool:
        """Return whether a JVM without hooks must have read Storm's new assignment by now."""
        polls_s = 2 * self.observation.publication.refresh_poll_secs
        since_s = self.progress.absorbed_s
        return since_s is not None and self.now_s - since_s >= polls_s

    def ends_routed(self) -> bool:
        return (
            self.state(self.entry.source) in _ROUTED
            and self.state(self.entry.target) is EntryState.ROUTED
        )

    def runs(self) -> bool:
        """Return whether the target reports that its copy is open or prepared, and routed to."""
        return self.state(self.entry.target) is EntryState.ROUTED

    def unknown(self) -> bool:
        """Return whether it is unknown what the target runs: no JVM is there that follows plans."""
        ack = self.observation.workers.get(self.entry.target)
        return self.dead(self.entry.target) or (ack is not None and ack.error is not None)

    def all_routed(self) -> bool:
        """Return whether no worker sends to the source any more; a silent one might."""
        waited = (slot for slot in self.observation.slots if not self.dead(slot))
        return self.ends_routed() and all(self.state(slot) in _ROUTED for slot in waited)

    def all_back(self) -> bool:
        """Return whether every live worker routes to the source, and the target's copy is gone.

        The leader does not wait for a bystander that cannot follow plans. The target forwards what
        it still sends to where Storm has the executor.
        """
        target = self.entry.target
        return all(
            self.state(slot) in ({EntryState.STOPPED} if slot == target else _ROUTED)
            for slot in self.observation.live
            if slot in self.ends() or self.observation.workers[slot].error is None
        )

    def quiet(self) -> bool:
        """Return whether what was on its way has arrived since all routes have changed."""
        since_s = self.progress.routed_s
        return since_s is not None and self.now_s - since_s >= self.timing.close_quiet_s

    def closes(self) -> bool:
        """Return whether Storm ends the source's worker as soon as Nimbus absorbs the move."""
        return not self.observation.staying[self.entry.source]

    def awaits_arrival(self) -> bool:
        """Return whether the source is to get an executor that Storm does not have there yet."""
        placed = self.observation.placed.get
        return any(
            other.target == self.entry.source
            and other.void is None
            and (at := placed(other.executor)) is not None
            and at.slot != other.target
            for other in self.observation.plan.entries
        )


def _voided(observed: ObservedEntry) -> bool:
    placed = observed.observation.placed.get(observed.entry.executor)
    if placed is None:
        return True
    return not observed.entry.counts(placed.slot, placed.start_secs)


def _limit(observed: ObservedEntry) -> bool:
    entry = observed.entry
    longest_s = limit_s(entry.phase, entry.way, observed.timing)
    if longest_s is None or observed.now_s - observed.progress.since_s < longest_s:
        return False
    if entry.phase is Phase.DRAIN and entry.way is not Way.DRAIN:
        return _supervised(observed)
    return entry.phase in _AT_ONCE or observed.ends_heard()


def _end_lost(observed: ObservedEntry) -> bool:
    return any(observed.status(end) is not SlotStatus.LIVE for end in observed.ends())


def _end_dead(observed: ObservedEntry) -> bool:
    return observed.ends_heard_or_dead() and any(observed.dead(end) for end in observed.ends())


def _target_dead(observed: ObservedEntry) -> bool:
    # A source that was restarted answers STOPPED: there is nothing left to go back to.
    return (
        observed.dead(observed.entry.target) and observed.state(observed.entry.source) in _HAS_COPY
    )


def _unsupervised(observed: ObservedEntry) -> bool:
    late = observed.now_s - observed.progress.since_s >= observed.timing.supervisor_limit_s
    return late and not _supervised(observed) and observed.ends_heard()


def _supervised(observed: ObservedEntry) -> bool:
    """Return whether the supervisors of both ends would adopt the new sets."""
    return not _unread(observed)


def _unread(observed: ObservedEntry) -> tuple[str, ...]:
    """Name the supervisors that have not read the plan."""
    observation, made = observed.observation, observed.progress.made
    return tuple(
        f"the supervisor of {slot}"
        for slot in observed.ends()
        if not (observation.gone(slot) or observation.has_read(slot.supervisor, made))
    )


def _cancelled(observed: ObservedEntry) -> bool:
    if not observed.progress.cancelled or observed.entry.phase in _AT_ONCE:
        return observed.progress.cancelled
    return observed.ends_heard() and observed.state(observed.entry.source) in {
        EntryState.NONE,
        *_HAS_COPY,
    }


def _inactive(observed: ObservedEntry) -> bool:
    return observed.observation.publication.status != "ACTIVE"


def _opened(observed: ObservedEntry) -> bool:
    return observed.heard(observed.entry.target)


def _target_ready(observed: ObservedEntry) -> bool:
    return not _unready(observed)


def _unready(observed: ObservedEntry) -> tuple[str, ...]:
    """Name who keeps a move in PREPARE."""
    # What goes through QUIET is absorbed right after it, and what carries its state stands still
    # from CARRY on.
    stops_first = observed.entry.way in (Way.SPOUT, Way.RENEW, Way.CARRY)
    entry = observed.entry
    missing = _unread(observed) if stops_first else ()
    if entry.way is Way.LIVE and not _proved(observed):
        missing += (f"the look of {entry.source} at what its bolt remembers",)
    if observed.state(entry.target) not in (EntryState.READY, EntryState.ROUTED):
        ahead = observed.awaits_ahead()
        missing += (f"what {entry.source} sends ahead" if ahead else f"the copy of {entry.target}",)
    return missing


def who(observed: ObservedEntry, event: str) -> tuple[str, ...]:
    """Name who was missing when a move had to go back; none where the reason has the name."""
    if event == "limit" and observed.entry.phase is Phase.PREPARE:
        return _unready(observed)
    if event == "unsupervised":
        return _unread(observed)
    if event == "refused" and observed.entry.phase is Phase.STOP:
        return (f"the worker at {observed.entry.target}",)
    if event == "end_lost":
        ends = [end for end in observed.ends() if observed.status(end) is not SlotStatus.LIVE]
        return tuple(f"the worker at {end}" for end in ends)
    if event == "end_dead":
        return tuple(f"the worker at {end}" for end in observed.ends() if observed.dead(end))
    return ()


def _proved(observed: ObservedEntry) -> bool:
    """Return whether the source has looked: two copies of its bolts may work at once."""
    source = observed.observation.workers.get(observed.entry.source)
    if source is not None and source.speaks < PROVES_SINCE:
        return True
    return observed.state(observed.entry.source) is EntryState.READY


def _closed(observed: ObservedEntry) -> bool:
    closed = observed.state(observed.entry.source) is EntryState.STOPPED
    return closed and _target_ready(observed)


def _target_restarted(observed: ObservedEntry) -> bool:
    target = observed.observation.workers.get(observed.entry.target)
    another = target is not None and target.incarnation != observed.progress.target_incarnation
    return another and observed.ends_heard()


def _routed(observed: ObservedEntry) -> bool:
    since_s = observed.progress.routed_s
    if since_s is None:
        return False
    patient = observed.now_s - since_s < observed.timing.bystander_wait_s
    return not patient or all(observed.state(slot) in _ROUTED for slot in observed.bystanders())


def _drained(observed: ObservedEntry) -> bool:
    drained = observed.state(observed.entry.source) in (EntryState.DRAINED, EntryState.STOPPED)
    return drained and _supervised(observed)


def _loaded(observed: ObservedEntry) -> bool:
    return observed.state(observed.entry.target) is EntryState.LOADED


def _recalled(observed: ObservedEntry) -> bool:
    # Whoever starts in a dead target's slot later must find the recall there, and not begin.
    target = observed.entry.target
    read = observed.observation.has_read(target.supervisor, observed.progress.written)
    known = read or observed.status(target) is not SlotStatus.ABSENT
    return known and observed.ends_heard_or_dead()


def _refused(observed: ObservedEntry) -> bool:
    answers = (observed.state(end) for end in observed.ends())
    return EntryState.REFUSED in answers


def _stopped(observed: ObservedEntry) -> bool:
    late = observed.entry.way in OPENS_LATE
    if late and not (observed.runs() or observed.unknown()):
        return False
    if observed.closes():
        return _emptied(observed)
    if observed.state(observed.entry.source) is EntryState.STOPPED:
        return True
    standing = observed.status(observed.entry.source)
    # Without hooks it runs what Storm assigns, and Storm no longer assigns the executor there. What
    # opens late Storm assigns elsewhere only after this phase, and the source had closed it before.
    unhooked = standing is SlotStatus.ABSENT and (late or observed.refreshed())
    return standing is SlotStatus.UNASSIGNED or unhooked


def _emptied(observed: ObservedEntry) -> bool:
    """Return whether the source's worker may end: it hands nothing on, and nothing can reach it."""
    if observed.awaits_arrival():
        return False
    if observed.status(observed.entry.source) is SlotStatus.UNASSIGNED:
        return True
    if observed.status(observed.entry.source) is SlotStatus.ABSENT:
        # A JVM that Storm is just starting has not written its process id yet: Storm could not end
        # it.
        return observed.now_s - observed.progress.since_s >= observed.timing.close_limit_s
    return observed.quiet() and observed.state(observed.entry.source) is EntryState.STOPPED


def _settled(observed: ObservedEntry) -> bool:
    if not observed.absorbed() or not _persisted(observed) or not _runs_at_target(observed):
        return False
    return all(_has_read(observed, slot) for slot in observed.observation.slots)


def _runs_at_target(observed: ObservedEntry) -> bool:
    """Return whether the target's copy runs; a worker that Storm restarts may still open it."""
    if not observed.unknown():
        return observed.runs()
    waited_s = observed.now_s - observed.progress.since_s
    return observed.entry.way not in OPENS_LATE or waited_s >= observed.timing.close_limit_s


def _has_read(observed: ObservedEntry, slot: Slot) -> bool:
    ack = observed.observation.workers.get(slot)
    if ack is None or ack.error is not None:  # it follows Storm's own assignment alone
        return observed.refreshed()
    found = ack.find(observed.entry.id)
    fresh = ack.stamp >= observed.progress.written
    return fresh and found is not None and found.assigned == observed.entry.target


def _persisted(observed: ObservedEntry) -> bool:
    """Return whether both slots would restart with the new sets."""
    for slot, wanted in ((observed.entry.source, False), (observed.entry.target, True)):
        supervisor = observed.observation.supervisor(slot.supervisor)
        if supervisor is None:
            if not observed.observation.gone(slot):
                return False
            continue
        held = any(
            observed.entry.executor in kept.executors
            for kept in supervisor.slots
            if (kept.port, kept.topology) == (slot.port, observed.observation.publication.topology)
        )
        if held is not wanted:
            return False
    return True


def _undone(observed: ObservedEntry) -> bool:
    source, target = observed.entry.source, observed.entry.target
    if observed.status(target) is SlotStatus.SILENT or observed.status(source) is SlotStatus.SILENT:
        return False
    # A worker that Storm does not assign ends as soon as the entry has left.
    closes = observed.status(target) is SlotStatus.LIVE and (
        target not in observed.observation.publication.slots
    )
    return observed.all_back() and (not closes or observed.quiet())


def _read_by_ends(observed: ObservedEntry) -> bool:
    for slot in observed.ends():
        ack = observed.observation.workers.get(slot)
        if ack is not None and ack.stamp < observed.progress.written:
            return False
        if observed.status(slot) is SlotStatus.SILENT:
            return False
    return True


EVENTS: dict[str, Callable[[ObservedEntry], bool]] = {
    "voided": _voided,
    "end_lost": _end_lost,
    "end_dead": _end_dead,
    "target_dead": _target_dead,
    "unsupervised": _unsupervised,
    "cancelled": _cancelled,
    "inactive": _inactive,
    "opened": _opened,
    "target_ready": _target_ready,
    "closed": _closed,
    "target_restarted": _target_restarted,
    "routed": _routed,
    "drained": _drained,
    "loaded": _loaded,
    "recalled": _recalled,
    "refused": _refused,
    "limit": _limit,
    "stopped": _stopped,
    "settled": _settled,
    "undone": _undone,
    "read_by_ends": _read_by_ends,
}
if set(EVENTS) != {row.event for row in TRANSITIONS}:
    odd = set(EVENTS) ^ {row.event for row in TRANSITIONS}
    raise MigrationError(f"PROTOCOL.md and protocol.py differ in the events {sorted(odd)}")

"""What has happened to a move, told from Storm's word and the answers of the JVMs."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from enum import Enum

from migration import MigrationError
from migration.model import (
    Entry,
    EntryState,
    NodeAcks,
    Phase,
    PlanVersion,
    Publication,
    Slot,
    SupervisorAck,
    Timing,
    WorkerAck,
)
from migration.table import TRANSITIONS, limit_s

_HAS_COPY = frozenset({EntryState.ROUTED, EntryState.DRAINED})
_ROUTED = _HAS_COPY | {EntryState.STOPPED}


class Standing(Enum):
    """What is known of the worker in a slot."""

    LIVE = "live"
    """Storm assigns the slot, and a hooked worker is there."""
    ABSENT = "absent"
    """Storm assigns the slot, and its node's agent sees no hooked worker there."""
    SILENT = "silent"
    """Storm assigns the slot, and its node's agent says nothing."""
    UNASSIGNED = "unassigned"
    """Storm has no worker of the topology there."""


@dataclass(frozen=True, slots=True)
class Sight:
    """One moment's view of a topology.

    Parameters
    ----------
    publication : Publication
        The newest one.
    cluster : str
        The one whose plans count.
    nodes : dict of str to NodeAcks
        The fresh ones, by supervisor.
    workers : dict of Slot to WorkerAck
        The topology's hooked workers, by slot.
    """

    publication: Publication
    cluster: str
    nodes: dict[str, NodeAcks]
    workers: dict[Slot, WorkerAck]

    @classmethod
    def of(cls, publication: Publication, cluster: str, fresh: Iterable[NodeAcks]) -> Sight:
        """Sort what the nodes say.

        Parameters
        ----------
        publication : Publication
            The newest one.
        cluster : str
            Nodes that still follow another cluster do not count, nor what a JVM has read of it.
        fresh : iterable of NodeAcks
            Those that are at most `Timing.ack_fresh_s` old.

        Returns
        -------
        Sight
            The view.
        """
        nodes = {acks.node: acks for acks in fresh if acks.cluster == cluster}
        workers: dict[Slot, WorkerAck] = {}
        for ack in sorted(
            (ack for node in nodes.values() for ack in node.workers), key=lambda ack: ack.time_ms
        ):
            if ack.topology == publication.topology:
                # A dying JVM and its successor may both be there: the newest word counts.
                workers[ack.slot] = ack if ack.cluster == cluster else _unread(ack)
        return cls(publication, cluster, nodes, workers)

    def standing(self, slot: Slot) -> Standing:
        """Tell what is known of a slot."""
        if slot not in self.publication.slots:
            return Standing.UNASSIGNED
        if slot in self.workers:
            return Standing.LIVE
        return Standing.ABSENT if slot.supervisor in self.nodes else Standing.SILENT

    def supervisor(self, slot: Slot) -> SupervisorAck | None:
        """Return the answer of the slot's supervisor, None if there is none."""
        node = self.nodes.get(slot.supervisor)
        return None if node is None else node.supervisor

    def has_read(self, supervisor: str, stamp: PlanVersion) -> bool:
        """Tell whether a supervisor has read this plan of the topology, or a newer one."""
        node = self.nodes.get(supervisor)
        ack = None if node is None else node.supervisor
        if ack is None or ack.cluster != self.cluster:
            return False
        topology = self.publication.topology
        return any(read.topology == topology and read.stamp >= stamp for read in ack.plans)

    def gone(self, slot: Slot) -> bool:
        """Tell whether Storm has given up the slot and its whole node."""
        unknown = all(node.id != slot.supervisor for node in self.publication.nodes)
        return unknown and self.standing(slot) is Standing.UNASSIGNED

    def live_slots(self) -> list[Slot]:
        """Return the slots that Storm assigns and where a hooked worker is."""
        return [slot for slot in sorted(self.publication.slots) if slot in self.workers]


def _unread(ack: WorkerAck) -> WorkerAck:
    """Return the answer of a worker that has read no plan of this cluster."""
    return replace(ack, cluster="", epoch=0, version=-1, entries=())


@dataclass(frozen=True, slots=True)
class Progress:
    """What a leader remembers of one entry; `_s` are monotonic seconds of its own clock.

    Parameters
    ----------
    id : str
        The entry's.
    began_s : float or None
        When the move was made; None if an earlier leader made it.
    since_s : float
        When the phase was written, or when this leader took over.
    made, written : PlanVersion
        The plans that wrote the entry and its phase, or later ones: older answers do not count.
    target_incarnation : str or None
        The target's JVM that was ready.
    routed_s, absorbed_s : float or None
        Since when both ends route to the target, and Storm has the executor there.
    stuck : bool
        Whether the source's thread is stuck in user code, reported once.
    undo_reason : str or None
        Why the move is undone.
    """

    id: str
    began_s: float | None
    since_s: float
    made: PlanVersion
    written: PlanVersion
    target_incarnation: str | None = None
    routed_s: float | None = None
    absorbed_s: float | None = None
    stuck: bool = False
    undo_reason: str | None = None


@dataclass(frozen=True, slots=True)
class Case:
    """One entry, and all that can be known about it."""

    entry: Entry
    progress: Progress
    sight: Sight
    now_s: float
    timing: Timing

    def state(self, slot: Slot) -> EntryState | None:
        """Return a live worker's answer to the phase, None if there is none yet."""
        ack = self.sight.workers.get(slot)
        if ack is None or ack.stamp < self.progress.written:
            return None
        found = ack.find(self.entry.id)
        return EntryState.NONE if found is None else found.state

    def standing(self, slot: Slot) -> Standing:
        return self.sight.standing(slot)

    def heard(self, slot: Slot) -> bool:
        """Tell whether the worker has answered the phase; if not, it may have applied anything."""
        return self.state(slot) is not None

    def dead(self, slot: Slot) -> bool:
        return self.standing(slot) in (Standing.ABSENT, Standing.UNASSIGNED)

    def ends(self) -> tuple[Slot, Slot]:
        return self.entry.source, self.entry.target

    def ends_heard(self) -> bool:
        return all(self.heard(end) for end in self.ends())

    def bystanders(self) -> list[Slot]:
        return [slot for slot in self.sight.live_slots() if slot not in self.ends()]

    def absorbed(self) -> bool:
        placed = self.sight.publication.find(self.entry.executor)
        return placed is not None and placed.slot == self.entry.target

    def refreshed(self) -> bool:
        """Tell whether a JVM without hooks must have read Storm's new assignment by now."""
        polls_s = 2 * self.sight.publication.refresh_poll_secs
        since_s = self.progress.absorbed_s
        return since_s is not None and self.now_s - since_s >= polls_s

    def ends_routed(self) -> bool:
        return (
            self.state(self.entry.source) in _ROUTED
            and self.state(self.entry.target) is EntryState.ROUTED
        )


def _voided(case: Case) -> bool:
    placed = case.sight.publication.find(case.entry.executor)
    if placed is None:
        return True
    return not case.entry.counts(placed.slot, placed.start_secs)


def _limit(case: Case) -> bool:
    longest_s = limit_s(case.entry.phase, case.timing)
    if longest_s is None or case.now_s - case.progress.since_s < longest_s:
        return False
    if case.entry.phase is Phase.SWITCH:
        return case.ends_heard()
    return case.entry.phase is not Phase.DRAIN or _supervised(case)


def _end_lost(case: Case) -> bool:
    return any(case.standing(end) is not Standing.LIVE for end in case.ends())


def _end_dead(case: Case) -> bool:
    settled = all(case.heard(end) or case.dead(end) for end in case.ends())
    return settled and any(case.dead(end) for end in case.ends())


def _target_dead(case: Case) -> bool:
    # A source that was restarted says STOPPED: there is nothing left to go back to.
    return case.dead(case.entry.target) and case.state(case.entry.source) in _HAS_COPY


def _unsupervised(case: Case) -> bool:
    late = case.now_s - case.progress.since_s >= case.timing.supervisor_limit_s
    return late and not _supervised(case) and case.ends_heard()


def _supervised(case: Case) -> bool:
    """Tell whether the supervisors of both ends would adopt the new sets."""
    sight, made = case.sight, case.progress.made
    return all(sight.gone(slot) or sight.has_read(slot.supervisor, made) for slot in case.ends())


def _target_ready(case: Case) -> bool:
    return case.state(case.entry.target) in (EntryState.READY, EntryState.ROUTED)


def _target_restarted(case: Case) -> bool:
    target = case.sight.workers.get(case.entry.target)
    another = target is not None and target.incarnation != case.progress.target_incarnation
    return another and case.ends_heard()


def _routed(case: Case) -> bool:
    since_s = case.progress.routed_s
    if since_s is None:
        return False
    patient = case.now_s - since_s < case.timing.bystander_wait_s
    return not patient or all(case.state(slot) in _ROUTED for slot in case.bystanders())


def _drained(case: Case) -> bool:
    drained = case.state(case.entry.source) in (EntryState.DRAINED, EntryState.STOPPED)
    return drained and _supervised(case)


def _stopped(case: Case) -> bool:
    if case.state(case.entry.source) is EntryState.STOPPED:
        return True
    standing = case.standing(case.entry.source)
    # Without hooks it runs what Storm assigns, and Storm no longer assigns the executor there.
    unhooked = standing is Standing.ABSENT and case.refreshed()
    return standing is Standing.UNASSIGNED or unhooked


def _settled(case: Case) -> bool:
    if not case.absorbed() or not _persisted(case):
        return False
    return all(_has_read(case, slot) for slot in case.sight.publication.slots)


def _has_read(case: Case, slot: Slot) -> bool:
    ack = case.sight.workers.get(slot)
    if ack is None:
        return case.refreshed()
    found = ack.find(case.entry.id)
    fresh = ack.stamp >= case.progress.written
    return fresh and found is not None and found.assigned == case.entry.target


def _persisted(case: Case) -> bool:
    """Tell whether both slots would restart with the new sets."""
    for slot, wanted in ((case.entry.source, False), (case.entry.target, True)):
        supervisor = case.sight.supervisor(slot)
        if supervisor is None:
            if not case.sight.gone(slot):
                return False
            continue
        held = any(
            case.entry.executor in kept.executors
            for kept in supervisor.slots
            if (kept.port, kept.topology) == (slot.port, case.sight.publication.topology)
        )
        if held is not wanted:
            return False
    return True


def _undone(case: Case) -> bool:
    source, target = case.entry.source, case.entry.target
    if case.standing(target) is Standing.SILENT or case.standing(source) is Standing.SILENT:
        return False
    for slot in case.sight.live_slots():
        wanted = {EntryState.STOPPED} if slot == target else _ROUTED
        if case.state(slot) not in wanted:
            return False
    return True


def _read_by_ends(case: Case) -> bool:
    for slot in case.ends():
        ack = case.sight.workers.get(slot)
        if ack is not None and ack.stamp < case.progress.written:
            return False
        if case.standing(slot) is Standing.SILENT:
            return False
    return True


HAPPENED: dict[str, Callable[[Case], bool]] = {
    "voided": _voided,
    "end_lost": _end_lost,
    "end_dead": _end_dead,
    "target_dead": _target_dead,
    "unsupervised": _unsupervised,
    "target_ready": _target_ready,
    "target_restarted": _target_restarted,
    "routed": _routed,
    "drained": _drained,
    "limit": _limit,
    "stopped": _stopped,
    "settled": _settled,
    "undone": _undone,
    "read_by_ends": _read_by_ends,
}
if set(HAPPENED) != {row.event for row in TRANSITIONS}:
    odd = set(HAPPENED) ^ {row.event for row in TRANSITIONS}
    raise MigrationError(f"PROTOCOL.md and protocol.py differ in the events {sorted(odd)}")

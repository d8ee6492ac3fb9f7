"""What has happened to a move, told from Storm's word and the answers of the JVMs."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import Enum

from msgspec import structs

from migration import MigrationError
from migration.model import (
    SOURCE_OWNS,
    Entry,
    EntryState,
    NodeAcks,
    Phase,
    PlacedExecutor,
    Plan,
    PlanVersion,
    Publication,
    Slot,
    SupervisorAck,
    Timing,
    Way,
    WorkerAck,
)
from migration.table import NEEDS_VERSION, TRANSITIONS, limit_s
from migration.wire import SPEAKS

_HAS_COPY = frozenset({EntryState.ROUTED, EntryState.DRAINED, EntryState.REFUSED})
_ROUTED = _HAS_COPY | {EntryState.STOPPED}


def staying_executors(publication: Publication, plan: Plan) -> list[PlacedExecutor]:
    """List the executors that no move takes from the slot where Storm assigns them.

    A departure counts at once. An arrival counts only when Storm has the executor there: until then
    its move may be undone.
    """
    leaving = {
        (entry.executor, entry.source)
        for entry in plan.entries
        if entry.void is None and entry.phase is not Phase.UNDO
    }
    return [
        placed for placed in publication.executors if (placed.executor, placed.slot) not in leaving
    ]


class SlotStatus(Enum):
    """What is known of the worker in a slot."""

    LIVE = "live"
    """Storm assigns the slot, or a move opens it, and a hooked worker is there."""
    ABSENT = "absent"
    """Storm assigns the slot, and its node's agent sees no hooked worker there."""
    SILENT = "silent"
    """Storm assigns the slot, and its node's agent says nothing."""
    UNASSIGNED = "unassigned"
    """Storm has no worker of the topology there."""


@dataclass(frozen=True, slots=True)
class Observation:
    """One moment's view of a topology.

    Of the cluster whose plans count: `nodes` by supervisor, and the topology's hooked `workers`.
    `slots` are those that Storm assigns and those that the plan opens.
    """

    publication: Publication
    cluster: str
    slots: frozenset[Slot]
    nodes: dict[str, NodeAcks]
    workers: dict[Slot, WorkerAck]

    @classmethod
    def of(cls, publication: Publication, plan: Plan, fresh: Iterable[NodeAcks]) -> Observation:
        """Sort what the nodes say; `fresh` answers are at most `Timing.ack_fresh_s` old.

        Nodes that still follow another cluster do not count, nor what a JVM has read of it.
        """
        cluster = plan.cluster
        nodes = {acks.node: acks for acks in fresh if acks.cluster == cluster}
        workers: dict[Slot, WorkerAck] = {}
        for ack in sorted(
            (ack for node in nodes.values() for ack in node.workers), key=lambda ack: ack.time_ms
        ):
            if ack.topology == publication.topology:
                # A dying JVM and its successor may both be there: the newest word counts.
                workers[ack.slot] = ack if ack.cluster == cluster else _unread(ack)
        slots = publication.slots
        if opened := plan.opened_slots() - slots:
            there = {node.id for node in publication.nodes}
            slots |= {slot for slot in opened if slot.supervisor in there}
        return cls(publication, cluster, slots, nodes, workers)

    def status(self, slot: Slot) -> SlotStatus:
        if slot not in self.slots:
            return SlotStatus.UNASSIGNED
        if slot in self.workers:
            return SlotStatus.LIVE
        return SlotStatus.ABSENT if slot.supervisor in self.nodes else SlotStatus.SILENT

    def supervisor(self, slot: Slot) -> SupervisorAck | None:
        node = self.nodes.get(slot.supervisor)
        return None if node is None else node.supervisor

    def speaks(self) -> tuple[int, str]:
        """Return the lowest version that Nimbus, the topology's JVMs and agents speak, and who."""
        nodes = {slot.supervisor for slot in self.slots}
        found = [(SPEAKS, "this controller"), (self.publication.speaks, "Nimbus or a controller")]
        for node in (self.nodes[name] for name in sorted(nodes) if name in self.nodes):
            found.append((node.speaks, f"the agent of {node.node}"))
            if node.supervisor is not None:
                found.append((node.supervisor.speaks, f"the supervisor {node.node}"))
        found += [(self.workers[s].speaks, f"the worker at {s}") for s in self.live_slots()]
        return min(found, key=lambda one: one[0])

    def understands(self, way: Way) -> bool:
        """Tell whether everybody may take part in a move of this way."""
        return self.speaks()[0] >= NEEDS_VERSION[way]

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
        return unknown and self.status(slot) is SlotStatus.UNASSIGNED

    def live_slots(self) -> list[Slot]:
        """Return the slots that Storm assigns and where a hooked worker is."""
        return [slot for slot in sorted(self.slots) if slot in self.workers]


def _unread(ack: WorkerAck) -> WorkerAck:
    """Return the answer of a worker that has read no plan of this cluster."""
    return structs.replace(ack, cluster="", epoch=0, version=-1, entries=())


@dataclass(frozen=True, slots=True)
class Progress:
    """What a leader remembers of one entry; `_s` are monotonic seconds of its own clock."""

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
    plan: Plan
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

    def status(self, slot: Slot) -> SlotStatus:
        return self.observation.status(slot)

    def heard(self, slot: Slot) -> bool:
        """Tell whether the worker has answered the phase; if not, it may have applied anything."""
        return self.state(slot) is not None

    def dead(self, slot: Slot) -> bool:
        return self.status(slot) in (SlotStatus.ABSENT, SlotStatus.UNASSIGNED)

    def ends(self) -> tuple[Slot, Slot]:
        return self.entry.source, self.entry.target

    def ends_heard(self) -> bool:
        return all(self.heard(end) for end in self.ends())

    def bystanders(self) -> list[Slot]:
        return [slot for slot in self.observation.live_slots() if slot not in self.ends()]

    def absorbed(self) -> bool:
        placed = self.observation.publication.find(self.entry.executor)
        return placed is not None and placed.slot == self.entry.target

    def refreshed(self) -> bool:
        """Tell whether a JVM without hooks must have read Storm's new assignment by now."""
        polls_s = 2 * self.observation.publication.refresh_poll_secs
        since_s = self.progress.absorbed_s
        return since_s is not None and self.now_s - since_s >= polls_s

    def ends_routed(self) -> bool:
        return (
            self.state(self.entry.source) in _ROUTED
            and self.state(self.entry.target) is EntryState.ROUTED
        )

    def all_routed(self) -> bool:
        """Tell whether no worker sends to the source any more; a silent one might."""
        waited = (slot for slot in self.observation.slots if not self.dead(slot))
        return self.ends_routed() and all(self.state(slot) in _ROUTED for slot in waited)

    def all_back(self) -> bool:
        """Tell whether every live worker routes to the source, and the target's copy is gone."""
        target = self.entry.target
        return all(
            self.state(slot) in ({EntryState.STOPPED} if slot == target else _ROUTED)
            for slot in self.observation.live_slots()
        )

    def quiet(self) -> bool:
        """Tell whether what was on its way has arrived since all routes have changed."""
        since_s = self.progress.routed_s
        return since_s is not None and self.now_s - since_s >= self.timing.close_quiet_s

    def closes(self) -> bool:
        """Tell whether Storm ends the source's worker as soon as Nimbus absorbs the move."""
        staying = staying_executors(self.observation.publication, self.plan)
        return all(placed.slot != self.entry.source for placed in staying)

    def awaits_arrival(self) -> bool:
        """Tell whether the source is to get an executor that Storm does not have there yet."""
        placed = self.observation.publication.find
        return any(
            other.target == self.entry.source
            and other.void is None
            and (at := placed(other.executor)) is not None
            and at.slot != other.target
            for other in self.plan.entries
        )


def _voided(observed: ObservedEntry) -> bool:
    placed = observed.observation.publication.find(observed.entry.executor)
    if placed is None:
        return True
    return not observed.entry.counts(placed.slot, placed.start_secs)


def _limit(observed: ObservedEntry) -> bool:
    longest_s = limit_s(observed.entry.phase, observed.timing)
    if longest_s is None or observed.now_s - observed.progress.since_s < longest_s:
        return False
    if observed.entry.phase in (Phase.SWITCH, Phase.CARRY):
        return observed.ends_heard()
    return observed.entry.phase is not Phase.DRAIN or _supervised(observed)


def _end_lost(observed: ObservedEntry) -> bool:
    return any(observed.status(end) is not SlotStatus.LIVE for end in observed.ends())


def _end_dead(observed: ObservedEntry) -> bool:
    settled = all(observed.heard(end) or observed.dead(end) for end in observed.ends())
    return settled and any(observed.dead(end) for end in observed.ends())


def _target_dead(observed: ObservedEntry) -> bool:
    # A source that was restarted says STOPPED: there is nothing left to go back to.
    return (
        observed.dead(observed.entry.target) and observed.state(observed.entry.source) in _HAS_COPY
    )


def _unsupervised(observed: ObservedEntry) -> bool:
    late = observed.now_s - observed.progress.since_s >= observed.timing.supervisor_limit_s
    return late and not _supervised(observed) and observed.ends_heard()


def _supervised(observed: ObservedEntry) -> bool:
    """Tell whether the supervisors of both ends would adopt the new sets."""
    observation, made = observed.observation, observed.progress.made
    return all(
        observation.gone(slot) or observation.has_read(slot.supervisor, made)
        for slot in observed.ends()
    )


def _cancelled(observed: ObservedEntry) -> bool:
    if not observed.progress.cancelled or observed.entry.phase in SOURCE_OWNS:
        return observed.progress.cancelled
    return observed.ends_heard() and observed.state(observed.entry.source) in {
        EntryState.NONE,
        *_HAS_COPY,
    }


def _opened(observed: ObservedEntry) -> bool:
    return observed.heard(observed.entry.target)


def _target_ready(observed: ObservedEntry) -> bool:
    # A spout is absorbed right after QUIET, and what carries its state stands still from SWITCH on.
    if observed.entry.way in (Way.SPOUT, Way.CARRY) and not _supervised(observed):
        return False
    return observed.state(observed.entry.target) in (EntryState.READY, EntryState.ROUTED)


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


def _refused(observed: ObservedEntry) -> bool:
    answers = (observed.state(end) for end in observed.ends())
    return EntryState.REFUSED in answers and observed.ends_heard()


def _stopped(observed: ObservedEntry) -> bool:
    if observed.closes():
        return _emptied(observed)
    if observed.state(observed.entry.source) is EntryState.STOPPED:
        return True
    standing = observed.status(observed.entry.source)
    # Without hooks it runs what Storm assigns, and Storm no longer assigns the executor there.
    unhooked = standing is SlotStatus.ABSENT and observed.refreshed()
    return standing is SlotStatus.UNASSIGNED or unhooked


def _emptied(observed: ObservedEntry) -> bool:
    """Tell whether the source's worker may end: it hands nothing on, and nothing can reach it."""
    if observed.awaits_arrival():
        return False
    if observed.status(observed.entry.source) is SlotStatus.UNASSIGNED:
        return True
    if observed.status(observed.entry.source) is SlotStatus.ABSENT:
        # A JVM that Storm is just starting has not told its process id yet: Storm could not end it.
        return observed.now_s - observed.progress.since_s >= observed.timing.close_limit_s
    return observed.quiet() and observed.state(observed.entry.source) is EntryState.STOPPED


def _settled(observed: ObservedEntry) -> bool:
    if not observed.absorbed() or not _persisted(observed):
        return False
    return all(_has_read(observed, slot) for slot in observed.observation.slots)


def _has_read(observed: ObservedEntry, slot: Slot) -> bool:
    ack = observed.observation.workers.get(slot)
    if ack is None:
        return observed.refreshed()
    found = ack.find(observed.entry.id)
    fresh = ack.stamp >= observed.progress.written
    return fresh and found is not None and found.assigned == observed.entry.target


def _persisted(observed: ObservedEntry) -> bool:
    """Tell whether both slots would restart with the new sets."""
    for slot, wanted in ((observed.entry.source, False), (observed.entry.target, True)):
        supervisor = observed.observation.supervisor(slot)
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
    "opened": _opened,
    "target_ready": _target_ready,
    "closed": _closed,
    "target_restarted": _target_restarted,
    "routed": _routed,
    "drained": _drained,
    "loaded": _loaded,
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

"""One moment of a topology: what Storm, its plan and the answers of its JVMs say together."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum

from msgspec import structs

from migration.model import (
    ExecutorId,
    NodeAcks,
    Phase,
    PlacedExecutor,
    Plan,
    PlanVersion,
    Publication,
    Slot,
    SupervisorAck,
    Way,
    WorkerAck,
)
from migration.table import NEEDS_VERSION
from migration.wire import SPEAKS

CLOSES_SINCE = 2  # the version of the protocol that lets a worker lose its last executor


class SlotStatus(Enum):
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
class Observation:
    """One moment's view of a topology, and what follows from it, worked out once.

    Only what the cluster says whose plans count: `nodes` by supervisor, and `workers`, the
    topology's hooked ones.
    """

    publication: Publication
    plan: Plan
    nodes: dict[str, NodeAcks]
    workers: dict[Slot, WorkerAck]

    placed: dict[ExecutorId, PlacedExecutor]
    not_running: frozenset[ExecutorId]  # executors that their worker has not got yet
    slots: frozenset[Slot]  # where Storm has put executors
    live: tuple[Slot, ...]  # those with a hooked worker, sorted
    hooked: tuple[Slot, ...]  # and of those the ones whose supervisor has the hooks, too
    # How many executors stay in each slot, as no move takes them away. A departure counts at once,
    # an arrival only when Storm has the executor there: until then its move may be undone.
    staying: Counter[Slot]
    # The lowest version that Nimbus, the topology's JVMs and agents speak, and who speaks it.
    speaks: tuple[int, str]
    understood: frozenset[Way]  # the ways of which everybody may take part in a move
    # Why no worker may lose its last executor now, and those executors. Storm would end the JVM: no
    # other may send to it any more, and it must have handed on what it had, which takes hooks that
    # know how.
    cannot_close: str | None
    last: frozenset[ExecutorId]

    @classmethod
    def of(cls, publication: Publication, plan: Plan, fresh: Iterable[NodeAcks]) -> Observation:
        """Sort what the nodes say; `fresh` answers are at most `Timing.ack_fresh_s` old.

        Nodes that still follow another cluster do not count, nor what a JVM has read of it.
        """
        nodes = {acks.node: acks for acks in fresh if acks.cluster == plan.cluster}
        workers: dict[Slot, WorkerAck] = {}
        for ack in sorted(
            (ack for node in nodes.values() for ack in node.workers), key=lambda ack: ack.time_ms
        ):
            if ack.topology == publication.topology:
                # A dying JVM and its successor may both be there: the newest word counts.
                workers[ack.slot] = ack if ack.cluster == plan.cluster else _unread(ack)
        slots = publication.slots
        live = tuple(slot for slot in sorted(slots) if slot in workers)
        hooked = tuple(
            slot
            for slot in live
            if (node := nodes.get(slot.supervisor)) is not None and node.supervisor is not None
        )
        placed = {placed.executor: placed for placed in publication.executors}
        runs = {slot: frozenset(ack.executors) for slot, ack in workers.items()}
        speaks = _lowest(publication, nodes, [workers[slot] for slot in live])
        stay = _staying(publication, plan)
        staying = Counter(one.slot for one in stay if one.slot is not None)
        why = _cannot_close(speaks, slots - set(live))
        return cls(
            publication,
            plan,
            nodes,
            workers,
            placed=placed,
            not_running=frozenset(
                one.executor
                for one in publication.executors
                if one.slot in runs and one.executor not in runs[one.slot]
            ),
            slots=slots,
            live=live,
            hooked=hooked,
            staying=staying,
            speaks=speaks,
            understood=frozenset(way for way in Way if speaks[0] >= NEEDS_VERSION[way]),
            cannot_close=why,
            last=frozenset(
                one.executor for one in stay if why and one.slot and staying[one.slot] == 1
            ),
        )

    def status(self, slot: Slot) -> SlotStatus:
        if slot not in self.slots:
            return SlotStatus.UNASSIGNED
        if slot in self.workers:
            return SlotStatus.LIVE
        return SlotStatus.ABSENT if slot.supervisor in self.nodes else SlotStatus.SILENT

    def supervisor(self, slot: Slot) -> SupervisorAck | None:
        node = self.nodes.get(slot.supervisor)
        return None if node is None else node.supervisor

    def has_read(self, supervisor: str, stamp: PlanVersion) -> bool:
        """Tell whether a supervisor has read this plan of the topology, or a newer one."""
        node = self.nodes.get(supervisor)
        ack = None if node is None else node.supervisor
        if ack is None or ack.cluster != self.plan.cluster:
            return False
        topology = self.publication.topology
        return any(read.topology == topology and read.stamp >= stamp for read in ack.plans)

    def gone(self, slot: Slot) -> bool:
        """Tell whether Storm has given up the slot and its whole node."""
        unknown = all(node.id != slot.supervisor for node in self.publication.nodes)
        return unknown and self.status(slot) is SlotStatus.UNASSIGNED


def _unread(ack: WorkerAck) -> WorkerAck:
    """Return the answer of a worker that has read no plan of this cluster."""
    return structs.replace(ack, cluster="", epoch=0, version=-1, entries=())


<<<<<<< HEAD
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
    # Since when both ends route to the target (in STOP all workers do), and Storm has the executor
    # there.
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
    entry = observed.entry
    longest_s = limit_s(entry.phase, entry.way, observed.timing)
    if longest_s is None or observed.now_s - observed.progress.since_s < longest_s:
        return False
    if entry.phase is Phase.DRAIN and entry.way is not Way.DRAIN:
        return _supervised(observed)
    return entry.phase in SOURCE_OWNS or observed.ends_heard()


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
=======
def _staying(publication: Publication, plan: Plan) -> list[PlacedExecutor]:
    """List the executors that no move takes from the slot where Storm assigns them."""
    leaving = {
        (entry.executor, entry.source)
        for entry in plan.entries
        if entry.void is None and entry.phase is not Phase.UNDO
>>>>>>> main
    }
    return [one for one in publication.executors if (one.executor, one.slot) not in leaving]


def _lowest(
    publication: Publication, nodes: dict[str, NodeAcks], workers: list[WorkerAck]
) -> tuple[int, str]:
    found = [(SPEAKS, "this controller"), (publication.speaks, "Nimbus or a controller")]
    for name in sorted({slot.supervisor for slot in publication.slots} & nodes.keys()):
        node = nodes[name]
        found.append((node.speaks, f"the agent of {name}"))
        if node.supervisor is not None:
            found.append((node.supervisor.speaks, f"the supervisor {name}"))
    found += [(worker.speaks, f"the worker at {worker.slot}") for worker in workers]
    return min(found, key=lambda one: one[0])


def _cannot_close(speaks: tuple[int, str], silent: frozenset[Slot]) -> str | None:
    version, who = speaks
    if version < CLOSES_SINCE:
        return f"{who} speaks version {version} of the protocol, and that needs {CLOSES_SINCE}"
    return f"the worker at {min(silent)} has not said that it has the hooks" if silent else None

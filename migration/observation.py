"""One moment of a topology: Storm, its plan and the answers of its JVMs, put together."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum

from msgspec import UNSET, structs

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
from migration.table import NEEDS_VERSION, OPENS_SINCE
from migration.wire import SPEAKS

CLOSES_SINCE = 2  # the version of the protocol that lets a worker lose its last executor


class SlotStatus(Enum):
    """Whether there is a worker in a slot."""

    LIVE = "live"
    """Storm assigns the slot, or a move opens it, and a hooked worker is there."""
    ABSENT = "absent"
    """Storm assigns the slot, and its node's agent sees no hooked worker there."""
    SILENT = "silent"
    """Storm assigns the slot, and its agent, or a worker whose process is there, does not report.
    """
    UNASSIGNED = "unassigned"
    """Storm has no worker of the topology there."""


@dataclass(frozen=True, slots=True)
class Observation:
    """One moment's view of a topology, and what follows from it, worked out once.

    Only answers of the cluster whose plans count: `nodes` by supervisor, and `workers`, the
    topology's hooked ones. Those whose hooks are switched off are in `off` instead: they run what
    Storm assigns, as a worker without hooks does.
    """

    publication: Publication
    plan: Plan
    nodes: dict[str, NodeAcks]
    workers: dict[Slot, WorkerAck]
    off: dict[Slot, WorkerAck]
    starting: frozenset[Slot]  # whose worker Storm still gives time to start

    placed: dict[ExecutorId, PlacedExecutor]
    not_running: frozenset[ExecutorId]  # executors that their worker has not got yet
    opened: frozenset[Slot]  # where supervisors keep a worker that Storm need not assign
    slots: frozenset[Slot]  # where Storm has put executors, and those that the plan opens
    live: tuple[Slot, ...]  # those with a hooked worker, sorted
    hooked: tuple[Slot, ...]  # and of those the ones whose supervisor also has the hooks
    # How many executors stay in each slot, as no move takes them away. A departure counts at once,
    # an arrival only when Storm has the executor there: until then its move may be undone.
    staying: Counter[Slot]
    # The lowest version that Nimbus, the topology's JVMs and agents speak, and who speaks it.
    speaks: tuple[int, str]
    understood: frozenset[Way]  # the ways of which everybody may take part in a move
    can_open: bool  # whether all of them know of slots that a move opens
    # Why no worker may lose its last executor now. Storm would end the JVM: no other may send to it
    # any more, and it must have handed on what it had. That takes hooks that know how.
    cannot_close: str | None
    # Which of the topology's JVMs run Storms of different major versions, None if none do.
    two_majors: str | None

    @classmethod
    def of(
        cls,
        publication: Publication,
        plan: Plan,
        fresh: Iterable[NodeAcks],
        starting: frozenset[Slot] = frozenset(),
    ) -> Observation:
        """Sort the answers of the nodes; `fresh` ones are at most `Timing.ack_fresh_s` old.

        Nodes that still follow another cluster do not count, nor what a JVM has read of it.
        """
        nodes = {acks.node: acks for acks in fresh if acks.cluster == plan.cluster}
        workers: dict[Slot, WorkerAck] = {}
        told = (ack for node in nodes.values() for ack in node.workers)
        for ack in sorted(told, key=lambda ack: ack.time_ms):
            if ack.topology == publication.topology:
                # A dying JVM and its successor may both be there: the newest word counts.
                workers[ack.slot] = ack
                if ack.cluster != plan.cluster:  # it has read no plan of this one
                    unread = structs.replace(ack, cluster="", epoch=0, version=-1, entries=())
                    workers[ack.slot] = unread
        off = {slot: ack for slot, ack in workers.items() if ack.off is not UNSET}
        workers = {slot: ack for slot, ack in workers.items() if slot not in off}
        assigned = publication.slots
        opened, there = plan.opened_slots(), publication.hosts
        slots = assigned | {slot for slot in opened if slot.supervisor in there}
        live = tuple(slot for slot in sorted(slots) if slot in workers)
        able = {
            name for name, node in nodes.items() if node.supervisor and not node.supervisor.error
        }
        hooked = tuple(slot for slot in live if slot.supervisor in able)
        placed = {placed.executor: placed for placed in publication.executors}
        runs = {slot: frozenset(ack.executors) for slot, ack in workers.items()}
        speaks = _lowest(publication.speaks, slots, nodes, [workers[slot] for slot in live])
        return cls(
            publication,
            plan,
            nodes,
            workers,
            off,
            starting,
            placed=placed,
            not_running=frozenset(
                one.executor
                for one in publication.executors
                if one.slot in runs and one.executor not in runs[one.slot]
            ),
            opened=opened,
            slots=slots,
            live=live,
            hooked=hooked,
            staying=_staying(publication, plan),
            speaks=speaks,
            understood=frozenset(way for way in Way if speaks[0] >= NEEDS_VERSION[way]),
            can_open=speaks[0] >= OPENS_SINCE,
            cannot_close=_cannot_close(speaks, assigned - set(live)),
            two_majors=two_majors(
                [(f"the worker at {slot}", workers[slot].storm) for slot in live]
                + [
                    (f"the supervisor {name}", node.supervisor.storm)
                    for name, node in sorted(nodes.items())
                    if node.supervisor and any(slot.supervisor == name for slot in slots)
                ]
            ),
        )

    def status(self, slot: Slot) -> SlotStatus:
        if slot not in self.slots:
            return SlotStatus.UNASSIGNED
        if slot in self.workers:
            return SlotStatus.LIVE
        node = self.nodes.get(slot.supervisor)
        return SlotStatus.SILENT if node is None or slot in node.silent else SlotStatus.ABSENT

    @property
    def switched_off(self) -> str | None:
        """Name where the hooks of the topology are switched off, and why; None if they are on."""
        there = ((name, node.off) for name, node in sorted(self.nodes.items()))
        found = (f"the hooks on {name} are off: {why}" for name, why in there if why is not UNSET)
        return next(found, None)

    def unheard(self, slot: Slot) -> str:
        """Name the process at a slot that is not in `hooked` that has not reported hooks."""
        if slot.supervisor not in self.nodes:
            return f"no recent report from the agent for {slot}"
        if slot in self.nodes[slot.supervisor].silent:
            return f"the process of the worker at {slot} runs, but has not reported for a minute"
        supervisor = self.supervisor(slot.supervisor)
        if slot in self.workers and supervisor is not None and supervisor.error is not None:
            return f"the supervisor of {slot} moves nothing: {supervisor.error}"
        if slot in self.off:
            return f"the hooks of the worker at {slot} are switched off: {self.off[slot].off}"
        if slot in self.starting:
            return f"the worker at {slot} is starting"
        # Stock supervisors kill a worker whose set of executors changes.
        which = "supervisor of" if slot in self.workers else "worker at"
        return f"the {which} {slot} has not reported that it has the hooks"

    def supervisor(self, name: str) -> SupervisorAck | None:
        node = self.nodes.get(name)
        return None if node is None else node.supervisor

    def has_read(self, supervisor: str, stamp: PlanVersion) -> bool:
        """Return whether a supervisor has read this plan of the topology, or a newer one."""
        ack = self.supervisor(supervisor)
        if ack is None or ack.cluster != self.plan.cluster:
            return False
        topology = self.publication.topology
        return any(read.topology == topology and read.stamp >= stamp for read in ack.plans)

    def gone(self, slot: Slot) -> bool:
        """Return whether Storm has given up the slot and its whole node."""
        unknown = slot.supervisor not in self.publication.hosts
        return unknown and self.status(slot) is SlotStatus.UNASSIGNED


def _staying(publication: Publication, plan: Plan) -> Counter[Slot]:
    """Count the executors that no move takes from the slot where Storm assigns them."""
    valid = (e for e in plan.entries if e.void is None and e.phase is not Phase.UNDO)
    leaving = {(entry.executor, entry.source) for entry in valid}
    return Counter(
        one.slot
        for one in publication.executors
        if one.slot is not None and (one.executor, one.slot) not in leaving
    )


def two_majors(versions: Iterable[tuple[str, str | None]]) -> str | None:
    """Name two JVMs that run Storms of different major versions; None if there are none.

    Their heartbeats and states do not mix: an i32 of 2.x is an i64 in 3.x (storm.thrift,
    `time_secs`). A JVM whose version is not known counts for nothing.
    """
    first: dict[str, str] = {}
    for who, version in versions:
        if version is not None:
            first.setdefault(version.partition(".")[0], f"{who} runs Storm {version}")
    found = [first[major] for major in sorted(first)]
    return f"{found[0]}, and {found[-1]}: these do not mix" if len(found) > 1 else None


def _lowest(
    published: int, slots: frozenset[Slot], nodes: dict[str, NodeAcks], workers: list[WorkerAck]
) -> tuple[int, str]:
    found = [(SPEAKS, "this controller"), (published, "Nimbus or a controller")]
    for name in sorted({slot.supervisor for slot in slots} & nodes.keys()):
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
    return f"the worker at {min(silent)} has not reported that it has the hooks" if silent else None

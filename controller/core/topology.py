"""A topology as the cycle sees it, without its load."""

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

from migration.model import (
    MOVING,
    Entry,
    ExecutorId,
    NimbusReport,
    Node,
    NodeAcks,
    Phase,
    Plan,
    PlanVersion,
    Publication,
    Slot,
    WorkerAck,
)
from migration.observation import Observation, SlotStatus
from migration.table import OPENS_SINCE

if TYPE_CHECKING:
    from controller.core.allowed import Allowed

# No decision waits longer for a worker to report; its executors then stay where they are.
UNHEARD_S = 30.0
# Storm gives a worker this long to start (supervisor.worker.start.timeout.secs). After that one
# that has not reported has no hooks.
STARTING_S = 120.0


# Without slots, so that what is worked out of it is kept.
@dataclass(frozen=True)
class TopologyView:
    """One topology as ZooKeeper shows it."""

    publication: Publication
    plan: Plan  # as it is written; version -1 if there is none yet
    acks: tuple[NodeAcks, ...]  # the fresh answers of all nodes
    stand_back: str | None = None  # why nothing may be moved now
    # The newest report of the hook in Nimbus on itself; no decision depends on it.
    nimbus: NimbusReport | None = None
    # Slots that Storm has filled within `STARTING_S`, and whose worker has not reported.
    starting: frozenset[Slot] = frozenset()

    @property
    def id(self) -> str:
        return self.publication.topology

    @property
    def read_by_nimbus(self) -> PlanVersion | None:
        """The newest plan that the hook in Nimbus has read."""
        found = None if self.nimbus is None else self.nimbus.find(self.id)
        return None if found is None else found.plan

    def at(self, time_s: float) -> "TopologyView":
        """Note which workers are starting at a time; without a change it stays the same object."""
        starting = frozenset(
            one.slot
            for one in self.publication.executors
            if one.slot is not None
            and (one.start_secs or 0) > time_s - STARTING_S
            and self.observation.status(one.slot) is SlotStatus.ABSENT
            and one.slot not in self.observation.off
        )
        return self if starting == self.starting else replace(self, starting=starting)

    @cached_property
    def observation(self) -> Observation:
        """The answers of the JVMs, and what follows from them."""
        return Observation.of(self.publication, self.plan, self.acks, self.starting)

    @cached_property
    def allowed(self) -> "Allowed":
        """Which of its executors may go to which slots, and why not."""
        from controller.core.allowed import Allowed  # noqa: PLC0415  # numpy: `pause` needs none

        return Allowed(self.observation)


def moves_under_way(
    views: Iterable[TopologyView], phases: frozenset[Phase] = MOVING - {Phase.UNDO}
) -> tuple[tuple[str, Entry], ...]:
    """List the moves of all topologies, with their topology, that count against the cluster's cap.

    Those are the moves from OPEN to STOP, without void ones. One that is undone may wait for a
    silent agent without an end. The moves of a topology that is not ACTIVE wait. Neither may hold
    up the others.
    """
    return tuple(
        (view.id, entry)
        for view in views
        if view.publication.status == "ACTIVE"
        for entry in view.plan.entries
        if entry.void is None and entry.phase in phases
    )


def hosts_of(views: Iterable[TopologyView]) -> dict[str, str]:
    """Give the host of each node that a topology knows, by the node's id."""
    return {node: host for view in views for node, host in view.publication.hosts.items()}


def unpublished(
    views: Iterable[TopologyView], acks: Iterable[NodeAcks]
) -> Iterator[tuple[str, WorkerAck]]:
    """List the workers of topologies that Nimbus does not publish, each with its node."""
    known = {view.id for view in views}
    for one in acks:
        yield from ((one.node, worker) for worker in one.workers if worker.topology not in known)


def free_slots(
    nodes: Iterable[Node], taken: Collection[Slot], fresh_acks: Iterable[NodeAcks]
) -> frozenset[Slot]:
    """List the slots of a cluster where a move may start a worker.

    No topology has them, neither in Storm (`taken`) nor at their supervisor. Supervisor and agent
    know the phase OPEN. Storm does not hold the host back.
    """
    offered = {node.id: node.slots for node in nodes if node.closed is None}
    free: set[Slot] = set()
    for acks in fresh_acks:
        supervisor = acks.supervisor
        if supervisor is not None and min(acks.speaks, supervisor.speaks) >= OPENS_SINCE:
            kept = {slot.port for slot in supervisor.slots}
            ports = set(offered.get(acks.node, ())) - kept
            free |= {Slot(acks.node, port) for port in ports}
    return frozenset(free - set(taken))


def settled_placement(publication: Publication, plan: Plan | None) -> dict[ExecutorId, Slot]:
    """Return where each assigned executor will be once the moves under way have ended.

    A target is filled from the start of a move, so that the next decision leaves it the room.
    """
    placed = {p.executor: p for p in publication.executors if p.slot is not None}
    placement = {executor: p.slot for executor, p in placed.items() if p.slot is not None}
    for entry in plan.entries if plan else ():
        storm = placed.get(entry.executor)
        if storm and entry.phase is not Phase.UNDO and entry.counts(storm.slot, storm.start_secs):
            placement[entry.executor] = entry.target
    return placement

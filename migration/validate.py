"""Says whether an executor may move, and makes the entry of the move."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum

from migration.model import Base, Entry, ExecutorId, Node, NodeAcks, Phase, Slot, Way, WorkerAck
from migration.observation import Observation
from migration.table import NEEDS_VERSION, OPENS_SINCE

# A plan is one node of ZooKeeper of at most 256 kB, and an entry takes up to 1.4 kB: it names its
# slots three times, each with a host of up to 253 characters, and the host of a slot that it opens.
MOST_ENTRIES = 180


class RefusalCode(StrEnum):
    NOT_ACTIVE = "NOT_ACTIVE"
    UNKNOWN_EXECUTOR = "UNKNOWN_EXECUTOR"
    UNKNOWN_SLOT = "UNKNOWN_SLOT"
    SAME_SLOT = "SAME_SLOT"
    MOVE_IN_FLIGHT = "MOVE_IN_FLIGHT"
    NO_WORKER_IN_SLOT = "NO_WORKER_IN_SLOT"
    NO_HOOKS = "NO_HOOKS"
    NOT_RUNNING = "NOT_RUNNING"
    PINNED = "PINNED"
    LAST_IN_WORKER = "LAST_IN_WORKER"
    NOT_UNDERSTOOD = "NOT_UNDERSTOOD"


@dataclass(frozen=True, slots=True)
class Refusal:
    """That a move may not be: the code, and a sentence that says what is in the way."""

    code: RefusalCode
    reason: str


def validate_move(
    observation: Observation,
    executor: ExecutorId,
    target: Slot,
    begun: Sequence[Entry] = (),
    *,
    free: Collection[Slot] = (),
) -> Entry | Refusal:
    """Make the entry of a move, or name the first thing that is in its way.

    `begun` are the entries that the next plan begins besides, `free` the slots that may be opened,
    of `free_slots`. The caller sees to it that the
    publication is fresh, and the acks of all nodes are at most `Timing.ack_fresh_s` old.
    """
    refusal = _unknown(observation, executor, target)
    placed = observation.placed.get(executor)
    if refusal is not None or placed is None or placed.slot is None or placed.start_secs is None:
        return refusal or Refusal(
            RefusalCode.UNKNOWN_EXECUTOR, f"Storm has assigned executor {executor} to no slot"
        )
    entries = (*observation.plan.entries, *begun)
    publication = observation.publication
    host = None
    if target not in publication.slots:
        host = publication.hosts[target.supervisor]
    refusal = _in_the_way(observation, entries, executor, placed.slot, target)
    if refusal is None and host is not None:
        refusal = _not_free(observation, target, free)
    ends = (placed.slot,) if host is not None else (placed.slot, target)
    refusal = refusal or _unhooked(observation, *ends)
    if refusal is not None:
        return refusal
    worker = observation.workers[placed.slot]
    way = worker.way(executor)
    leaving = sum(entry.source == placed.slot for entry in begun)
    refusal = (
        _pinned(worker, executor, way)
        or _not_understood(observation, way, opens=host is not None)
        or _last(observation, executor, placed.slot, leaving)
    )
    base = Base(placed.slot, placed.start_secs)
    name = _free_id(observation.plan.version + 1, entries)
    phase = Phase.PREPARE if host is None else Phase.OPEN
    # A message of the order would end a worker without hooks.
    ordered = observation.cannot_close is None
    return refusal or Entry(
        name, executor, placed.slot, target, phase, base, way=way, opens=host, ordered=ordered
    )


def _unknown(observation: Observation, executor: ExecutorId, target: Slot) -> Refusal | None:
    publication = observation.publication
    if publication.status != "ACTIVE":
        reason = f"topology {publication.topology} is {publication.status}"
        return Refusal(RefusalCode.NOT_ACTIVE, reason)
    if executor not in observation.placed:
        reason = f"topology {publication.topology} has no executor {executor}"
        return Refusal(RefusalCode.UNKNOWN_EXECUTOR, reason)
    node = publication.node_of.get(target.supervisor)
    if node is None or target.port not in node.slots:
        return Refusal(RefusalCode.UNKNOWN_SLOT, f"no supervisor offers a slot {target}")
    return None


def _in_the_way(
    observation: Observation,
    entries: Sequence[Entry],
    executor: ExecutorId,
    source: Slot,
    target: Slot,
) -> Refusal | None:
    topology = observation.publication.topology
    for entry in entries:
        if entry.executor == executor:
            state = "void" if entry.void is not None else entry.phase
            reason = f"executor {executor} has move {entry.id} in the plan, in {state}"
            return Refusal(RefusalCode.MOVE_IN_FLIGHT, reason)
    if len(entries) >= MOST_ENTRIES:
        reason = f"the plan of {topology} has {MOST_ENTRIES} moves, and no room for more"
        return Refusal(RefusalCode.MOVE_IN_FLIGHT, reason)
    if source == target:
        return Refusal(RefusalCode.SAME_SLOT, f"executor {executor} is at {target} already")
    return None


def free_slots(
    nodes: Iterable[Node], taken: Collection[Slot], fresh_acks: Iterable[NodeAcks]
) -> frozenset[Slot]:
    """List the slots of a cluster where a move may start a worker.

    No topology has them, by Storm's word (`taken`) or their supervisor's; supervisor and agent know
    the phase OPEN.
    """
    offered = {node.id: node.slots for node in nodes}
    free: set[Slot] = set()
    for acks in fresh_acks:
        supervisor = acks.supervisor
        if supervisor is not None and min(acks.speaks, supervisor.speaks) >= OPENS_SINCE:
            kept = {slot.port for slot in supervisor.slots}
            ports = set(offered.get(acks.node, ())) - kept
            free |= {Slot(acks.node, port) for port in ports}
    return frozenset(free - set(taken))


def _not_free(observation: Observation, target: Slot, free: Collection[Slot]) -> Refusal | None:
    if target in free or target in observation.opened:
        return None
    topology = observation.publication.topology
    why = "another topology may have it, or its supervisor or agent cannot open it"
    reason = f"topology {topology} has no worker at {target}, and it is not free: {why}"
    return Refusal(RefusalCode.NO_WORKER_IN_SLOT, reason)


def _unhooked(observation: Observation, *ends: Slot) -> Refusal | None:
    for slot in ends:
        if slot not in observation.hooked:
            return Refusal(RefusalCode.NO_HOOKS, observation.unheard(slot))
        error = observation.workers[slot].error
        if error is not None:
            return Refusal(
                RefusalCode.NO_HOOKS, f"the worker at {slot} cannot follow plans: {error}"
            )
    return None


def _not_understood(observation: Observation, way: Way, *, opens: bool) -> Refusal | None:
    version, who = observation.speaks
    needed = max(NEEDS_VERSION[way], OPENS_SINCE if opens else 0)
    if version >= needed:
        return None
    what = f"a move of way {way}{' that opens a slot' * opens} needs {needed}"
    reason = f"{who} speaks version {version} of the protocol, and {what}"
    return Refusal(RefusalCode.NOT_UNDERSTOOD, reason)


def _pinned(source: WorkerAck, executor: ExecutorId, way: Way) -> Refusal | None:
    if executor not in source.executors:
        reason = f"the worker at {source.slot} does not run executor {executor}"
        return Refusal(RefusalCode.NOT_RUNNING, reason)
    for pinned in source.pinned if way in (Way.LIVE, Way.UNKNOWN) else ():
        if pinned.executor == executor:
            return Refusal(RefusalCode.PINNED, f"executor {executor} must stay: {pinned.reason}")
    return None


def _last(
    observation: Observation, executor: ExecutorId, source: Slot, leaving: int
) -> Refusal | None:
    why = observation.cannot_close
    if why is None or observation.staying[source] - leaving > 1:
        return None
    reason = f"{executor} is the last executor of {source}: {why}"
    return Refusal(RefusalCode.LAST_IN_WORKER, reason)


def _free_id(version: int, entries: Sequence[Entry]) -> str:
    """Name a move that a version of the plan begins: ``m7`` for version 7, ``m7.2`` if taken."""
    taken, name, number = {entry.id for entry in entries}, f"m{version}", 1
    while name in taken:
        number += 1
        name = f"m{version}.{number}"
    return name

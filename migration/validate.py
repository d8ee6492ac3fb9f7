"""Says whether an executor may move, and makes the entry of the move."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from enum import StrEnum

from migration.model import (
    Base,
    Entry,
    ExecutorId,
    Node,
    NodeAcks,
    Phase,
    PlacedExecutor,
    Plan,
    Publication,
    Slot,
    Way,
    WorkerAck,
)
from migration.observation import Observation, SlotStatus, staying_executors
from migration.table import NEEDS_VERSION, OPENS_SINCE

CLOSES_SINCE = 2  # the version of the protocol that lets a worker lose its last executor


# A plan is one node of ZooKeeper of at most 256 kB, and an entry takes up to 1.4 kB: it names its
# slots three times, each with a host of up to 253 characters, and the host of a slot that it opens.
MOST_ENTRIES = 180


class RefusalCode(StrEnum):
    """Why a move may not be."""

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
    publication: Publication,
    plan: Plan,
    fresh_acks: Iterable[NodeAcks],
    executor: ExecutorId,
    target: Slot,
    *,
    move_id: str,
    free: Collection[Slot] = (),
) -> Entry | Refusal:
    """Make the entry of a move, or name the first thing that is in its way.

    The caller sees to it that the publication is fresh, and the acks of all nodes are at most
    `Timing.ack_fresh_s` old. `free` are the slots that may be opened, of `free_slots`.
    """
    placed = publication.find(executor)
    refusal = _unknown(publication, placed, executor, target)
    if refusal is not None or placed is None or placed.slot is None or placed.start_secs is None:
        return refusal or Refusal(
            RefusalCode.UNKNOWN_EXECUTOR, f"Storm has assigned executor {executor} to no slot"
        )
    opens = target not in publication.slots
    refusal = _in_the_way(plan, executor, placed.slot, target) or (
        _not_free(publication, plan, target, free) if opens else None
    )
    if refusal is not None:
        return refusal
    observation = Observation.of(publication, plan, fresh_acks)
    refusal = _unhooked(observation, *((placed.slot,) if opens else (placed.slot, target)))
    if refusal is not None:
        return refusal
    source = observation.workers[placed.slot]
    way = source.way(executor)
    refusal = (
        _pinned(source, executor, way)
        or _not_understood(observation, way, opens=opens)
        or _last(observation, publication, plan, placed)
    )
    base = Base(placed.slot, placed.start_secs)
    host = next(n.host for n in publication.nodes if n.id == target.supervisor) if opens else None
    phase = Phase.OPEN if opens else Phase.PREPARE
    return refusal or Entry(
        move_id, executor, placed.slot, target, phase, base, way=way, opens=host
    )


def _unknown(
    publication: Publication, placed: PlacedExecutor | None, executor: ExecutorId, target: Slot
) -> Refusal | None:
    if publication.status != "ACTIVE":
        reason = f"topology {publication.topology} is {publication.status}"
        return Refusal(RefusalCode.NOT_ACTIVE, reason)
    if placed is None:
        reason = f"topology {publication.topology} has no executor {executor}"
        return Refusal(RefusalCode.UNKNOWN_EXECUTOR, reason)
    if all(target.supervisor != n.id or target.port not in n.slots for n in publication.nodes):
        return Refusal(RefusalCode.UNKNOWN_SLOT, f"no supervisor offers a slot {target}")
    return None


def _in_the_way(plan: Plan, executor: ExecutorId, source: Slot, target: Slot) -> Refusal | None:
    for entry in plan.entries:
        if entry.executor == executor:
            state = "void" if entry.void is not None else entry.phase
            reason = f"executor {executor} has move {entry.id} in the plan, in {state}"
            return Refusal(RefusalCode.MOVE_IN_FLIGHT, reason)
    if len(plan.entries) >= MOST_ENTRIES:
        reason = f"the plan of {plan.topology} has {MOST_ENTRIES} moves, and no room for more"
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


def _not_free(
    publication: Publication, plan: Plan, target: Slot, free: Collection[Slot]
) -> Refusal | None:
    if target in free or target in plan.opened_slots():
        return None
    why = "another topology may have it, or its supervisor or agent cannot open it"
    reason = f"topology {publication.topology} has no worker at {target}, and it is not free: {why}"
    return Refusal(RefusalCode.NO_WORKER_IN_SLOT, reason)


def _unhooked(observation: Observation, *ends: Slot) -> Refusal | None:
    for slot in ends:
        if observation.status(slot) is not SlotStatus.LIVE:
            reason = f"the worker at {slot} has not said that it has the hooks"
            return Refusal(RefusalCode.NO_HOOKS, reason)
        if observation.supervisor(slot) is None:
            # Stock supervisors kill a worker whose set of executors changes.
            reason = f"the supervisor of {slot} has not said that it has the hooks"
            return Refusal(RefusalCode.NO_HOOKS, reason)
    return None


def _not_understood(observation: Observation, way: Way, *, opens: bool) -> Refusal | None:
    version, who = observation.speaks()
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


def free_id(plan: Plan) -> str:
    """Name a move that the next write of a plan begins: ``m7`` for version 7, ``m7.2`` if taken."""
    taken, name, number = {entry.id for entry in plan.entries}, f"m{plan.version + 1}", 1
    while name in taken:
        number += 1
        name = f"m{plan.version + 1}.{number}"
    return name


def cannot_close(observation: Observation) -> str | None:
    """Say why no worker of the topology may lose its last executor now.

    Storm ends the JVM then. So nobody may send to it any more, and it must have handed on what it
    had: that takes hooks that know how.
    """
    version, who = observation.speaks()
    if version < CLOSES_SINCE:
        return f"{who} speaks version {version} of the protocol, and that needs {CLOSES_SINCE}"
    for slot in sorted(observation.slots):
        if observation.status(slot) is not SlotStatus.LIVE:
            return f"the worker at {slot} has not said that it has the hooks"
    return None


def _last(
    observation: Observation, publication: Publication, plan: Plan, moving: PlacedExecutor
) -> Refusal | None:
    stays = any(
        placed.slot == moving.slot and placed.executor != moving.executor
        for placed in staying_executors(publication, plan)
    )
    why = None if stays else cannot_close(observation)
    if why is None:
        return None
    reason = f"{moving.executor} is the last executor of {moving.slot}: {why}"
    return Refusal(RefusalCode.LAST_IN_WORKER, reason)

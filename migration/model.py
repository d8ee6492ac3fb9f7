"""What moving an executor is about: the values that plans and reports are made of.

The formats are in PROTOCOL.md; the order of the fields here is the order of the keys there.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, replace
from enum import StrEnum

from migration import ModelError, StalePlanError


class Phase(StrEnum):
    """Where a move stands."""

    PREPARE = "PREPARE"
    SWITCH = "SWITCH"
    DRAIN = "DRAIN"
    STOP = "STOP"
    SETTLE = "SETTLE"
    UNDO = "UNDO"


SOURCE_OWNS = frozenset({Phase.PREPARE, Phase.UNDO})
ABSORBED = frozenset({Phase.STOP, Phase.SETTLE})
MOVING = frozenset({Phase.PREPARE, Phase.SWITCH, Phase.DRAIN, Phase.STOP, Phase.UNDO})


class EntryState(StrEnum):
    """What a worker has done for an entry, in the phase of the plan it has applied."""

    NONE = "NONE"
    READY = "READY"
    ROUTED = "ROUTED"
    DRAINED = "DRAINED"
    STOPPED = "STOPPED"
    STUCK = "STUCK"


@dataclass(frozen=True, slots=True, order=True)
class ExecutorId:
    """A thread of a topology, named by its range of task ids, both ends included."""

    start: int
    end: int

    def __post_init__(self) -> None:
        if self.end < self.start:
            raise ModelError(f"executor [{self.start},{self.end}] ends before it starts")

    def __str__(self) -> str:
        return f"{self.start}-{self.end}"

    @classmethod
    def parse(cls, text: str) -> ExecutorId:
        """Read an executor as the command line and the snapshots write it, such as ``7-7``."""
        parts = re.fullmatch(r"(-?[0-9]+)-(-?[0-9]+)", text)
        if parts is None:
            raise ModelError(f"executor {text!r} is not a task range such as 7-7")
        return cls(int(parts[1]), int(parts[2]))


@dataclass(frozen=True, slots=True, order=True)
class Slot:
    """A worker JVM's place: a supervisor's id and a port."""

    supervisor: str
    port: int

    def __post_init__(self) -> None:
        if not self.supervisor or not 0 < self.port < 65536:
            raise ModelError(f"slot {self.supervisor}:{self.port} needs a supervisor and a port")

    def __str__(self) -> str:
        return f"{self.supervisor}:{self.port}"

    @classmethod
    def parse(cls, text: str) -> Slot:
        """Read ``<supervisor-id>:<port>``, split at the last colon."""
        supervisor, _, port = text.rpartition(":")
        # isdecimal() alone would let other scripts' digits through, which Java would not write.
        if not (port.isascii() and port.isdecimal()):
            raise ModelError(f"slot {text!r} is not <supervisor-id>:<port>")
        return cls(supervisor, int(port))


@dataclass(frozen=True, slots=True, order=True)
class PlanVersion:
    """The age of a plan: leaders count first, then a leader's writes."""

    epoch: int
    version: int


@dataclass(frozen=True, slots=True)
class Base:
    """What Storm's assignment had for the executor when its move was made."""

    slot: Slot
    start_secs: int


@dataclass(frozen=True, slots=True)
class Entry:
    """One move in a plan."""

    id: str
    executor: ExecutorId
    source: Slot
    target: Slot
    phase: Phase
    base: Base
    void: str | None = None

    @property
    def owner(self) -> Slot:
        """The slot that the executor's tuples go to, as long as the entry counts."""
        return self.source if self.phase in SOURCE_OWNS else self.target

    def counts(self, assigned_slot: Slot | None, assigned_start_secs: int | None) -> bool:
        """Tell whether the entry still has a meaning beside Storm's own assignment.

        Parameters
        ----------
        assigned_slot : Slot or None
            Where Storm assigns this executor now; None if there is no such executor or no slot.
        assigned_start_secs : int or None
            The start time that Storm's assignment has for it.

        Returns
        -------
        bool
            False if Storm wins: the entry is then void for everyone.
        """
        if self.void is not None or assigned_slot is None:
            return False
        if self.phase in ABSORBED and assigned_slot == self.target:
            return True
        return (self.base.slot, self.base.start_secs) == (assigned_slot, assigned_start_secs)


@dataclass(frozen=True, slots=True)
class Plan:
    """The moves of one topology, laid over Storm's assignment."""

    cluster: str
    epoch: int
    version: int
    topology: str
    entries: tuple[Entry, ...] = ()

    def __post_init__(self) -> None:
        for name, values in (
            ("id", [entry.id for entry in self.entries]),
            ("executor", [str(entry.executor) for entry in self.entries]),
        ):
            twice = [value for value, times in Counter(values).items() if times > 1]
            if twice:
                raise ModelError(f"plan of {self.topology} has two entries of {name} {twice[0]}")

    @property
    def stamp(self) -> PlanVersion:
        """The plan's age, to compare it with others of its topology."""
        return PlanVersion(self.epoch, self.version)

    def followed_by(self, entries: tuple[Entry, ...], epoch: int) -> Plan:
        """Make the plan of the next write, with these entries.

        Parameters
        ----------
        epoch : int
            Of the leader who writes it.

        Raises
        ------
        ModelError
            If two entries have one id or one executor.
        """
        return replace(self, epoch=epoch, version=self.version + 1, entries=entries)


@dataclass(frozen=True, slots=True)
class LocalPlan:
    """The plans that the workers of one node need."""

    cluster: str
    plans: tuple[Plan, ...] = ()

    def find(self, topology: str) -> Plan | None:
        """Return the plan of a topology, None if it is not here."""
        return next((plan for plan in self.plans if plan.topology == topology), None)

    def with_plan(self, plan: Plan) -> LocalPlan:
        """Take a newer plan in.

        Parameters
        ----------
        plan : Plan
            The plan; it replaces the one of its topology.

        Returns
        -------
        LocalPlan
            The local plan with it, in the order of the topologies' ids.

        Raises
        ------
        StalePlanError
            If it is of another cluster, or older than the one held.
        """
        held = self.find(plan.topology)
        if plan.cluster != self.cluster:
            raise StalePlanError(
                f"plan of {plan.topology} is of cluster {plan.cluster}, this node of {self.cluster}"
            )
        if held is not None and plan.stamp < held.stamp:
            raise StalePlanError(
                f"plan of {plan.topology} is {plan.epoch}.{plan.version}, "
                f"held is {held.epoch}.{held.version}"
            )
        others = [other for other in self.plans if other.topology != plan.topology]
        return replace(self, plans=tuple(sorted([*others, plan], key=lambda p: p.topology)))


@dataclass(frozen=True, slots=True)
class EntryAck:
    """What one worker has done for one entry, and where it last saw Storm assign the executor."""

    id: str
    state: EntryState
    assigned: Slot | None


@dataclass(frozen=True, slots=True)
class PinnedExecutor:
    """An executor that must stay where it is, and why."""

    executor: ExecutorId
    reason: str


@dataclass(frozen=True, slots=True)
class Counters:
    """Tuples that a worker forwarded, parked or dropped, and errors of its hooks."""

    forwarded: int = 0
    parked: int = 0
    dropped: int = 0
    errors: int = 0


@dataclass(frozen=True, slots=True)
class WorkerAck:
    """The state of one hooked worker; `cluster` to `version` are of the plan it has applied.

    `fault` is the last error that the hooks contained; `error` says why the worker cannot follow
    plans, and is None if it can.
    """

    topology: str
    slot: Slot
    pid: int
    incarnation: str
    hooks: str
    time_ms: int
    cluster: str
    epoch: int
    version: int
    entries: tuple[EntryAck, ...] = ()
    executors: tuple[ExecutorId, ...] = ()
    pinned: tuple[PinnedExecutor, ...] = ()
    counters: Counters = Counters()
    fault: str | None = None
    error: str | None = None

    @property
    def stamp(self) -> PlanVersion:
        """The age of the plan that this worker has applied in full."""
        return PlanVersion(self.epoch, self.version)

    def find(self, entry_id: str) -> EntryAck | None:
        """Return the worker's answer to an entry, None if it has none."""
        return next((entry for entry in self.entries if entry.id == entry_id), None)


@dataclass(frozen=True, slots=True)
class AppliedPlan:
    """The age of the plan that a supervisor has read for a topology."""

    topology: str
    epoch: int
    version: int

    @property
    def stamp(self) -> PlanVersion:
        """The age of the plan."""
        return PlanVersion(self.epoch, self.version)


@dataclass(frozen=True, slots=True)
class PersistedSlot:
    """The executors that a supervisor would restart on a port."""

    port: int
    topology: str
    executors: tuple[ExecutorId, ...]


@dataclass(frozen=True, slots=True)
class SupervisorAck:
    """The state of one hooked supervisor; `cluster` is of the plans it has read."""

    supervisor: str
    pid: int
    hooks: str
    time_ms: int
    cluster: str
    plans: tuple[AppliedPlan, ...] = ()
    slots: tuple[PersistedSlot, ...] = ()


@dataclass(frozen=True, slots=True)
class NodeAcks:
    """What the JVMs of one node say, as its agent publishes it.

    `held` are plans of this node that ZooKeeper has lost; the leader writes them there anew.
    """

    node: str
    time_ms: int
    agent: str
    cluster: str
    workers: tuple[WorkerAck, ...] = ()
    supervisor: SupervisorAck | None = None
    held: tuple[Plan, ...] = ()


@dataclass(frozen=True, slots=True)
class ExecutorLoad:
    """One executor's processor time since its JVM started, and its queue now."""

    executor: ExecutorId
    component: str
    cpu_ns: int
    queue: int
    pinned: str | None


@dataclass(frozen=True, slots=True)
class Traffic:
    """Tuples sent from task to task since the sender's JVM started."""

    source_task: int
    target_task: int
    tuples: int


@dataclass(frozen=True, slots=True)
class WorkerLoad:
    """What one worker measured; the totals never fall while the incarnation stays."""

    topology: str
    slot: Slot
    incarnation: str
    time_ms: int
    process_cpu_ns: int
    executors: tuple[ExecutorLoad, ...] = ()
    traffic: tuple[Traffic, ...] = ()


@dataclass(frozen=True, slots=True)
class NodeLoad:
    """What the workers of one node measured.

    `left_out` counts the traffic rows, those of the fewest tuples, that found no room in the node.
    """

    node: str
    time_ms: int
    workers: tuple[WorkerLoad, ...] = ()
    left_out: int = 0


@dataclass(frozen=True, slots=True)
class Component:
    """A component of a topology; `kind` is spout, bolt or system."""

    id: str
    kind: str
    parallelism: int


@dataclass(frozen=True, slots=True)
class Edge:
    """A stream between two components."""

    source: str
    target: str
    stream: str
    grouping: str


@dataclass(frozen=True, slots=True)
class Node:
    """A supervisor's host; `cpu_capacity` in per cent of a core, as in Storm."""

    id: str
    host: str
    cpu_capacity: float
    slots: tuple[int, ...]
    slots_in_use: int


@dataclass(frozen=True, slots=True)
class PlacedExecutor:
    """Where Storm's own assignment has an executor; no slot if it is unassigned."""

    executor: ExecutorId
    component: str
    slot: Slot | None
    start_secs: int | None


@dataclass(frozen=True, slots=True)
class Publication:
    """What Storm knows about a topology, as the hook in Nimbus publishes it each round."""

    topology: str
    name: str
    status: str
    time_ms: int
    hooks: str
    scheduler: str
    refresh_poll_secs: int
    round: int
    plan: PlanVersion | None
    components: tuple[Component, ...]
    edges: tuple[Edge, ...]
    nodes: tuple[Node, ...]
    executors: tuple[PlacedExecutor, ...]

    def find(self, executor: ExecutorId) -> PlacedExecutor | None:
        """Return an executor of exactly this range, None if there is none."""
        return next((placed for placed in self.executors if placed.executor == executor), None)

    @property
    def slots(self) -> frozenset[Slot]:
        """The slots where the topology has a worker."""
        return frozenset(placed.slot for placed in self.executors if placed.slot is not None)


@dataclass(frozen=True, slots=True)
class Timing:
    """The patience of the protocol; the defaults are PROTOCOL.md's and DESIGN's."""

    prepare_limit_s: float = 20.0
    switch_limit_s: float = 5.0
    bystander_wait_s: float = 2.0
    lazy_kill_ms: int = 2000
    supervisor_limit_s: float = 30.0
    ack_fresh_s: float = 15.0

"""The values that plans and reports are made of.

The formats are in PROTOCOL.md; the order of the fields here is the order of the keys there.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property, total_ordering
from itertools import pairwise
from typing import Annotated, Any, Self

import msgspec
from msgspec import UNSET, Meta, Raw, Struct, UnsetType
from msgspec.structs import replace

from kvstore.printable import CONTROLS
from migration import ModelError, StalePlanError

# Java reads whole numbers as long, and task ids as int.
Long = Annotated[int, Meta(ge=-(2**63), le=2**63 - 1)]
Count = Annotated[int, Meta(ge=0, le=2**63 - 1)]
# Of a plan; -1 for none.
Version = Annotated[int, Meta(ge=-1, le=2**63 - 1)]
Task = Annotated[int, Meta(ge=-1, le=2**31 - 1)]
# Of topologies, components, supervisors and moves. What others may write is shown.
NAME = rf"[^{CONTROLS}]{{1,512}}\Z"
Name = Annotated[str, Meta(pattern=rf"\A{NAME}")]
Host = Annotated[str, Meta(pattern=r"\A[\w.:%][\w.:%-]{0,254}\Z")]
# One line that an operator's program wrote.
LINE = rf"\A[^{CONTROLS}]{{0,511}}\Z"
Line = Annotated[str, Meta(pattern=LINE)]
# Source task, destination task (or component) and tuples since the sender's JVM started.
TrafficRow = tuple[Task, Task, Count]
FoldedRow = tuple[Task, str, Count]
# Source component, destination component, and tuples that were looked at, with their bytes.
SizeRow = tuple[Name, Name, Count, Count]
# By name, as in `meters.py`. What cannot be read is left out, and readers pass over other names.
Meters = dict[str, int | float]
# Of how long acked tuples took; `controller/core/latency.py` has what the buckets are.
LATENCY_BUCKETS = 74
LatencyRow = tuple[Annotated[int, Meta(ge=0, lt=LATENCY_BUCKETS)], Count]

_is_name = re.compile(NAME).match


def names_a_node(name: str) -> bool:
    """Return whether a name may be the last one of a path in ZooKeeper, as ids of Storm are."""
    return _is_name(name) is not None and "/" not in name and name not in (".", "..")


# The messages below are many, and no value in them leads back to itself. gc=False spares Python's
# garbage collector from repeated walks over them.


class Phase(StrEnum):
    """Where a move stands."""

    OPEN = "OPEN"
    PREPARE = "PREPARE"
    QUIET = "QUIET"
    SWITCH = "SWITCH"
    DRAIN = "DRAIN"
    CARRY = "CARRY"
    RECALL = "RECALL"
    STOP = "STOP"
    SETTLE = "SETTLE"
    UNDO = "UNDO"
    UNKNOWN = "UNKNOWN"
    """Of a later version of the protocol; never written."""

    @classmethod
    def _missing_(cls, value: object) -> Self:
        return cls("UNKNOWN")


class Way(StrEnum):
    """How a move hands its executor over; PROTOCOL.md has the table."""

    LIVE = "live"
    ACKER = "acker"
    SPOUT = "spout"
    CARRY = "carry"
    DRAIN = "drain"
    RENEW = "renew"
    UNKNOWN = "unknown"
    """Of a later version of the protocol; never written."""

    @classmethod
    def _missing_(cls, value: object) -> Self:
        return cls("unknown")


SOURCE_OWNS = frozenset({Phase.OPEN, Phase.PREPARE, Phase.QUIET, Phase.UNDO})
ABSORBED = frozenset({Phase.STOP, Phase.SETTLE})
# What only one copy may hold: the target's opens in STOP, and Nimbus absorbs the move after that.
OPENS_LATE = frozenset({Way.SPOUT, Way.RENEW})
# An executor works nowhere until such a phase has ended.
STANDS_STILL = frozenset({Phase.QUIET, Phase.CARRY, Phase.RECALL})
MOVING = SOURCE_OWNS | {Phase.SWITCH, Phase.DRAIN, Phase.CARRY, Phase.RECALL, Phase.STOP}


class EntryState(StrEnum):
    """How far a worker is with an entry, in the phase of the plan it has applied."""

    NONE = "NONE"
    READY = "READY"
    ROUTED = "ROUTED"
    DRAINED = "DRAINED"
    LOADED = "LOADED"
    """The target's copy has what the source's kept, and works with it."""
    REFUSED = "REFUSED"
    """The state of the source's copy cannot be written or read, or this copy cannot be closed."""
    STOPPED = "STOPPED"
    STUCK = "STUCK"
    NOT_UNDERSTOOD = "NOT_UNDERSTOOD"
    """The worker does not know the entry's phase or way, and has changed nothing for it."""

    @classmethod
    def _missing_(cls, value: object) -> Self:
        return cls("NONE")  # what cannot be understood is no answer


class ExecutorId(Struct, frozen=True, gc=False, array_like=True, order=True):
    """A thread of a topology, named by its range of task ids, both ends included."""

    start: Task
    end: Task

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


@total_ordering
class Slot:
    """A worker JVM's place: a supervisor's id and a port.

    It is one text in every format, which is why it is no `Struct`.
    """

    __slots__ = ("_hash", "port", "supervisor")

    def __init__(self, supervisor: str, port: int) -> None:
        if not names_a_node(supervisor) or not 0 < port < 65536:
            raise ModelError(f"slot {supervisor}:{port} needs a supervisor and a port")
        self.supervisor = supervisor
        self.port = port
        self._hash = hash((supervisor, port))

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Slot):
            return NotImplemented
        return self.port == other.port and self.supervisor == other.supervisor

    def __lt__(self, other: Self) -> bool:
        return (self.supervisor, self.port) < (other.supervisor, other.port)

    def __reduce__(self) -> Any:
        return Slot, (self.supervisor, self.port)

    def __repr__(self) -> str:
        return f"Slot({self.supervisor!r}, {self.port})"

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


class PlanVersion(Struct, frozen=True, gc=False, array_like=True, order=True):
    """The age of a plan: leaders count first, then a leader's writes."""

    epoch: Count
    version: Version


class Base(Struct, frozen=True, gc=False, array_like=True):
    """Storm's assignment of the executor when its move was made."""

    slot: Slot
    start_secs: Count


class Entry(Struct, frozen=True, gc=False, rename={"source": "from", "target": "to"}):
    """One move in a plan.

    `opens` is the host of the target if the topology had no worker there. `ordered` means that the
    workers keep the order of the tuples that each task sends to the executor.
    """

    id: Name
    executor: ExecutorId
    source: Slot
    target: Slot
    phase: Phase
    base: Base
    void: str | None = None
    way: Way = Way.LIVE
    opens: Name | None = None
    ordered: bool = False

    @property
    def understood(self) -> bool:
        """Whether it is of no later version of the protocol, so that it may be judged here."""
        return self.phase is not Phase.UNKNOWN and self.way is not Way.UNKNOWN

    @property
    def absorbable(self) -> bool:
        """Whether Nimbus may put the executor at the target in Storm's own assignment."""
        late = self.phase is Phase.STOP and self.way in OPENS_LATE
        return self.phase in ABSORBED and not late

    @property
    def owner(self) -> Slot:
        """The slot that the executor's tuples go to, as long as the entry counts."""
        return self.source if self.phase in SOURCE_OWNS else self.target

    def counts(self, assigned_slot: Slot | None, assigned_start_secs: int | None) -> bool:
        """Return whether the entry still changes anything in Storm's own assignment.

        Storm assigns the executor to this slot since this time; None if there is no such executor
        or no slot. If false, Storm wins: the entry is then void for everyone.
        """
        if self.void is not None or assigned_slot is None:
            return False
        if self.phase in ABSORBED and assigned_slot == self.target:
            return True
        return (self.base.slot, self.base.start_secs) == (assigned_slot, assigned_start_secs)


class Plan(Struct, frozen=True, gc=False):
    """The moves of one topology, laid over Storm's assignment."""

    cluster: str
    epoch: Count
    version: Version
    topology: Name
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
        return PlanVersion(self.epoch, self.version)

    def opened_slots(self) -> frozenset[Slot]:
        """Return the slots where supervisors keep a worker that Storm need not assign."""
        opening = (one for one in self.entries if one.opens is not None and one.void is None)
        return frozenset(entry.target for entry in opening)


class LocalPlan(Struct, frozen=True, gc=False):
    """The plans that the workers of one node need."""

    cluster: str
    plans: tuple[Plan, ...] = ()

    def find(self, topology: str) -> Plan | None:
        return next((plan for plan in self.plans if plan.topology == topology), None)

    def with_plan(self, plan: Plan) -> LocalPlan:
        """Take in a newer plan, in place of its topology's and in the order of the topologies' ids.

        A `StalePlanError` if it is of another cluster, or older than the one held.
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


class EntryAck(Struct, frozen=True, gc=False):
    """How far one worker is with one entry, and where it last saw Storm assign the executor.

    `awaits_ahead` is set where a target is ready but for what the source sends of its state before
    it stands still. Earlier hooks leave it out.
    """

    id: Name
    state: EntryState
    assigned: Slot | None
    awaits_ahead: bool | UnsetType = UNSET


class PinnedExecutor(Struct, frozen=True, gc=False):
    """An executor that must stay where it is, and why."""

    executor: ExecutorId
    reason: str


class ExecutorWay(Struct, frozen=True, gc=False):
    """An executor that moves by another way than `live`."""

    executor: ExecutorId
    way: Way


class Counters(Struct, frozen=True, gc=False):
    """Tuples that a worker forwarded, parked or dropped, errors of its hooks, and inversions.

    `unordered` are tuples that it let go before what their sender had sent earlier.
    """

    forwarded: Long = 0
    parked: Long = 0
    dropped: Long = 0
    errors: Long = 0
    unordered: Long = 0


class Messaging(Struct, frozen=True, gc=False):
    """What guards Storm's connections between workers: of ``sasl`` and ``tls``.

    `has` is what a worker's connections have, `due` what the storm.yaml of its node asks for.
    """

    has: tuple[Line, ...] = ()
    due: tuple[Line, ...] = ()


class WorkerAck(Struct, frozen=True, gc=False):
    """The state of one hooked worker; `cluster` to `version` are of the plan it has applied.

    `fault` is the last error that the hooks contained; `error` is why the worker cannot follow
    plans, and is None if it can. `storm` is its version; earlier hooks do not name it. `off` is why
    the hooks do nothing at all, and unset while they work. Earlier hooks leave `messaging` unset.
    """

    topology: Name
    slot: Slot
    pid: Long
    incarnation: Line
    hooks: Line
    speaks: Long
    time_ms: Long
    cluster: str
    epoch: Count
    version: Version
    entries: tuple[EntryAck, ...] = ()
    executors: tuple[ExecutorId, ...] = ()
    pinned: tuple[PinnedExecutor, ...] = ()
    ways: tuple[ExecutorWay, ...] = ()
    counters: Counters = Counters()
    fault: str | None = None
    error: str | None = None
    storm: str | None = None
    off: str | UnsetType = UNSET
    messaging: Messaging | UnsetType = UNSET

    @property
    def stamp(self) -> PlanVersion:
        """The age of the plan that this worker has applied in full."""
        return PlanVersion(self.epoch, self.version)

    def find(self, entry_id: str) -> EntryAck | None:
        """Return the worker's answer to an entry."""
        return next((entry for entry in self.entries if entry.id == entry_id), None)


class AppliedPlan(Struct, frozen=True, gc=False, array_like=True):
    """The age of the plan that a supervisor has read for a topology."""

    topology: Name
    epoch: Count
    version: Version

    @property
    def stamp(self) -> PlanVersion:
        return PlanVersion(self.epoch, self.version)


class PersistedSlot(Struct, frozen=True, gc=False):
    """The executors that a supervisor would restart on a port.

    `user` is as whom Storm starts the worker, and unset where that is the supervisor's own.
    """

    port: Long
    topology: Name
    executors: tuple[ExecutorId, ...]
    user: Name | UnsetType = UNSET


class SupervisorAck(Struct, frozen=True, gc=False):
    """The state of one hooked supervisor; `cluster` is of the plans it has read.

    `error` is why it follows no plan, and is None if it does.
    """

    supervisor: Name
    pid: Long
    hooks: Line
    speaks: Long
    time_ms: Long
    cluster: str
    plans: tuple[AppliedPlan, ...] = ()
    slots: tuple[PersistedSlot, ...] = ()
    storm: str | None = None
    error: str | None = None


class NodeAcks(Struct, frozen=True, gc=False):
    """The acks of all JVMs on one node, as its agent publishes them.

    `held` are plans of this node that ZooKeeper has lost; the leader writes them there again. At
    the slots `silent` a worker's process is there and has not reported for long. `off` is why the
    hooks on this node are switched off, and unset while they are on.
    """

    node: Name
    time_ms: Long
    agent: Line
    speaks: Long
    cluster: str
    workers: tuple[WorkerAck, ...] = ()
    supervisor: SupervisorAck | None = None
    held: tuple[Plan, ...] = ()
    silent: tuple[Slot, ...] = ()
    off: str | UnsetType = UNSET

    def timeless(self) -> NodeAcks:
        """Leave the times out: a JVM that only reports that it is alive is no news."""
        workers = tuple(replace(worker, time_ms=0) for worker in self.workers)
        supervisor = self.supervisor and replace(self.supervisor, time_ms=0)
        return replace(self, time_ms=0, workers=workers, supervisor=supervisor)


class ExecutorLoad(Struct, frozen=True, gc=False):
    """One executor's processor time since its JVM started, and its queue now.

    Its component is a `Name`, which `WorkerLoad` sees to: many have the same one.
    """

    executor: ExecutorId
    component: str
    cpu_ns: Long
    queue: Count
    pinned: str | None


class WorkerLoad(Struct, frozen=True, gc=False):
    """The load that one worker measured; a total never falls while an incarnation reports it.

    `traffic` has a `TrafficRow` for each pair of tasks, as JSON. These rows are most of all that
    nstorm reads, and only the controller wants them as numbers. `folded` has what the worker sent
    to other pairs. A row that was not in the report before was 0 then. `sizes` are of some of the
    tuples that went to other workers. `latency` has the acked tuples whose time was measured; also
    here a row that was not there before was 0. `executor_meters` have numbers of the executors by
    name, in their order; one below 0 is not known.
    """

    topology: Name
    slot: Slot
    incarnation: Line
    time_ms: Long
    process_cpu_ns: Long
    executors: tuple[ExecutorLoad, ...] = ()
    traffic: Raw = Raw(b"[]")
    folded: tuple[FoldedRow, ...] = ()
    meters: Meters | UnsetType = UNSET
    sizes: tuple[SizeRow, ...] | UnsetType = UNSET
    latency: tuple[LatencyRow, ...] | UnsetType = UNSET
    executor_meters: dict[str, tuple[Long, ...]] | UnsetType = UNSET

    def __post_init__(self) -> None:
        told = bytes(self.traffic)
        full = told.startswith(b"[[") and told.endswith(b"]]")
        between = told.translate(None, b"0123456789-")
        rows = b"[,,]," * (len(between) // 5)
        if (not full and told != b"[]") or between != b"[%b]" % rows[:-1]:
            raise ModelError("traffic is no list of [source task, destination task, tuples]")
        if not all(map(_is_name, {one.component for one in self.executors})):
            raise ModelError("a component of executors is no name of at most 512 characters")
        columns = {} if self.executor_meters is UNSET else self.executor_meters
        for name, column in columns.items():
            if len(column) != len(self.executors):
                raise ModelError(f"executor_meters has another number of {name} than executors")
        buckets = [] if self.latency is UNSET else [bucket for bucket, _ in self.latency]
        if any(one >= other for one, other in pairwise(buckets)):
            raise ModelError("latency has buckets that do not rise")

    @property
    def rows(self) -> tuple[TrafficRow, ...]:
        return msgspec.json.decode(self.traffic, type=tuple[TrafficRow, ...])


def traffic_of(rows: Iterable[TrafficRow]) -> Raw:
    """Write rows as a report has them."""
    return Raw(msgspec.json.encode(list(rows)))


class NodeLoad(Struct, frozen=True, gc=False):
    """The load that the workers of one node measured.

    `left_out` counts the traffic rows, those of the fewest tuples, that found no room in the node.
    """

    node: Name
    time_ms: Long
    workers: tuple[WorkerLoad, ...] = ()
    left_out: Long = 0
    meters: Meters | UnsetType = UNSET


class Component(Struct, frozen=True, gc=False):
    """A component of a topology; `kind` is spout, bolt or system.

    `memory_mb` is what each executor declares, where Storm's scheduler counts memory.
    """

    id: Name
    kind: Name
    parallelism: Long
    memory_mb: float | UnsetType = UNSET


class Edge(Struct, frozen=True, gc=False, rename={"source": "from", "target": "to"}):
    """A stream between two components."""

    source: Name
    target: Name
    stream: Name
    grouping: Name


class Node(Struct, frozen=True, gc=False):
    """A supervisor's host; `cpu_capacity` in per cent of a core, as in Storm.

    `closed` is why nothing may come to it. `memory_mb` is what it has, where Storm's scheduler
    counts memory.
    """

    id: Name
    host: Host
    cpu_capacity: float
    slots: tuple[Long, ...]
    slots_in_use: Long
    closed: str | None = None
    memory_mb: float | UnsetType = UNSET


class PlacedExecutor(Struct, frozen=True, gc=False):
    """Where Storm's own assignment has an executor; no slot if it is unassigned."""

    executor: ExecutorId
    component: Name
    slot: Slot | None
    start_secs: Count | None


# With a dict, so that what is worked out of it is kept.
class Publication(Struct, frozen=True, omit_defaults=True, dict=True):
    """A topology as Storm knows it; the hook in Nimbus publishes it when it changes.

    `nodes` is a message of its own in ZooKeeper, one for all topologies. `speaks` is the version of
    Nimbus, and in a view the lowest of it and the controllers. `mode` is as the topology's own
    configuration has it, a known mode or not. After `worker_timeout_secs` of silence Nimbus places
    the executors of a worker elsewhere. After `message_timeout_secs` a tuple that is not acked
    fails.
    """

    topology: Name
    name: Name
    status: Name
    refresh_poll_secs: Long
    components: tuple[Component, ...]
    edges: tuple[Edge, ...]
    executors: tuple[PlacedExecutor, ...]
    nodes: tuple[Node, ...] = ()
    speaks: Long = 1
    mode: str | None = None
    worker_timeout_secs: Long | UnsetType = UNSET
    message_timeout_secs: Long | UnsetType = UNSET

    def find(self, executor: ExecutorId) -> PlacedExecutor | None:
        """Return the executor of exactly this range."""
        return next((placed for placed in self.executors if placed.executor == executor), None)

    @cached_property
    def slots(self) -> frozenset[Slot]:
        """The slots where the topology has a worker."""
        return frozenset(placed.slot for placed in self.executors if placed.slot is not None)

    @cached_property
    def placed_components(self) -> tuple[str, ...]:
        """The components that have executors, sorted."""
        return tuple(sorted({placed.component for placed in self.executors}))

    @cached_property
    def node_of(self) -> dict[str, Node]:
        """The nodes by their ids."""
        return {node.id: node for node in self.nodes}

    @cached_property
    def memory_of_nodes(self) -> dict[str, float]:
        """What nodes have, by their ids, where Storm's scheduler counts memory."""
        known = {node.id: node.memory_mb for node in self.nodes}
        return {name: mb for name, mb in known.items() if mb is not UNSET}

    @cached_property
    def memory_mb(self) -> dict[str, float]:
        """What each executor of a component declares, where Storm's scheduler counts memory."""
        known = {component.id: component.memory_mb for component in self.components}
        return {name: mb for name, mb in known.items() if mb is not UNSET}

    @cached_property
    def declared_mb(self) -> dict[str, float]:
        """What executors declare on each node where Storm has them, by the node's id."""
        found: dict[str, float] = {}
        for one in self.executors if self.memory_mb else ():
            if one.slot is not None:
                node, mb = one.slot.supervisor, self.memory_mb.get(one.component, 0.0)
                found[node] = found.get(node, 0.0) + mb
        return found

    @cached_property
    def hosts(self) -> dict[str, str]:
        """The host of each node, by the node's id."""
        return {node.id: node.host for node in self.nodes}


class Nodes(Struct, frozen=True, gc=False):
    """All supervisors of the cluster, as the hook in Nimbus publishes them when they change."""

    nodes: tuple[Node, ...]


class PublishedTopology(Struct, frozen=True, gc=False):
    """The report of the hook in Nimbus on an active topology, each time.

    `plan` is the newest one that it has read; `problem` is why it publishes the topology no more.
    `undoes` is why Storm itself would undo moves of the topology.
    """

    topology: Name
    plan: PlanVersion | None = None
    problem: str | None = None
    undoes: str | None = None


class NimbusReport(Struct, frozen=True, gc=False):
    """The report of the hook in Nimbus on itself, written after what it publishes.

    `error` is why it follows no plan, and is None if it does.
    """

    time_ms: Long
    hooks: Line
    speaks: Long
    scheduler: Line
    topologies: tuple[PublishedTopology, ...] = ()
    storm: str | None = None
    error: str | None = None

    def find(self, topology: str) -> PublishedTopology | None:
        return next((one for one in self.topologies if one.topology == topology), None)


class Candidacy(Struct, frozen=True, gc=False):
    """A controller that leads or stands by."""

    name: Line
    version: Line
    speaks: Long


@dataclass(frozen=True, slots=True)
class Timing:
    """The patience of the protocol; the defaults are PROTOCOL.md's and DESIGN's."""

    open_limit_s: float = 60.0
    prepare_limit_s: float = 20.0
    quiet_limit_s: float = 40.0
    switch_limit_s: float = 5.0
    bystander_wait_s: float = 2.0
    lazy_kill_ms: int = 2000
    unacked_limit_s: float = 40.0
    carry_limit_s: float = 20.0
    supervisor_limit_s: float = 30.0
    close_quiet_s: float = 5.0
    close_limit_s: float = 120.0
    ack_fresh_s: float = 15.0


def topology_name(topology: str) -> str:
    """Drop what Storm appends to a topology's name to make its id, a counter and the time."""
    made_by_storm = re.fullmatch(r"(.+)-\d+-\d+", topology)
    return made_by_storm[1] if made_by_storm else topology

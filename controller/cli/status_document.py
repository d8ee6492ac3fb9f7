"""The document of ``nstorm status``: one record, which every command that shows it reads."""

import json
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence

import msgspec
from msgspec import UNSET, Struct, UnsetType, to_builtins

from controller.core.controls import EVERYWHERE, Controls
from controller.core.drainable import on_hosts, unseen
from controller.core.excluded import NOTHING_EXCLUDED, Excluded
from controller.core.figures import Effect, GuardRow, Headroom, HopFigures, Peak, SpoutFigures
from controller.core.pins import pinned
from controller.core.resources import SPACES
from controller.core.topology import TopologyView, hosts_of, settled_placement
from controller.core.undrained import left_on
from controller.journal.rows import rows_of
from controller.storm.leader_status import CycleStatus, LeaderStatus, LinkRow, WaySum
from controller.storm.move_record import MoveRecord
from migration.meters import TRANSFER
from migration.model import Candidacy, Entry, NodeAcks, Timing, Way

# A leading controller is late if it writes nothing for longer than the time of these cycles.
_LATE_CYCLES = 3
# A thread that uses more has hardly any time left; all that it has is one core.
_FULL_THREAD_CORES = 0.9


class ControllerStatus(Struct, frozen=True):
    """A controller; the first of them leads."""

    name: str
    version: str
    speaks: int  # the version of the protocol


class StaysStatus(Struct, frozen=True):
    """An executor that no drain can move."""

    topology: str
    executor: str
    reason: str


class DrainStatus(Struct, frozen=True):
    """How far a drain is: `left` of the `of` executors that the host had are still there.

    Those count too whose moves from there or to there have not ended. `unseen` is why there may be
    more.
    """

    host: str
    of: int
    left: int
    stay: tuple[StaysStatus, ...]
    unseen: str | None = None


class AgentStatus(Struct, frozen=True):
    """The agent of a node."""

    node: str  # the id of its supervisor
    version: str
    said_s_ago: float
    workers: int
    supervisor_hooks: str | None  # their version; None without hooks
    traffic_rows_left_out: int  # for which its report had no room
    clock_ahead_s: float | None  # of ZooKeeper's
    storm: str | None  # version of the supervisor's Storm
    supervisor_error: str | None  # why the supervisor follows no plan
    # What the meters of the node show, by column; none of what could not be read.
    meters: dict[str, float] | UnsetType = UNSET
    off: str | UnsetType = UNSET  # why the hooks of the node are switched off


class DecisionStatus(Struct, frozen=True):
    """The last decision about a topology."""

    tick: int
    outcome: str
    reason: str
    warnings: tuple[str, ...]
    proposal: str  # its id; empty if nothing waits for approval


class SpeaksStatus(Struct, frozen=True):
    """The lowest version of the protocol that a topology's parts speak."""

    lowest: int
    who: str


class WorkerStatus(Struct, frozen=True):
    """A worker; what its hooks report is None where it has none."""

    slot: str
    host: str | None
    cpu_cores: float | None  # None until it was measured
    capacity_cores: float | None
    load_frac: float | None  # what of it is used, by all that share it
    hooks: str | None  # their version
    speaks: int | None
    pid: int | None
    plan: tuple[int, int] | None  # epoch and version of the one that it has applied
    forwarded: int | None  # tuples
    parked: int | None
    dropped: int | None
    hook_errors: int | None
    fault: str | None  # the last error
    error: str | None  # why it cannot follow plans
    storm: str | None  # its version
    starting: bool  # whether it may just not have reported yet
    # What its meters show, by column; none of what could not be read.
    meters: dict[str, float] | UnsetType = UNSET
    off: str | UnsetType = UNSET  # why its hooks do nothing
    # By name, as in `SPACES`, which share of each space is filled, where that is known.
    spaces: dict[str, float] | UnsetType = UNSET

    @property
    def bound(self) -> str | None:
        """Name the one thread that sends its tuples to other workers, if that is full."""
        cores = 0.0 if self.meters is UNSET else self.meters.get(TRANSFER.column, 0.0)
        if cores <= _FULL_THREAD_CORES:
            return None
        return f"sends to others by one thread that uses {cores:.2f} of a core: that thread binds"

    @property
    def shares(self) -> tuple[float | None, ...]:
        """By resource, as in `RESOURCES`, how much of the capacity is used."""
        return (self.load_frac,)


class ExecutorStatus(Struct, frozen=True):
    """An executor, where it is, and how it may move."""

    executor: str
    component: str
    slot: str | None
    cpu_cores: float | None  # None until it was measured
    queue: int | None  # tuples
    pinned: str | None  # why it cannot move
    way: str | None  # None if it cannot move
    why: str | None  # why that way, or why it cannot move
    # What its meters show, by column; none of what could not be read.
    meters: dict[str, float] | UnsetType = UNSET
    in_tps: float | UnsetType = UNSET  # tuples per second that it gets; so is what it sends
    out_tps: float | UnsetType = UNSET

    @property
    def loads(self) -> tuple[float | None, ...]:
        """By resource, as in `RESOURCES`, how much it uses."""
        return (self.cpu_cores,)


class MoveStatus(Struct, frozen=True, rename={"source": "from", "target": "to"}):
    """A move under way."""

    id: str
    executor: str
    source: str
    target: str
    phase: str
    way: str
    void: str | None  # why Storm's own assignment goes first


class TopologyStatus(Struct, frozen=True):
    """A topology; the parts of its last cycle are None, or empty, where there was none."""

    topology: str  # its id
    name: str
    status: str
    mode: str | None
    way: WaySum | None  # what all moves of `nstorm plan` change
    decision: DecisionStatus | None
    inter_node_frac: float | None  # share of the traffic that crosses between nodes
    inter_node_bytes_per_s: float | None  # None where the size of a tuple is not known
    headroom: Headroom | None
    nimbus_hooks: str | None  # their version
    scheduler: str | None
    plan: tuple[int, int] | None  # epoch and version
    supervisors_behind: tuple[str, ...]  # those that have not read the plan yet
    speaks: SpeaksStatus
    workers: tuple[WorkerStatus, ...]
    executors: tuple[ExecutorStatus, ...]
    links: tuple[LinkRow, ...]
    moves: tuple[MoveStatus, ...]
    mode_by: str  # what has set the mode
    nimbus_storm: str | None  # its version
    nimbus_error: str | None  # why Nimbus follows no plan
    spouts: SpoutFigures | UnsetType = UNSET  # what users feel, where something of it is known
    effect: Effect | UnsetType = UNSET  # of the last run of moves
    peak: Peak | UnsetType = UNSET  # of the input, with which room is counted
    hops: HopFigures | UnsetType = UNSET  # what they cost, where workers share their node's CPU
    guards: tuple[GuardRow, ...] | UnsetType = UNSET
    undoes: str | UnsetType = UNSET  # why Storm itself would undo moves
    headroom_after: Headroom | UnsetType = UNSET  # the moves of the decision


class StatusDocument(Struct, frozen=True):
    """The cluster as ZooKeeper, the agents and the leading controller show it."""

    controller: str | None  # that wrote last
    controllers: tuple[ControllerStatus, ...]
    epoch: int | None
    mode: str | None
    controls: Controls  # that operators have set and that hold
    drained: tuple[DrainStatus, ...]
    journal_problem: str | None
    agents: tuple[AgentStatus, ...]
    hosts: dict[str, str]  # by id of the supervisor
    # For how long those agents have not reported that the controller does without; None where one
    # was never there.
    silent_s: dict[str, float | None]
    last_cycle: CycleStatus | None  # one that looked at no topology
    topologies: tuple[TopologyStatus, ...]
    ended_moves: tuple[MoveRecord, ...]  # the oldest first
    off: str | UnsetType = UNSET  # why everything is switched off
    unpublished: dict[str, str] | UnsetType = UNSET  # why, by id of the topology
    old: str | UnsetType = UNSET  # why the figures of the last cycle are not those of now
    cluster: str | UnsetType = UNSET  # its ZooKeeper, as the commands name it


def as_document(
    views: Sequence[TopologyView],
    acks: Sequence[NodeAcks],
    leader: LeaderStatus,
    controls: Controls,
    *,
    controllers: Sequence[Candidacy] = (),
    drained: Mapping[str, int] = {},
    left_out: Mapping[str, int],
    clocks_ahead_s: Mapping[str, float] | None = None,
    silent_s: Mapping[str, float] | None = None,
    off: str | None = None,
    unpublished: Mapping[str, str] | None = None,
    status_s: float | None = None,
    cluster: str | None = None,
) -> StatusDocument:
    """Put together the reports of ZooKeeper, the agents and the leading controller.

    `leader` is what the leading controller last wrote. The first of the `controllers` leads.
    `drained` has how many executors each drained host had. `left_out` has the rows of traffic that
    each node's report had no room for. `clocks_ahead_s` are the nodes', `silent_s` is for how long
    their agents have not written. `off` is why everything is switched off, and `unpublished` why
    Nimbus does not publish some topologies. `status_s` is the age of what `leader` is, and
    `cluster` is its ZooKeeper.
    """
    clocks, silent, cycles = clocks_ahead_s or {}, silent_s or {}, leader.cycle_of
    hosts = hosts_of(views)
    # By the clock that decides, which this machine's may not be, also where nobody decides now.
    last_s = max((one.time_s for one in leader.cycles), default=0.0)
    now_s = last_s + max(status_s or 0.0, 0.0) if last_s else time.time()
    speak = [node.node for node in acks if silent.get(node.node, 0.0) <= Timing().ack_fresh_s]
    return StatusDocument(
        controller=leader.controller,
        controllers=tuple(ControllerStatus(c.name, c.version, c.speaks) for c in controllers),
        epoch=leader.epoch,
        mode=controls.mode_of(EVERYWHERE, None, leader.mode)[0] or None,
        controls=controls.in_force(now_s),
        drained=tuple(drain_progress(views, acks, host, of) for host, of in drained.items()),
        journal_problem=leader.journal_problem,
        agents=tuple(
            AgentStatus(
                node.node,
                node.agent,
                round(silent.get(node.node, 0.0), 1),
                len(node.workers),
                node.supervisor.hooks if node.supervisor else None,
                left_out.get(node.node, 0),
                clocks.get(node.node),
                node.supervisor.storm if node.supervisor else None,
                node.supervisor.error if node.supervisor else None,
                leader.nodes.get(node.node, UNSET),
                node.off,
            )
            for node in acks
        ),
        hosts=hosts,
        silent_s={node: silent.get(node) for node in sorted({*hosts} - {*speak})},
        last_cycle=cycles.get(""),
        topologies=tuple(
            _topology(view, cycles.get(view.publication.topology), controls) for view in views
        ),
        ended_moves=leader.ended_moves,
        off=UNSET if off is None else off,
        unpublished=dict(unpublished) if unpublished else UNSET,
        old="; ".join(_old(leader, controllers, status_s)) or UNSET,
        cluster=UNSET if cluster is None else cluster,
    )


def _old(
    leader: LeaderStatus, controllers: Sequence[Candidacy], status_s: float | None
) -> Iterator[str]:
    """Name why figures are old: one who hangs leads on, and a new one writes after its cycle."""
    if controllers and leader.controller and controllers[0].name != leader.controller:
        yield f"{controllers[0].name} leads, and they are as {leader.controller} last saw them"
    if status_s is not None and leader.cycle_s and status_s > _LATE_CYCLES * leader.cycle_s:
        yield f"they are of {status_s:,.0f} s ago"


def storms(document: StatusDocument) -> Iterator[tuple[str, str | None]]:
    """Name each JVM with the version of its Storm."""
    for topology in document.topologies:
        yield "Nimbus", topology.nimbus_storm
        yield from ((f"the worker at {one.slot}", one.storm) for one in topology.workers)
    yield from ((f"the supervisor {one.node}", one.storm) for one in document.agents)


def as_json(document: StatusDocument) -> str:
    """Write what ``nstorm status -o json`` prints."""
    return json.dumps(to_builtins(document), indent=1)


def schema() -> str:
    """Write the JSON Schema of what `as_json` writes."""
    return json.dumps(msgspec.json.schema(StatusDocument), indent=1)


def drain_progress(
    views: Sequence[TopologyView],
    acks: Iterable[NodeAcks],
    host: str,
    of: int,
    excluded: Excluded = NOTHING_EXCLUDED,
) -> DrainStatus:
    """Count what is left on a drained host that had `of` executors, and name what of it stays."""
    return DrainStatus(
        host,
        of,
        # Until a move has ended its executor may run there, or come back.
        sum(on_hosts(view, (host,)) for view in views),
        tuple(
            StaysStatus(view.id, str(executor), reason)
            for view in views
            for executor, reason in left_on(view, (host,), excluded).stays.items()
        ),
        unseen(views, acks, host),
    )


def drain_lines(one: DrainStatus, *, dry: bool = False) -> Iterator[str]:
    """Print how far a drain is, or what a dry run would move."""
    if dry:
        stay = len(one.stay)
        yield f"would move {one.left - stay} executors away from host {one.host}, {stay} stay"
    else:
        yield f"host {one.host} is drained: {one.left} of {one.of} executors left"
    for stays in one.stay:
        yield f"  {stays.executor} of {stays.topology} stays: {stays.reason}"
    if one.unseen:
        yield f"  {one.unseen}"


def _topology(view: TopologyView, found: CycleStatus | None, controls: Controls) -> TopologyStatus:
    publication, cycle = view.publication, found or CycleStatus()
    return TopologyStatus(
        topology=publication.topology,
        name=publication.name,
        status=publication.status,
        mode=cycle.mode or None,
        way=cycle.way,
        decision=DecisionStatus(
            cycle.tick, cycle.outcome, cycle.reason, cycle.warnings, cycle.proposal
        )
        if found
        else None,
        inter_node_frac=_inter_node_frac(cycle),
        inter_node_bytes_per_s=None
        if cycle.inter_node_bytes_per_s is UNSET
        else cycle.inter_node_bytes_per_s,
        headroom=None if cycle.headroom is UNSET else cycle.headroom,
        nimbus_hooks=view.nimbus.hooks if view.nimbus else None,
        scheduler=view.nimbus.scheduler if view.nimbus else None,
        plan=(view.plan.epoch, view.plan.version) if view.plan.version >= 0 else None,
        supervisors_behind=_supervisors_behind(view),
        speaks=SpeaksStatus(*view.observation.speaks),
        workers=tuple(_workers(view, cycle)),
        executors=tuple(_executors(view, cycle)),
        links=rows_of(cycle.links),
        moves=tuple(map(_move, view.plan.entries)),
        mode_by=controls.mode_of(publication.name, publication.mode, "")[1],
        spouts=cycle.spouts,
        effect=cycle.effect,
        peak=cycle.peak,
        hops=cycle.hops,
        nimbus_storm=view.nimbus.storm if view.nimbus else None,
        nimbus_error=view.nimbus.error if view.nimbus else None,
        guards=cycle.guards,
        undoes=_undoes(view),
        headroom_after=cycle.headroom_after,
    )


def _undoes(view: TopologyView) -> str | UnsetType:
    found = view.nimbus and view.nimbus.find(view.id)
    return found.undoes if found and found.undoes is not None else UNSET


def _inter_node_frac(cycle: CycleStatus) -> float | None:
    if cycle.inter_node_tps is UNSET or cycle.total_tps is UNSET or not cycle.total_tps:
        return None
    return cycle.inter_node_tps / cycle.total_tps


def _move(entry: Entry) -> MoveStatus:
    return MoveStatus(
        entry.id,
        str(entry.executor),
        str(entry.source),
        str(entry.target),
        str(entry.phase),
        str(entry.way),
        entry.void,
    )


def _workers(view: TopologyView, cycle: CycleStatus) -> Iterator[WorkerStatus]:
    observation, hosts = view.observation, view.publication.hosts
    measured = {row.slot: row for row in rows_of(cycle.workers)}
    live, starting = set(observation.live), view.starting
    meters = {} if cycle.meters is UNSET else cycle.meters
    for slot in sorted(view.publication.slots):
        load = measured.get(str(slot))
        ack = observation.workers[slot] if slot in live else observation.off.get(slot)
        counters = ack.counters if ack else None
        yield WorkerStatus(
            slot=str(slot),
            host=hosts.get(slot.supervisor),
            cpu_cores=load.cpu_cores if load else None,
            capacity_cores=load.capacity_cores if load else None,
            load_frac=load.load_frac if load else None,
            hooks=ack.hooks if ack else None,
            speaks=ack.speaks if ack else None,
            pid=ack.pid if ack else None,
            plan=(ack.epoch, ack.version) if ack and ack.version >= 0 else None,
            forwarded=counters.forwarded if counters else None,
            parked=counters.parked if counters else None,
            dropped=counters.dropped if counters else None,
            hook_errors=counters.errors if counters else None,
            fault=ack.fault if ack else None,
            error=ack.error if ack else None,
            meters=meters.get(str(slot), UNSET),
            spaces=_spaces(meters.get(str(slot), {})) or UNSET,
            storm=ack.storm if ack else None,
            starting=slot in starting,
            off=ack.off if ack else UNSET,
        )


def _supervisors_behind(view: TopologyView) -> tuple[str, ...]:
    """List the supervisors that have not read the plan as it is: moves wait for them in DRAIN."""
    nodes = {slot.supervisor for slot in view.publication.slots} if view.plan.version >= 0 else ()
    behind = (n for n in sorted(nodes) if not view.observation.has_read(n, view.plan.stamp))
    return tuple(behind)


def _spaces(meters: Mapping[str, float]) -> dict[str, float]:
    return {
        space.name: meters[space.held] / meters[space.most]
        for space in SPACES
        if space.held in meters and meters.get(space.most)
    }


def _executors(view: TopologyView, cycle: CycleStatus) -> Iterator[ExecutorStatus]:
    placement = settled_placement(view.publication, view.plan)
    stay, workers = pinned(view.observation), view.observation.workers.values()
    why = {one.executor: one.reason for ack in workers for one in ack.pinned}
    ways = {one.executor: one.way for ack in workers for one in ack.ways}
    measured = {row.executor: row for row in rows_of(cycle.executors)}
    for placed in sorted(view.publication.executors, key=lambda p: p.executor):
        load = measured.get(str(placed.executor))
        stays = stay.get(placed.executor)
        yield ExecutorStatus(
            executor=str(placed.executor),
            component=placed.component,
            slot=str(placement.get(placed.executor, "")) or None,
            cpu_cores=load.cpu_cores if load else None,
            queue=load.queue if load else None,
            pinned=stays,
            way=None if placed.executor in stay else str(ways.get(placed.executor, Way.LIVE)),
            why=stays or why.get(placed.executor),
            meters=load.meters if load else UNSET,
            in_tps=load.in_tps if load else UNSET,
            out_tps=load.out_tps if load else UNSET,
        )

"""The tables of ``nstorm status``."""

import math
from collections.abc import Iterable, Iterator, Mapping

from msgspec import UNSET, UnsetType
from rich.console import RenderableType
from rich.table import Table

from controller.cli.status_document import (
    AgentStatus,
    ExecutorStatus,
    StatusDocument,
    TopologyStatus,
    WorkerStatus,
    drain_lines,
    storms,
)
from controller.core.figures import SpoutFigures
from controller.core.hostnames import shown
from controller.core.resources import RESOURCES, SPACES
from controller.storm.move_record import MoveRecord
from migration.meters import GC, LINK_SPEED, MACHINE_CORES, MACHINE_CPU, RECEIVED, SENT
from migration.model import Way
from migration.wire import SPEAKS


def head(document: StatusDocument) -> Iterator[str]:
    """Print who leads, and whether all is well."""
    lead = document.controller or "no controller has led yet"
    if document.controller and not document.controllers:
        lead = f"{lead} led last and NONE IS SEEN TO LEAD: all figures are as it last saw them"
    yield f"controller {lead}, mode {document.mode}, epoch {document.epoch}"
    if document.old is not UNSET:
        yield f"OLD FIGURES: {document.old}"
    if document.off is not UNSET:
        yield f"SWITCHED OFF: {document.off}; `nstorm on` switches it on"
    controls = document.controls
    for name, pause in sorted(controls.pauses.items()):
        yield f"paused {name or 'everything'}: {pause}"
    if controls.freeze:
        yield f"frozen: {controls.freeze}"
    for drained in document.drained:
        yield from drain_lines(drained)
    if document.journal_problem:
        yield f"journal not written: {document.journal_problem}"
    for place, one in enumerate(document.controllers):
        if place or one.speaks != SPEAKS:
            part = "stands by" if place else "leads"
            yield f"{one.name} {part}: {one.version}, speaks version {one.speaks}"
    yield _health(document)


def as_tables(document: StatusDocument) -> Iterator[RenderableType]:
    yield from head(document)
    if not document.agents:
        yield (
            "no agent has reported: start one on each node with `nstorm-agent`. One that runs "
            "reports once a JVM there has the hooks"
        )
    for agent in document.agents:
        hooks = "with hooks" if agent.supervisor_hooks else "WITHOUT HOOKS"
        host = document.hosts.get(agent.node, agent.node)
        if agent.node in document.silent_s:
            lasting = f"{agent.said_s_ago:.0f} s or more"
            yield f"agent of {host} SILENT for {lasting}: see `nstorm doctor`"
            continue
        left_out = agent.traffic_rows_left_out
        cut = f", load without its {left_out} smallest rows of traffic" if left_out else ""
        if agent.off is not UNSET and document.off is UNSET:
            yield f"the hooks on {host} are OFF: {agent.off}"
        who = f"agent of {host} {agent.version}: {agent.workers} workers"
        yield f"{who}, supervisor {hooks}{cut}{_machine(agent)}"
    if document.last_cycle:
        cycle = document.last_cycle
        yield f"last cycle {cycle.outcome}: {cycle.reason}"
    for topology in document.topologies:
        yield from _topology_tables(topology, document.hosts)
    unpublished = {} if document.unpublished is UNSET else document.unpublished
    for named, why in unpublished.items():
        yield f"topology {named}: Nimbus cannot publish it, so nothing of it is seen: {why}"
    if not document.topologies:
        yield "no topology: the hooks in Nimbus publish none"
    yield from ended(document.ended_moves[-10:], document.hosts)


def _health(document: StatusDocument) -> str:
    workers = [worker for one in document.topologies for worker in one.workers]
    agents = document.agents
    silent = [document.hosts[node] for node in document.silent_s]
    facts = [
        f"{len(agents)} agents" + f", silent at {', '.join(silent)}" * bool(silent),
        f"{sum(worker.hooks is None for worker in workers)} workers without hooks",
        f"{sum(worker.hook_errors or 0 for worker in workers):,} errors in hooks",
        f"{sum(worker.dropped or 0 for worker in workers):,} tuples dropped",
    ]
    if versions := sorted({storm for _, storm in storms(document) if storm}):
        facts.append(f"Storm {' and '.join(versions)}")
    if agents:
        facts.append(f"oldest answer {max(agent.said_s_ago for agent in agents):.1f} s ago")
    ahead_s = [agent.clock_ahead_s for agent in agents if agent.clock_ahead_s is not None]
    if ahead_s:
        facts.append(f"clocks within {max(ahead_s) - min(ahead_s):.2f} s of each other")
    return f"health: {'; '.join(facts)}"


def decided(topology: TopologyStatus, hosts: Mapping[str, str]) -> Iterator[str]:
    """Print the state of a topology, its last decision, and its moves."""
    ratio = topology.inter_node_frac
    crosses = "" if ratio is None else f", between nodes {ratio:.1%}"
    mode = f", mode {topology.mode} by {topology.mode_by}" if topology.mode else ""
    yield f"\n{topology.topology} {topology.status}{mode}{crosses}"
    left = topology.headroom
    if left and left.factor is not None:
        then = None if topology.headroom_after is UNSET else topology.headroom_after
        peak = "" if topology.peak is UNSET else f"; {topology.peak}"
        yield f"head-room: {shown(left.and_after(then), hosts)}{peak}"
    if left:
        yield f"spouts: {_felt(topology.spouts)}"
    if topology.hops is not UNSET:
        yield f"cost of hops: {topology.hops}"
    for guard in () if topology.guards is UNSET else topology.guards:
        yield f"guard {guard.state}: {guard}"
    if topology.effect is not UNSET:
        yield f"effect of {', '.join(topology.effect.moves) or 'moves'}: {topology.effect}"
    decision = topology.decision
    if decision:
        reason = shown(decision.reason, hosts)
        yield f"cycle {decision.tick} {decision.outcome}: {reason}"
        if decision.proposal:
            yield f"proposal {decision.proposal}: approve or reject it"
        for warning in decision.warnings:
            yield f"warning: {shown(warning, hosts)}"
    if topology.way:
        way, (before, after) = topology.way, topology.way.inter_node_frac
        yield (
            f"`nstorm plan`: {way.moves} moves from here, between nodes {before:.1%} to "
            f"{after:.1%}; missed tuples today: {way.missed_tuples_today:,.0f}, which mode auto "
            "would have kept off the network"
        )
    for row in topology.moves:
        state = f"void ({row.void})" if row.void else row.phase
        ends = f"{shown(row.source, hosts)} to {shown(row.target, hosts)}"
        yield f"move {row.id}: {row.executor} {ends}, {state}"


def _felt(spouts: SpoutFigures | UnsetType) -> str:
    """Name what users feel, as far as it is known."""
    if spouts is UNSET or spouts.acked_tps is None or spouts.failed_tps is None:
        return "acks are not known (no ackers, no message ids, or hooks of an earlier version)"
    facts = [f"{spouts.acked_tps:,.1f} acked/s, {spouts.failed_tps:,.1f} failed/s"]
    for share, ms in (("p50", spouts.latency_p50_ms), ("p99", spouts.latency_p99_ms)):
        facts.append(f"{share} {'not known' if ms is None else f'{ms:,.0f} ms'}")
    return ", ".join(facts)


def _topology_tables(
    topology: TopologyStatus, hosts: Mapping[str, str]
) -> Iterator[RenderableType]:
    yield from decided(topology, hosts)
    if topology.supervisors_behind:
        behind = ", ".join(hosts.get(node, node) for node in topology.supervisors_behind)
        yield f"hosts whose supervisor has not read the newest plan yet: {behind}"
    if topology.speaks.lowest < SPEAKS:
        version, who = topology.speaks.lowest, topology.speaks.who
        yield f"{who} speaks version {version} of the protocol, this nstorm {SPEAKS}"
    yield from filter(None, (_trouble(worker, hosts) for worker in topology.workers))
    yield from (f"worker {shown(w.slot, hosts)} {w.bound}" for w in topology.workers if w.bound)
    by_node: dict[str, list[WorkerStatus]] = {}
    for worker in topology.workers:
        by_node.setdefault(worker.slot.rpartition(":")[0], []).append(worker)
    for node, on_host in by_node.items():
        yield f"node {on_host[0].host or 'not listed by Storm'} (supervisor {node})"
        units = ", ".join(row.unit for row in RESOURCES)
        names = (row.name for row in RESOURCES)
        table = Table("port", "pid", *names, *FILLED, f"executors (component, {units})")
        for worker in on_host:
            here = [e for e in topology.executors if e.slot == worker.slot]
            table.add_row(
                worker.slot.rpartition(":")[2],
                str(worker.pid)
                if worker.hooks
                else ("starting" if worker.starting else "no hooks"),
                *map(percent, worker.shares),
                *filled(worker),
                "\n".join(map(_executor, here)),
            )
        yield table


def _trouble(worker: WorkerStatus, hosts: Mapping[str, str]) -> str | None:
    """Print the counters and faults of a worker, if they are not all zero."""
    counts = [
        f"{count:,} {name}"
        for count, name in (
            (worker.forwarded, "tuples forwarded to moved executors"),
            (worker.parked, "tuples parked until their executor is ready"),
            (worker.dropped, "tuples DROPPED"),
            (worker.hook_errors, "errors in its hooks"),
        )
        if count
    ]
    if worker.fault:
        counts.append(f"the last: {worker.fault}")
    if worker.error:
        counts.append(f"it cannot follow plans: {worker.error}")
    return f"worker {shown(worker.slot, hosts)}: {', '.join(counts)}" if counts else None


# The columns of `filled`.
FILLED = (*(space.name for space in SPACES), "GC")


def filled(worker: WorkerStatus) -> tuple[str, ...]:
    """Print how full a worker is beyond its CPU.

    These are shares of its spaces, and of the time that its collectors take.
    """
    spaces = {} if worker.spaces is UNSET else worker.spaces
    meters = {} if worker.meters is UNSET else worker.meters
    shares = (*(spaces.get(space.name) for space in SPACES), meters.get(GC.column))
    return tuple(map(percent, shares))


def _machine(agent: AgentStatus) -> str:
    """Print what all processes of a node's machine use, and its links; empty if not known."""
    meters = {} if agent.meters is UNSET else agent.meters
    facts, cores = [], meters.get(MACHINE_CPU.column)
    if cores is not None:
        facts.append(
            f"machine {cores:.2f} of {meters.get(MACHINE_CORES.column, math.nan):.3g} cores"
        )
    carried = [meters.get(way.column) for way in (SENT, RECEIVED)]
    if None not in carried:
        speed = meters.get(LINK_SPEED.column)
        of = "of unknown speed" if not speed else f"of {speed / 1e6:,.3g} MB/s"
        sent, got = (f"{one / 1e6:,.3g}" for one in carried if one is not None)
        facts.append(f"link {sent} MB/s out and {got} in, {of}")
    return "".join(f", {fact}" for fact in facts)


def percent(share: float | None) -> str:
    return "?" if share is None else f"{share:.0%}"


def _executor(row: ExecutorStatus) -> str:
    loads = "".join(f" {load:.3f}" for load in row.loads if load is not None)
    waits = f" ({row.queue:,} wait)" if row.queue else ""
    how = "pinned" if row.pinned else row.way
    why = f" ({how}: {row.why})" if how in ("pinned", Way.CARRY, Way.DRAIN, Way.RENEW) else ""
    return f"{row.executor} {row.component}{loads}{waits}{why}"


def ended(moves: Iterable[MoveRecord], hosts: Mapping[str, str]) -> Iterator[str]:
    for move in moves:
        took = "" if move.stopped_after_s is None else f" after {move.stopped_after_s:.3f} s"
        yield (
            f"ended {move.id}: {move.executor} {shown(move.source, hosts)} to "
            f"{shown(move.target, hosts)}, "
            f"{move.outcome}{took}: {move.reason}"
        )

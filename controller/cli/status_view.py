"""The document of ``nstorm status``, and the tables made of it."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from msgspec import convert, to_builtins
from msgspec.structs import asdict
from rich.console import RenderableType
from rich.table import Table

from controller.cli.places import shown
from controller.core.controls import EVERYWHERE, Controls
from controller.core.drain import left_on
from controller.core.layout import settled_placement
from controller.core.topology import TopologyView
from migration.model import Candidacy, NodeAcks, Timing, Way, WorkerAck
from migration.wire import SPEAKS

Document = dict[str, Any]


def as_document(
    views: Sequence[TopologyView],
    acks: Sequence[NodeAcks],
    told: Document | None,
    controls: Controls,
    *,
    controllers: Sequence[Candidacy] = (),
    drained: Mapping[str, int] = {},
    left_out: Mapping[str, int],
    clocks_ahead_s: Mapping[str, float] | None = None,
    silent_s: Mapping[str, float] | None = None,
) -> Document:
    """Put together what ZooKeeper, the agents and the leading controller say.

    `told` is what the leading controller last wrote, `controls` what operators have set. The
    first of the `controllers` leads. `drained` has how many executors each drained host had,
    `left_out` the rows of traffic that each node's report had no room for; `clocks_ahead_s` are
    the nodes', `silent_s` tells for how long their agents have not written.
    """
    told, clocks, silent = told or {}, clocks_ahead_s or {}, silent_s or {}
    cycles = {cycle["topology"]: cycle for cycle in told.get("cycles", [])}
    hosts = {node.id: node.host for view in views for node in view.publication.nodes}
    speak = [node.node for node in acks if silent.get(node.node, 0.0) <= Timing().ack_fresh_s]
    return {
        "controller": told.get("controller"),
        "controllers": [asdict(one) for one in controllers],
        "epoch": told.get("epoch"),
        "mode": controls.mode_of(EVERYWHERE, None, told.get("mode", ""))[0] or None,
        "controls": to_builtins(controls),
        "drained": [drain_progress(views, host, of) for host, of in drained.items()],
        "journal_problem": told.get("journal_problem"),
        "agents": [
            {
                "node": node.node,
                "version": node.agent,
                "said_s_ago": round(silent.get(node.node, 0.0), 1),
                "workers": len(node.workers),
                "supervisor_hooks": node.supervisor.hooks if node.supervisor else None,
                "traffic_rows_left_out": left_out.get(node.node, 0),
                "clock_ahead_s": clocks.get(node.node),
            }
            for node in acks
        ],
        "hosts": hosts,
        # Whose agent the controller does without; None where it was never there.
        "silent_s": {node: silent.get(node) for node in sorted({*hosts} - {*speak})},
        "last_cycle": cycles.get(""),
        "topologies": [
            {
                **_topology(view, cycles.get(view.publication.topology)),
                "mode_by": controls.mode_of(view.publication.name, view.publication.mode, "")[1],
            }
            for view in views
        ],
        "ended_moves": told.get("ended_moves", []),
    }


def drain_progress(views: Sequence[TopologyView], host: str, of: int) -> Document:
    """Tell what is left on a drained host that had `of` executors, and what of it stays."""
    left = [(view, left_on(view, (host,))) for view in views]
    return {
        "host": host,
        "of": of,
        "left": sum(len(one.executors) for _, one in left),
        "stay": [
            {"topology": view.id, "executor": str(executor), "reason": reason}
            for view, one in left
            for executor, reason in one.stays.items()
        ],
    }


def drain_lines(one: Document) -> Iterator[str]:
    """Say how far a drain is."""
    yield f"host {one['host']} is drained: {one['left']} of {one['of']} executors left"
    for stays in one["stay"]:
        yield f"  {stays['executor']} of {stays['topology']} stays: {stays['reason']}"


def _topology(view: TopologyView, cycle: Document | None) -> Document:
    publication, observation = view.publication, view.observation
    hosts = publication.hosts
    told = cycle or {}
    measured = {row["slot"]: row for row in told.get("workers", [])}
    live = set(observation.live)
    return {
        "topology": publication.topology,
        "name": publication.name,
        "status": publication.status,
        "mode": told.get("mode"),
        "way": told.get("way"),
        "decision": {k: cycle[k] for k in ("tick", "outcome", "reason", "warnings", "proposal")}
        if cycle
        else None,
        "inter_node_frac": told["inter_node_tps"] / tps if (tps := told.get("total_tps")) else None,
        "headroom": told.get("headroom"),
        "nimbus_hooks": view.nimbus.hooks if view.nimbus else None,
        "scheduler": view.nimbus.scheduler if view.nimbus else None,
        "plan": [view.plan.epoch, view.plan.version] if view.plan.version >= 0 else None,
        "supervisors_behind": _supervisors_behind(view),
        "speaks": dict(zip(("lowest", "who"), observation.speaks, strict=True)),
        "workers": [
            {
                "slot": str(slot),
                "host": hosts.get(slot.supervisor),
                "cpu_cores": measured.get(str(slot), {}).get("cpu_cores"),
                "capacity_cores": measured.get(str(slot), {}).get("capacity_cores"),
                **_worker(observation.workers[slot] if slot in live else None),
            }
            for slot in sorted(publication.slots)
        ],
        "executors": list(_executors(view, cycle)),
        "links": told.get("links", []),
        "moves": [
            {
                "id": entry.id,
                "executor": str(entry.executor),
                "from": str(entry.source),
                "to": str(entry.target),
                "phase": str(entry.phase),
                "way": str(entry.way),
                "void": entry.void,
            }
            for entry in view.plan.entries
        ],
    }


def _worker(ack: WorkerAck | None) -> Document:
    """Say what a worker's hooks say; None where it has none."""
    counters = ack and ack.counters
    return {
        "hooks": ack and ack.hooks,
        "speaks": ack and ack.speaks,
        "pid": ack and ack.pid,
        "plan": [ack.epoch, ack.version] if ack and ack.version >= 0 else None,
        "forwarded": counters and counters.forwarded,
        "parked": counters and counters.parked,
        "dropped": counters and counters.dropped,
        "hook_errors": counters and counters.errors,
        "fault": ack and ack.fault,
        "error": ack and ack.error,
    }


def _supervisors_behind(view: TopologyView) -> list[str]:
    """List the supervisors that have not read the plan as it is: moves wait for them in DRAIN."""
    nodes = {slot.supervisor for slot in view.publication.slots} if view.plan.version >= 0 else ()
    return [n for n in sorted(nodes) if not view.observation.has_read(n, view.plan.stamp)]


def _executors(view: TopologyView, cycle: Document | None) -> Iterator[Document]:
    placement = settled_placement(view.publication, view.plan)
    pinned, workers = view.allowed.pinned, view.observation.workers.values()
    why = {one.executor: one.reason for ack in workers for one in ack.pinned}
    ways = {one.executor: one.way for ack in workers for one in ack.ways}
    measured = {row["executor"]: row for row in (cycle or {}).get("executors", [])}
    for placed in sorted(view.publication.executors, key=lambda p: p.executor):
        load = measured.get(str(placed.executor), {})
        yield {
            "executor": str(placed.executor),
            "component": placed.component,
            "slot": str(placement.get(placed.executor, "")) or None,
            "cpu_cores": load.get("cpu_cores"),
            "queue": load.get("queue"),
            "pinned": pinned.get(placed.executor),
            "way": None if placed.executor in pinned else ways.get(placed.executor, Way.LIVE),
            "why": pinned.get(placed.executor) or why.get(placed.executor),
        }


def head(document: Document) -> Iterator[str]:
    """Say who leads, and whether all is well."""
    lead = document["controller"] or "no controller has led yet"
    yield f"controller {lead}, mode {document['mode']}, epoch {document['epoch']}"
    controls = convert(document["controls"], Controls)
    for name, pause in sorted(controls.pauses.items()):
        yield f"paused {name or 'everything'}: {pause}"
    if controls.freeze:
        yield f"frozen: {controls.freeze}"
    for drained in document["drained"]:
        yield from drain_lines(drained)
    if document["journal_problem"]:
        yield f"journal not written: {document['journal_problem']}"
    for place, one in enumerate(document["controllers"]):
        if place or one["speaks"] != SPEAKS:
            part = "stands by" if place else "leads"
            yield f"{one['name']} {part}: {one['version']}, speaks version {one['speaks']}"
    yield _health(document)


def as_tables(document: Document) -> Iterator[RenderableType]:
    yield from head(document)
    if not document["agents"]:
        yield "no agent has spoken: start one on each node with `nstorm-agent`"
    for agent in document["agents"]:
        hooks = "with hooks" if agent["supervisor_hooks"] else "WITHOUT HOOKS"
        host = document["hosts"].get(agent["node"], agent["node"])
        if agent["node"] in document["silent_s"]:
            yield f"agent of {host} SILENT for {agent['said_s_ago']:.0f} s: see `nstorm doctor`"
            continue
        left_out = agent["traffic_rows_left_out"]
        cut = f", load without its {left_out} smallest rows of traffic" if left_out else ""
        yield (
            f"agent of {host} {agent['version']}: {agent['workers']} workers, "
            f"supervisor {hooks}{cut}"
        )
    if document["last_cycle"]:
        cycle = document["last_cycle"]
        yield f"last cycle {cycle['outcome']}: {cycle['reason']}"
    for topology in document["topologies"]:
        yield from _topology_tables(topology, document["hosts"])
    if not document["topologies"]:
        yield "no topology: the hooks in Nimbus publish none"
    yield from ended(document["ended_moves"][-10:], document["hosts"])


def _health(document: Document) -> str:
    workers = [worker for one in document["topologies"] for worker in one["workers"]]
    agents = document["agents"]
    silent = [document["hosts"][node] for node in document["silent_s"]]
    facts = [
        f"{len(agents)} agents" + f", silent at {', '.join(silent)}" * bool(silent),
        f"{sum(worker['hooks'] is None for worker in workers)} workers without hooks",
        f"{sum(worker['hook_errors'] or 0 for worker in workers):,} errors in hooks",
        f"{sum(worker['dropped'] or 0 for worker in workers):,} tuples dropped",
    ]
    if agents:
        facts.append(f"oldest answer {max(agent['said_s_ago'] for agent in agents):.1f} s ago")
    ahead_s = [agent["clock_ahead_s"] for agent in agents if agent["clock_ahead_s"] is not None]
    if ahead_s:
        facts.append(f"clocks within {max(ahead_s) - min(ahead_s):.2f} s of each other")
    return f"health: {'; '.join(facts)}"


def decided(topology: Document, hosts: Mapping[str, str]) -> Iterator[str]:
    """Say how a topology stands, what was decided, and what moves."""
    ratio = topology["inter_node_frac"]
    crosses = "" if ratio is None else f", inter-node {ratio:.3f}"
    mode = f", mode {topology['mode']} by {topology['mode_by']}" if topology["mode"] else ""
    yield f"\n{topology['topology']} {topology['status']}{mode}{crosses}"
    left = topology["headroom"]
    if left and left["factor"] is not None:
        binds = f"{left['binds']} of {shown(left['where'], hosts)}"
        yield f"head-room: {left['factor']:.3g} times the input, then {binds}"
    decision = topology["decision"]
    if decision:
        reason = shown(decision["reason"], hosts)
        yield f"cycle {decision['tick']} {decision['outcome']}: {reason}"
        if decision["proposal"]:
            yield f"proposal {decision['proposal']}: approve or reject it"
        for warning in decision["warnings"]:
            yield f"warning: {shown(warning, hosts)}"
    if topology["way"]:
        moves, (before, after) = topology["way"]["moves"], topology["way"]["inter_node_frac"]
        missed = topology["way"].get("missed_tuples_today", 0.0)
        yield (
            f"`nstorm plan`: {moves} moves from here, inter-node {before:.3f} to {after:.3f}; mode "
            f"auto would have kept {missed:,.0f} tuples off the network today"
        )
    for row in topology["moves"]:
        state = f"void ({row['void']})" if row["void"] else row["phase"]
        way = f"{shown(row['from'], hosts)} to {shown(row['to'], hosts)}"
        yield f"move {row['id']}: {row['executor']} {way}, {state}"


def _topology_tables(topology: Document, hosts: Mapping[str, str]) -> Iterator[RenderableType]:
    yield from decided(topology, hosts)
    if topology["supervisors_behind"]:
        behind = ", ".join(hosts.get(node, node) for node in topology["supervisors_behind"])
        yield f"hosts whose supervisor has not read the newest plan yet: {behind}"
    if topology["speaks"]["lowest"] < SPEAKS:
        version, who = topology["speaks"]["lowest"], topology["speaks"]["who"]
        yield f"{who} speaks version {version} of the protocol, this nstorm {SPEAKS}"
    yield from filter(None, (_trouble(worker, hosts) for worker in topology["workers"]))
    for host in dict.fromkeys(worker["host"] for worker in topology["workers"]):
        on_host = [worker for worker in topology["workers"] if worker["host"] == host]
        yield f"node {host} (supervisor {on_host[0]['slot'].rpartition(':')[0]})"
        table = Table("port", "pid", "cpu", "executors (component, cores)")
        for worker in on_host:
            here = [e for e in topology["executors"] if e["slot"] == worker["slot"]]
            table.add_row(
                worker["slot"].rpartition(":")[2],
                str(worker["pid"]) if worker["hooks"] else "no hooks",
                share(worker),
                "\n".join(map(_executor, here)),
            )
        yield table


def _trouble(worker: Document, hosts: Mapping[str, str]) -> str | None:
    """Say what a worker carries besides its topology, if it is not all zero."""
    counts = [
        f"{worker[key]:,} {name}"
        for key, name in (
            ("forwarded", "tuples forwarded to moved executors"),
            ("parked", "tuples parked until their executor is ready"),
            ("dropped", "tuples DROPPED"),
            ("hook_errors", "errors in its hooks"),
        )
        if worker[key]
    ]
    if worker["fault"]:
        counts.append(f"the last: {worker['fault']}")
    if worker["error"]:
        counts.append(f"it cannot follow plans: {worker['error']}")
    return f"worker {shown(worker['slot'], hosts)}: {', '.join(counts)}" if counts else None


def share(worker: Document) -> str:
    if worker["cpu_cores"] is None:
        return "?"
    return f"{worker['cpu_cores'] / worker['capacity_cores']:.0%}"


def _executor(row: Document) -> str:
    cpu = "" if row["cpu_cores"] is None else f" {row['cpu_cores']:.3f}"
    how = "pinned" if row["pinned"] else row["way"]
    told = f" ({how}: {row['why']})" if how in ("pinned", Way.CARRY, Way.DRAIN, Way.RENEW) else ""
    return f"{row['executor']} {row['component']}{cpu}{told}"


def ended(moves: Iterable[Document], hosts: Mapping[str, str]) -> Iterator[str]:
    for move in moves:
        took = "" if move["stopped_after_s"] is None else f" after {move['stopped_after_s']:.3f} s"
        yield (
            f"ended {move['id']}: {move['executor']} {shown(move['source'], hosts)} to "
            f"{shown(move['target'], hosts)}, "
            f"{move['outcome']}{took}: {move['reason']}"
        )

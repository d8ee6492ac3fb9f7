"""The status of the leading controller, for ``nstorm status`` and the demo."""

from collections.abc import Iterable, Mapping
from types import MappingProxyType

import msgspec
import numpy as np
from msgspec import UNSET
from msgspec.structs import asdict, replace

from controller.config import Config
from controller.core.cluster import Cluster, Floats, LoadSnapshot
from controller.core.distance import node_traffic
from controller.core.figures import NOT_KNOWN
from controller.core.meters import known_rows
from controller.core.picture import Picture
from controller.journal.cycle_record import cycle_record
from controller.report import TopologyReport
from controller.storm.leader_status import (
    STATUS,
    CycleStatus,
    ExecutorRow,
    LeaderStatus,
    LinkRow,
    Proposal,
    WaySum,
)
from controller.storm.missed import Missed
from controller.storm.move_record import MoveRecord
from kvstore.zookeeper import Session
from migration import wire

SHOWN_LINKS = 20
# What is less is shown as 0.
_LEAST = 1e-6
# What is left out first of a status that does not fit.
_PARTS = ("ended_moves", "links", "plan", "executors", "nodes", "meters", "workers")

_OF_ALL = {"ended_moves", "nodes"}  # those of no one topology


def status_of(
    reports: Iterable[TopologyReport],
    ended: Iterable[MoveRecord],
    config: Config,
    *,
    name: str,
    epoch: int | None,
    journal_problem: str | None = None,
    left_out: int = 0,
    ways: Mapping[str, WaySum] = MappingProxyType({}),
    proposals: Mapping[str, Proposal] = MappingProxyType({}),
    missed: Missed | None = None,
) -> LeaderStatus:
    """Put the last cycle into a status.

    `ended` are the last moves, oldest first; `left_out` is how many parts will not fit. `ways` have
    by topology what all its moves would gain, `missed` what they would have gained today.
    """
    shown = tuple(reports)
    return LeaderStatus(
        name,
        epoch,
        config.mode.value,
        config.policy,
        config.cycle_s,
        journal_problem,
        dict(proposals),
        missed or Missed(),
        tuple(_cycle(one, config, _PARTS[:left_out], ways.get(one.topology)) for one in shown),
        tuple(ended),
        nodes=nodes_of(shown),
        mode_max=(config.mode_max or config.mode).value,
    )


def _cycle(
    report: TopologyReport, config: Config, left_out: Iterable[str], way: WaySum | None
) -> CycleStatus:
    """Show what the journal has of a cycle, and the executors."""
    spouts = UNSET if report.felt.spouts == NOT_KNOWN else report.felt.spouts
    found = CycleStatus(
        **asdict(cycle_record(report)), way=way, spouts=spouts, guards=report.felt.guards or UNSET
    )
    if report.picture is None:
        return found
    cluster, snapshot = report.picture.cluster, report.picture.snapshot
    after = report.headroom_after
    return replace(
        found,
        headroom=report.headroom,
        headroom_after=UNSET if after is None else after,
        peak=report.picture.peak,
        links=UNSET if "links" in left_out else _links(cluster, snapshot),
        executors=UNSET if "executors" in left_out else _executors(report.picture),
        meters=UNSET
        if "meters" in left_out
        else known_rows(report.picture.of_workers, cluster.workers),
    )


def nodes_of(reports: Iterable[TopologyReport]) -> dict[str, dict[str, float]]:
    """Give what the meters of each node show; the nodes are those of all topologies."""
    pictures = [report.picture for report in reports if report.picture is not None]
    different = {id(picture.of_nodes): picture for picture in pictures}
    return {
        node: row
        for picture in different.values()
        for node, row in known_rows(picture.of_nodes, picture.cluster.nodes).items()
    }


def _links(cluster: Cluster, snapshot: LoadSnapshot) -> tuple[LinkRow, ...]:
    return tuple(
        LinkRow(
            cluster.nodes[one.source],
            cluster.nodes[one.target],
            one.tps,
            UNSET if one.bytes_per_s is None else one.bytes_per_s,
        )
        for one in node_traffic(cluster, snapshot, SHOWN_LINKS)
    )


def _executors(picture: Picture) -> tuple[ExecutorRow, ...]:
    snapshot = picture.snapshot
    # As its worker counts it: else the room of a worker and what takes it would not go together.
    cpu_cores, queue = picture.fit.demand.tolist(), snapshot.queue.tolist()
    columns = {name: _short(values) for name, values in picture.of_executors.items()}
    meters, traffic = known_rows(columns, snapshot.executors), snapshot.traffic
    tps = (
        _short(np.bincount(ends, traffic.tps, len(queue)).astype(np.float64)).tolist()
        for ends in (traffic.target, traffic.source)
    )
    return tuple(
        ExecutorRow(executor, cores, int(waiting), meters.get(executor, UNSET), *of)
        for executor, cores, waiting, *of in zip(
            snapshot.executors, cpu_cores, queue, *tps, strict=True
        )
    )


def _short(values: Floats) -> Floats:
    """Keep three digits: of a thousand executors, more would not fit well into ZooKeeper."""
    power = np.floor(np.log10(np.fmax(np.abs(values), _LEAST))) - 2
    # A quotient by a whole power of ten is short as text; a product with 0.1 is not.
    up, down = 10.0 ** np.fmax(-power, 0), 10.0 ** np.fmax(power, 0)
    short: Floats = np.rint(values * up / down) * down / up
    return short


def publish(session: Session, status: LeaderStatus, left_out: int = 0) -> int:
    """Write the status without the first `left_out` parts; returns how many had to go to fit."""
    for count in range(left_out, len(_PARTS) + 1):
        left_out = count
        data = wire.packed(msgspec.json.encode(_without(status, _PARTS[:count])))
        if len(data) <= wire.LARGEST_NODE_BYTES:
            break
    session.put(STATUS, data)
    return left_out


def _without(status: LeaderStatus, parts: tuple[str, ...]) -> LeaderStatus:
    own = {part: None if part == "plan" else UNSET for part in parts if part not in _OF_ALL}
    return replace(
        status,
        cycles=tuple(replace(cycle, **own) for cycle in status.cycles),
        ended_moves=() if "ended_moves" in parts else status.ended_moves,
        left_out=parts,
        nodes={} if "nodes" in parts else status.nodes,
    )

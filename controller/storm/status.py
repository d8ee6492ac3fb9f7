"""The leading controller's word on itself, for ``nstorm status`` and the demo."""

from collections.abc import Iterable, Mapping
from dataclasses import asdict
from types import MappingProxyType
from typing import Any

import msgspec

from controller.config import Config
from controller.core.headroom import headroom, node_traffic_tps
from controller.journal.recorder import cycle_record
from controller.report import TopologyReport
from controller.storm.history import MoveRecord
from kvstore.zookeeper import Session
from migration import wire

STATUS = f"{wire.ROOT}/status"
SHOWN_LINKS = 20


def document(
    reports: Iterable[TopologyReport],
    ended: Iterable[MoveRecord],
    config: Config,
    *,
    name: str,
    epoch: int | None,
    journal_problem: str | None = None,
    ways: Mapping[str, dict[str, Any]] = MappingProxyType({}),
    proposals: Mapping[str, dict[str, Any]] = MappingProxyType({}),
) -> dict[str, Any]:
    """Put the last cycle into a document.

    The moves are those that have ended lately, oldest first; `journal_problem` says why ticks are
    not written down, if they should be; `ways` say by topology what all its moves would gain,
    `proposals` by id what operators may approve.
    """
    return {
        "controller": name,
        "epoch": epoch,
        "mode": config.mode.value,
        "policy": config.policy,
        "cycle_s": config.cycle_s,
        "journal_problem": journal_problem,
        "proposals": dict(proposals),
        "cycles": [
            {**_cycle(report, config), "way": ways.get(report.topology)} for report in reports
        ],
        "ended_moves": [asdict(move) for move in ended],
    }


def _cycle(report: TopologyReport, config: Config) -> dict[str, Any]:
    """Show what the journal has of a cycle, and the executors."""
    found = cycle_record(report)
    if report.picture is None:
        return found
    cluster, snapshot = report.picture.cluster, report.picture.snapshot
    found["headroom"] = asdict(headroom(cluster, snapshot, config.link_tps))
    found["links"] = [
        {"from": cluster.nodes[source], "to": cluster.nodes[target], "tps": tps}
        for tps, source, target in node_traffic_tps(cluster, snapshot, SHOWN_LINKS)
    ]
    found["executors"] = [
        {"executor": executor, "cpu_cores": cpu, "queue": int(queue)}
        for executor, cpu, queue in zip(
            snapshot.executors, snapshot.cpu_cores.tolist(), snapshot.queue.tolist(), strict=True
        )
    ]
    return found


def publish(session: Session, found: dict[str, Any]) -> None:
    """Write the document; if it would not fit, without some parts, which it names."""
    left_out: list[str] = []
    found = {**found, "left_out": left_out}
    for part in ("", "ended_moves", "links", "plan", "executors", "workers"):
        if part:
            left_out.append(part)
            for of in (found, *found["cycles"]):
                of.pop(part, None)
        data = wire.packed(msgspec.json.encode(found, enc_hook=float))
        if len(data) <= wire.LARGEST_NODE_BYTES:
            break
    session.put(STATUS, data)


def read(session: Session) -> dict[str, Any] | None:
    """Read what the leading controller last wrote; None if there is nothing, or garbage."""
    stored = session.read(STATUS)
    if stored is None:
        return None
    try:
        found = msgspec.json.decode(wire.unpacked(stored.data))
    except (ValueError, msgspec.DecodeError, RecursionError):
        return None
    return found if isinstance(found, dict) else None

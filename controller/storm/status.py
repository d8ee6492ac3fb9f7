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
from controller.storm.missed import Missed
from kvstore.zookeeper import Session
from migration import wire

STATUS = f"{wire.ROOT}/status"
SHOWN_LINKS = 20
# What is left out first of a document that does not fit.
_PARTS = ("ended_moves", "links", "plan", "executors", "workers")


def document(
    reports: Iterable[TopologyReport],
    ended: Iterable[MoveRecord],
    config: Config,
    *,
    name: str,
    epoch: int | None,
    journal_problem: str | None = None,
    left_out: int = 0,
    ways: Mapping[str, dict[str, Any]] = MappingProxyType({}),
    proposals: Mapping[str, dict[str, Any]] = MappingProxyType({}),
    missed: Missed | None = None,
) -> dict[str, Any]:
    """Put the last cycle into a document.

    The moves are those that have ended lately, oldest first; `journal_problem` says why ticks are
    not written down, if they should be; `left_out` is how many parts will not fit; `ways` say by
    topology what all its moves would gain, `missed` what they would have gained today, `proposals`
    by id what operators may approve.
    """
    return {
        "controller": name,
        "epoch": epoch,
        "mode": config.mode.value,
        "policy": config.policy,
        "cycle_s": config.cycle_s,
        "journal_problem": journal_problem,
        "proposals": dict(proposals),
        "missed": msgspec.to_builtins(missed or Missed()),
        "cycles": [
            {**_cycle(report, config, left_out), "way": ways.get(report.topology)}
            for report in reports
        ],
        "ended_moves": [asdict(move) for move in ended],
    }


def _cycle(report: TopologyReport, config: Config, left_out: int) -> dict[str, Any]:
    """Show what the journal has of a cycle, and the executors."""
    found = cycle_record(report)
    if report.picture is None:
        return found
    cluster, snapshot = report.picture.cluster, report.picture.snapshot
    found["headroom"] = asdict(headroom(cluster, snapshot, config.link_tps))
    if "links" not in _PARTS[:left_out]:
        found["links"] = [
            {"from": cluster.nodes[source], "to": cluster.nodes[target], "tps": tps}
            for tps, source, target in node_traffic_tps(cluster, snapshot, SHOWN_LINKS)
        ]
    if "executors" not in _PARTS[:left_out]:
        cpu, queue = snapshot.cpu_cores.tolist(), snapshot.queue.tolist()
        found["executors"] = [
            {"executor": executor, "cpu_cores": cores, "queue": int(waiting)}
            for executor, cores, waiting in zip(snapshot.executors, cpu, queue, strict=True)
        ]
    return found


def publish(session: Session, found: dict[str, Any], left_out: int = 0) -> int:
    """Write the document without so many parts, or more if it would not fit; return how many."""
    for count in range(left_out, len(_PARTS) + 1):
        left_out, parts = count, _PARTS[:count]
        for of in (found, *found["cycles"]):
            for part in parts:
                of.pop(part, None)
        data = wire.packed(msgspec.json.encode({**found, "left_out": parts}, enc_hook=float))
        if len(data) <= wire.LARGEST_NODE_BYTES:
            break
    session.put(STATUS, data)
    return left_out


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

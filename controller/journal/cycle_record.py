"""How a cycle ended, as the journal and the status of the leading controller have it."""

import json
import math
from collections.abc import Iterable
from typing import Any

import msgspec
from msgspec import UNSET

from controller.core.distance import inter_node_bytes_per_s, inter_node_tps
from controller.core.picture import Picture
from controller.journal.lines import compact
from controller.journal.rows import CycleRecord, MoveRow, WorkerRow
from controller.report import TopologyReport
from migration import wire

# Of a run that has many, the last ones.
SHOWN_MOVES = 8


def cycle_record(report: TopologyReport) -> CycleRecord:
    """Write down how a cycle ended; the same report gives the same record."""
    found = CycleRecord(
        report.tick,
        report.topology,
        report.time_s,
        report.outcome.value,
        report.reason,
        report.warnings,
        tuple(MoveRow(m.executor, m.source, m.target, float(m.asc_tps)) for m in report.moves),
        None if report.plan is None else json.loads(wire.encode(report.plan)),
        report.mode.value,
        report.proposal,
        effect=UNSET if report.felt.effect is None else report.felt.effect.cut_to(SHOWN_MOVES),
    )
    return found if report.picture is None else _measured(found, report.picture)


def as_builtins(record: CycleRecord) -> dict[str, Any]:
    """Make what `json` writes."""
    found: dict[str, Any] = msgspec.to_builtins(record)
    return found


def as_json(records: Iterable[CycleRecord]) -> bytes:
    """Write records as the journal has them; raises `ValueError` where a number is not finite."""
    return compact([as_builtins(record) for record in records])


def _measured(found: CycleRecord, picture: Picture) -> CycleRecord:
    cluster, snapshot, fit = picture.cluster, picture.snapshot, picture.fit
    bytes_per_s = inter_node_bytes_per_s(cluster, snapshot)
    return msgspec.structs.replace(
        found,
        inter_node_tps=float(inter_node_tps(cluster, snapshot)),
        total_tps=float(snapshot.traffic.total_tps),
        workers=tuple(
            WorkerRow(
                slot,
                load,
                capacity,
                share if math.isfinite(share) else None,
                level,
            )
            for slot, load, capacity, share, level in zip(
                cluster.workers,
                fit.own.tolist(),
                fit.capacity.tolist(),
                fit.frac.tolist(),
                fit.levels,
                strict=True,
            )
        ),
        inter_node_bytes_per_s=UNSET if bytes_per_s is None else bytes_per_s,
        hops=UNSET if cluster.node_cores is None else picture.hops,
    )

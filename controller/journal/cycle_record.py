"""How a cycle ended, as the journal and the status of the leading controller have it."""

import json
import math
from collections.abc import Iterable
from typing import Any, TypeVar

import msgspec
from msgspec import UNSET, Struct, UnsetType

from controller.core.distance import inter_node_bytes_per_s, inter_node_tps
from controller.core.effect import Effect
from controller.core.hops import HopFigures
from controller.core.picture import Picture
from controller.journal.record import compact
from controller.report import TopologyReport
from migration import wire

T = TypeVar("T")
# Of a run that has many, the last ones.
SHOWN_MOVES = 8


class MoveRow(Struct, frozen=True, rename={"source": "from", "target": "to", "asc_tps": "asc"}):
    """A move that begins, or would, as `Move` has it."""

    executor: str
    source: str
    target: str
    asc_tps: float


class WorkerRow(Struct, frozen=True, rename={"class_": "class"}):
    """The CPU of a worker.

    `load_frac` is what is used of `capacity_cores`. Where workers share the CPU of their node, that
    is of all that runs there.
    """

    slot: str
    cpu_cores: float
    capacity_cores: float
    load_frac: float | None  # None where Storm has no CPU for the node
    class_: str  # high, low or normal


class CycleRecord(Struct, frozen=True):
    """How a cycle ended for one topology; the last six are there where they are known.

    Without `inter_node_bytes_per_s` the size of some tuples is not known, and without `effect`
    there was no run of moves.
    """

    tick: int = 0
    topology: str = ""  # its id; empty if the cycle did not get as far
    time_s: float = 0.0  # Unix seconds
    outcome: str = ""
    reason: str = ""
    warnings: tuple[str, ...] = ()
    moves: tuple[MoveRow, ...] = ()
    # As on the wire, for people: a plan of another version must not make the rest unreadable.
    plan: dict[str, Any] | None = None
    mode: str = ""
    proposal: str = ""
    inter_node_tps: float | UnsetType = UNSET
    total_tps: float | UnsetType = UNSET
    workers: tuple[WorkerRow, ...] | UnsetType = UNSET
    inter_node_bytes_per_s: float | UnsetType = UNSET
    effect: Effect | UnsetType = UNSET  # of the last run of moves
    hops: HopFigures | UnsetType = UNSET  # where workers share the CPU of their node


def rows_of(part: tuple[T, ...] | UnsetType) -> tuple[T, ...]:
    """Give the rows of a part; none where it is not there."""
    return () if part is UNSET else part


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

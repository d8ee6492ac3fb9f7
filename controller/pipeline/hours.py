"""Adds an episode up by hour: what a topology used where, at its peaks, and what users felt."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from controller.core.cluster import Floats, Ints
from controller.core.hops import hop_cores
from controller.core.latency import quantile_ms
from controller.core.peaks import HOURS_OF_DAY, spouts_of
from controller.core.times import DAY_S, MINUTE_S
from controller.pipeline.schemas import HOURS
from controller.pipeline.ticks import Batches, spans_of
from controller.replay.recording import Span
from migration.model import LATENCY_BUCKETS

MINUTES = int(DAY_S // MINUTE_S)
MINUTES_OF_HOUR = MINUTES // HOURS_OF_DAY


def _minutes() -> Floats:
    return np.zeros(MINUTES)


def _hours() -> Floats:
    return np.zeros(HOURS_OF_DAY)


@dataclass(slots=True)
class _Unit:
    """A node whose CPU workers share, or a worker with CPU of its own."""

    node: str
    capacity_cores: float
    last: int = 0  # hour of the day in which it was there last
    core_s: Floats = field(default_factory=_minutes)  # (MINUTES,), as all of these


@dataclass(slots=True)
class _Day:
    day: int
    units: dict[str, _Unit] = field(default_factory=dict)
    seen_s: Floats = field(default_factory=_minutes)
    input_tuples: Floats = field(default_factory=_minutes)
    acked: Floats = field(default_factory=_hours)  # (HOURS_OF_DAY,), as the next
    failed: Floats = field(default_factory=_hours)
    timed: Floats = field(default_factory=lambda: np.zeros((HOURS_OF_DAY, LATENCY_BUCKETS)))
    # By component and unit: core-seconds without hops, and the tuples that these took, (2,).
    work: dict[str, dict[str, Floats]] = field(default_factory=dict)

    def take(self, span: Span) -> None:
        minute = ((span.middle_s - self.day * DAY_S) // MINUTE_S).astype(np.int64)
        np.add.at(self.seen_s, minute, span.span_s)
        emits = spouts_of(span.first)[span.source]
        np.add.at(self.input_tuples, minute, span.traffic_tps[:, emits].sum(axis=1) * span.span_s)
        hour = minute // MINUTES_OF_HOUR
        np.add.at(self.acked, hour, np.nan_to_num(span.ended.acked))
        np.add.at(self.failed, hour, np.nan_to_num(span.ended.failed))
        np.add.at(self.timed, hour, span.ended.timed)
        for begin, end, place in span.placements():
            self._add(span, minute[begin:end], place, slice(begin, end))

    def _add(self, span: Span, minute: Ints, place: Ints, rows: slice) -> None:
        cluster = span.cluster
        unit_of, names = cluster.unit_of, cluster.unit_names
        node_of = dict(zip(unit_of.tolist(), cluster.node_of.tolist(), strict=True))
        at = unit_of[place]
        core_s = span.cpu_cores[rows] * span.span_s[rows, np.newaxis]
        for unit, name in enumerate(names):
            node = cluster.nodes[node_of.get(unit, unit)]
            # A supervisor that lost its folder comes back under another id.
            node = span.hosts.get(node, node)
            cores = float(cluster.unit_cores[unit])
            known = self.units.get(name) or _Unit(node, cores)
            self.units[name], known.capacity_cores = known, cores
            known.last = max(known.last, int(minute.max(initial=0)) // MINUTES_OF_HOUR)
            here = at == unit
            if here.any():
                np.add.at(known.core_s, minute, core_s[:, here].sum(axis=1))
        self._add_work(span, core_s.sum(axis=0), place, rows)

    def _add_work(self, span: Span, core_s: Floats, place: Ints, rows: slice) -> None:
        cluster, count = span.cluster, len(place)
        tuples = span.traffic_tps[rows].T.astype(np.float64) @ span.span_s[rows]
        got = np.bincount(span.target, tuples, count)
        at, whole = np.ascontiguousarray(place), np.ones(count)
        hops_s = hop_cores(span.source, span.target, tuples, whole, at, cluster.node_of)
        spent = np.column_stack([np.maximum(core_s - hops_s, 0.0), got])
        for executor in np.flatnonzero(got > 0).tolist():
            unit = cluster.unit_names[cluster.unit_of[place[executor]]]
            by_unit = self.work.setdefault(span.first.component_of[executor], {})
            by_unit[unit] = by_unit.get(unit, np.zeros(2)) + spent[executor]

    def _compared(self) -> dict[str, Floats]:
        """Give what bolts used on each unit, and what the same took on the others, (2,)."""
        found: dict[str, Floats] = {}
        for by_unit in self.work.values():
            core_s, tuples = sum(by_unit.values(), np.zeros(2))
            for unit, (own_s, got) in by_unit.items():
                if tuples > got:
                    usual_s = got * (core_s - own_s) / (tuples - got)
                    found[unit] = found.get(unit, np.zeros(2)) + np.array([own_s, usual_s])
        return found

    def rows(self, topology: str) -> Iterator[dict[str, object]]:
        """List the rows of `HOURS`."""
        seen_s = self.seen_s.reshape(HOURS_OF_DAY, -1)
        seen = np.flatnonzero(seen_s.sum(axis=1) > 0).tolist()
        known = {"topology": topology}
        used = sum((unit.core_s for unit in self.units.values()), _minutes())
        cores, tps = _by_hour(used, self.seen_s), _by_hour(self.input_tuples, self.seen_s)
        for hour in seen:
            yield {
                **known,
                "hour": self.day * HOURS_OF_DAY + hour,
                "seen_s": float(seen_s[hour].sum()),
                "cores": cores[0][hour],
                "peak_cores": cores[1][hour],
                "input_tps": tps[0][hour],
                "peak_tps": tps[1][hour],
                "acked": self.acked[hour],
                "failed": self.failed[hour],
                "latency_p50_ms": quantile_ms(self.timed[hour], 0.5),
                "latency_p99_ms": quantile_ms(self.timed[hour], 0.99),
            }
        compared = self._compared()
        for name, unit in self.units.items():
            mean, peak = _by_hour(unit.core_s, self.seen_s)
            once = dict(zip(("own_core_s", "usual_core_s"), compared.get(name, ()), strict=False))
            # Of hours without load one row is enough: until when the unit was there.
            for hour in sorted({h for h in seen if peak[h] > 0} | {unit.last}):
                yield {
                    **known,
                    "hour": self.day * HOURS_OF_DAY + hour,
                    "unit": name,
                    "node": unit.node,
                    "capacity_cores": unit.capacity_cores,
                    "cores": mean[hour],
                    "peak_cores": peak[hour],
                    **once,
                }
                once = {}


def _by_hour(sums: Floats, seen_s: Floats) -> tuple[Floats, Floats]:
    """Give the mean of each hour, and its busiest minute but one, as `core.peaks` counts it."""
    seconds = seen_s.reshape(HOURS_OF_DAY, -1)
    amounts = sums.reshape(HOURS_OF_DAY, -1)
    mean = amounts.sum(axis=1) / np.maximum(seconds.sum(axis=1), 1e-9)
    rates = np.sort(amounts / np.maximum(seconds, 1e-9), axis=1)
    alone = (seconds > 0).sum(axis=1) < 2
    return mean, np.where(alone, rates[:, -1], rates[:, -2])


def added_up(batches: Iterable[pa.RecordBatch], topology: str, day: int) -> Batches:
    """Add an episode up.

    Yields
    ------
    pyarrow.RecordBatch
        Rows of `HOURS`.
    """
    found = _Day(day)
    for span in spans_of(batches):
        found.take(span)
    yield pa.RecordBatch.from_pylist(list(found.rows(topology)), HOURS)

"""What the meters of many workers, or of many nodes, show."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Self

import numpy as np
from msgspec import UNSET, UnsetType
from numpy.typing import NDArray

from controller.core.cluster import Floats, Ints
from migration.meters import OF_NODE, Meter
from migration.model import Meters, NodeLoad

MS_PER_S = 1e3
# A report may have an integer that is no float: one worker's must not end the cycle.
_TOO_MUCH = 2**63
# A report comes within about a cycle, so two are not this many times as far apart as they came.
_FAR = 3.0
Columns = Mapping[str, Floats]  # by `Meter.column`; NaN where a number is not known


@dataclass(frozen=True, slots=True, eq=False)
class Metered:
    """The numbers of K workers or nodes, each (K,); one that nobody has reported is not there."""

    newest: Mapping[str, Floats] = field(default_factory=dict)  # by name, as reported
    shown: Columns = field(default_factory=dict)  # totals as rates, smoothed

    def at(self, rows: Ints) -> Self:
        """Take other rows; of a row below 0 nothing is known."""
        return type(self)(_taken(self.newest, rows), self.shown_at(rows))

    def shown_at(self, rows: Ints) -> Columns:
        """Give what is shown in other rows; of a row below 0 nothing is known."""
        return _taken(self.shown, rows)

    def rated_at(self, table: Sequence[Meter], rows: Ints) -> NDArray[np.bool_]:
        """Mark the rows of which a rate is known; of a row below 0 nothing is."""
        rates, known = self.shown_at(rows), np.zeros(len(rows), np.bool_)
        for meter in table:
            if meter.rate is not None and meter.rate in rates:
                known |= ~np.isnan(rates[meter.rate])
        return known

    def observed(
        self,
        table: Sequence[Meter],
        told: Columns,  # by `Meter.name`
        *,
        is_new: NDArray[np.bool_],  # (K,), another report than before
        goes_on: NDArray[np.bool_],  # (K,), of the same JVM or machine
        span_s: Floats,  # (K,), since the report of before
        ewma: float,  # weight of the newest rate
    ) -> Self:
        """Take the newest reports in."""
        if not is_new.any():
            return self
        newest: dict[str, Floats] = {}
        shown: dict[str, Floats] = {}
        unknown = np.full(len(is_new), np.nan)
        for meter in table:
            if meter.name not in told and meter.name not in self.newest:
                continue
            held = self.newest.get(meter.name, unknown)
            now = np.where(is_new, told.get(meter.name, unknown), held)
            if np.isnan(now).all():
                continue
            newest[meter.name] = shown[meter.column] = now
            if meter.rate is not None:
                rate = self.shown.get(meter.rate, unknown)
                # A total that fell began again.
                more = np.where(goes_on & (now >= held), (now - held) / span_s, np.nan)
                more *= meter.per_s
                smooth = np.where(np.isnan(rate), more, ewma * more + (1 - ewma) * rate)
                shown[meter.rate] = np.where(is_new, smooth, rate)
        return type(self)(newest, shown)


@dataclass(frozen=True, slots=True, eq=False)
class NodeRates:
    """What the meters of the nodes show."""

    nodes: tuple[str, ...] = ()  # (N,), ids, sorted
    # (N,), when the newest report was made, by the node's clock, and when it came, by ours
    time_ms: Ints = field(default_factory=lambda: np.zeros(0, np.int64))
    seen_s: Floats = field(default_factory=lambda: np.zeros(0))
    meters: Metered = field(default_factory=Metered)

    def of(self, nodes: Sequence[str], since_s: float) -> Columns:
        """Give the numbers of some nodes, of reports that came since then."""
        row = {node: n for n, node in enumerate(self.nodes) if self.seen_s[n] >= since_s}
        return self.meters.shown_at(np.array([row.get(node, -1) for node in nodes], np.int64))


def observe_nodes(
    before: NodeRates, loads: Sequence[NodeLoad], *, now_s: float, ewma: float
) -> NodeRates:
    """Take the newest reports in; nodes without one are forgotten."""
    newest = {load.node: load for load in loads}
    nodes = tuple(sorted(newest))
    was = {node: n for n, node in enumerate(before.nodes)}
    at = np.array([was.get(node, -1) for node in nodes], np.int64)
    time_ms = np.array([newest[node].time_ms for node in nodes], np.int64)
    held_ms, held_s = np.append(before.time_ms, 0)[at], np.append(before.seen_s, 0.0)[at]
    is_new = (at < 0) | (time_ms != held_ms)  # earlier by a clock that was set back
    ahead = set_ahead(time_ms - held_ms, now_s - held_s) & before.meters.rated_at(OF_NODE, at)
    goes_on = is_new & (at >= 0) & (time_ms > held_ms) & ~ahead
    return NodeRates(
        nodes,
        np.where(is_new, time_ms, held_ms),
        np.where(is_new, now_s, held_s),
        before.meters.at(at).observed(
            OF_NODE,
            columns_of(OF_NODE, [newest[node].meters for node in nodes]),
            is_new=is_new,
            goes_on=goes_on,
            span_s=np.where(goes_on, (time_ms - held_ms) / MS_PER_S, 1.0),
            ewma=ewma,
        ),
    )


def set_ahead(span_ms: Ints, passed_s: Floats) -> NDArray[np.bool_]:
    """Mark spans between two reports, by a node's clock, in which it must have been set ahead.

    `passed_s` is by the controller's clock. A new leader may find a first report that is old and
    its next one at once: the caller leaves out the first span.
    """
    return (passed_s > 0) & (span_ms > _FAR * MS_PER_S * passed_s)


def columns_of(table: Sequence[Meter], told: Sequence[Meters | UnsetType]) -> Columns:
    """Read the numbers of a table in K reports, (K,) each."""
    return {
        meter.name: np.array([_read(one, meter.name) for one in told], np.float64)
        for meter in table
    }


def known_rows(columns: Columns, names: Sequence[str]) -> dict[str, dict[str, float]]:
    """Give what is known of each, by its name; the columns are (K,) as the names."""
    found: dict[str, dict[str, float]] = {}
    for column, values in columns.items():
        for k in np.flatnonzero(~np.isnan(values)).tolist():
            found.setdefault(names[k], {})[column] = float(values[k])
    return found


def known_sum(values: Floats) -> float | None:
    """Add up what is known; None if nothing is."""
    known = values[~np.isnan(values)]
    return float(known.sum()) if len(known) else None


def _taken(columns: Columns, rows: Ints) -> dict[str, Floats]:
    return {name: np.append(values, np.nan)[rows] for name, values in columns.items()}


def _read(told: Meters | UnsetType, name: str) -> float:
    value = np.nan if told is UNSET else told.get(name, np.nan)
    return value if 0 <= value < _TOO_MUCH else np.nan

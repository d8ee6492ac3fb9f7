"""What the stage of hours left, as arrays: T topologies by name, N nodes, U units, H hours.

A unit is a node, or a worker where each has CPU of its own.
"""

from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from controller.core.cluster import Floats, Ints, natural_key
from controller.core.peaks import HOURS_OF_DAY
from controller.core.times import HOUR_S
from controller.pipeline.schemas import HOURS
from migration.model import topology_name

_KEYS = ["topology", "hour", "unit"]
# What comes of the rows of several ids of one name; of all else, such as peaks, the largest.
_MEANS, _SUMS = ("cores", "input_tps"), ("seen_s", "acked", "failed", "own_core_s", "usual_core_s")
_LAST = ("node", "capacity_cores")


@dataclass(frozen=True, slots=True)
class Topology:
    """A topology by hour, (H,) each; NaN where it was not measured."""

    name: str
    seen_s: Floats
    cores: Floats
    peak_cores: Floats
    input_tps: Floats
    latency_p50_ms: Floats
    latency_p99_ms: Floats
    acked: Floats
    failed: Floats


@dataclass(frozen=True, eq=False)
class Hours:
    """All topologies by hour, and R rows of what one of them used of a unit."""

    first: int  # number of the first hour since 1970
    count: int
    topologies: tuple[Topology, ...]
    units: tuple[str, ...]
    nodes: tuple[str, ...]
    node_of: Ints  # (U,)
    capacity_cores: Floats  # (U,), as it was last
    topology: Ints  # (R,), as all of these
    unit: Ints
    hour: Ints  # from the first
    cores: Floats
    peak_cores: Floats
    own_core_s: Floats  # once a day, as the next; else NaN
    usual_core_s: Floats

    @classmethod
    def of(cls, table: pa.Table) -> "Hours":
        """Take rows of `HOURS`; of a topology that was started again, all under its name."""
        # Sums of floats depend on their order.
        table = table.sort_by([(name, "ascending") for name in ("hour", "topology", "unit")])
        table = _by_name(table)
        names = sorted(pc.unique(table["topology"]).to_pylist(), key=natural_key)
        number = {name: t for t, name in enumerate(names)}
        numbers = _codes(table["topology"], number)
        hours = table["hour"].to_numpy()
        first = int(hours.min())
        count = int(hours.max()) - first + 1
        is_unit = table["unit"].is_valid().to_numpy()
        wanted = [field.name for field in fields(Topology) if field.name != "name"]
        own = {name: _column(table, name)[~is_unit] for name in wanted}
        at, to = hours[~is_unit] - first, numbers[~is_unit]
        topologies = [
            Topology(name, **{k: _placed(v[to == t], at[to == t], count) for k, v in own.items()})
            for t, name in enumerate(names)
        ]
        part = table.filter(table["unit"].is_valid())
        units = sorted(pc.unique(part["unit"]).to_pylist(), key=natural_key)
        nodes = sorted(pc.unique(part["node"]).to_pylist(), key=natural_key)
        unit = _codes(part["unit"], {name: u for u, name in enumerate(units)})
        node = _codes(part["node"], {name: n for n, name in enumerate(nodes)})
        node_of, capacity = np.zeros(len(units), np.int64), np.zeros(len(units))
        # Of rows with the same index the last one stays.
        node_of[unit], capacity[unit] = node, _column(part, "capacity_cores")
        return cls(
            first=first,
            count=count,
            topologies=tuple(topologies),
            units=tuple(units),
            nodes=tuple(nodes),
            node_of=node_of,
            capacity_cores=capacity,
            topology=_codes(part["topology"], number),
            unit=unit,
            hour=part["hour"].to_numpy() - first,
            cores=_column(part, "cores"),
            peak_cores=_column(part, "peak_cores"),
            own_core_s=_column(part, "own_core_s"),
            usual_core_s=_column(part, "usual_core_s"),
        )

    @cached_property
    def used_cores(self) -> Floats:
        """(U, H), what all topologies use of each unit at their peaks."""
        return self._sums(self.unit, self.peak_cores, len(self.units))

    @cached_property
    def cores_of_node(self) -> Floats:
        """(N, H), the CPU of each node: of its units that were used in that hour."""
        found = np.zeros((len(self.nodes), self.count))
        used = np.unique(self.unit * self.count + self.hour)
        unit, hour = np.divmod(used, self.count)
        np.add.at(found, (self.node_of[unit], hour), self.capacity_cores[unit])
        return found

    @cached_property
    def node_cores(self) -> Floats:
        """(N,), the CPU of each node: the most of an hour of the last day that has it.

        A topology that was started again may have left its workers for others.
        """
        found = self.cores_of_node
        last = self.count - 1 - (found[:, ::-1] > 0).argmax(axis=1)
        is_recent = np.arange(self.count) > last[:, np.newaxis] - HOURS_OF_DAY
        most: Floats = np.where(is_recent, found, 0.0).max(axis=1)
        return most

    @cached_property
    def used_of_node(self) -> Floats:
        """(N, H), what all topologies use of each node at their peaks."""
        found = np.zeros((len(self.nodes), self.count))
        np.add.at(found, self.node_of, self.used_cores)
        return found

    @cached_property
    def headroom(self) -> Floats:
        """(T, H), by what factor each topology may grow until a CPU is full; NaN without load.

        What others use at their peaks of that hour stays as it is.
        """
        own = self.peak_cores
        others = self.used_cores[self.unit, self.hour] - own
        left = np.maximum(self.capacity_cores[self.unit] - others, 0.0)
        found = np.full((len(self.topologies), self.count), np.inf)
        used = own > 0
        at = self.topology[used], self.hour[used]
        np.minimum.at(found, at, (left[used] / own[used]))
        return np.where(np.isfinite(found), found, np.nan)

    @cached_property
    def days(self) -> Ints:
        """(D,), the days in the log since 1970, UTC."""
        last = self.first + self.count - 1
        return np.arange(self.first // HOURS_OF_DAY, last // HOURS_OF_DAY + 1)

    def by_day(self, values: Floats) -> Floats:
        """Lay values of hours, (H,), out by day and hour of the day, (D, 24); else NaN."""
        found = np.full(len(self.days) * HOURS_OF_DAY, np.nan)
        begin = self.first - int(self.days[0]) * HOURS_OF_DAY
        found[begin : begin + self.count] = values
        return found.reshape(-1, HOURS_OF_DAY)

    def time_s(self, hour: int) -> float:
        """When an hour began, in Unix seconds."""
        return (self.first + hour) * HOUR_S

    def share_of(self, weights: Floats) -> Floats:
        """(T, H), what each topology uses of nodes, each with its weight, (N,), as a share."""
        node = self.node_of[self.unit]
        share = weights[node] * self.cores / np.maximum(self.node_cores[node], 1e-9)
        return self._sums(self.topology, share, len(self.topologies))

    def cores_on(self, topology: int) -> Floats:
        """(N,), what a topology uses of each node, over all hours."""
        own = self.topology == topology
        return added(self.node_of[self.unit[own]], self.cores[own], len(self.nodes))

    def _sums(self, of: Ints, values: Floats, rows: int) -> Floats:
        keys = of * self.count + self.hour
        return added(keys, values, rows * self.count).reshape(rows, self.count)


def added(of: Ints, values: Floats, count: int) -> Floats:
    """Add values up by what they are of, (count,)."""
    return np.bincount(of, values, count).astype(np.float64)


def _codes(column: Any, number: dict[str, int]) -> Ints:
    coded = column.combine_chunks().dictionary_encode()
    own = np.array([number[name] for name in coded.dictionary.to_pylist()], np.int64)
    found: Ints = own[coded.indices.to_numpy(zero_copy_only=False).astype(np.int64)]
    return found


def _column(table: pa.Table, name: str) -> Floats:
    found: Floats = table[name].cast(pa.float64()).to_numpy()
    return found


def _by_name(table: pa.Table) -> pa.Table:
    """Make one row of those of a name, an hour and a unit: its ids never ran together.

    Two medians make no third one: of latencies the longest stays.
    """
    ids = pc.unique(table["topology"]).to_pylist()
    names = sorted({topology_name(one) for one in ids})
    name_of = np.array([names.index(topology_name(one)) for one in ids], np.int64)
    run = _codes(table["topology"], {one: number for number, one in enumerate(ids)})
    hour = table["hour"].to_numpy() - pc.min(table["hour"]).as_py()
    whole = ~table["unit"].is_valid().to_numpy()
    seen_s = np.zeros((len(ids), int(hour.max()) + 1))
    seen_s[run[whole], hour[whole]] = _column(table, "seen_s")[whole]
    of_name_s = np.zeros((len(names), seen_s.shape[1]))
    np.add.at(of_name_s, name_of, seen_s)
    # An id that used nothing of a unit has no row of it, and counts for its share all the same.
    share = pa.array(seen_s[run, hour] / of_name_s[name_of[run], hour])
    columns = {name: table[name] for name in HOURS.names}
    columns |= {name: pc.multiply(table[name], share) for name in _MEANS}
    columns["topology"] = pa.array([names[name] for name in name_of[run].tolist()])
    each = {name: "max" for name in HOURS.names if name not in _KEYS}
    each |= dict.fromkeys((*_MEANS, *_SUMS), "sum") | dict.fromkeys(_LAST, "last")
    groups = pa.table(columns).group_by(_KEYS, use_threads=False)
    found = groups.aggregate(list(each.items()))
    return found.rename_columns([*_KEYS, *each])


def _placed(values: Floats, at: Ints, count: int) -> Floats:
    """Put values where they belong."""
    found = np.full(count, np.nan)
    found[at] = values
    return found

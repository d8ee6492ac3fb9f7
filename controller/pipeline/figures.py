"""What a parameter set is judged by."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, fields
from itertools import zip_longest
from typing import Any, NamedTuple

import numpy as np

from controller.core.latency import quantile_ms
from controller.replay.recording import Ended
from controller.replay.rerun import Series

# Of an episode, the least share of its time that is one with a set: with less, hours are compared.
_MOST_OF_IT = 0.9


class FeltDay(NamedTuple):
    """What users of a topology felt on a day, with all executors where a set has them.

    A day of which a part is held back is two.
    """

    topology: str
    day: int
    held_back: bool
    input_tps: float  # tuples that ended
    failed_frac: float
    latency_p99_ms: float | None  # None where it is not known


@dataclass(frozen=True, slots=True)
class Figures:
    """How a parameter set did; figures of several topologies and days add up.

    From `recorded_s` to `timed` they are of the time in which all executors were where they really
    were. What users would have felt elsewhere nobody has measured.
    """

    ticks: int = 0
    moves: int = 0
    span_s: float = 0.0
    total: float = 0.0  # tuples sent
    inter_node: float = 0.0  # those to other nodes
    inter_worker: float = 0.0  # those to other workers (of other nodes too)
    unserved_core_s: float = 0.0  # core-seconds that executors needed beyond what there was
    # What the fullest direction of a node's link carried, and in which time sizes were known.
    fullest_bytes: float = 0.0
    sized_s: float = 0.0
    recorded_s: float = 0.0
    acked: float = 0.0  # tuples
    failed: float = 0.0
    timed: tuple[int, ...] = ()  # (B,), acked tuples by time, as in `core.latency`
    bound: tuple[tuple[str, int], ...] = ()  # as in `Series`, by name

    def __add__(self, other: "Figures") -> "Figures":
        sums = {f.name: getattr(self, f.name) + getattr(other, f.name) for f in fields(self)}
        pairs = zip_longest(self.timed, other.timed, fillvalue=0)
        sums["timed"] = tuple(a + b for a, b in pairs)
        sums["bound"] = _by_name(Counter(dict(self.bound)) + Counter(dict(other.bound)))
        return Figures(**sums)

    @property
    def inter_node_frac(self) -> float:
        """Share of the tuples that crossed between nodes; 0 without tuples."""
        return self.inter_node / self.total if self.total else 0.0

    @property
    def fullest_bytes_s(self) -> float | None:
        """Mean of the fullest direction of a link; None where no size of a tuple is known."""
        return self.fullest_bytes / self.sized_s if self.sized_s else None

    @property
    def recorded_frac(self) -> float:
        """Share of the time in which all executors were where they really were."""
        return self.recorded_s / self.span_s if self.span_s else 0.0

    @property
    def failed_frac(self) -> float | None:
        """Share of the tuples that failed then; None where none ended."""
        ended = self.acked + self.failed
        return self.failed / ended if ended else None

    @property
    def latency_p99_ms(self) -> float | None:
        """The time within which 99 % of the tuples were acked then; None where it is not known."""
        return quantile_ms(np.array(self.timed, np.float64), 0.99) if any(self.timed) else None

    def felt(self, topology: str, day: int, *, held_back: bool) -> FeltDay | None:
        """Give what users felt; None where executors were elsewhere too long or nothing ended."""
        failed_frac = self.failed_frac
        if self.recorded_frac < _MOST_OF_IT or failed_frac is None:
            return None
        input_tps = (self.acked + self.failed) / self.recorded_s
        return FeltDay(topology, day, held_back, input_tps, failed_frac, self.latency_p99_ms)

    @classmethod
    def of(cls, series: Series, ended: Ended) -> "Figures":
        """Add up the ticks of a series, of which `ended` is what users felt."""
        span_s, known = series.span_s, ended.rows(series.as_recorded)
        sized = ~np.isnan(series.fullest_bytes_s)
        return cls(
            ticks=len(span_s),
            moves=len(series.moves),
            span_s=float(span_s.sum()),
            total=float((series.total_tps * span_s).sum()),
            inter_node=float((series.inter_node_tps * span_s).sum()),
            inter_worker=float((series.inter_worker_tps * span_s).sum()),
            unserved_core_s=float(series.unserved_core_s.sum()),
            fullest_bytes=float((series.fullest_bytes_s * span_s)[sized].sum()),
            sized_s=float(span_s[sized].sum()),
            recorded_s=float(span_s[series.as_recorded].sum()),
            acked=float(np.nansum(known.acked)),
            failed=float(np.nansum(known.failed)),
            timed=tuple(known.timed.sum(axis=0, dtype=np.int64).tolist()),
            bound=_by_name(series.bound),
        )

    @classmethod
    def of_row(cls, row: Mapping[str, Any]) -> "Figures":
        """Read a row of `TRIALS`."""
        figures = {field.name: row[field.name] for field in fields(cls)}
        bound = _by_name({one["what"]: one["decisions"] for one in row["bound"]})
        return cls(**{**figures, "timed": tuple(row["timed"]), "bound": bound})


def _by_name(counts: Mapping[str, int]) -> tuple[tuple[str, int], ...]:
    return tuple(sorted(counts.items()))

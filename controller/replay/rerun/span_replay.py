"""The ticks of one span, and what a placement allows in them."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from controller.core.choose import row_of, shuffle_fed
from controller.core.cluster import Floats, Ints, LoadSnapshot, Traffic
from controller.core.veto import Excluded, Vetoes, placement_vetoes
from controller.core.view.kernels import Marks
from controller.core.view.pairs import Pairs
from controller.replay.recording import Span
from controller.replay.rerun.no_move import PlacementRules, Talk
from controller.replay.rerun.pair_hops import PairHops
from controller.replay.rerun.series import COLUMNS, NO_CYCLE, OUTCOME
from controller.replay.rerun.skip import (
    ReplayCosts,
    ReplayState,
    Smoothed,
    Ticks,
    measure,
    skip_to_next_decision,
)


@dataclass(frozen=True, slots=True, eq=False)
class Allowed:
    """What a placement allows by itself, for policies and for loops."""

    executors: tuple[str, ...]  # all of the span
    vetoes: Vetoes  # what it does not allow, for policies
    standing: PlacementRules  # what it does and does not allow, for loops

    @classmethod
    def of(cls, span: Span, place: Ints, excluded: Excluded) -> "Allowed":
        """Look at a placement, (E,), which is kept; holds as long as it stands."""
        first, cluster = span.first, span.cluster
        snapshot = first.at(first.time_s, place, first.cpu_cores, first.traffic)
        vetoes = placement_vetoes(cluster, snapshot, excluded)
        row = row_of(first.executors)
        held = [row[name] for name in vetoes.executors]
        last = [row[name] for name, veto in vetoes.executors.items() if veto.keeps_worker]
        is_free = first.is_movable.copy()  # read-only or not is another type to the compiler
        is_open = cluster.is_open.copy()
        is_open_now = is_open.copy()
        is_open_now[[cluster.workers.index(name) for name in vetoes.workers]] = False
        few = np.bincount(place, minlength=len(cluster.workers)) <= 2
        return cls(
            first.executors,
            vetoes,
            PlacementRules(
                place=place,
                is_free=is_free,
                is_allowed=is_free & ~_marks(len(place), held),
                is_last=is_free & _marks(len(place), last),
                may_come=~shuffle_fed(first.edges, first.component_of),
                must_stay=few,
                is_open=is_open,
                is_open_now=is_open_now,
            ),
        )

    def by_executor(self, until_s: Mapping[str, float]) -> Floats:
        """Lay times out, (E,); minus infinity for all others."""
        row, found = row_of(self.executors), np.full(len(self.executors), -np.inf)
        for name, time_s in until_s.items():
            if name in row:
                found[row[name]] = time_s
        return found


def _marks(count: int, which: list[int]) -> Marks:
    marks = np.zeros(count, dtype=np.bool_)
    marks[which] = True
    return marks


class SpanReplay:
    """The ticks of a span on the way of one configuration.

    `now_s`, (T,), is on a clock that only goes on; `smoothed` is the load of the ticks before, if
    there is any. To be filled in from outside: `asks`, (T,), whether the policy is to be asked, and
    the outcome in `table`, (T, 8) as for `joined`, the rest of which is measured as far as the
    course has gone.
    """

    def __init__(
        self, span: Span, now_s: Floats, pace: ReplayCosts, smoothed: Smoothed | None = None
    ) -> None:
        contiguous = np.ascontiguousarray
        self.span, self.now_s, self.ticks = span, now_s, len(now_s)
        self.asks = np.zeros(self.ticks, dtype=np.bool_)
        self.table = np.zeros((self.ticks, COLUMNS))
        self.table[:, 0], self.table[:, 1] = span.time_s, span.span_s
        self.table[:, OUTCOME] = NO_CYCLE
        # The first load of all counts as it is.
        self._pace, self._first_pace = pace, None if smoothed else pace._replace(ewma=1.0)
        self.smoothed = smoothed or Smoothed(np.zeros(len(span.source)), np.zeros(len(span.place)))
        source, target = contiguous(span.source), contiguous(span.target)
        pairs = Pairs.of(Traffic(source, target, self.smoothed.tps), len(span.place))
        self._load = Ticks(
            Talk(source, target, pairs.begin, pairs.peer, pairs.row),
            contiguous(span.traffic_tps),
            contiguous(span.cpu_cores),
            contiguous(span.cluster.capacity_cores),
            contiguous(span.span_s),
            now_s,
            self.asks,
            self.table,
        )

    def go(self, begin: int, end: int, where: ReplayState) -> int:
        """Go on to the next tick before `end` at which the policy must be asked, else to `end`."""
        first, self._first_pace = self._first_pace, None
        if first is not None:
            if (
                skip_to_next_decision(self._load, (begin, begin + 1), where, first, self.smoothed)
                == begin
            ):
                return begin
            begin += 1
        return skip_to_next_decision(self._load, (begin, end), where, self._pace, self.smoothed)

    def measure(self, begin: int, end: int, hops_of: PairHops) -> None:
        """Measure the recorded placement, from one row to before another."""
        for row in range(begin, end):
            measure(self._load, row, hops_of, hops_of, self._pace)

    def snapshot(self, row: int, place: Ints) -> LoadSnapshot:
        """Show the smoothed load of the tick that was gone to last as a policy sees it.

        Pairs that say nothing are left out.
        """
        span, (tps, cpu_cores) = self.span, (part.copy() for part in self.smoothed)
        source, target = span.source, span.target
        if not tps.all():
            used = np.flatnonzero(tps)
            source, target, tps = source[used], target[used], tps[used]
        traffic = Traffic(source, target, tps)
        return span.first.at(float(span.time_s[row]), place, cpu_cores, traffic)

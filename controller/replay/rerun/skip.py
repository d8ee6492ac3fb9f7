"""Goes ahead through recorded ticks to the next one at which something might move."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from controller.core.classify import worker_sums
from controller.core.cluster import Floats, Traffic
from controller.core.compiled import compiled
from controller.core.view.kernels import Marks
from controller.core.view.pairs import Pairs
from controller.replay.recording import Singles, Span
from controller.replay.rerun.no_move import (
    Load,
    PlacementRules,
    PolicyRules,
    Talk,
    no_move_possible,
)
from controller.replay.rerun.pair_hops import HopCost, PairHops, load
from controller.replay.rerun.series import COLUMNS, NO_CYCLE, OUTCOME


class Ticks(NamedTuple):
    """The ticks of a span, one a row; contiguous arrays."""

    talk: Talk
    tps: Singles  # (T, P)
    cpu_cores: Singles  # (T, E)
    capacity_cores: Floats  # (W,)
    span_s: Floats  # (T,), how long each stands for
    now_s: Floats  # (T,), on a clock that only goes on
    asks: Marks  # (T,), whether the policy is to be asked; the caller fills it in
    table: Floats  # (T, 8), as for `joined`; the caller fills the outcome in
    is_first: bool  # no load came before row 0, so that of row 0 is not smoothed

    @classmethod
    def of(cls, span: Span, now_s: Floats, *, is_first: bool) -> "Ticks":
        """Lay a span out, with nothing to ask the policy and nothing measured yet."""
        contiguous = np.ascontiguousarray
        source, target = contiguous(span.source), contiguous(span.target)
        pairs = Pairs.of(Traffic(source, target, np.zeros(len(source))), len(span.place))
        table = np.zeros((len(now_s), COLUMNS))
        table[:, 0], table[:, 1], table[:, OUTCOME] = span.time_s, span.span_s, NO_CYCLE
        return cls(
            Talk(source, target, pairs.begin, pairs.peer, pairs.row),
            contiguous(span.traffic_tps),
            contiguous(span.cpu_cores),
            contiguous(span.cluster.capacity_cores),
            contiguous(span.span_s),
            now_s,
            np.zeros(len(now_s), dtype=np.bool_),
            table,
            is_first,
        )


class ReplayCosts(NamedTuple):
    """How ticks are gone through."""

    over_frac: float  # a worker above this share of its CPU counts as overloaded
    cost: HopCost
    ewma: float  # weight of a tick's load


class Smoothed(NamedTuple):
    """What controllers decide by; kept up to date in place."""

    tps: Floats  # (P,)
    cpu_cores: Floats  # (E,), at the placement of the replay


class ReplayState(NamedTuple):
    """The placement of a replay, how far tuples go in it, and who may move."""

    rules: PolicyRules
    standing: PlacementRules
    replayed: PairHops
    recorded: PairHops
    rests_until_s: Floats  # (E,), until when executors may not move
    looks: bool  # ticks at which nothing would move are passed over


@compiled
def measure(
    ticks: Ticks, row: int, replayed: PairHops, recorded: PairHops, pace: ReplayCosts
) -> Floats:
    """Measure a placement under the load of one tick, and give the CPU of each executor, (E,).

    The row of the table is filled in, but for time and outcome.
    """
    talk, table = ticks.talk, ticks.table
    cores, between_nodes, between_workers, total = load(
        talk.source,
        talk.target,
        ticks.tps[row],
        ticks.cpu_cores[row],
        replayed.hops,
        recorded.hops,
        pace.cost,
    )
    table[row, 2], table[row, 3], table[row, 4] = between_nodes, between_workers, total
    used = worker_sums(replayed.place, cores, len(ticks.capacity_cores)) / ticks.capacity_cores
    table[row, 5] = used.max()
    table[row, 6] = (used > pace.over_frac).sum() * ticks.span_s[row]
    return cores


@compiled
def skip_to_next_decision(
    ticks: Ticks, rows: tuple[int, int], where: ReplayState, pace: ReplayCosts, smoothed: Smoothed
) -> int:
    """Measure and smooth ticks from `rows[0]` up to one at which the policy has to be asked.

    Gives that row, or `rows[1]`, before which it stops; rows up to it, itself included, are
    measured. `smoothed` has the last one's load, too.
    """
    for row in range(*rows):
        ewma = 1.0 if ticks.is_first and row == 0 else pace.ewma
        cores = measure(ticks, row, where.replayed, where.recorded, pace)
        _smooth(ticks.tps[row], ewma, smoothed.tps)
        _smooth(cores, ewma, smoothed.cpu_cores)
        if ticks.asks[row]:
            now = Load(ticks.talk, smoothed.tps, smoothed.cpu_cores)
            rests = where.rests_until_s > ticks.now_s[row]
            if not where.looks or not no_move_possible(now, where.rules, where.standing, rests):
                return row
    return rows[1]


@compiled
def _smooth(new: NDArray[np.floating], ewma: float, smoothed: Floats) -> None:
    for k in range(len(smoothed)):
        smoothed[k] = ewma * new[k] + (1 - ewma) * smoothed[k]

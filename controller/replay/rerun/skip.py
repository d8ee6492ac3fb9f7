"""Goes ahead through recorded ticks to the next one at which something might move."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from controller.core.cluster import Floats, worker_sums
from controller.core.compiled import compiled
from controller.core.view.kernels import Marks
from controller.replay.recording import Singles
from controller.replay.rerun.no_move import (
    Load,
    PlacementRules,
    PolicyRules,
    Talk,
    no_move_possible,
)
from controller.replay.rerun.pair_hops import HopCost, PairHops, load


class Ticks(NamedTuple):
    """The ticks of a span, one a row; contiguous arrays.

    Attributes
    ----------
    talk : Talk
        Who talks to whom.
    tps : Singles, shape (T, P)
        How much.
    cpu_cores : Singles, shape (T, E)
        By executor.
    capacity_cores : Floats, shape (W,)
        As in `Cluster`.
    span_s : Floats, shape (T,)
        How long each stands for.
    now_s : Floats, shape (T,)
        When, on a clock that only goes on.
    asks : array of bool, shape (T,)
        Whether the policy is to be asked.
    table : Floats, shape (T, 8)
        As for `joined`; what is measured is filled in.
    """

    talk: Talk
    tps: Singles
    cpu_cores: Singles
    capacity_cores: Floats
    span_s: Floats
    now_s: Floats
    asks: Marks
    table: Floats


class ReplayCosts(NamedTuple):
    """How ticks are gone through.

    Attributes
    ----------
    over_frac : float
        A worker above this share of its CPU counts as overloaded.
    ewma : float
        Weight of a tick's load.
    """

    over_frac: float
    cost: HopCost
    ewma: float


class Smoothed(NamedTuple):
    """What controllers decide by; kept up to date in place.

    Attributes
    ----------
    tps : Floats, shape (P,)
        As `Ticks.tps`.
    cpu_cores : Floats, shape (E,)
        As `Ticks.cpu_cores`, at the placement of the replay.
    """

    tps: Floats
    cpu_cores: Floats


class ReplayState(NamedTuple):
    """The placement of a replay, how far tuples go in it, and who may move.

    Attributes
    ----------
    hops_of, recorded : PairHops
        The pairs in it, and in the recorded one.
    rests_until_s : Floats, shape (E,)
        Until when executors may not move.
    looks : bool
        Whether ticks at which nothing would move are passed over.
    """

    rules: PolicyRules
    standing: PlacementRules
    hops_of: PairHops
    recorded: PairHops
    rests_until_s: Floats
    looks: bool


@compiled
def measure(
    ticks: Ticks, row: int, hops_of: PairHops, recorded: PairHops, pace: ReplayCosts
) -> Floats:
    """Measure a placement under the load of one tick.

    Parameters
    ----------
    ticks : Ticks
        Recorded load; the row of its table is filled in, but for time and outcome.
    hops_of, recorded : PairHops
        The pairs in the placement, and in the recorded one.
    pace : ReplayCosts
        What overload is, and what hops cost.

    Returns
    -------
    Floats, shape (E,)
        CPU of each executor.
    """
    talk, table = ticks.talk, ticks.table
    cores, between_nodes, between_workers, total = load(
        talk.source,
        talk.target,
        ticks.tps[row],
        ticks.cpu_cores[row],
        hops_of.hops,
        recorded.hops,
        pace.cost,
    )
    table[row, 2], table[row, 3], table[row, 4] = between_nodes, between_workers, total
    used = worker_sums(hops_of.place, cores, len(ticks.capacity_cores)) / ticks.capacity_cores
    table[row, 5] = used.max()
    table[row, 6] = (used > pace.over_frac).sum() * ticks.span_s[row]
    return cores


@compiled
def skip_to_next_decision(
    ticks: Ticks, rows: tuple[int, int], where: ReplayState, pace: ReplayCosts, smoothed: Smoothed
) -> int:
    """Measure and smooth ticks up to one at which the policy has to be asked.

    Parameters
    ----------
    rows : tuple of (int, int)
        From which row on, and before which one to stop.
    smoothed : Smoothed
        Kept up to date, the last tick's load included.

    Returns
    -------
    int
        The row, or the one to stop before; rows up to it, itself included, are measured.
    """
    for row in range(*rows):
        cores = measure(ticks, row, where.hops_of, where.recorded, pace)
        _smooth(ticks.tps[row], pace.ewma, smoothed.tps)
        _smooth(cores, pace.ewma, smoothed.cpu_cores)
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

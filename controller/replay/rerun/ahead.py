"""Goes ahead through recorded ticks to the next one at which something might move."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from controller.core.cluster import Floats, worker_sums
from controller.core.compiled import compiled
from controller.core.view.loops import Marks
from controller.core.view.still import Load, Rules, Standing, Talk, is_still
from controller.replay.recording import Singles
from controller.replay.rerun.laid import HopCost, Laid, load


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
    span_s: Floats
    now_s: Floats
    asks: Marks
    table: Floats


class Pace(NamedTuple):
    """How ticks are gone through.

    Attributes
    ----------
    rules : Rules
        Of the policy, and of the workers.
    over_frac : float
        A worker above this share of its CPU counts as overloaded.
    cost : HopCost
        What hops cost.
    ewma : float
        Weight of a tick's load.
    """

    rules: Rules
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


class Where(NamedTuple):
    """The placement of a replay, and how far tuples go in it.

    Attributes
    ----------
    standing : Standing
        The placement.
    laid, recorded : Laid
        The pairs in it, and in the recorded one.
    rests_until_s : Floats, shape (E,)
        Until when executors may not move.
    looks : bool
        Whether ticks at which nothing would move are passed over.
    """

    standing: Standing
    laid: Laid
    recorded: Laid
    rests_until_s: Floats
    looks: bool


@compiled
def ahead(ticks: Ticks, rows: tuple[int, int], where: Where, pace: Pace, smoothed: Smoothed) -> int:
    """Measure and smooth ticks up to one at which the policy has to be asked.

    Parameters
    ----------
    ticks : Ticks
        Recorded load.
    rows : tuple of (int, int)
        From which row on, and before which one to stop.
    where : Where
        The placement.
    pace : Pace
        How to go.
    smoothed : Smoothed
        Kept up to date, the last tick's load included.

    Returns
    -------
    int
        The row, or the one to stop before; rows up to it, itself included, are measured.
    """
    at, talk, table = where.standing, ticks.talk, ticks.table
    source, target, hops, was = talk.source, talk.target, where.laid.hops, where.recorded.hops
    for row in range(*rows):
        tps, recorded = ticks.tps[row], ticks.cpu_cores[row]
        cores, between_nodes, between_workers, total = load(
            source, target, tps, recorded, hops, was, pace.cost
        )
        table[row, 2], table[row, 3], table[row, 4] = between_nodes, between_workers, total
        used = worker_sums(at.place, cores, len(pace.rules.node_of)) / pace.rules.capacity_cores
        table[row, 5] = used.max()
        table[row, 6] = (used > pace.over_frac).sum() * ticks.span_s[row]
        _smooth(tps, pace.ewma, smoothed.tps)
        _smooth(cores, pace.ewma, smoothed.cpu_cores)
        if ticks.asks[row]:
            now = Load(talk, smoothed.tps, smoothed.cpu_cores)
            rests = where.rests_until_s > ticks.now_s[row]
            if not where.looks or not is_still(now, pace.rules, at, rests):
                return row
    return rows[1]


@compiled
def _smooth(new: NDArray[np.floating], ewma: float, smoothed: Floats) -> None:
    for k in range(len(smoothed)):
        smoothed[k] = ewma * new[k] + (1 - ewma) * smoothed[k]

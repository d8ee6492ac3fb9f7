"""Improves a placement executor by executor, never filling a place above its room.

Passes after C. M. Fiduccia and R. M. Mattheyses, "A linear-time heuristic for improving network
partitions", DAC 1982: move the best executor, gain or loss, each at most once, and keep the best
prefix. Ours differ in that places are many and have hard room, that staying at today's place earns
the price of a move, and that gains are looked up in a table, not in buckets, since traffic is no
small whole number.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from controller.core.classify import TOLERANCE_CORES
from controller.core.cluster import Floats, Ints
from controller.policies.partition.problem import Graph

# A pass gives up after this many moves without a new best, or after this share of the executors if
# that is more. It must be enough to carry a group of executors that gain only together.
PATIENCE = 60
PATIENCE_FRAC = 0.02
MAX_PASSES = 12
# Most executors in a pass that try to change places, as their better place is full.
EXCHANGES = 120
# Rows whose best place is looked for at once, so that the table is never copied whole.
ROWS = 2000
# Gains below this share of all traffic are rounding noise.
TIE = 1e-9


@dataclass(frozen=True, slots=True, eq=False)
class Level:
    """One level of places, nodes or workers, and which executors may be where."""

    graph: Graph
    cores: Floats  # (E,), CPU of each executor
    free: NDArray[np.bool_]  # (E,), which executors may move
    home: Ints  # (E,), today's place; -1 if it is none of these
    group_of: Ints  # (P,), of each place; the workers of a node are a group
    is_open: NDArray[np.bool_]  # (P,), which places executors may move to
    room_cores: Floats  # (P,), how much a place may hold
    weight_group: float  # what traffic between groups counts
    weight_place: float  # what traffic between places counts
    price_tps: float  # what an executor costs that is not at home


def refine(level: Level, place: Ints) -> Ints:
    """Empty places that are too full as far as possible, then lower the cost.

    Executors that are not free stay where `place` has them. No place of the answer is above its
    room that was not above it before, and none by more; among such placements the cost is not above
    that of the repaired start. A pass costs O(moves · degree · P).
    """
    table = _Table(level, place)
    table.repair()
    for _ in range(MAX_PASSES):
        if table.move_pass() + table.exchange_pass() <= table.noise_tps:
            break
    return table.place


class _Table:
    """A placement, and for every executor and place the traffic that would not cross there."""

    def __init__(self, level: Level, place: Ints) -> None:
        self.level = level
        self.place = place.copy()
        places = len(level.group_of)
        self.load = np.bincount(place, weights=level.cores, minlength=places).astype(np.float64)
        groups = int(level.group_of.max(initial=0)) + 1
        self.members = [np.flatnonzero(level.group_of == g) for g in range(groups)]
        by_group = level.graph.with_places(level.group_of[place], groups)
        self.value = level.weight_group * by_group[:, level.group_of]
        if level.weight_place:
            self.value += level.weight_place * level.graph.with_places(place, places)
        at_home = np.flatnonzero(level.home >= 0)
        self.value[at_home, level.home[at_home]] += level.price_tps
        self.noise_tps = TIE * max(float(level.graph.tps.sum()), 1.0)

    def move_pass(self) -> float:
        """Make the best move again and again, then undo all after the best moment; gives the gain.

        Each executor moves once at most. A move that loses is made, too: those after it may gain
        more.
        """
        locked = ~self.level.free
        gain, to = self.best(np.flatnonzero(~locked))
        trail: list[tuple[int, int]] = []
        total = best = 0.0
        kept = 0
        patience = max(PATIENCE, int(PATIENCE_FRAC * len(locked)))
        while len(trail) - kept <= patience and gain.size:
            e = int(np.argmax(gain))
            if gain[e] == -np.inf:
                break
            if not self.fits(e, int(to[e])):
                # The place has filled up since it was found to be the best.
                self.look_again(np.array([e]), gain, to)
                continue
            total += float(gain[e])
            trail.append((e, int(self.place[e])))
            self.move(e, int(to[e]))
            locked[e], gain[e] = True, -np.inf
            peers = self.level.graph.peers[self.level.graph.row(e)]
            self.look_again(peers[~locked[peers]], gain, to)
            if total > best + self.noise_tps:
                best, kept = total, len(trail)
        for e, source in reversed(trail[kept:]):
            self.move(e, source)
        return best

    def exchange_pass(self) -> float:
        """Bring executors to full places where another executor makes way; gives the gain."""
        gain, to = self.best(np.flatnonzero(self.level.free), full=True)
        falling = np.argsort(-gain, kind="stable")[:EXCHANGES]
        total = 0.0
        for e in falling[gain[falling] > self.noise_tps]:
            total += self.exchange(int(e), int(to[e]))
        return total

    def exchange(self, e: int, p: int) -> float:
        """Move e to p, and if p is full another away from it, where they gain; gives the gain."""
        source = int(self.place[e])
        if source == p:
            return 0.0
        first = float(self.value[e, p] - self.value[e, source])
        if first <= self.noise_tps:
            return 0.0
        self.move(e, p)
        excess = self.load[p] - self.level.room_cores[p] - TOLERANCE_CORES
        if excess <= 0:
            return first
        others = self.level.free & (self.place == p) & (self.level.cores >= excess)
        others[e] = False
        gain, to = self.best(np.flatnonzero(others))
        f = int(np.argmax(gain))
        if first + gain[f] <= self.noise_tps:
            self.move(e, source)
            return 0.0
        second = float(gain[f])
        self.move(f, int(to[f]))
        return first + second

    def repair(self) -> None:
        """Empty places that are too full, by the moves that lose least per core of the excess."""
        stuck = np.zeros(len(self.load), dtype=np.bool_)
        while True:
            excess = np.where(stuck, 0.0, self.load - self.level.room_cores)
            p = int(np.argmax(excess))
            if excess[p] <= TOLERANCE_CORES:
                return
            on_it = np.flatnonzero(self.level.free & (self.place == p) & (self.level.cores > 0))
            gain, to = self.best(on_it)
            if gain.max() == -np.inf:
                stuck[p] = True
                continue
            relief = np.minimum(self.level.cores[on_it], excess[p])
            e = int(on_it[np.argmax(gain[on_it] / relief)])
            self.move(e, int(to[e]))

    def best(self, rows: Ints, *, full: bool = False) -> tuple[Floats, Ints]:
        """Find the best other place of some executors; `full` places count, too, if asked for."""
        gain = np.full(len(self.place), -np.inf)
        to = np.zeros(len(self.place), dtype=np.int64)
        for first in range(0, len(rows), ROWS):
            self.look_again(rows[first : first + ROWS], gain, to, full=full)
        return gain, to

    def look_again(self, rows: Ints, gain: Floats, to: Ints, *, full: bool = False) -> None:
        """Renew the best place of some executors in `gain` and `to`."""
        if not rows.size:
            return
        level, at = self.level, self.place[rows]
        load = 0.0 if full else self.load
        fits = load + level.cores[rows, None] <= level.room_cores + TOLERANCE_CORES
        fits &= level.is_open | (level.home[rows, None] == np.arange(len(level.is_open)))
        value = np.where(fits, self.value[rows], -np.inf)
        every = np.arange(len(rows))
        value[every, at] = -np.inf
        best = np.argmax(value, axis=1)
        gain[rows] = value[every, best] - self.value[rows, at]
        to[rows] = best

    def fits(self, e: int, p: int) -> bool:
        left = self.level.room_cores[p] - self.load[p] + TOLERANCE_CORES
        return bool(self.level.cores[e] <= left)

    def move(self, e: int, p: int) -> None:
        """Move e to p, and renew the table's rows of the executors it talks to."""
        level, q = self.level, int(self.place[e])
        row = level.graph.row(e)
        peers, tps = level.graph.peers[row], level.graph.tps[row]
        left, joined = int(level.group_of[q]), int(level.group_of[p])
        if left != joined and level.weight_group:
            change = level.weight_group * tps[:, None]
            self.value[peers[:, None], self.members[left]] -= change
            self.value[peers[:, None], self.members[joined]] += change
        if level.weight_place:
            self.value[peers, q] -= level.weight_place * tps
            self.value[peers, p] += level.weight_place * tps
        self.place[e] = p
        self.load[q] -= level.cores[e]
        self.load[p] += level.cores[e]

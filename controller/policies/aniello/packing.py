"""Packs items that talk to each other into bins, those that talk most first: the greedy of 002.

Not in the paper's text as we have it; the rules come from the authors' code.
"""

from itertools import product
from math import inf

import numpy as np
from numpy.typing import NDArray

from controller.core.cluster import Floats, Ints, Traffic
from controller.core.view.view import rounded

# Loads and traffic count in units of the largest; sums that differ by less are a tie.
TIE = 1e-9


class Packing:
    """Items in bins while the greedy runs: executors in workers, then workers on nodes.

    Every row of the traffic is a pair of different items of its own. `most` items and `room` load
    fit each bin. `bin_of` has each item's bin, -1 while it is in none; `size` the items in each
    bin. Load is in units of the largest item, traffic in units of the largest pair.
    """

    def __init__(self, load: Floats, traffic: Traffic, most: Ints, room: Floats) -> None:
        heaviest = float(load.max(initial=0.0)) or 1.0
        self.load, self.room, self.most = load / heaviest, room / heaviest, most
        self.source, self.target = traffic.source, traffic.target
        self.tps = traffic.tps / (traffic.tps.max(initial=0.0) or 1.0)
        self.bin_of = np.full(len(load), -1, dtype=np.int64)
        self.size = np.zeros(len(most), dtype=np.int64)
        self.filled = np.zeros(len(most))
        ends = np.concatenate([self.source, self.target])
        by_item = np.argsort(ends, kind="stable")
        splits = np.searchsorted(ends[by_item], np.arange(1, max(len(load), 1)))
        self.peers = np.split(np.concatenate([self.target, self.source])[by_item], splits)
        self.peer_tps = np.split(np.concatenate([self.tps, self.tps])[by_item], splits)

    def fits(self, count: int, load: float) -> NDArray[np.bool_]:
        return (self.size + count <= self.most) & (self.filled + load <= self.room + TIE)

    def emptiest(self, count: int, load: float) -> int | None:
        """Find the first of the least loaded bins where that fits; None if there is none."""
        fitting = np.flatnonzero(self.fits(count, load))
        return int(fitting[np.argmin(rounded(self.filled[fitting]))]) if fitting.size else None

    def put(self, item: int, to: int) -> None:
        """Move an item into a bin; -1 is none."""
        home = self.bin_of[item]
        for bin_, sign in ((home, -1), (to, 1)):
            if bin_ >= 0:
                self.size[bin_] += sign
                self.filled[bin_] += sign * self.load[item]
        self.bin_of[item] = to

    def kept(self, item: int, at: int) -> float:
        """Add up an item's traffic with what is in a bin."""
        return float(self.peer_tps[item][self.bin_of[self.peers[item]] == at].sum())

    def kept_at_home(self) -> Floats:
        """Add up each item's traffic with the rest of its bin."""
        together = self.bin_of[self.source] == self.bin_of[self.target]
        ends = np.concatenate([self.source[together], self.target[together]])
        weights = np.tile(self.tps[together], 2)
        return np.bincount(ends, weights, minlength=len(self.load)).astype(np.float64)


def gather(packing: Packing) -> int | None:
    """Place all items, the pairs that talk most first; gives an item that fits nowhere, which ends
    it.

    Ties go by the ids. The pairs never meet an item without traffic; the authors leave it to
    Storm's even scheduler, here it comes last, to the least loaded bin where it fits (our choice).
    """
    falling = np.lexsort((packing.target, packing.source, -rounded(packing.tps)))
    for i in falling:
        stuck = _place_pair(packing, int(packing.source[i]), int(packing.target[i]))
        if stuck is not None:
            return stuck
    return _place_alone(packing, np.flatnonzero(packing.bin_of < 0).tolist())


def _place_pair(packing: Packing, one: int, other: int) -> int | None:
    homes = sorted({int(packing.bin_of[one]), int(packing.bin_of[other])} - {-1})
    loads = (float(packing.load[one]), float(packing.load[other]))
    if homes:
        # Chosen while both are still where they are, as in the authors' code.
        third = packing.emptiest(1, max(loads))
        choice = homes if third is None or third in homes else [*homes, third]
        return _place_again(packing, one, other, choice)
    both = packing.emptiest(2, sum(loads))
    if both is None:
        return _place_alone(packing, [one, other])
    packing.put(one, both)
    packing.put(other, both)
    return None


def _place_alone(packing: Packing, items: list[int]) -> int | None:
    for item in items:
        to = packing.emptiest(1, float(packing.load[item]))
        if to is None:
            return item
        packing.put(item, to)
    return None


def _place_again(packing: Packing, one: int, other: int, choice: list[int]) -> int | None:
    """Try both in every way over at most three bins; keep what leaves least traffic between."""
    newcomer = one if packing.bin_of[one] < 0 else other
    packing.put(one, -1)
    packing.put(other, -1)
    load_one, load_other = float(packing.load[one]), float(packing.load[other])
    fits_one, fits_other = packing.fits(1, load_one), packing.fits(1, load_other)
    fits_both = packing.fits(2, load_one + load_other)
    kept_one = {at: packing.kept(one, at) for at in choice}
    kept_other = {at: packing.kept(other, at) for at in choice}
    joined = float(packing.peer_tps[one][packing.peers[one] == other].sum())
    best, most_kept = None, -inf
    for a, b in product(choice, choice):
        kept = kept_one[a] + kept_other[b] + (joined if a == b else 0.0)
        fits = fits_both[a] if a == b else fits_one[a] and fits_other[b]
        if fits and kept > most_kept + TIE:
            best, most_kept = (a, b), kept
    if best is None:
        return newcomer
    packing.put(one, best[0])
    packing.put(other, best[1])
    return None


def occupy(packing: Packing, target: int) -> None:
    """Bring single items into empty bins until `target` bins are used; fewer if no item may go.

    Each empty bin in turn gets, of the items that are not alone, the one that loses least traffic.
    """
    for empty in np.flatnonzero((packing.size == 0) & (packing.most > 0)):
        if (packing.size > 0).sum() >= target:
            return
        may = (packing.size[packing.bin_of] > 1) & (packing.load <= packing.room[empty] + TIE)
        lost = np.where(may, packing.kept_at_home(), np.inf)
        if may.any():
            packing.put(int(np.argmin(rounded(lost))), int(empty))

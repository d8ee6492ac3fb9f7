"""The two schedulers of 002, by the topology alone (section 3.1) and by traffic (section 3.2).

Offline, executors go next to those that feed them. The text gives the idea and the formulas; how
slots are filled one by one is read in the authors' code. Online, executors that exchange tuples
come together, first into workers, then onto nodes. Both are one greedy that packs items with
traffic into bins, those with the most first. Our copy of the paper ends in the first sentence of
its phase 1. The model and its constraints are in it, the rules of the two phases are not. They come
from the authors' published code (github.com/leonardoaniello/storm-adaptive-schedulers), of which
only the facts are used. A rule that is in neither is marked as a choice.
"""

from collections import deque
from itertools import product
from math import ceil, floor, inf

import numpy as np
from numpy.typing import NDArray

from controller.core.cluster import Cluster, Floats, Ints, LoadSnapshot, Traffic
from controller.core.decision import Decision, Outcome
from controller.core.limits import Limits
from controller.core.view import rounded
from controller.policies.component_graph import (
    component_graph,
    executors_of,
    feeders,
    left_out,
    linearised,
)
from controller.policies.even import sort_slots
from controller.policies.options import Aniello
from controller.policies.placement import as_decision
from controller.policies.profiles import NONE, Profiles

# Loads and traffic count in units of the largest; sums that differ by less are a tie.
TIE = 1e-9
# Shares times counts miss whole numbers in the last digits.
_SLACK = 1e-9


def limit_formula(alpha: float, executors: int, workers: int) -> float:
    """Compute M, the most executors of a worker, as the formula has it: not always a whole number.

    002, section 3: M = ⌈E/W⌉ + α·(E - W + 1 - ⌈E/W⌉), α from 0 to 1, W being the workers used,
    min(E, W).
    """
    used = max(min(executors, workers), 1)
    least, most = ceil(executors / used), executors - used + 1
    return least + alpha * (most - least)


def executor_limit(alpha: float, executors: int, workers: int) -> int:
    """Compute M as a count: the formula rounded up, as the authors' code does."""
    return ceil(limit_formula(alpha, executors, workers) - _SLACK)


def offline_groups(snapshot: LoadSnapshot, workers: int, options: Aniello) -> Ints:
    """Share executors out among abstract slots, at most one slot an executor; gives each one's
    slot.

    Neither load nor traffic counts. Components in the order of `linearised`. The executors of each
    go round robin over the slots below M that hold an executor of a component that directly feeds
    it. When these are full they go over the other slots. From component i ≥ ⌊β·C⌋ on, counted from
    0 (the paper: i > ⌊β·C⌋ from 1), the slots still empty come first. If β is so large that few
    executors are left by then, slots stay empty; the text allows it. System components are not in
    the text: they come last, as if nothing fed them.
    """
    graph, executors = component_graph(snapshot), executors_of(snapshot)
    order = linearised(graph)
    limit = executor_limit(options.alpha, len(snapshot.executors), workers)
    group = np.full(len(snapshot.executors), -1, dtype=np.int64)
    size = [0] * workers
    system = [name for name in executors if name not in graph]
    for i, name in enumerate([*order, *system]):
        sources = [e for feeder in feeders(graph, name) for e in executors[feeder]]
        below = [slot for slot in range(workers) if size[slot] < limit]
        by_force = i >= floor(options.beta * len(order) + _SLACK)
        first, then = _rings(below, set(group[sources].tolist()), size, by_force)
        for executor in executors[name]:
            ring = first or then
            group[executor] = slot = ring.popleft()
            size[slot] += 1
            if size[slot] < limit:
                ring.append(slot)
    return group


def _rings(
    below: list[int], feeding: set[int], size: list[int], by_force: bool
) -> tuple[deque[int], deque[int]]:
    """Split slots into those to fill first and those to fill then."""
    first = deque(slot for slot in below if slot in feeding)
    then = [slot for slot in below if slot not in feeding]
    if by_force:
        # One by one to the front, so the last empty slot ends up first.
        first.extendleft(slot for slot in then if not size[slot])
        then = [slot for slot in then if size[slot]]
    return first, deque(then)


def offline_place(cluster: Cluster, snapshot: LoadSnapshot, options: Aniello) -> Ints:
    """Place by the offline scheduler: the slots of `offline_groups` go to the nodes round robin."""
    used = min(len(snapshot.executors), len(cluster.workers))
    return sort_slots(cluster)[offline_groups(snapshot, used, options)]


def aniello_offline(
    cluster: Cluster, snapshot: LoadSnapshot, limits: Limits, options: Aniello
) -> Decision:
    """Decide for the placement of the offline scheduler of 002.

    All workers are slots the topology may use. It knows no load: the limits are not used.
    """
    place = offline_place(cluster, snapshot, options)
    why = f"offline scheduler (002), alpha {options.alpha:g}, beta {options.beta:g}"
    return as_decision(cluster, snapshot, place, f"{why}{left_out(snapshot)}")


def load_hz(
    cluster: Cluster, snapshot: LoadSnapshot, profiles: Profiles = NONE
) -> tuple[Floats, Floats]:
    """Measure executors, shape (E,), and nodes, shape (N,), by clock cycles/s: so unlike nodes
    compare.

    002, section 3.2.1: 10 % of 1 GHz are 100 MHz, which are 5 % of 2 GHz. An executor's load is of
    the node where it was measured; a node without workers has 0. Unless the speed of every node
    with workers is known, all count alike and both are in cores.
    """
    slots = np.bincount(cluster.node_of, minlength=len(cluster.nodes))
    cores = np.bincount(cluster.node_of, cluster.capacity_cores, minlength=len(cluster.nodes))
    machines = [profiles.machines.get(node) for node in cluster.nodes]
    speed = np.array([machine.speed_hz if machine else 0.0 for machine in machines])
    known = (speed > 0) & (cores > 0)
    if not known[slots > 0].all():
        return snapshot.cpu_cores, cores.astype(np.float64)
    clock = np.divide(speed, cores, out=np.zeros_like(speed), where=known)
    return snapshot.cpu_cores * clock[cluster.node_of[snapshot.place]], clock * cores


def share_out(load: Floats, traffic: Traffic, workers: int, options: Aniello) -> Ints | int:
    """Share executors out among the abstract workers used, min(E, W) of them (phase 1).

    Gives each executor's worker, none of them empty; or an executor that fits nowhere, which needs
    a `gamma`. Directed pairs by falling traffic. At the end each empty worker gets the executor, of
    those not alone, that costs least traffic: constraint (2) of the paper.
    """
    most = np.full(workers, executor_limit(options.alpha, len(load), workers))
    mean = float(load.sum()) / max(workers, 1)
    room = np.full(workers, np.inf if options.gamma is None else options.gamma * mean)
    packing = Packing(load, traffic, most, room)
    stuck = gather(packing)
    if stuck is not None:
        return stuck
    occupy(packing)
    return packing.bin_of


def spread_out(load: Floats, traffic: Traffic, cluster: Cluster, room: Floats) -> Ints | int:
    """Put workers onto nodes (phase 2), the same greedy one level up.

    Gives the node of each worker; or a worker that fits no node. Traffic is between workers, both
    directions added; `room` is the capacity of each node, B of the paper, in the unit of `load`.
    Only slots and capacity bind.
    """
    slots = np.bincount(cluster.node_of, minlength=len(cluster.nodes))
    packing = Packing(load, traffic, slots, room)
    stuck = gather(packing)
    return packing.bin_of if stuck is None else stuck


def online_place(
    cluster: Cluster,
    snapshot: LoadSnapshot,
    limits: Limits,
    options: Aniello,
    profiles: Profiles = NONE,
) -> Ints | str:
    """Place by the online scheduler, on exactly min(E, W) workers; or name what does not fit.

    The authors' code does not reschedule then, nor do we. `high_frac` of a node's speed is its
    capacity. The slots of a node are taken in the order of their ids (our choice).
    """
    load, speed = load_hz(cluster, snapshot, profiles)
    workers = min(len(snapshot.executors), len(cluster.workers))
    alone = np.arange(len(snapshot.executors))
    group = share_out(load, _between(snapshot.traffic, alone), workers, options)
    if isinstance(group, int):
        return f"{_names(snapshot, [group])} fits no worker below gamma times the mean load"
    group_load = np.bincount(group, load, minlength=workers).astype(np.float64)
    both_ways = _both_ways(_between(snapshot.traffic, group))
    node = spread_out(group_load, both_ways, cluster, limits.high_frac * speed)
    if isinstance(node, int):
        together = np.flatnonzero(group == node).tolist()
        what = f"the worker of {_names(snapshot, together)}"
        return f"{what} fits no node with a free slot below {limits.high_frac:g} of its CPU"
    slot_of = np.zeros(workers, dtype=np.int64)
    for n in range(len(cluster.nodes)):
        here = np.flatnonzero(node == n)
        slot_of[here] = np.flatnonzero(cluster.node_of == n)[: len(here)]
    return slot_of[group]


def _between(traffic: Traffic, group: Ints) -> Traffic:
    """Add up what goes from one group to another."""
    source, target = group[traffic.source], group[traffic.target]
    apart = source != target
    return Traffic.build(source[apart], target[apart], traffic.tps[apart])


def _both_ways(traffic: Traffic) -> Traffic:
    lower = np.minimum(traffic.source, traffic.target)
    return Traffic.build(lower, np.maximum(traffic.source, traffic.target), traffic.tps)


def _names(snapshot: LoadSnapshot, executors: list[int]) -> str:
    names = [snapshot.executors[e] for e in executors[:5]]
    more = f" and {len(executors) - 5} more" if len(executors) > 5 else ""
    return f"{', '.join(names)}{more} with {snapshot.cpu_cores[executors].sum():.3g} cores"


def aniello_online(
    cluster: Cluster,
    snapshot: LoadSnapshot,
    limits: Limits,
    options: Aniello,
    profiles: Profiles = NONE,
) -> Decision:
    """Decide for the placement of the online scheduler of 002.

    All its moves, whether they gain or not: when to follow it is the matter of `triggers`.
    NO_LOW_WORKER if the load fits no node.
    """
    place = online_place(cluster, snapshot, limits, options, profiles)
    if isinstance(place, str):
        return Decision(Outcome.NO_LOW_WORKER, f"resources are missing: {place}")
    why = f"online scheduler (002), alpha {options.alpha:g}"
    return as_decision(cluster, snapshot, place, why)


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

    Ties go by the ids. The pairs never meet an item without traffic. The authors leave it to
    Storm's even scheduler. Here it comes last, to the least loaded bin where it fits (our choice).
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


def occupy(packing: Packing) -> None:
    """Bring single items into empty bins until all are used; fewer if no item may go.

    Each empty bin in turn gets, of the items that are not alone, the one that loses least traffic.
    """
    for empty in np.flatnonzero((packing.size == 0) & (packing.most > 0)):
        may = (packing.size[packing.bin_of] > 1) & (packing.load <= packing.room[empty] + TIE)
        lost = np.where(may, packing.kept_at_home(), np.inf)
        if may.any():
            packing.put(int(np.argmin(rounded(lost))), int(empty))

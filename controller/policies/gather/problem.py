"""The problem of a placement: who talks to whom, how much fits where, the cost of today."""

import math
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from controller.core.classify import TOLERANCE_CORES, Limits, worker_cpu_cores
from controller.core.cluster import Cluster, Floats, Ints, LoadSnapshot, Traffic
from controller.core.view.view import SURE
from migration.settings import setting

# Below twice the gain and the price, ways under noise were many and broke off: decision 0065.
JITTER_TIMES = 2.0
# With 10, one of ten keyed starts ended 5.2 % above the best known placement; with 16 none by 4 %.
STILL_EFFORT = 16
# Gains below this share of all traffic are rounding noise.
TIE = 1e-9
# Of a worker's load: what is measured is no more exact than this, even where no variance is known.
LOAD_NOISE_FRAC = 0.01


@dataclass(frozen=True, slots=True)
class TargetOptions:
    """The options of `gather` for targets, besides the limits."""

    gain_frac: float = setting("target.gain")  # δ, of what today's placement costs
    move_price_frac: float = setting("target.move.price")  # λ times E, of the same
    fill_frac: float = setting("target.fill")  # of the upper threshold
    # Whether the way to a target may cost any more than to stay, on average over its placements;
    # else by no more than its end gains. While loads jitter it may end anywhere: a worker gets hot,
    # or an executor no longer fits.
    detours: bool = False
    effort: int = 1  # how many times as long annealing may take as it has to

    @property
    def on_still_loads(self) -> "TargetOptions":
        """The options where loads stand still, as in a file.

        Workers are filled up to the threshold, ways may cost more than to stay, and as nothing
        makes a placement look better than it is, the best is worth a longer search.
        """
        return replace(self, fill_frac=1.0, detours=True, effort=STILL_EFFORT)

    @property
    def on_jittering_loads(self) -> "TargetOptions":
        """The options where loads jitter: twice the gain and price, for some finds are noise."""
        times = JITTER_TIMES
        gain, price = times * self.gain_frac, times * self.move_price_frac
        return replace(self, gain_frac=gain, move_price_frac=price)


@dataclass(frozen=True, slots=True, eq=False)
class Graph:
    """Traffic in tuples/s, both directions added, as rows of peers.

    The row of an executor begins at its number in `first`, shape (E + 1,). It has those that the
    executor talks to, never itself.
    """

    first: Ints  # (E + 1,)
    peers: Ints  # (K,)
    tps: Floats  # (K,)

    @classmethod
    def of(cls, traffic: Traffic, count: int) -> "Graph":
        other = traffic.source != traffic.target
        ends = np.concatenate([traffic.source[other], traffic.target[other]])
        peers = np.concatenate([traffic.target[other], traffic.source[other]])
        weights = np.concatenate([traffic.tps[other]] * 2)
        pairs, row = np.unique(ends * count + peers, return_inverse=True)
        first = np.searchsorted(pairs, np.arange(count + 1) * count)
        tps = np.bincount(row, weights=weights, minlength=len(pairs)).astype(np.float64)
        return cls(first, pairs % count, tps)

    def row(self, executor: int) -> slice:
        """Tell where an executor's peers are in `peers` and `tps`."""
        return slice(int(self.first[executor]), int(self.first[executor + 1]))


@dataclass(frozen=True, slots=True, eq=False)
class Problem:
    """Everything a search for a placement looks at; placements are the worker of each executor."""

    graph: Graph
    start: Ints  # (E,), today's worker of each executor
    cores: Floats  # (E,), CPU of each executor
    cores_var: Floats  # (E,), variance of `cores`; 0 where it is not known
    free: NDArray[np.bool_]  # (E,), not pinned, and not too big for every open worker
    node_of: Ints  # (W,), node of each worker
    nodes: int
    is_open: NDArray[np.bool_]  # (W,), which workers executors may move to
    room_cores: Floats  # (W,), what a target may fill
    high_cores: Floats  # (W,), from where on a worker is high
    full_cores: Floats  # (W,), up to where an exchange may fill it; above that only if it is high
    weight_node: float
    weight_worker: float
    price_tps: float  # what one move costs (λ)
    total_tps: float
    today_tps: float  # what today's placement costs
    effort: int  # as in `TargetOptions`

    @classmethod
    def of(
        cls, cluster: Cluster, snapshot: LoadSnapshot, limits: Limits, options: TargetOptions
    ) -> "Problem":
        """Put together what concerns the search.

        A worker that is fuller today than a target may fill it, but not high, may stay so. Where
        all open workers together are too full, one that is high may get fuller by the noise of its
        load: executors of measured sizes are never quite alike, and on full workers none could ever
        take another's place.
        """
        high = limits.high_frac * cluster.capacity_cores
        load = worker_cpu_cores(cluster, snapshot)
        count, total = len(snapshot.executors), snapshot.traffic.total_tps
        biggest = float(np.max(high, where=cluster.is_open, initial=0.0))
        graph = Graph.of(snapshot.traffic, count)
        weights = limits.weight_node, limits.weight_worker
        today = _cost_tps(graph, snapshot.place, cluster.node_of, weights)
        var = np.zeros(count) if snapshot.cpu_var is None else snapshot.cpu_var
        crowded = load[cluster.is_open].sum() > high[cluster.is_open].sum() + TOLERANCE_CORES
        stays_high = crowded & (load > high + TOLERANCE_CORES)
        full = np.where(stays_high, load + _noise_cores(snapshot.place, load, var), high)
        return cls(
            graph=graph,
            start=snapshot.place,
            cores=snapshot.cpu_cores,
            cores_var=var,
            free=snapshot.is_movable & (snapshot.cpu_cores <= biggest + TOLERANCE_CORES),
            node_of=cluster.node_of,
            nodes=len(cluster.nodes),
            is_open=cluster.is_open,
            room_cores=np.maximum(options.fill_frac * high, np.minimum(load, high)),
            high_cores=high,
            full_cores=full,
            weight_node=limits.weight_node,
            weight_worker=limits.weight_worker,
            price_tps=options.move_price_frac * today / max(count, 1),
            total_tps=total,
            today_tps=today,
            effort=options.effort,
        )

    def load_cores(self, place: Ints) -> Floats:
        sums = np.bincount(place, weights=self.cores, minlength=len(self.node_of))
        return sums.astype(np.float64)

    def excess_cores(self, place: Ints) -> float:
        """Add up by how many cores workers are high."""
        return self.excess_of(self.load_cores(place))

    def excess_of(self, load_cores: Floats) -> float:
        """Add up by how many cores workers with these loads are high.

        One that may get fuller by its noise counts as today unless its load differs by more, and it
        is infinite if that were fuller by more. Rounded: loads may be added up in several orders.
        """
        today = self.load_cores(self.start)
        stays_high = self.full_cores > self.high_cores
        if (stays_high & (load_cores > self.full_cores + TOLERANCE_CORES)).any():
            return math.inf
        noise = _noise_cores(self.start, today, self.cores_var) + TOLERANCE_CORES
        same = stays_high & (load_cores >= today - noise)
        over = np.where(same, today, load_cores) - self.high_cores
        return round(float(over[over > TOLERANCE_CORES].sum()), 9)

    def cost_tps(self, place: Ints) -> float:
        """Weigh the traffic between nodes and between workers; the price of moves is not in it."""
        weights = self.weight_node, self.weight_worker
        return _cost_tps(self.graph, place, self.node_of, weights)

    def apart(self, place: Ints, source: Ints, target: Ints) -> Floats:
        """Compute what a tuple of each of these pairs counts."""
        weights = self.weight_node, self.weight_worker
        return _apart(place[source], place[target], self.node_of, weights)

    def moves(self, place: Ints) -> int:
        return int((place != self.start).sum())


def _noise_cores(place: Ints, load_cores: Floats, cores_var: Floats) -> Floats:
    var = np.bincount(place, cores_var, len(load_cores))
    return np.maximum(SURE * np.sqrt(var), LOAD_NOISE_FRAC * load_cores)


def _cost_tps(graph: Graph, place: Ints, node_of: Ints, weights: tuple[float, float]) -> float:
    owner = np.repeat(np.arange(len(place)), np.diff(graph.first))
    apart = _apart(place[owner], place[graph.peers], node_of, weights)
    # Every pair is there twice, once from each end.
    return float((graph.tps * apart).sum()) / 2


def _apart(one: Ints, other: Ints, node_of: Ints, weights: tuple[float, float]) -> Floats:
    weight_node, weight_worker = weights
    apart = weight_worker * (one != other) + weight_node * (node_of[one] != node_of[other])
    return np.asarray(apart, dtype=np.float64)

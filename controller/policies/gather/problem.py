"""The problem of a placement: who talks to whom, how much fits where, the cost of today."""

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from controller.core.cluster import Cluster, Floats, Ints, LoadSnapshot, Traffic
from controller.core.distance import Distance
from controller.core.figures import LEAST
from controller.core.fit import Fit
from controller.core.limits import Limits
from controller.core.reserve import Reserve
from controller.policies.options import TargetOptions

# Gains below this share of all traffic are rounding noise.
TIE = 1e-9


@dataclass(frozen=True, slots=True, eq=False)
class Graph:
    """Traffic in tuples/s, both directions added, as rows of peers.

    The row of an executor begins at its number in `first`, shape (E + 1,). It has those that the
    executor talks to, never itself.
    """

    first: Ints  # (E + 1,)
    owner: Ints  # (K,), the executor whose row it is
    peers: Ints  # (K,)
    tps: Floats  # (K,)
    counted_tps: Floats  # (K,), the same, or in bytes where links bind, as times the mean tuple
    hop_tps: Floats  # (K,), as in `HopRates`

    @classmethod
    def of(
        cls,
        traffic: Traffic,
        count: int,
        size: Floats | None = None,
        hop_tps: Floats | None = None,
    ) -> "Graph":
        """Index traffic; `size` is (P,), what a tuple counts, `hop_tps` (P,) as in `HopRates`."""
        other = traffic.source != traffic.target
        ends = np.concatenate([traffic.source[other], traffic.target[other]])
        peers = np.concatenate([traffic.target[other], traffic.source[other]])
        pairs, row = np.unique(ends * count + peers, return_inverse=True)
        first = np.searchsorted(pairs, np.arange(count + 1) * count)

        def summed(rates: Floats) -> Floats:
            weights = np.concatenate([rates[other]] * 2)
            return np.bincount(row, weights=weights, minlength=len(pairs)).astype(np.float64)

        tps = summed(traffic.tps)
        counted_tps = tps if size is None else summed(traffic.tps * size)
        on_hops = tps if hop_tps is None else summed(hop_tps)
        return cls(first, pairs // count, pairs % count, tps, counted_tps, on_hops)

    def row(self, executor: int) -> slice:
        """Give the range of an executor's peers in `peers` and the rates."""
        return slice(int(self.first[executor]), int(self.first[executor + 1]))

    def cost_tps(self, distance: Distance, place: Ints) -> float:
        # Every pair is there twice, once from each end.
        return distance.cost_tps(place[self.owner], place[self.peers], self.counted_tps) / 2


@dataclass(frozen=True, eq=False)
class Problem:
    """Everything a search for a placement looks at; placements are the worker of each executor."""

    graph: Graph
    fit: Fit  # of today's placement
    free: NDArray[np.bool_]  # (E,), not pinned, and not too big for every open worker
    fill: Floats  # (W,), up to where a target may fill a worker
    full: Floats  # (W,), up to where an exchange may, as `Fit.most`
    distance: Distance
    price_tps: float  # what one move costs (λ)
    weights: Floats  # (E,), how a move of each counts among placements that are as good
    total_tps: float
    today_tps: float  # what today's placement costs
    effort: int  # as in `TargetOptions`
    reserve: Reserve

    @classmethod
    def of(
        cls,
        cluster: Cluster,
        snapshot: LoadSnapshot,
        limits: Limits,
        options: TargetOptions,
        input_tps: float | None = None,
    ) -> "Problem":
        """Put together what concerns the search.

        `input_tps` is up to where all traffic has to be able to grow; None: as far as today.

        A worker that is fuller today than a target may fill it, but not high, may stay so.
        """
        count, total = len(snapshot.executors), snapshot.traffic.total_tps
        growth = None if input_tps is None else input_tps / max(total, LEAST)
        reserve = Reserve.of(cluster, snapshot, limits, growth)
        fit = reserve.fit
        hop_tps = None if fit.traffic is None else fit.hop_rates.tps
        graph = Graph.of(snapshot.traffic, count, reserve.size, hop_tps)
        distance = Distance.of(cluster, limits)
        today = graph.cost_tps(distance, snapshot.place)
        return cls(
            graph=graph,
            fit=fit,
            free=snapshot.is_movable & fit.fits_if_empty,
            fill=fit.limit_or_used(options.fill_frac),
            full=fit.most,
            distance=distance,
            price_tps=options.move_price_frac * today / max(count, 1),
            weights=snapshot.weights_of(np.arange(count)),
            total_tps=total,
            today_tps=today,
            effort=options.effort,
            reserve=reserve,
        )

    @cached_property
    def pulls(self) -> tuple[tuple[Floats, bool], ...]:
        """What brings the executors of each row of the graph together, (K,), for a search.

        And whether it lets them stay on their nodes. The first is what counts. Where no link may be
        filled more, what is found by that may be refused. So others follow, as `Links.otherwise`,
        and what counts with all staying on their nodes.
        """
        counted, reserve = self.graph.counted_tps, self.reserve
        if self.fit.cluster.node_cores is None:
            return ((counted, False),)
        others = reserve.links.otherwise(in_bytes=reserve.links_bind)
        each = (Graph.of(one, len(self.start)).tps for one in others)
        return ((counted, False), *((tps, False) for tps in each), (counted, True))

    @property
    def start(self) -> Ints:
        """(E,), today's worker of each executor."""
        return self.fit.place

    @property
    def node_of(self) -> Ints:
        return self.fit.cluster.node_of

    @property
    def is_open(self) -> NDArray[np.bool_]:
        return self.fit.cluster.is_open

    @property
    def most_used(self) -> Floats:
        """(W,), what may be used where a way ends."""
        return self.fit.limit if self.fit.cluster.node_cores is None else self.fill

    @property
    def stays_high(self) -> NDArray[np.bool_]:
        """(W,), the workers that an exchange may fill above the limit."""
        return self.full > self.fit.limit

    def excess_at(self, place: Ints) -> float:
        return self.excess(self.fit.placed(place))

    def excess(self, fit: Fit) -> float:
        """Add up what is used above the limits of the workers, or of what a target may fill.

        Where workers share the CPU of their node, it is the latter.
        A worker that may get fuller by its noise counts as today while its load differs by no more.
        The excess is infinite if such a worker gets fuller by more.
        """
        stays_high = self.stays_high
        if not stays_high.any():
            return fit.excess_above(self.most_used)
        if (stays_high & fit.above(self.full)).any():
            return math.inf
        return fit.steadied(self.fit, stays_high).excess_above(self.most_used)

    def cost_tps(self, place: Ints) -> float:
        """Weigh the traffic between nodes and between workers; the price of moves is not in it.

        Where links bind, a tuple counts as much as its bytes.
        """
        return self.graph.cost_tps(self.distance, place)

    def gain_tps(self, place: Ints, executor: int, worker: int) -> float:
        """Compute by how much less, in weighted tuples/s, a placement costs after a move."""
        row = self.graph.row(executor)
        peers, tps = place[self.graph.peers[row]], self.graph.counted_tps[row]
        return self.distance.gain_tps(int(place[executor]), worker, peers, tps)

    def moves(self, place: Ints) -> int:
        return int((place != self.start).sum())

    def weight(self, place: Ints) -> float:
        """Add up the weights of the moves to a placement."""
        return float(self.weights[place != self.start].sum())

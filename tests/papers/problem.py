"""States the placement problem: what traffic costs between places, and how much they hold.

Axes: E executors, W places, N nodes, P pairs of executors that talk.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from controller.core.cluster import Cluster, Floats, Ints, LoadSnapshot
from controller.core.fit import TOLERANCE_CORES
from controller.core.limits import Limits


@dataclass(frozen=True, slots=True, eq=False)
class PlacementProblem:
    """Executors to place for the least cost.

    `one` and `other` are pairs of different executors, each pair once, and `tps` their traffic in
    both directions. `allowed` has where an executor may be. A tuple costs
    `weight_node` between nodes and `weight_place` between places, which those between nodes are
    too.
    """

    one: Ints  # (P,)
    other: Ints  # (P,)
    tps: Floats  # (P,)
    cpu_cores: Floats  # (E,), what an executor needs
    node_of: Ints  # (W,), index of each place's node
    place_cores: Floats  # (W,), what places hold
    node_cores: Floats  # (N,), what nodes hold
    allowed: NDArray[np.bool_]  # (E, W)
    weight_node: float
    weight_place: float

    @classmethod
    def of(cls, cluster: Cluster, snapshot: LoadSnapshot, limits: Limits) -> "PlacementProblem":
        """State it for the executors and workers of a snapshot.

        A worker holds `high_frac` of its capacity, a node what its workers hold. Pinned executors
        stay, the others stay or go to an open worker. The weights are those of `gather`.
        """
        traffic, count = snapshot.traffic, len(snapshot.executors)
        ends = np.sort(np.stack([traffic.source, traffic.target]), axis=0)
        pairs, back = np.unique(ends[0] * count + ends[1], return_inverse=True)
        tps = np.bincount(back, weights=traffic.tps, minlength=len(pairs)).astype(np.float64)
        one, other = pairs // count, pairs % count
        place_cores = limits.high_frac * cluster.capacity_cores
        own = np.zeros((count, len(cluster.workers)), dtype=np.bool_)
        own[np.arange(count), snapshot.place] = True
        return cls(
            one=one[one != other],
            other=other[one != other],
            tps=tps[one != other],
            cpu_cores=snapshot.cpu_cores,
            node_of=cluster.node_of,
            place_cores=place_cores,
            node_cores=np.bincount(
                cluster.node_of, weights=place_cores, minlength=len(cluster.nodes)
            ).astype(np.float64),
            allowed=own | (snapshot.is_movable[:, None] & cluster.is_open[None, :]),
            weight_node=limits.weight_node,
            weight_place=limits.weight_worker,
        )

    def cost_tps(self, place: Ints) -> float:
        """Add up what a placement costs, in weighted tuples/s."""
        return float((self.tps * self.distance()[place[self.one], place[self.other]]).sum())

    def distance(self) -> Floats:
        """Weigh what a tuple costs between every pair of places, shape (W, W)."""
        apart = ~np.eye(len(self.node_of), dtype=np.bool_)
        nodes = self.node_of[:, None] != self.node_of
        return np.asarray(self.weight_node * nodes + self.weight_place * apart)

    def fits(self, place: Ints) -> bool:
        """Check that a placement is allowed and nothing holds too much, rounding errors aside."""
        if not self.allowed[np.arange(len(place)), place].all():
            return False
        used = np.bincount(place, weights=self.cpu_cores, minlength=len(self.node_of))
        at_node = np.bincount(self.node_of, weights=used, minlength=len(self.node_cores))
        over_place = used > self.place_cores + TOLERANCE_CORES
        over_node = at_node > self.node_cores + TOLERANCE_CORES
        return not (over_place.any() or over_node.any())


def cheapest(problem: PlacementProblem) -> Ints | None:
    """Look at every placement there is for one that costs least; None if none fits.

    It takes some hundred bytes for each placement: for a handful of executors.
    """
    choices = [np.flatnonzero(row) for row in problem.allowed]
    every = np.stack([axis.ravel() for axis in np.meshgrid(*choices, indexing="ij")])
    used = np.stack([problem.cpu_cores @ (every == w) for w in range(len(problem.node_of))])
    at_node = np.stack(
        [used[problem.node_of == n].sum(axis=0) for n in range(len(problem.node_cores))]
    )
    fits = (used <= problem.place_cores[:, None] + TOLERANCE_CORES).all(axis=0)
    fits &= (at_node <= problem.node_cores[:, None] + TOLERANCE_CORES).all(axis=0)
    if not fits.any():
        return None
    every, distance = every[:, fits], problem.distance()
    cost_tps = np.zeros(every.shape[1])
    for one, other, tps in zip(problem.one, problem.other, problem.tps, strict=True):
        cost_tps += tps * distance[every[one], every[other]]
    return np.asarray(every[:, np.argmin(cost_tps)])

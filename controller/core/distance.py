"""How far apart executors are, and what that costs: in a placement, and by a move.

Traffic is in tuples/s. A tuple between nodes counts with the weights of both a node and a worker.
"""

from dataclasses import dataclass
from typing import NamedTuple, TypeVar

import numpy as np

from controller.core.cluster import Cluster, Floats, Ints, LoadSnapshot
from controller.core.limits import Limits

Tuples = TypeVar("Tuples", float, Floats)


class TrafficWeights(NamedTuple):
    """What a tuple counts that goes to another node, and to another worker."""

    node: float
    worker: float

    @classmethod
    def of(cls, limits: Limits) -> "TrafficWeights":
        return cls(float(limits.weight_node), float(limits.weight_worker))


def weighed(weights: TrafficWeights, between_nodes: Tuples, between_workers: Tuples) -> Tuples:
    """Compute what traffic costs; that between workers includes that between nodes."""
    return weights.node * between_nodes + weights.worker * between_workers


@dataclass(frozen=True, slots=True, eq=False)
class Distance:
    """What a tuple from worker to worker counts."""

    node_of: Ints  # (W,), node of each worker
    weights: TrafficWeights

    @classmethod
    def of(cls, cluster: Cluster, limits: Limits) -> "Distance":
        return cls(cluster.node_of, TrafficWeights.of(limits))

    def apart(self, one: Ints, other: Ints) -> Floats:
        """Compute what a tuple between each two workers counts."""
        nodes = np.not_equal(self.node_of[one], self.node_of[other])
        workers = np.not_equal(one, other)
        return weighed(self.weights, nodes.astype(np.float64), workers.astype(np.float64))

    def near(self, one: Ints | int, other: Ints) -> Floats:
        """Compute how much less that is than between the farthest workers."""
        nodes = np.equal(self.node_of[one], self.node_of[other])
        workers = np.equal(one, other)
        return weighed(self.weights, nodes.astype(np.float64), workers.astype(np.float64))

    def cost_tps(self, one: Ints, other: Ints, tps: Floats) -> float:
        """Add up what traffic between each two workers costs."""
        return float((tps * self.apart(one, other)).sum())

    def gain_tps(self, source: int, target: int, peers: Ints, tps: Floats) -> float:
        """Compute by how much less it costs after a move; the traffic is with these workers."""
        return float((tps * (self.near(target, peers) - self.near(source, peers))).sum())


def inter_node_tps(cluster: Cluster, snapshot: LoadSnapshot) -> float:
    """Add up the traffic that crosses between nodes."""
    node = cluster.node_of[snapshot.place]
    traffic = snapshot.traffic
    return float(traffic.tps[node[traffic.source] != node[traffic.target]].sum())


def inter_node_bytes_per_s(cluster: Cluster, snapshot: LoadSnapshot) -> float | None:
    """Add up the bytes that cross between nodes; None where a size is not known."""
    node, traffic = cluster.node_of[snapshot.place], snapshot.traffic
    crosses = node[traffic.source] != node[traffic.target]
    if not crosses.any():
        return 0.0
    if traffic.size_bytes is None:
        return None
    total = float((traffic.tps[crosses] * traffic.size_bytes[crosses]).sum())
    return None if np.isnan(total) else total


def inter_node_frac(cluster: Cluster, snapshot: LoadSnapshot) -> float:
    """Compute the share of all traffic that crosses between nodes; 0 without traffic."""
    return inter_node_tps(cluster, snapshot) / (snapshot.traffic.total_tps or 1.0)


class NodeTraffic(NamedTuple):
    """What one node sends to another; nodes by their index."""

    tps: float
    source: int
    target: int
    bytes_per_s: float | None  # None where a size is not known


def node_traffic(cluster: Cluster, snapshot: LoadSnapshot, most: int) -> list[NodeTraffic]:
    """List the directed pairs of nodes with the most tuples."""
    nodes, of_worker = np.unique(cluster.node_of, return_inverse=True)
    node, count, traffic = of_worker[snapshot.place], len(nodes), snapshot.traffic
    pair = node[traffic.source] * count + node[traffic.target]
    tps = np.bincount(pair, traffic.tps, count * count)
    tps[:: count + 1] = 0.0  # what stays in a node
    least = np.partition(tps, -most)[-most] if tps.size > most else 0.0
    loud = np.flatnonzero((tps > 0) & (tps >= least))
    order = loud[np.argsort(-tps[loud], kind="stable")][:most].tolist()
    size = np.nan if traffic.size_bytes is None else traffic.size_bytes
    sent = np.bincount(pair, traffic.tps * size, count * count)
    return [
        NodeTraffic(
            float(tps[row]),
            int(nodes[row // count]),
            int(nodes[row % count]),
            None if np.isnan(sent[row]) else float(sent[row]),
        )
        for row in order
    ]


def crossing_tps(snapshot: LoadSnapshot, place: Ints) -> Floats:
    """Add up what comes to each place from others or goes there; `place` is by executor."""
    ends = np.stack((place[snapshot.traffic.source], place[snapshot.traffic.target]))
    apart = ends[0] != ends[1]
    tps: Floats = np.tile(snapshot.traffic.tps[apart], 2)
    return np.bincount(ends[:, apart].ravel(), tps).astype(np.float64)

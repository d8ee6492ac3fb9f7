"""By what factor the input may still grow before a worker or a link is full (004, equation 3)."""

from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from controller.core.classify import worker_cpu_cores
from controller.core.cluster import Cluster, LoadSnapshot


class Resource(StrEnum):
    """What is full first."""

    CPU = "cpu"
    NETWORK = "network"


@dataclass(frozen=True, slots=True)
class Headroom:
    """The factor, and what binds: the worker, or the two nodes of the link.

    Below 1 something is over-used already; factor and `binds` are None if nothing is used at all.
    """

    factor: float | None = None
    binds: Resource | None = None
    where: str = ""


def headroom(cluster: Cluster, snapshot: LoadSnapshot, link_tps: float | None = None) -> Headroom:
    """Meter how much is left, if all traffic and load grow in proportion.

    Equation 3 of 004: T = min(α / max CC over directed pairs of nodes, β / max PC over workers). It
    writes one β for all workers; here each has its own capacity, so the worker with the largest
    share in use binds. CPU binds where both would. `link_tps` is what can go from one node to
    another; None if that is not known, then only CPU counts.
    """
    share = worker_cpu_cores(cluster, snapshot) / cluster.capacity_cores
    found = Headroom()
    if share.any():
        busiest = int(np.argmax(share))
        found = Headroom(1 / float(share[busiest]), Resource.CPU, cluster.workers[busiest])
    if link_tps is None:
        return found
    busiest_tps, source, target = next(iter(node_traffic_tps(cluster, snapshot)), (0.0, 0, 0))
    if busiest_tps <= 0:
        return found
    factor = link_tps / busiest_tps
    if found.factor is not None and found.factor <= factor:
        return found
    return Headroom(factor, Resource.NETWORK, f"{cluster.nodes[source]} to {cluster.nodes[target]}")


def node_traffic_tps(cluster: Cluster, snapshot: LoadSnapshot) -> list[tuple[float, int, int]]:
    """List the directed pairs of nodes, the most traffic first: tuples/s, source, target."""
    nodes, node = len(cluster.nodes), cluster.node_of[snapshot.place]
    source, target = node[snapshot.traffic.source], node[snapshot.traffic.target]
    apart = source != target
    codes, pair = np.unique(source[apart] * nodes + target[apart], return_inverse=True)
    tps = np.bincount(pair, weights=snapshot.traffic.tps[apart])
    order = np.argsort(-tps, kind="stable")
    return [(float(tps[row]), *divmod(int(codes[row]), nodes)) for row in order]

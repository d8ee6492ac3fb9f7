"""By what factor the input may still grow before a worker or a link is full (004, equation 3)."""

from dataclasses import dataclass

from controller.core.cluster import Cluster, LoadSnapshot
from controller.core.distance import node_traffic_tps
from controller.core.fit import Fit

NETWORK = "network"


@dataclass(frozen=True, slots=True)
class Headroom:
    """The factor, and what binds: the CPU of a node or worker, or the link between two nodes.

    Below 1 something is over-used already; factor and `binds` are None if nothing is used at all.
    """

    factor: float | None = None
    binds: str | None = None
    where: str = ""


def headroom(cluster: Cluster, snapshot: LoadSnapshot, link_tps: float | None = None) -> Headroom:
    """Meter how much is left, if all traffic and load grow in proportion.

    Equation 3 of 004: T = min(α / max CC over directed pairs of nodes, β / max PC over workers). It
    writes one β for all workers. Here it is what others leave of each node's CPU, or the limit of a
    worker that has its own. CPU binds where both would. `link_tps` is what can go from one node to
    another; None if that is not known, then only CPU counts.
    """
    fit, found = Fit.of(cluster, snapshot), Headroom()
    if (busiest := fit.binding) is not None:
        found = Headroom(fit.growth, fit.resource.name, fit.name_of(busiest))
    if link_tps is not None:
        for tps, source, target in node_traffic_tps(cluster, snapshot, 1):
            if found.factor is None or link_tps / tps < found.factor:
                where = f"{cluster.nodes[source]} to {cluster.nodes[target]}"
                return Headroom(link_tps / tps, NETWORK, where)
    return found

"""By what factor the input may still grow before a CPU or a link is full (004, equation 3)."""

from dataclasses import dataclass

from controller.core.cluster import Cluster, LoadSnapshot
from controller.core.fit import Fit
from controller.core.links import Links

NETWORK = "network"


@dataclass(frozen=True, slots=True)
class Headroom:
    """The factor, and what binds: the CPU of a node or worker, or a node's link in one direction.

    Below 1 something is over-used already; factor and `binds` are None if nothing is used at all.
    """

    factor: float | None = None
    binds: str | None = None
    where: str = ""


def headroom(cluster: Cluster, snapshot: LoadSnapshot) -> Headroom:
    """Meter how much is left, if all traffic and load grow in proportion.

    Equation 3 of 004: T = min(α / max CC, β / max PC). It writes one β for all workers, and α for
    the tuples from one node to another. Here β is what others leave of each node's CPU, or the
    limit of a worker that has its own. α is what others leave of a node's link, in bytes per second
    in one direction. Without capacities of links and sizes of tuples only CPU counts. CPU binds
    where both would.
    """
    fit, links, found = Fit.of(cluster, snapshot), Links(cluster, snapshot), Headroom()
    if (busiest := fit.binding) is not None:
        found = Headroom(fit.growth, fit.resource.name, fit.name_of(busiest))
    if links.growth < fit.growth:
        return Headroom(links.growth, NETWORK, links.binding)
    return found

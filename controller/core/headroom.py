"""By what factor the input may grow before a CPU, link or space is full (004, equation 3)."""

from controller.core.cluster import Cluster, LoadSnapshot
from controller.core.figures import Headroom
from controller.core.fit import Fit
from controller.core.links import Links
from controller.core.spaces import uses_of

NETWORK = "network"


def headroom(cluster: Cluster, snapshot: LoadSnapshot) -> Headroom:
    """Meter how much is left, if all traffic and load grow in proportion.

    Equation 3 of 004: T = min(α / max CC, β / max PC). It writes one β for all workers, and α for
    the tuples from one node to another. Here β is what others leave of each node's CPU, or the
    limit of a worker that has its own. α is what others leave of a node's link, in bytes per second
    in one direction. Without capacities of links and sizes of tuples no link counts. What lives in
    a heap counts as if it grew with the input. It seldom grows as fast. CPU binds before others
    where both would.
    """
    fit, links, found = Fit.of(cluster, snapshot), Links(cluster, snapshot), Headroom()
    if (busiest := fit.binding) is not None:
        found = Headroom(fit.growth, fit.resource.name, fit.name_of(busiest))
    if links.growth < fit.growth:
        found = Headroom(links.growth, NETWORK, links.binding)
    for one in uses_of(cluster, snapshot):
        shares = one.known_at(snapshot.place)
        fullest = int(shares.argmax()) if shares.size else -1
        if (
            fullest >= 0
            and shares[fullest] > 0
            and (found.factor is None or 1 / shares[fullest] < found.factor)
        ):
            where = cluster.workers[fullest]
            found = Headroom(float(1 / shares[fullest]), one.space.name, where)
    return found

"""What a placement has to leave: room for more input, on the CPU, the links and in the heaps."""

from dataclasses import dataclass

from controller.core.cluster import Cluster, Floats, Ints, LoadSnapshot
from controller.core.fit import Fit
from controller.core.heap import Heap
from controller.core.limits import Limits
from controller.core.links import Links


@dataclass(frozen=True, slots=True, eq=False)
class Reserve:
    """Today's placement, by each resource, and what other placements may do to them.

    Only where workers share the CPU of their node. A worker with CPU of its own is no measure of
    the room for input, and there only its CPU counts.
    """

    fit: Fit
    links: Links
    heap: Heap

    @classmethod
    def of(
        cls,
        cluster: Cluster,
        snapshot: LoadSnapshot,
        limits: Limits,
        growth: float | None = None,
    ) -> "Reserve":
        """Look at each resource; `growth` is up to where load has to be able to grow.

        Without it that is as much as now. Where a link is full before the CPU, CPU may be used
        until it leaves as little as that link.
        """
        fit, links = Fit.of(cluster, snapshot, limits), Links(cluster, snapshot)
        if growth is not None:
            fit = fit.keeping(growth)
        elif cluster.node_cores is not None and links.growth < fit.growth:
            fit = fit.keeping(max(links.growth, min(fit.growth, 1.0)))
        return cls(fit, links, Heap(cluster, snapshot))

    @property
    def links_bind(self) -> bool:
        """Whether a link is full before the CPU."""
        return self.fit.cluster.node_cores is not None and self.links.growth < self.fit.growth

    @property
    def size(self) -> Floats | None:
        """(P,), what a tuple of each pair counts where a link binds; None: all the same."""
        return self.links.size if self.links_bind else None

    def refuses(self, place: Ints) -> bool:
        """Check whether a placement fills a link more than today's, or a heap too much."""
        if self.fit.cluster.node_cores is None:
            return False
        return self.links.grow_at(place) or self.heap.overflows_at(self.fit, place)

    def bars(self, place: Ints) -> bool:
        """Check whether a placement, be it on the way to another one, overfills a link or a heap.

        That is more than `load.high` of it, and more than the fullest has now.
        """
        if self.fit.cluster.node_cores is None:
            return False
        high = self.fit.limits.high_frac
        return self.links.overfilled_at(place, high) or self.heap.overfilled_at(place, high)

"""What a placement has to leave: room for more input, on the CPU, the links and in the spaces."""

from dataclasses import dataclass

import numpy as np

from controller.core.cluster import Cluster, Floats, Ints, LoadSnapshot, Marks
from controller.core.fit import Fit
from controller.core.limits import Limits
from controller.core.links import Links
from controller.core.loops import moves as loops
from controller.core.spaces import SpaceUse, overflowing, uses_of


@dataclass(frozen=True, slots=True, eq=False)
class Reserve:
    """Today's placement, by each resource, and what other placements may do to them.

    Only where workers share the CPU of their node. A worker with CPU of its own is no measure of
    the room for input, and there only its CPU counts.
    """

    fit: Fit
    links: Links
    spaces: tuple[SpaceUse, ...]  # those of which something is known

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
        return cls(fit, links, uses_of(cluster, snapshot))

    @property
    def links_bind(self) -> bool:
        """Whether a link is full before the CPU."""
        return self.fit.cluster.node_cores is not None and self.links.growth < self.fit.growth

    def hot(self, fit: Fit) -> Ints:
        """List the workers of a placement to relieve: surely high, and not `behind_links`."""
        behind = self.behind_links(fit)
        return np.setdiff1d(fit.surely_high, behind) if behind.size else fit.surely_high

    def behind_links(self, fit: Fit) -> Ints:
        """List the workers of a placement that are surely high, and where a link is full first.

        Where a link holds input back, more room on a CPU lets no more of it in. And a relief may
        fill what could relieve the link.
        """
        return fit.high_behind(float(self.links.shares.max(initial=0.0)))

    def short(self, fit: Fit) -> Ints:
        """List the workers of a placement that leave too little room, where the CPU is full first.

        Where a link is, more room on a CPU lets no more input in.
        """
        return np.zeros(0, np.int64) if self.links_bind else fit.short

    def full(self, fit: Fit) -> list[tuple[SpaceUse, int]]:
        """List the spaces of workers of a placement that are above `load.high`, the fullest first.

        What leaves one has room elsewhere, whatever the CPU has. A JVM whose heap is full dies, and
        all of its executors with it.
        """
        if self.fit.cluster.node_cores is None:
            return []
        high = fit.limits.high_frac
        found = [(one, w) for one in self.spaces for w in one.full(fit.place, high).tolist()]
        return sorted(found, key=lambda row: -row[0].share_at(fit.place)[row[1]])

    def too_full(self, fit: Fit) -> set[int]:
        """Name the workers of a placement to relieve, of CPU or of a space."""
        return {*self.hot(fit).tolist(), *(worker for _, worker in self.full(fit))}

    def what_is_missing(self, fit: Fit) -> str:
        """Name what is above `load.high` in a placement."""
        workers, high = fit.cluster.workers, f"{fit.limits.high_frac:g}"
        spaces = self.full(fit)
        full = [f"{workers[w]} above {high} of {one.space.shown}" for one, w in spaces[:1]]
        full += [f"{len(spaces) - 1} more as well"] if len(spaces) > 1 else []
        return "; ".join([fit.what_is_missing(), *full] if fit.is_high.any() or not full else full)

    @property
    def size(self) -> Floats | None:
        """(P,), what a tuple of each pair counts where a link binds; None: all the same."""
        return self.links.size if self.links_bind else None

    @property
    def is_over_beyond_cpu(self) -> Marks:
        """(W,), the workers above `load.high` of a space, or of their node's link."""
        high, fit = self.fit.limits.high_frac, self.fit
        by_node = self.links.shares.max(axis=0) > high
        in_spaces = (one.share_at(fit.place) > high for one in self.spaces)
        over: Marks = np.any([by_node[fit.cluster.node_of], *in_spaces], axis=0)
        return over

    def refuses(self, place: Ints) -> bool:
        """Check whether a placement fills a link more than today's, a space or memory too much."""
        return self.why_refused(place) is not None

    def why_refused(self, place: Ints) -> str | None:
        """Name what a placement fills so; None without."""
        if self.fit.overfills_memory(place):
            return "declared memory too much"
        if self.fit.cluster.node_cores is None:
            return None
        if self.links.grow_at(place):
            return "a link more"
        space = overflowing(self.spaces, self.fit, place)
        return None if space is None else f"{space} too much"

    def narrows(self, place: Ints) -> bool:
        """Check whether a placement leaves too little room on a link, or fills a space too much.

        Where the capacity of a link is not known, none may be fuller than the fullest today.
        """
        left = self.links.cluster.link_bytes_s
        if left is None or np.isnan(left).any():
            return self.refuses(place)
        return self.links.fuller_at(place, 1 / self.fit.wanted) or self.overflows(place)

    def bars_of(self, fit: Fit) -> loops.Bars | None:
        """Give what a move in a placement must not fill; None where workers have their own CPU."""
        if fit.cluster.node_cores is None:
            return None
        links, spaces, size = self.links, self.spaces, (len(self.spaces), len(fit.cluster.workers))
        return loops.Bars(
            sender=links.traffic.source,
            rate=links.rate,
            group=links.groups.of,
            sent=links.sent_at(fit.place),
            limit=links.limit,
            kept=np.array([one.held for one in spaces]).reshape(len(spaces), len(fit.place)),
            filled=np.array([one.held_at(fit.place) for one in spaces]).reshape(size),
            may=np.array([one.most_at(self.fit) for one in spaces]).reshape(size),
            bare=np.array([one.space.bare for one in spaces], np.float64),
            is_bare=np.bincount(fit.place, minlength=size[1]) == 0,
        )

    def overflows(self, place: Ints) -> bool:
        """Check whether a placement fills a space too much, and more than today's does."""
        return overflowing(self.spaces, self.fit, place) is not None

    def takes(self, executors: Ints, workers: Ints, place: Ints) -> Marks:
        """Mark the executors that fit into `load.high` of the spaces of the worker of the same
        row.
        """
        found = np.ones(len(executors), np.bool_)
        for one in self.spaces:
            found &= one.takes(executors, workers, place, self.fit.limits.high_frac)
        return found

    def bars(self, place: Ints) -> bool:
        """Check whether a placement, be it on the way to another one, overfills a link or space.

        That is more than `load.high` of it, and more than the fullest has now.
        """
        if self.fit.cluster.node_cores is None:
            return False
        high = self.fit.limits.high_frac
        if self.links.overfilled_at(place, high):
            return True
        return any(one.overfilled_at(place, high) for one in self.spaces)

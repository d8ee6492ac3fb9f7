"""What crosses between nodes in bytes: no link may be filled more than now, and what binds.

Tuples are not bytes. A placement that has fewer tuples between nodes may fill a link twice as much,
if those that cross now are the larger ones. So the fullest direction of a link may not get fuller.
The size of a stream's tuples may be unknown. Then it may send no more than now where it sends most:
from one node, or to one.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache

import numpy as np

from controller.core.cluster import Cluster, Floats, Ints, LoadSnapshot, Traffic
from controller.core.room import Marks

# Sums in another order differ by less than this share, and less than this much.
ROUNDING = 1e-9


@lru_cache(maxsize=16)
def _components(component_of: tuple[str, ...]) -> tuple[Ints, int]:
    """Number the component of each executor; gives also how many there are."""
    names, number = np.unique(component_of, return_inverse=True)
    return number.astype(np.int64), len(names)


@dataclass(frozen=True, eq=False)
class Links:
    """What a topology sends over the links of the nodes, in today's placement and in others."""

    cluster: Cluster
    snapshot: LoadSnapshot

    @property
    def traffic(self) -> Traffic:
        return self.snapshot.traffic

    @cached_property
    def bytes_s(self) -> Floats:
        """(P,), what each pair would send over a link; NaN where the size is not known."""
        size, tps = self.traffic.size_bytes, self.traffic.tps
        return np.full(len(tps), np.nan) if size is None else tps * size

    @cached_property
    def is_known(self) -> Marks:
        """(P,), the pairs of which the size is known."""
        return ~np.isnan(self.bytes_s)

    @cached_property
    def streams(self) -> Ints:
        """(P,), the stream of each pair, by its two components."""
        number, count = _components(self.snapshot.component_of)
        pairs = number[self.traffic.source] * count + number[self.traffic.target]
        streams: Ints = np.unique(pairs, return_inverse=True)[1].astype(np.int64)
        return streams

    @cached_property
    def fullest_tps(self) -> Floats:
        """(S,), the most that a stream of unknown size sends from one node, or to one."""
        return self._fullest_tps(self.snapshot.place)

    @cached_property
    def crossing(self) -> Floats:
        """(2, N), bytes per second that each node sends to others, and receives."""
        return self._crossing_at(self.snapshot.place)

    @cached_property
    def growth(self) -> float:
        """The factor by which traffic may grow until a link is full, in one direction.

        Infinite where no capacity or no size is known, or nothing crosses. As equation 3 of 004,
        but a node's link has all that goes to and comes from other nodes.
        """
        if self.cluster.link_bytes_s is None:
            return math.inf
        most = float(self.shares.max(initial=0.0))
        return 1 / most if most > 0 else math.inf

    @cached_property
    def shares(self) -> Floats:
        """(2, N), what is used of all that others leave; 0 where that is not known."""
        return self._shares(self.crossing)

    def _shares(self, crossing: Floats) -> Floats:
        left = self.cluster.link_bytes_s
        if left is None:
            return np.zeros_like(crossing)
        return np.nan_to_num(crossing / np.where(left > 0, left, np.nan))

    @property
    def binding(self) -> str:
        """Name the node whose link is full first."""
        return self.cluster.nodes[int(self.shares.max(axis=0).argmax())]

    def grow_at(self, place: Ints) -> bool:
        """Check whether a placement fills a link more than today's does."""
        fullest = self._fullest(self._crossing_at(place))
        if fullest > self._fullest(self.crossing) * (1 + ROUNDING) + ROUNDING:
            return True
        if self.is_known.all():
            return False
        after = self._fullest_tps(place)
        return bool((after > self.fullest_tps * (1 + ROUNDING) + ROUNDING).any())

    def overfilled_at(self, place: Ints, most: float) -> bool:
        """Check whether a placement uses more than a share of a link, and more than now."""
        if self.cluster.link_bytes_s is None:
            return False
        after = self._shares(self._crossing_at(place))
        return bool(after.max(initial=0.0) > max(most, self.shares.max(initial=0.0)) + ROUNDING)

    @cached_property
    def size(self) -> Floats:
        """(P,), what a tuple counts in bytes, as times the mean; 1 where it is not known."""
        tps = self.traffic.tps
        known = self.is_known
        total_tps, total = float(tps[known].sum()), float(self.bytes_s[known].sum())
        if self.traffic.size_bytes is None or not total:
            return np.ones(len(tps))
        return np.where(known, self.traffic.size_bytes * total_tps / total, 1.0)

    def otherwise(self, *, in_bytes: bool) -> list[Traffic]:
        """Count the traffic in other ways: in bytes, or else in tuples; each stream alike.

        The latter only where a size is not known.
        """
        found = []
        if self.is_known.any():
            tps = self.traffic.tps if in_bytes else self.traffic.tps * self.size
            found.append(replace(self.traffic, tps=tps, var=None))
        return found if self.is_known.all() else [*found, self.even]

    @property
    def even(self) -> Traffic:
        """The traffic if each stream had as much, and all together what they have."""
        sums = np.bincount(self.streams, self.traffic.tps)
        scale = sums.sum() / len(sums) / sums if len(sums) else sums
        return replace(self.traffic, tps=self.traffic.tps * scale[self.streams], var=None)

    def _fullest(self, used: Floats) -> float:
        """Give the share of its capacity that the fullest direction uses, or its bytes."""
        left = self.cluster.link_bytes_s
        known = left is not None and bool((left > 0).all())
        return float((used / left if known and left is not None else used).max(initial=0.0))

    def _crossing_at(self, place: Ints) -> Floats:
        one = np.zeros_like(self.traffic.source)
        used: Floats = self._sent(place, self.is_known, self.bytes_s, one)[0]
        return used

    def _fullest_tps(self, place: Ints) -> Floats:
        sent = self._sent(place, ~self.is_known, self.traffic.tps, self.streams)
        fullest: Floats = sent.max(axis=(1, 2), initial=0.0)
        return fullest

    def _sent(self, place: Ints, counts: Marks, rates: Floats, of: Ints) -> Floats:
        """Add up what each group of pairs sends from each node and to it, (groups, 2, N)."""
        node, nodes = self.cluster.node_of[place], len(self.cluster.nodes)
        groups = int(of.max(initial=0)) + 1
        ends = node[self.traffic.source], node[self.traffic.target]
        crosses = counts & (ends[0] != ends[1])
        rows, rates = of[crosses] * nodes, rates[crosses]
        each = [
            np.bincount(rows + end[crosses], rates, groups * nodes).reshape(groups, nodes)
            for end in ends
        ]
        return np.stack(each, axis=1)


def beside_each_other(
    links: Mapping[str, Links], capacity: Mapping[str, Floats], carried: Mapping[str, Floats]
) -> dict[str, Cluster]:
    """Note, for each topology, what all others leave of the links: at least a byte per second.

    For each topology, `capacity` is bytes per second in one direction, (N,). `carried` is all that
    each node sends, and receives, as it was measured, (2, N). Both are NaN where not known. Others
    use what of that is not the topology's own, or what all other topologies use at their peaks.
    """
    if all(np.isnan(most).all() for most in capacity.values()):
        return {name: replace(one.cluster, link_bytes_s=None) for name, one in links.items()}
    names = {node: None for one in links.values() for node in one.cluster.nodes}
    row = {node: n for n, node in enumerate(names)}
    at = {name: [row[node] for node in one.cluster.nodes] for name, one in links.items()}
    of_all = np.zeros((2, len(row)))
    for name, one in links.items():
        of_all[:, at[name]] += one.crossing * one.snapshot.peak_times
    found = {}
    for name, one in links.items():
        left: Floats | None = None
        if not np.isnan(capacity[name]).all():
            of_others = of_all[:, at[name]] - one.crossing * one.snapshot.peak_times
            others = np.fmax(of_others, carried[name] - one.crossing)
            left = np.maximum(capacity[name] - np.maximum(others, 0.0), 1.0)
        found[name] = replace(one.cluster, link_bytes_s=left)
    return found

"""What crosses between nodes in bytes: no link may be filled more than now, and what binds.

Tuples are not bytes. A placement that has fewer tuples between nodes may fill a link twice as much,
if those that cross now are the larger ones. So the fullest direction of a link may not get fuller.
The size of a stream's tuples may be unknown. Then it may send no more than now where it sends most:
from one node, or to one.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from controller.core.cluster import (
    Cluster,
    Floats,
    Ints,
    LoadSnapshot,
    Marks,
    Traffic,
    numbered,
)
from controller.core.kept import keeping
from controller.core.loops import traffic as loops

# The least size of a tuple of a stream of which no size is known.
_UNSEEN_BYTES = 1000.0
# Sums in another order differ by less than this share.
_ROUNDING = 1e-9


@dataclass(frozen=True, slots=True, eq=False)
class Groups:
    """The pairs that are added up together."""

    is_known: Marks  # (P,), the pairs of which the size is known
    all_known: bool
    streams: Ints  # (P,), the stream of each pair, by its two components
    of: Ints  # (P,), 0 for pairs that count in bytes; of others each stream is a group of its own
    count: int


@keeping
def _groups(
    component_of: tuple[str, ...], source: Ints, target: Ints, size_bytes: Floats | None
) -> Groups:
    names, number = numbered(component_of)
    count = len(names)
    pairs = number[source] * count + number[target]
    is_used = np.bincount(pairs, minlength=count * count) > 0
    streams = (np.cumsum(is_used) - 1)[pairs]
    is_known = np.zeros(len(source), bool) if size_bytes is None else ~np.isnan(size_bytes)
    of = np.where(is_known, 0, streams + 1)
    return Groups(is_known, bool(is_known.all()), streams, of, int(of.max(initial=0)) + 1)


@keeping
def _rates(traffic: Traffic, groups: Groups) -> tuple[Floats, Floats]:
    """Give `Links.bytes_s` and `Links.rate`."""
    size, tps = traffic.size_bytes, traffic.tps
    bytes_s = np.full(len(tps), np.nan) if size is None else tps * size
    return bytes_s, np.where(groups.is_known, bytes_s, tps)


def _sent(
    traffic: Traffic, groups: Groups, place: Ints, node_of: Ints, nodes: tuple[str, ...]
) -> Floats:
    """Add up what each group sends in a placement from each node and to it, (G, 2, N)."""
    _, rate = _rates(traffic, groups)
    pairs = traffic.source, traffic.target, rate, groups.of, groups.count
    return loops.crossing(*pairs, np.ascontiguousarray(place), node_of, len(nodes))


# A decision makes several `Links` of one placement.
_sent_today = keeping(_sent)


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
        return _rates(self.traffic, self.groups)[0]

    @property
    def groups(self) -> Groups:
        """The pairs that are added up together."""
        traffic = self.traffic
        ends = traffic.source, traffic.target
        return _groups(self.snapshot.component_of, *ends, traffic.size_bytes)

    @cached_property
    def rate(self) -> Floats:
        """(P,), the bytes per second of each pair, or its tuples/s where no size is known."""
        return _rates(self.traffic, self.groups)[1]

    @cached_property
    def sent(self) -> Floats:
        """(G, 2, N), what each group sends today from each node, and to it."""
        return _sent_today(self.traffic, self.groups, self.snapshot.place, *self._nodes)

    @property
    def _nodes(self) -> tuple[Ints, tuple[str, ...]]:
        return self.cluster.node_of, self.cluster.nodes

    @cached_property
    def limit(self) -> Floats:
        """(G, 2, N), up to where each group may fill each direction: to what its fullest has now.

        Bytes count as shares of what a direction bears. A stream of which no size is known may send
        no more than where it sends most.
        """
        borne = np.ones_like(self.sent)
        borne[0] = self._left
        fullest = (self.sent / borne).max(axis=(1, 2), keepdims=True, initial=0.0)
        limit: Floats = (fullest * (1 + _ROUNDING) + _ROUNDING) * borne
        return limit

    @property
    def crossing(self) -> Floats:
        """(2, N), bytes per second that each node sends to others, and receives."""
        crossing: Floats = self.sent[0]
        return crossing

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
        return loops.is_above(self.sent_at(place), self.limit)

    def sent_at(self, place: Ints) -> Floats:
        """Add up what each group sends in a placement from each node and to it, (G, 2, N)."""
        if place is self.snapshot.place:
            return self.sent
        return _sent(self.traffic, self.groups, place, *self._nodes)

    def overfilled_at(self, place: Ints, most: float) -> bool:
        """Check whether a placement uses more than a share of a link, and more than the fullest
        now.
        """
        if self.cluster.link_bytes_s is None:
            return False
        least = max(most, float(self._of_borne_now.max())) + _ROUNDING
        return bool((self._of_borne(place) > least).any())

    def fuller_at(self, place: Ints, most: float) -> bool:
        """Check whether a placement uses more than a share of a direction, and more than now there.

        Where the CPU binds, a relief lets more input in. A direction that was filled up to the
        fullest one would then hold back what the CPU did not.
        """
        if self.cluster.link_bytes_s is None:
            return False
        least = np.maximum(most, self._of_borne_now) + _ROUNDING
        return bool((self._of_borne(place) > least).any())

    @cached_property
    def size(self) -> Floats:
        """(P,), what a tuple counts in bytes, as times the mean; 1 where it is not known."""
        tps = self.traffic.tps
        known = self.groups.is_known
        total_tps, total = float(tps[known].sum()), float(self.bytes_s[known].sum())
        if self.traffic.size_bytes is None or not total:
            return np.ones(len(tps))
        return np.where(known, self.traffic.size_bytes * total_tps / total, 1.0)

    def otherwise(self, *, in_bytes: bool) -> list[Traffic]:
        """Count the traffic in other ways: in bytes, or else in tuples; each stream alike.

        The latter only where a size is not known.
        """
        found = []
        if self.groups.is_known.any():
            tps = self.traffic.tps if in_bytes else self.traffic.tps * self.size
            found.append(replace(self.traffic, tps=tps, var=None))
        return found if self.groups.all_known else [*found, self.even]

    @property
    def even(self) -> Traffic:
        """The traffic if each stream had as much, and all together what they have."""
        sums = np.bincount(self.groups.streams, self.traffic.tps)
        scale = sums.sum() / len(sums) / sums if len(sums) else sums
        return replace(self.traffic, tps=self.traffic.tps * scale[self.groups.streams], var=None)

    @property
    def _left(self) -> Floats:
        """(2, N), what each direction bears; 1 where that is not known of each link."""
        borne = self._borne
        return np.ones_like(borne) if np.isnan(borne).any() else borne

    @cached_property
    def _borne(self) -> Floats:
        """(2, N), what others leave, or what is sent there now where that is more; NaN if unknown.

        So a direction that others fill may stay as it is. Else it would be fuller than full, by a
        factor of millions where nothing is left, and every other one could be filled as much.
        """
        left = self.cluster.link_bytes_s
        if left is None:
            return np.full_like(self.crossing, np.nan)
        return np.where(left > 0, np.maximum(left, self.crossing), np.nan)

    @cached_property
    def _of_borne_now(self) -> Floats:
        return self._of_borne(self.snapshot.place)

    def _of_borne(self, place: Ints) -> Floats:
        """Give the share of what it bears that each direction uses, (2, N); 0 if not known.

        A stream that has crossed no link yet has no known size. It counts with the largest one, so
        that it is no room.
        """
        (node_of, nodes), traffic = self._nodes, self.traffic
        pairs = traffic.source, traffic.target, self._most_bytes_s, np.zeros_like(traffic.source), 1
        crossing = loops.crossing(*pairs, np.ascontiguousarray(place), node_of, len(nodes))[0]
        shares: Floats = np.nan_to_num(crossing / self._borne)
        return shares

    @cached_property
    def _most_bytes_s(self) -> Floats:
        """(P,), what each pair would send over a link, those of unknown size with the largest."""
        size, known = self.traffic.size_bytes, self.groups.is_known
        largest = _UNSEEN_BYTES if size is None else size[known].max(initial=_UNSEEN_BYTES)
        return np.where(known, self.bytes_s, self.traffic.tps * largest)


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

"""What crosses between nodes, stream by stream: where bytes are not seen, none may grow.

Tuples are not bytes. A placement that has fewer tuples between nodes may fill a link twice as much,
if those that cross now are the larger ones. So no stream may send more than today where it sends
most: from one node, or to one.
"""

from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np

from controller.core.cluster import Cluster, Floats, Ints, LoadSnapshot, Traffic

# Of what a stream sends: sums in another order differ by less.
ROUNDING_FRAC = 1e-9


@lru_cache(maxsize=16)
def _components(component_of: tuple[str, ...]) -> tuple[Ints, int]:
    """Number the component of each executor; gives also how many there are."""
    names, number = np.unique(component_of, return_inverse=True)
    return number.astype(np.int64), len(names)


@dataclass(frozen=True, slots=True, eq=False)
class Links:
    """The streams of a topology, and the most that each sends between nodes."""

    cluster: Cluster
    traffic: Traffic
    streams: Ints  # (P,), by its two components, of each row of the traffic
    fullest_tps: Floats  # (S,), of each stream, to other nodes from one, or to one from others

    @classmethod
    def of(cls, cluster: Cluster, snapshot: LoadSnapshot) -> "Links":
        number, count = _components(snapshot.component_of)
        traffic = snapshot.traffic
        pairs = number[traffic.source] * count + number[traffic.target]
        streams = np.unique(pairs, return_inverse=True)[1].astype(np.int64)
        fullest_tps = _fullest_tps(cluster, traffic, streams, snapshot.place)
        return cls(cluster, traffic, streams, fullest_tps)

    def grow_at(self, place: Ints) -> bool:
        """Check whether a stream sends more in a placement, where it sends most."""
        after = _fullest_tps(self.cluster, self.traffic, self.streams, place)
        return bool((after > self.fullest_tps * (1 + ROUNDING_FRAC) + ROUNDING_FRAC).any())

    @property
    def even(self) -> Traffic:
        """The traffic if each stream had as much, and all together what they have."""
        sums = np.bincount(self.streams, self.traffic.tps)
        scale = sums.sum() / len(sums) / sums if len(sums) else sums
        return replace(self.traffic, tps=self.traffic.tps * scale[self.streams], var=None)


def _fullest_tps(cluster: Cluster, traffic: Traffic, streams: Ints, place: Ints) -> Floats:
    node, nodes = cluster.node_of[place], len(cluster.nodes)
    count = int(streams.max(initial=-1)) + 1
    ends = node[traffic.source], node[traffic.target]
    crosses = ends[0] != ends[1]
    tps, of = traffic.tps[crosses], streams[crosses]
    sent, got = (
        np.bincount(of * nodes + end[crosses], tps, count * nodes).reshape(count, nodes)
        for end in ends
    )
    fullest: Floats = np.maximum(sent, got).max(axis=1, initial=0.0)
    return fullest

"""The traffic of a topology, indexed by executor; the index stays while only its rates change."""

from collections import deque
from dataclasses import dataclass, replace

import numpy as np

from controller.core.cluster import Floats, Ints, Rows, Traffic
from controller.core.loops import traffic as loops


@dataclass(frozen=True, slots=True, eq=False)
class Pairs:
    """Pairs of executors that exchange tuples, to be asked by executor, in both directions."""

    traffic_source: Ints  # of the traffic that it was made of; so is the next
    traffic_target: Ints
    begin: Ints  # (E + 1,), where the rows of each executor begin in `peer` and `row`, and the end
    # The executors at the other end: first those that it sends to, then those that send to it;
    # never itself, for that never crosses anything.
    peer: Rows
    row: Rows  # the row of the traffic

    @classmethod
    def of(cls, traffic: Traffic, count: int) -> "Pairs":
        """Index traffic by executor, again only if other executors exchange tuples than before."""
        source, target = traffic.source, traffic.target
        for at, known in enumerate(tuple(_LATELY)):
            if known._are_of(traffic, count):
                if known.traffic_source is not source:
                    # The same arrays need not be compared again next time.
                    _LATELY[at] = replace(known, traffic_source=source, traffic_target=target)
                return known
        made = cls(source, target, *loops.index(source, target, count))
        _LATELY.append(made)
        return made

    def _are_of(self, traffic: Traffic, count: int) -> bool:
        same = len(self.begin) == count + 1 and _equal(self.traffic_source, traffic.source)
        return same and _equal(self.traffic_target, traffic.target)

    def asc_tps(self, tps: Floats, node: Ints, executor: int, to: int) -> float:
        """Compute ASC of the move of an executor to a node: by how much traffic inside nodes grows.

        `node` is the node of each executor, shape (E,); 0 for the executor's own node.
        """
        own = slice(int(self.begin[executor]), int(self.begin[executor + 1]))
        there, own_tps = node[self.peer[own]], tps[self.row[own]]
        return float(own_tps[there == to].sum() - own_tps[there == node[executor]].sum())


# From cycle to cycle, usually the same executors exchange tuples. One index for each of the few
# topologies that a controller may look after.
_LATELY: deque[Pairs] = deque(maxlen=4)


def _equal(one: Ints, other: Ints) -> bool:
    return one is other or np.array_equal(one, other)

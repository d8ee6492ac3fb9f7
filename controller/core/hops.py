"""The CPU of hops: what tuples between two JVMs cost, which a placement adds or saves.

The costs are those of the lab.
"""

from dataclasses import dataclass

import numpy as np

from controller.core.cluster import Floats, Ints, Traffic
from controller.core.compiled import compiled
from controller.core.distance import TrafficWeights, hops

# By how far it goes, what a tuple costs each of its two ends more: inside a worker, inside a node,
# between nodes. These are the costs of the simulator's scenario of the demo, scaled to a run on a
# real cluster.
HOP_COST_S = (0.0, 0.905e-6, 1.09e-6)
WORKER, NODE = 1, 2
# What a byte costs, as a share of what a tuple costs: 0.0041 µs, measured between two JVMs.
BYTE_TIMES = 0.0041e-6 / HOP_COST_S[NODE]
# If all its peers were on other nodes, hops would be this share of what an executor uses, at most.
# More would be predicted to leave nothing, or less, once its peers are near.
MOST_FRAC = 0.6
# As weights, so that what a tuple saves at each end is `weigh(HOP, same node, same worker)`.
HOP = TrafficWeights(HOP_COST_S[NODE] - HOP_COST_S[WORKER], HOP_COST_S[WORKER])
FREE = TrafficWeights(0.0, 0.0)


@dataclass(frozen=True, slots=True, eq=False)
class HopRates:
    """How much is sent, in tuples/s that cost as much on a hop as small ones do in the lab.

    At an end they count `scale` times: where hops would be too large a part of what an executor
    uses, it is less than 1. As long as the load is the same, so is this in all placements.
    """

    tps: Floats  # (P,)
    scale: Floats  # (E,)

    @classmethod
    def of(
        cls, traffic: Traffic, times: float, place: Ints, node_of: Ints, demand: Floats
    ) -> "HopRates":
        """Count traffic; `times` is what hops cost as times those of the lab."""
        tps = hop_tps(traffic) * times
        ends = traffic.source, traffic.target
        apart = traffic.source != traffic.target
        most = HOP_COST_S[NODE] * np.where(apart, tps, 0.0)
        far = sum(np.bincount(end, most, len(place)) for end in ends)
        now = hop_cores(*ends, tps, np.ones(len(place)), np.ascontiguousarray(place), node_of)
        # As much of all it uses far from its peers: what it uses now, less hops, and those to them.
        bound = far * (1 - MOST_FRAC) / MOST_FRAC + now
        scale = np.divide(demand, bound, out=np.ones(len(place)), where=bound > 0)
        return cls(tps, np.minimum(scale, 1.0))

    @classmethod
    def free(cls, executors: int) -> "HopRates":
        return cls(np.zeros(0), np.zeros(executors))


def hop_tps(traffic: Traffic) -> Floats:
    """Count traffic in tuples of no size, (P,), each as many as its bytes cost more."""
    if traffic.size_bytes is None:
        return np.ascontiguousarray(traffic.tps)
    counted: Floats = traffic.tps * (1.0 + BYTE_TIMES * np.nan_to_num(traffic.size_bytes))
    return counted


@compiled
def hop_cores(  # noqa: PLR0917
    source: Ints, target: Ints, tps: Floats, scale: Floats, place: Ints, node_of: Ints
) -> Floats:
    """Compute the CPU that each executor uses for hops in a placement, (E,), in cores."""
    cores = np.zeros(len(place))
    for k in range(len(source)):
        one, other = source[k], target[k]
        spent = tps[k] * HOP_COST_S[hops(place[one], place[other], node_of)]
        cores[one] += spent
        cores[other] += spent
    return cores * scale

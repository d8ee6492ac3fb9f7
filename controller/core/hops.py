"""The CPU of hops: what tuples between two JVMs cost, which a placement adds or saves."""

import numpy as np

from controller.core.cluster import Floats, Ints, Traffic
from controller.core.compiled import compiled
from controller.core.distance import TrafficWeights, hops

# By how far it goes, what a tuple costs each of its two ends more: inside a worker, inside a node,
# between nodes. These are the costs of the simulator's scenario of the demo, scaled to a run on a
# real cluster.
HOP_COST_S = (0.0, 0.905e-6, 1.09e-6)
WORKER, NODE = 1, 2
# Of all CPU that executors use, hops count as this share at most: the costs are of one machine.
MOST_FRAC = 0.6
# As weights, so that what a tuple saves at each end is `weigh(HOP, same node, same worker)`.
HOP = TrafficWeights(HOP_COST_S[NODE] - HOP_COST_S[WORKER], HOP_COST_S[WORKER])
FREE = TrafficWeights(0.0, 0.0)


@compiled
def hop_cores(source: Ints, target: Ints, tps: Floats, place: Ints, node_of: Ints) -> Floats:
    """Compute the CPU that each executor uses for hops in a placement, (E,), in cores."""
    cores = np.zeros(len(place))
    for k in range(len(source)):
        one, other = source[k], target[k]
        spent = tps[k] * HOP_COST_S[hops(place[one], place[other], node_of)]
        cores[one] += spent
        cores[other] += spent
    return cores


def hop_scale(traffic: Traffic, place: Ints, node_of: Ints, demand: Floats) -> float:
    """Compute how far the costs count: less than 1 where they exceed what executors use."""
    hops_cores = float(hop_cores(traffic.source, traffic.target, traffic.tps, place, node_of).sum())
    return min(1.0, MOST_FRAC * float(demand.sum()) / hops_cores) if hops_cores else 1.0

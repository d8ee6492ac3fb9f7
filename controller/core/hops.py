"""The CPU of hops: what tuples between two JVMs cost, which a placement adds or saves.

The costs are those of the lab, times what the running cluster has shown (`learnt.py`).
"""

from dataclasses import dataclass

import numpy as np

from controller.core.cluster import Floats, Ints, Traffic
from controller.core.distance import TrafficWeights
from controller.core.figures import HopFigures
from controller.core.kept import keeping
from controller.core.loops import traffic as loops

# By how far it goes, what a tuple costs each of its two ends more: inside a worker, inside a node,
# between nodes. These are the costs of the simulator's scenario of the demo, scaled to a run on a
# real cluster.
HOP_COST_S = (0.0, 0.905e-6, 1.09e-6)
COSTS_S = np.array(HOP_COST_S)
WORKER, NODE = 1, 2
# What a byte costs, as a share of what a tuple costs: 0.0041 µs, measured between two JVMs.
BYTE_TIMES = 0.0041e-6 / HOP_COST_S[NODE]
# An executor's own work is at least this share of what hops to all its peers, far away, would cost
# in the lab. Else it would be predicted to use nothing, or less, once they are near. Where hops
# cost more than in the lab, its own work is the same.
LEAST_OWN = 2 / 3
# As weights, so that what a tuple saves at each end is `weigh(HOP, same node, same worker)`.
HOP = TrafficWeights(HOP_COST_S[NODE] - HOP_COST_S[WORKER], HOP_COST_S[WORKER])
FREE = TrafficWeights(0.0, 0.0)


AS_IN_THE_LAB = HopFigures()


@dataclass(frozen=True, slots=True, eq=False)
class HopRates:
    """How much is sent, in tuples/s that cost as much on a hop as small ones do in the lab.

    At an end they count `scale` times: where hops would be too large a part of what an executor
    uses, it is less than 1. As long as the load is the same, so is this in all placements.
    """

    tps: Floats  # (P,)
    scale: Floats  # (E,)

    @classmethod
    @keeping
    def of(
        cls, traffic: Traffic, times: float, place: Ints, node_of: Ints, demand: Floats
    ) -> "HopRates":
        """Count traffic; `times` is what hops cost as times those of the lab."""
        tps = hop_tps(traffic) * times
        at = np.ascontiguousarray(place)
        far_s = HOP_COST_S[NODE] * (LEAST_OWN / max(times, 1.0))
        ends = traffic.source, traffic.target
        bound = loops.hop_bounds(*ends, tps, COSTS_S, far_s, at, node_of)
        scale = np.divide(demand, bound, out=np.ones(len(place)), where=bound > 0)
        return cls(tps, np.minimum(scale, 1.0))

    @classmethod
    def free(cls, executors: int) -> "HopRates":
        return cls(np.zeros(0), np.zeros(executors))


def hop_tps(traffic: Traffic) -> Floats:
    """Count traffic in tuples of no size, (P,), each as many as its bytes cost more."""
    if traffic.size_bytes is None:
        return np.ascontiguousarray(traffic.tps)
    counted: Floats = traffic.tps * _by_bytes(traffic.size_bytes)
    return counted


@keeping
def _by_bytes(size_bytes: Floats) -> Floats:
    """Compute as how many tuples of no size each counts, (P,); those of unknown size as one."""
    return 1.0 + BYTE_TIMES * np.nan_to_num(size_bytes)


@keeping
def hop_cores(  # noqa: PLR0917
    source: Ints, target: Ints, tps: Floats, scale: Floats, place: Ints, node_of: Ints
) -> Floats:
    """Compute the CPU that each executor uses for hops in a placement, (E,), in cores."""
    return loops.hop_cores(source, target, tps, scale, COSTS_S, place, node_of)


@keeping
def lab_hop_cores(traffic: Traffic, place: Ints, node_of: Ints) -> Floats:
    """Compute the CPU that each executor would use for hops if they cost what they do in the lab.

    Shape (E,), in cores.
    """
    ends, at = (traffic.source, traffic.target), np.ascontiguousarray(place)
    cores: Floats = hop_cores(*ends, hop_tps(traffic), np.ones(len(at)), at, node_of)
    return cores

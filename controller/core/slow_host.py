"""Names hosts that take more CPU than others for the same tuples."""

import math

import numpy as np

from controller.core.cluster import Cluster, Floats, LoadSnapshot, numbered
from controller.core.fit import SURELY_HIGH
from controller.core.hops import lab_hop_cores

# What is less may be the work of the tuples there.
_TIMES = 1.5
# An executor that uses less waits most of the time, and that costs CPU too.
_LEAST_CORES = 0.05
_LEAST_EXECUTORS = 4


def slow_hosts(cluster: Cluster, snapshot: LoadSnapshot) -> list[str]:
    """Compare what executors of a component take for a tuple on one host and on the others.

    Hops are taken out, as far as they cost what they do in the lab. The more executors of a
    host differ, the less sure it is. Linear in executors and pairs.
    """
    traffic, place, hosts = snapshot.traffic, snapshot.place, len(cluster.nodes)
    node, (components, component) = cluster.node_of[place], numbered(snapshot.component_of)
    got, sent = (np.bincount(e, traffic.tps, len(place)) for e in (traffic.target, traffic.source))
    tuples = np.where(got > 0, got, sent)
    cores = snapshot.cpu_cores - lab_hop_cores(traffic, place, cluster.node_of)
    busy = (cores >= _LEAST_CORES) & (tuples > 0)
    cell = component * hosts + node

    def of_others(of: Floats) -> Floats:
        """Add up by component and host what there is on all other hosts."""
        there = np.bincount(cell[busy], of[busy], len(components) * hosts).reshape(-1, hosts)
        others: Floats = (there.sum(axis=1, keepdims=True) - there).ravel()
        return others

    elsewhere = of_others(tuples)
    # What is left of a sum may be its rounding, so executors are counted.
    known = busy & (of_others(np.ones(len(place)))[cell] > 0) & (elsewhere[cell] > 0)
    usual = of_others(cores)[cell[known]] / elsewhere[cell[known]]
    logs, at = np.log(cores[known] / tuples[known] / usual), node[known]
    number = np.bincount(at, minlength=hosts)
    mean = np.bincount(at, logs, hosts) / np.maximum(number, 1)
    spread = np.bincount(at, (logs - mean[at]) ** 2, hosts) / np.maximum(number - 1, 1)
    least = mean - SURELY_HIGH * np.sqrt(spread / np.maximum(number, 1))
    slow = np.flatnonzero((number >= _LEAST_EXECUTORS) & (least > math.log(_TIMES)))
    return [
        f"{cluster.nodes[n]} takes {math.exp(mean[n]):.1f} times the CPU of the other hosts for "
        f"the same tuples, by {number[n]} executors"
        for n in slow.tolist()
    ]

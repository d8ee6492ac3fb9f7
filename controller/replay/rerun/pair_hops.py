"""Lays who talks to whom over a placement, to tell what goes how far, and what that costs."""

from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from controller.core.cluster import Floats, Ints
from controller.core.compiled import compiled
from controller.replay.recording import Singles, Span

US_PER_S = 1e6
# How far the tuples of each pair go: inside a worker, inside a node, between nodes.
Hops: TypeAlias = NDArray[np.int8]
WORKER, NODE = 1, 2


class HopCost(NamedTuple):
    """What a tuple costs each of its two ends more than inside a worker."""

    worker_us: float  # between workers of a node
    node_us: float  # between nodes


# An executor takes its CPU along, wherever it goes.
FREE = HopCost(0.0, 0.0)
# Those of the simulator's scenario of the demo, which are scaled to a run on a real cluster.
OF_THE_DEMO = HopCost(worker_us=0.905, node_us=1.09)


class PairHops(NamedTuple):
    """How far each pair's tuples of a span go in a placement."""

    place: Ints  # (E,), worker of each executor
    hops: Hops  # (P,)

    @classmethod
    def of(cls, span: Span, place: Ints) -> "PairHops":
        """Look where the ends of each pair are; the placement is copied."""
        return cls(place.copy(), _hops(span.source, span.target, place, span.cluster.node_of))


@compiled
def _hops(source: Ints, target: Ints, place: Ints, node_of: Ints) -> Hops:
    hops = np.zeros(len(source), dtype=np.int8)
    for k in range(len(source)):
        at, to = place[source[k]], place[target[k]]
        hops[k] = int(at != to) + int(node_of[at] != node_of[to])
    return hops


@compiled
def load(  # noqa: PLR0917
    source: Ints,
    target: Ints,
    tps: Singles,
    cores: Singles,
    replayed: Hops,
    recorded: Hops,
    cost: HopCost,
) -> tuple[Floats, float, float, float]:
    """Compute the load of one tick in a placement: CPU (E,), and traffic.

    The CPU is the recorded one, less the hops of the recorded placement, with those of the replayed
    one, and never below zero. The traffic is that between nodes, that between workers (those of
    other nodes too), and all, in tuples/s.
    """
    cost_s = np.array([0.0, cost.worker_us, cost.node_us]) / US_PER_S
    cpu_cores = cores.astype(np.float64)
    crossing = leaving = total = 0.0
    for k in range(len(source)):
        said, hops = float(tps[k]), replayed[k]
        one, other = np.uint64(source[k]), np.uint64(target[k])  # never looked at for a sign
        total += said
        leaving += said if hops >= WORKER else 0.0
        crossing += said if hops == NODE else 0.0
        more = said * (cost_s[hops] - cost_s[recorded[k]])
        cpu_cores[one] += more
        cpu_cores[other] += more
    return np.maximum(cpu_cores, 0.0), crossing, leaving, total

"""Measures how close executors are to those they send to, and to their twins (003)."""

from math import fsum

from controller.core.cluster import Ints, LoadSnapshot
from controller.policies.component_graph import component_graph, executors_of

# 003 section 3.1: 0.25 ms in memory against 10 ms over the network.
DISTANCE_BETWEEN_PROCESSES = 40


def closeness(one: int, other: int) -> float:
    """Compute one over the distance of two workers: 1 in a process, 1/40 between two."""
    return 1.0 if one == other else 1 / DISTANCE_BETWEEN_PROCESSES


def cohesion(snapshot: LoadSnapshot, place: Ints) -> float:
    """Measure how close executors are to those they send to.

    For every stream and every executor that sends on it, the closeness to its closest receiver.
    003, equation 1, for any graph and not only a chain. Its printed "min" is over the distance.
    """
    executors = executors_of(snapshot)
    return fsum(
        max((closeness(place[e], place[d]) for d in executors[target]), default=0.0)
        for source, target in component_graph(snapshot).edges
        for e in executors[source]
        if source != target
    )


def coupling(snapshot: LoadSnapshot, place: Ints, *, farthest: bool = False) -> float:
    """Measure how close each executor is to its closest twin, another executor of its component.

    The sum over all executors; one without a twin counts nothing. 003, equation 2. The text has the
    closest twin, the printed "min" of the closeness is the farthest (`farthest`). That both
    schedulers have equal coupling in all five topologies is true of the farthest only.
    """
    executors = executors_of(snapshot)
    pick = min if farthest else max
    return fsum(
        pick((closeness(place[e], place[t]) for t in executors[name] if t != e), default=0.0)
        for name in component_graph(snapshot)
        for e in executors[name]
    )

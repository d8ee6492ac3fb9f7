"""Keeps one executor of each component together, the L/F scheduler of 003, and its measures."""

from collections import deque
from math import fsum

from controller.core.classify import Limits
from controller.core.cluster import Cluster, Ints, LoadSnapshot
from controller.core.decision import Decision
from controller.policies.component_graph import component_graph, consumers, executors_of, feeders
from controller.policies.even import deal
from controller.policies.placement import as_decision

# 003 section 3.1: 0.25 ms in memory against 10 ms over the network.
DISTANCE_BETWEEN_PROCESSES = 40


def pipelines(snapshot: LoadSnapshot) -> list[list[int]]:
    """Take the topology apart into chains with one executor a component (003, algorithms 3 and 4).

    Each executor is in one pipeline, in the order it was reached. The "arbitrary" component a
    pipeline starts from is the first that has executors left: only so do the paper's figures come
    out. Cycles do no harm, a component is taken once a pipeline. System components have no
    neighbours, so their executors stay alone.
    """
    graph = component_graph(snapshot)
    left = {name: deque(executors) for name, executors in executors_of(snapshot).items()}
    neighbours = {name: [*feeders(graph, name), *consumers(graph, name)] for name in left}
    found = []
    for start, executors in left.items():
        while executors:
            found.append(_connect(start, left, neighbours))
    return found


def _connect(
    start: str, left: dict[str, deque[int]], neighbours: dict[str, list[str]]
) -> list[int]:
    """Go on depth first to those that feed, then to those that are fed; an empty component cuts."""
    pipe: dict[str, int] = {}
    waiting = [start]
    while waiting:
        name = waiting.pop()
        if name not in pipe and left[name]:
            pipe[name] = left[name].popleft()
            waiting += reversed(neighbours[name])
    return list(pipe.values())


def lf_place(cluster: Cluster, snapshot: LoadSnapshot) -> Ints:
    """Place pipelines round robin (003, algorithm 5)."""
    return deal(cluster, pipelines(snapshot), len(snapshot.executors))


def lf(cluster: Cluster, snapshot: LoadSnapshot, limits: Limits) -> Decision:
    """Decide for the locality- and fairness-aware placement of 003; it knows no load, no limits."""
    return as_decision(cluster, snapshot, lf_place(cluster, snapshot), "L/F scheduler (003)")


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

    The sum over all executors; one without a twin counts nothing. 003, equation 2. The text says
    the closest twin, the printed "min" of the closeness is the farthest (`farthest`); that both
    schedulers have equal coupling in all five topologies is true of the farthest only.
    """
    executors = executors_of(snapshot)
    pick = min if farthest else max
    return fsum(
        pick((closeness(place[e], place[t]) for t in executors[name] if t != e), default=0.0)
        for name in component_graph(snapshot)
        for e in executors[name]
    )

"""Keeps one executor of each component together, the L/F scheduler of 003."""

from collections import deque

from controller.core.classify import Limits
from controller.core.cluster import Cluster, Ints, LoadSnapshot
from controller.core.decision import Decision
from controller.policies.component_graph import component_graph, consumers, executors_of, feeders
from controller.policies.even import deal
from controller.policies.placement import as_decision


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

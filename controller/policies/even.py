"""Deals executors out to slots like cards (003): each alone, or in pipelines.

Each alone is what Storm does by default.
"""

from collections import deque
from collections.abc import Iterable

import numpy as np

from controller.core.cluster import Cluster, Ints, LoadSnapshot
from controller.core.decision import Decision
from controller.core.limits import Limits
from controller.policies.component_graph import component_graph, consumers, executors_of, feeders
from controller.policies.placement import as_decision


def sort_slots(cluster: Cluster) -> Ints:
    """List the workers, one of each node in turn, until none is left (003, algorithm 1).

    Nodes with more slots go first, ties by id. Every worker is a slot that is free for the
    topology.
    """
    by_node = [np.flatnonzero(cluster.node_of == n) for n in range(len(cluster.nodes))]
    fullest_first = sorted(by_node, key=len, reverse=True)
    rounds = max((len(slots) for slots in fullest_first), default=0)
    turns = [slots[i] for i in range(rounds) for slots in fullest_first if i < len(slots)]
    return np.array(turns, dtype=np.int64)


def deal(cluster: Cluster, groups: Iterable[Iterable[int]], executors: int) -> Ints:
    """Give the first group of executors to the first of the sorted slots, and so on, round and
    round.

    Each executor is in one group; the answer has each executor's worker.
    """
    slots = sort_slots(cluster)
    place = np.zeros(executors, dtype=np.int64)
    for i, group in enumerate(groups):
        place[list(group)] = slots[i % len(slots)]
    return place


def even_place(cluster: Cluster, snapshot: LoadSnapshot) -> Ints:
    """Place every executor alone, component by component (003, algorithm 2, all slots requested).

    System components are not in the paper; their executors go last.
    """
    groups = [[e] for executors in executors_of(snapshot).values() for e in executors]
    return deal(cluster, groups, len(snapshot.executors))


def even(cluster: Cluster, snapshot: LoadSnapshot, limits: Limits) -> Decision:
    """Decide for Storm's even placement, which knows no load: the limits are not used."""
    return as_decision(cluster, snapshot, even_place(cluster, snapshot), "even scheduler")


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

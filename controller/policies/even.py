"""Deals executors out to slots like cards, as Storm does by default (003, algorithms 1 and 2)."""

from collections.abc import Iterable

import numpy as np

from controller.core.classify import Limits
from controller.core.cluster import Cluster, Ints, LoadSnapshot
from controller.core.decision import Decision
from controller.policies.component_graph import executors_of
from controller.policies.placement import as_decision


def sort_slots(cluster: Cluster, nodes: int | None = None) -> Ints:
    """List the workers, one of each node in turn, until none is left (003, algorithm 1).

    Nodes with more slots go first, ties by id. With `nodes`, only that many nodes are used, those
    with the most slots. Every worker is a slot that is free for the topology.
    """
    by_node = [np.flatnonzero(cluster.node_of == n) for n in range(len(cluster.nodes))]
    fullest_first = sorted(by_node, key=len, reverse=True)[:nodes]
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
    """Place every executor by itself, component by component (003, algorithm 2, all slots
    requested).

    System components are not in the paper; their executors go last.
    """
    groups = [[e] for executors in executors_of(snapshot).values() for e in executors]
    return deal(cluster, groups, len(snapshot.executors))


def even(cluster: Cluster, snapshot: LoadSnapshot, limits: Limits) -> Decision:
    """Decide for Storm's even placement, which knows no load: the limits are not used."""
    return as_decision(cluster, snapshot, even_place(cluster, snapshot), "even scheduler")

"""Builds the clusters and topologies that the papers' figures are about, and three small ones."""

from collections.abc import Mapping, Sequence
from itertools import pairwise

import numpy as np

from controller.core.cluster import Cluster, LoadSnapshot, Traffic
from migration.model import Component, Edge

# From, to, tuples per second.
Talk = Sequence[tuple[int, int, float]]


def cluster(slots: Sequence[int], capacity_cores: float = 1.0) -> Cluster:
    """Build nodes with equal workers.

    Parameters
    ----------
    slots : sequence of int
        How many workers each node has.

    Returns
    -------
    Cluster
        Workers node by node.
    """
    nodes = [f"n{n}" for n in range(len(slots))]
    workers = [
        (f"n{n}:{6700 + port}", f"n{n}", capacity_cores)
        for n, count in enumerate(slots)
        for port in range(count)
    ]
    return Cluster.build(nodes, workers)


def topology(
    executors: Mapping[str, int],
    edges: Sequence[tuple[str, str]],
    *,
    place: Sequence[int] = (),
    cpu_cores: Sequence[float] = (),
    talk: Talk = (),
) -> LoadSnapshot:
    """Build a topology whose executors are numbered through from 0, component by component.

    Parameters
    ----------
    place : sequence of int
        Worker of each executor; all on the first if it is empty.
    cpu_cores : sequence of float
        Of each executor; nothing if it is empty.

    Returns
    -------
    LoadSnapshot
        Nothing is pinned, no queue is filled.
    """
    component_of = tuple(name for name, count in executors.items() for _ in range(count))
    size = len(component_of)
    source, target, tps = np.array(talk, dtype=np.float64).reshape(-1, 3).T
    return LoadSnapshot(
        topology="reproduced",
        time_s=0.0,
        components=tuple(Component(name, "bolt", count) for name, count in executors.items()),
        edges=tuple(Edge(one, other, "default", "shuffle") for one, other in edges),
        executors=tuple(f"{e}-{e}" for e in range(size)),
        component_of=component_of,
        place=np.array(place or [0] * size, dtype=np.int64),
        cpu_cores=np.array(cpu_cores or [0.0] * size, dtype=np.float64),
        queue=np.zeros(size),
        pinned=(None,) * size,
        traffic=Traffic.build(source.astype(np.int64), target.astype(np.int64), tps),
    )


def chain(sizes: Sequence[int]) -> LoadSnapshot:
    """Build components in a row, named po1 and so on.

    Returns
    -------
    LoadSnapshot
        Each component feeds the next; no traffic is measured.
    """
    names = [f"po{i}" for i in range(1, len(sizes) + 1)]
    return topology(dict(zip(names, sizes, strict=True)), list(pairwise(names)))


def hand_graph() -> tuple[Cluster, LoadSnapshot]:
    """Build a graph small enough to follow by hand.

    Returns
    -------
    Cluster
        Two nodes of two workers.
    LoadSnapshot
        Six executors of 0.2 cores, 32 tuples per second, of which 24 go between the nodes.
    """
    talk = [(0, 1, 8.0), (0, 2, 2.0), (1, 3, 5.0), (2, 4, 7.0), (3, 5, 4.0), (4, 5, 6.0)]
    snapshot = topology(
        {f"c{i}": 1 for i in range(6)},
        [(f"c{a}", f"c{b}") for a, b, _ in talk],
        place=[0, 2, 1, 0, 3, 2],
        cpu_cores=[0.2] * 6,
        talk=talk,
    )
    return cluster([2, 2]), snapshot


def saddle() -> tuple[Cluster, LoadSnapshot]:
    """Build a placement that no single move improves.

    Returns
    -------
    Cluster
        Two nodes of one worker.
    LoadSnapshot
        Two executors of one component talk to two of another, one of each on each node.
    """
    snapshot = topology(
        {"bolt1": 2, "bolt2": 2},
        [("bolt1", "bolt2")],
        place=[0, 1, 0, 1],
        cpu_cores=[0.2] * 4,
        talk=[(0, 2, 10.0), (0, 3, 10.0), (1, 2, 10.0), (1, 3, 10.0)],
    )
    return cluster([1, 1]), snapshot


def ping_pong() -> tuple[Cluster, LoadSnapshot]:
    """Build a placement to which the literal OTD comes back.

    Returns
    -------
    Cluster
        Two nodes of one worker.
    LoadSnapshot
        Two executors that talk, both on the first worker, which they overload.
    """
    snapshot = topology(
        {"bolt1": 1, "bolt2": 1},
        [("bolt1", "bolt2")],
        cpu_cores=[0.5, 0.4],
        talk=[(0, 1, 10.0)],
    )
    return cluster([1, 1]), snapshot

"""Makes clusters, and topologies with their load, for tests and for the papers' figures."""

from collections.abc import Mapping, Sequence
from itertools import pairwise

import numpy as np

from controller.core.cluster import Cluster, LoadSnapshot, Traffic
from migration.model import Component, Edge

# From, to, tuples per second.
Talk = Sequence[tuple[int, int, float]]


def cluster(slots: Sequence[int], capacity_cores: float = 1.0) -> Cluster:
    """Build nodes n0, n1, … with a number of workers each, which are numbered node by node."""
    nodes = [f"n{n}" for n in range(len(slots))]
    workers = [
        (f"n{n}:{6700 + port}", f"n{n}", capacity_cores)
        for n, count in enumerate(slots)
        for port in range(count)
    ]
    return Cluster.build(nodes, workers)


def components(parallelism: Mapping[str, int]) -> tuple[Component, ...]:
    """Make a bolt of each name; ``__acker`` and its like are of the system."""
    return tuple(
        Component(name, "system" if name.startswith("__") else "bolt", max(count, 1))
        for name, count in parallelism.items()
    )


def snapshot(
    component_of: Sequence[str],
    place: Sequence[int] = (),
    cpu_cores: Sequence[float] | float = 0.0,
    talk: Talk = (),
    *,
    of: Sequence[Component] = (),
    edges: Sequence[tuple[str, str]] = (),
    pinned: Sequence[str | None] = (),
    first: int = 0,
) -> LoadSnapshot:
    """Put executors, whose tasks are numbered from `first` on, on workers.

    Parameters
    ----------
    place : sequence of int
        Worker of each executor; all on the first if it is empty.
    cpu_cores : sequence of float, or float
        Of each executor.
    of : sequence of Component
        Else the components that the executors name.
    """
    count = len(component_of)
    source, target, tps = np.array(talk, dtype=np.float64).reshape(-1, 3).T
    names = dict.fromkeys(component_of)
    return LoadSnapshot(
        topology="t",
        time_s=0.0,
        components=tuple(of) or components({one: [*component_of].count(one) for one in names}),
        edges=tuple(Edge(one, other, "default", "shuffle") for one, other in edges),
        executors=tuple(f"{e}-{e}" for e in range(first, first + count)),
        component_of=tuple(component_of),
        place=np.array(place or [0] * count, dtype=np.int64),
        cpu_cores=np.full(count, cpu_cores, dtype=np.float64),
        queue=np.zeros(count),
        pinned=tuple(pinned) or (None,) * count,
        traffic=Traffic.build(source.astype(np.int64), target.astype(np.int64), tps),
    )


def topology(
    parallelism: Mapping[str, int],
    edges: Sequence[tuple[str, str]] = (),
    *,
    place: Sequence[int] = (),
    cpu_cores: Sequence[float] | float = 0.0,
    talk: Talk = (),
    first: int = 0,
) -> LoadSnapshot:
    """Build a topology whose executors are numbered through, component by component."""
    component_of = [name for name, count in parallelism.items() for _ in range(count)]
    of = components(parallelism)
    return snapshot(component_of, place, cpu_cores, talk, of=of, edges=edges, first=first)


def chain(sizes: Sequence[int], *, cpu_cores: float = 0.0, first: int = 0) -> LoadSnapshot:
    """Build components po1, po2, … of these sizes, each feeding the next, without traffic."""
    names = [f"po{i}" for i in range(1, len(sizes) + 1)]
    parallelism = dict(zip(names, sizes, strict=True))
    return topology(parallelism, list(pairwise(names)), cpu_cores=cpu_cores, first=first)

"""Small clusters and topologies for the tests of the older schedulers."""

from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from controller.core.cluster import Cluster, LoadSnapshot, Traffic
from controller.policies.profiles import Machine, Profiles
from migration.model import Component, Edge

Rows = Sequence[tuple[int, int, float]]


def cluster(slots: Sequence[int], capacity_cores: float = 1.0) -> Cluster:
    """Build nodes n0, n1, … with a number of slots each."""
    nodes = [f"n{n}" for n in range(len(slots))]
    workers = [
        (f"n{n}:{6700 + p}", f"n{n}", capacity_cores)
        for n, count in enumerate(slots)
        for p in range(count)
    ]
    return Cluster.build(nodes, workers)


def speeds(*hz: float) -> Profiles:
    """Give the first nodes a clock each."""
    return Profiles(machines={f"n{n}": Machine("", one) for n, one in enumerate(hz)})


def topology(
    parallelism: dict[str, int],
    edges: Sequence[tuple[str, str]] = (),
    traffic: Rows = (),
    cpu_cores: Sequence[float] = (),
) -> LoadSnapshot:
    """Build components in this order, executors numbered through; `__*` are system components."""
    component_of = tuple(name for name, count in parallelism.items() for _ in range(count))
    count = len(component_of)
    ends = np.array([row[:2] for row in traffic], dtype=np.int64).reshape(-1, 2)
    tps = np.array([row[2] for row in traffic], dtype=np.float64)
    return LoadSnapshot(
        topology="t",
        time_s=0.0,
        components=tuple(
            Component(name, "system" if name.startswith("__") else "bolt", max(executors, 1))
            for name, executors in parallelism.items()
        ),
        edges=tuple(Edge(source, target, "default", "shuffle") for source, target in edges),
        executors=tuple(f"{i}-{i}" for i in range(1, count + 1)),
        component_of=component_of,
        place=np.zeros(count, dtype=np.int64),
        cpu_cores=np.array(cpu_cores or [0.1] * count, dtype=np.float64),
        queue=np.zeros(count),
        pinned=(None,) * count,
        traffic=Traffic.build(ends[:, 0], ends[:, 1], tps),
    )


def chain(*sizes: int) -> LoadSnapshot:
    """Build components po1, po2, … of these sizes, each feeding the next."""
    names = [f"po{i}" for i in range(1, len(sizes) + 1)]
    return topology(dict(zip(names, sizes, strict=True)), list(pairwise(names)))

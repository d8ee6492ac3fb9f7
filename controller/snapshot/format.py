"""Reads the snapshot format, which is stable, and refuses what is not of it.

Profiles of components and machines are optional keys that only some policies need.
"""

import json
from collections.abc import Collection
from dataclasses import replace

import numpy as np

from controller.core.cluster import (
    Cluster,
    Cost,
    LoadSnapshot,
    Machine,
    Performance,
    Profile,
    Traffic,
    order,
)
from controller.errors import SnapshotError
from controller.snapshot.fields import (
    LEAST,
    Row,
    count,
    items,
    known_only,
    nonnegative,
    one_of,
    quantity,
    rows,
    text,
)
from migration.model import Component, Edge

# By the list whose objects may have them.
KEYS = {
    "components": ("id", "parallelism", "kind", "profile"),
    "edges": ("from", "to", "stream", "grouping"),
    "nodes": ("id", "type", "speed_hz"),
    "workers": ("id", "node", "cpu_capacity"),
    "executors": ("id", "component", "worker", "cpu", "queue", "pinned"),
    "performance": ("threads", "rate", "cpu", "memory"),
    "costs": ("machine", "ms_per_tuple", "overhead"),
}
TOP_KEYS = (
    "topology",
    "time_s",
    "components",
    "edges",
    "nodes",
    "workers",
    "executors",
    "traffic",
    "rate",
)
# As Storm's Grouping names them; global is its fields grouping without fields.
GROUPINGS = (
    "shuffle",
    "fields",
    "all",
    "none",
    "direct",
    "global",
    "local_or_shuffle",
    "custom_object",
    "custom_serialized",
)


def parse(snapshot: str) -> tuple[Cluster, LoadSnapshot]:
    """Read a snapshot, or refuse it.

    Parameters
    ----------
    snapshot : str
        A JSON object as in docs/snapshot.md.

    Returns
    -------
    Cluster
        Nodes and workers, all open.
    LoadSnapshot
        Executors on them, and their traffic.

    Raises
    ------
    SnapshotError
        The text is not JSON, a field is missing, unknown, given twice or of the wrong kind, an id
        is unknown or given twice, a quantity is negative or not a number; the message starts with
        the field.
    """
    try:
        document = json.loads(snapshot, object_pairs_hook=Row.of)
    except (ValueError, RecursionError) as error:
        raise SnapshotError(f"not JSON: {error}") from None
    if not isinstance(document, Row):
        raise SnapshotError("the snapshot must be a JSON object")
    known_only(document, TOP_KEYS, "")
    cluster = _cluster(document)
    return cluster, _load(document, cluster)


def _cluster(document: Row) -> Cluster:
    nodes = _ids(document, "nodes")
    workers = []
    for path, row in rows(document, "workers", KEYS["workers"]):
        capacity = quantity(row, "cpu_capacity", path)
        if capacity == 0:
            raise SnapshotError(f"{path}.cpu_capacity: must be at least {LEAST:g}")
        workers.append((text(row, "id", path), one_of(row, "node", path, nodes), capacity))
    _ids(document, "workers")
    machines = {
        text(row, "id", path): _machine(row, path)
        for path, row in rows(document, "nodes", KEYS["nodes"])
    }
    return replace(Cluster.build(list(nodes), workers), machines=machines)


def _machine(row: Row, path: str) -> Machine:
    return Machine(
        text(row, "type", path) if "type" in row else "",
        quantity(row, "speed_hz", path) if "speed_hz" in row else 0.0,
    )


def _load(document: Row, cluster: Cluster) -> LoadSnapshot:
    known = _ids(document, "components")
    ids = list(_ids(document, "executors"))
    worker_index = {name: i for i, name in enumerate(cluster.workers)}
    found = list(rows(document, "executors", KEYS["executors"]))
    found = [found[i] for i in order(ids)]
    executors = tuple(ids[i] for i in order(ids))
    return LoadSnapshot(
        topology=text(document, "topology", ""),
        time_s=quantity(document, "time_s", ""),
        components=tuple(
            Component(text(row, "id", path), _kind(row, path), count(row, "parallelism", path))
            for path, row in rows(document, "components", KEYS["components"])
        ),
        edges=_edges(document, known),
        executors=executors,
        component_of=tuple(one_of(row, "component", path, known) for path, row in found),
        place=np.array(
            [worker_index[one_of(row, "worker", path, worker_index)] for path, row in found],
            dtype=np.int64,
        ),
        cpu_cores=np.array([quantity(row, "cpu", path) for path, row in found], dtype=np.float64),
        queue=np.array([quantity(row, "queue", path) for path, row in found], dtype=np.float64),
        pinned=tuple(
            None if row.get("pinned") is None else text(row, "pinned", path) for path, row in found
        ),
        traffic=_traffic(document, executors),
        profiles={
            text(row, "id", path): _profile(row, f"{path}.profile")
            for path, row in rows(document, "components", KEYS["components"])
            if "profile" in row
        },
        rate_tps=quantity(document, "rate", "") if "rate" in document else None,
    )


def _profile(component: Row, path: str) -> Profile:
    profile = component["profile"]
    if not isinstance(profile, Row):
        raise SnapshotError(f"{path}: must be an object")
    known_only(profile, ("selectivity", "performance", "costs"), path)
    given = Row({"performance": [], "costs": [], **profile})
    return Profile(
        quantity(profile, "selectivity", path) if "selectivity" in profile else 1.0,
        tuple(
            Performance(
                count(row, "threads", at),
                quantity(row, "rate", at),
                quantity(row, "cpu", at),
                quantity(row, "memory", at),
            )
            for at, row in rows(given, "performance", KEYS["performance"], path)
        ),
        tuple(
            Cost(
                text(row, "machine", at),
                quantity(row, "ms_per_tuple", at),
                quantity(row, "overhead", at),
            )
            for at, row in rows(given, "costs", KEYS["costs"], path)
        ),
    )


def _edges(document: Row, components: Collection[str]) -> tuple[Edge, ...]:
    return tuple(
        Edge(
            one_of(row, "from", path, components, what="component"),
            one_of(row, "to", path, components, what="component"),
            text(row, "stream", path) if "stream" in row else "default",
            one_of(row, "grouping", path, GROUPINGS, tell=True),
        )
        for path, row in rows(document, "edges", KEYS["edges"])
    )


def _traffic(document: Row, executors: tuple[str, ...]) -> Traffic:
    index = {name: i for i, name in enumerate(executors)}
    seen: set[tuple[int, int]] = set()
    tps = []
    for i, row in enumerate(items(document, "traffic")):
        path = f"traffic[{i}]"
        if not isinstance(row, list) or len(row) != 3:
            raise SnapshotError(f"{path}: must be [from, to, tuples per second]")
        for end in row[:2]:
            if not isinstance(end, str) or end not in index:
                raise SnapshotError(f"{path}: unknown executor {json.dumps(end)}")
        pair = (index[row[0]], index[row[1]])
        if pair in seen:
            raise SnapshotError(f"{path}: {row[0]} to {row[1]} is given twice")
        seen.add(pair)
        tps.append((*pair, nonnegative(row[2], path)))
    ends = np.array([row[:2] for row in tps], dtype=np.int64).reshape(-1, 2)
    return Traffic.build(ends[:, 0], ends[:, 1], np.array([row[2] for row in tps], dtype=float))


def _ids(document: Row, key: str) -> dict[str, None]:
    """Collect the ids of a list's objects, in their order."""
    seen: dict[str, None] = {}
    for path, row in rows(document, key, KEYS[key]):
        name = text(row, "id", path)
        if name in seen:
            raise SnapshotError(f"{path}.id: {json.dumps(name)} is given twice")
        seen[name] = None
    if not seen:
        raise SnapshotError(f"{key}: must not be empty")
    return seen


def _kind(row: Row, path: str) -> str:
    return one_of(row, "kind", path, ("spout", "bolt", "system"), tell=True)

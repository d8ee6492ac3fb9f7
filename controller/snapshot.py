"""Reads the snapshot format, which is stable, and refuses what is not of it.

Profiles of components and machines are optional keys that only some policies need.
"""

import json
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any, Literal

import numpy as np
from msgspec import UNSET, Meta, UnsetType, defstruct

from controller.core.cluster import Cluster, Floats, LoadSnapshot, Traffic, natural_key
from controller.core.figures import LEAST
from controller.core.quantities import MOST, Count, Name, Quantity
from controller.core.resources import SPACES
from controller.core.spaces import levels_of
from controller.errors import SnapshotError
from controller.policies.profiles import Given, Machine, Profile, Profiles
from controller.strict import joined, read
from migration.model import Component, Edge

# As Storm's Grouping names them; global is its fields grouping without fields.
Grouping = Literal[
    "shuffle",
    "fields",
    "all",
    "none",
    "direct",
    "global",
    "local_or_shuffle",
    "custom_object",
    "custom_serialized",
]
_Capacity = Annotated[float, Meta(ge=LEAST, le=MOST)]
_SOME = Meta(min_length=1)


class _GivenComponent(Given, frozen=True):
    id: Name
    parallelism: Count
    kind: Literal["spout", "bolt", "system"]
    profile: Profile | UnsetType = UNSET


class _GivenEdge(Given, rename={"source": "from", "target": "to"}, frozen=True):
    source: Name
    target: Name
    grouping: Grouping
    stream: Name = "default"


class _GivenNode(Given, frozen=True):
    id: Name
    type: Name = ""
    speed_hz: Quantity = 0.0
    cpu_capacity: _Capacity | UnsetType = UNSET  # that its workers share
    cpu_others: Quantity = 0.0  # of it, what others use
    link_bytes_per_s: _Capacity | UnsetType = UNSET  # in one direction, less what others use


class _GivenWorker(Given, frozen=True):
    id: Name
    node: Name
    cpu_capacity: _Capacity | UnsetType = UNSET


if TYPE_CHECKING:
    _MeasuredWorker = _GivenWorker
else:
    _MeasuredWorker = defstruct(
        "_MeasuredWorker",
        [(space.held, Quantity | UnsetType, UNSET) for space in SPACES]
        + [(space.most, _Capacity | UnsetType, UNSET) for space in SPACES],
        bases=(_GivenWorker,),
        frozen=True,
    )


class _GivenExecutor(Given, frozen=True):
    id: Name
    component: Name
    worker: Name
    cpu: Quantity
    queue: Quantity
    pinned: Name | None = None


class _GivenTraffic(
    Given,
    array_like=True,
    rename={"source": "from", "target": "to", "tps": "tuples/s"},
    frozen=True,
):
    source: Name
    target: Name
    tps: Quantity
    size_bytes: Quantity | UnsetType = UNSET


class _GivenSnapshot(Given, frozen=True):
    topology: Name
    time_s: Quantity
    components: Annotated[tuple[_GivenComponent, ...], _SOME]
    edges: tuple[_GivenEdge, ...]
    nodes: Annotated[tuple[_GivenNode, ...], _SOME]
    workers: Annotated[tuple[_MeasuredWorker, ...], _SOME]
    executors: Annotated[tuple[_GivenExecutor, ...], _SOME]
    traffic: tuple[_GivenTraffic, ...]
    rate: Quantity | UnsetType = UNSET


def parse(snapshot: str) -> tuple[Cluster, LoadSnapshot]:
    """Read a snapshot, a JSON object as in docs/snapshot.md; all of its workers are open.

    Raises SnapshotError, whose message starts with the field. The text is then not JSON, or a field
    is missing, unknown, given twice or of the wrong kind. Or an id is unknown or given twice, or a
    quantity is negative or not a number.
    """
    cluster, load, _ = parse_with_profiles(snapshot)
    return cluster, load


def parse_with_profiles(snapshot: str) -> tuple[Cluster, LoadSnapshot, Profiles]:
    """Read a snapshot as `parse` does, with the keys that only some policies need."""
    given = _given(snapshot)
    cluster = _cluster(given)
    return cluster, _load(given, cluster), _profiles(given)


def _profiles(given: _GivenSnapshot) -> Profiles:
    return Profiles(
        components={c.id: c.profile for c in given.components if c.profile is not UNSET},
        machines={node.id: Machine(node.type, node.speed_hz) for node in given.nodes},
        rate_tps=None if given.rate is UNSET else given.rate,
    )


def _given(snapshot: str) -> _GivenSnapshot:
    twice: list[tuple[dict[str, Any], str]] = []

    def made(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found = dict(pairs)
        if len(found) < len(pairs):
            keys = [key for key, _ in pairs]
            twice.append((found, next(key for i, key in enumerate(keys) if key in keys[:i])))
        return found

    try:
        document = json.loads(snapshot, object_pairs_hook=made)
    except (ValueError, RecursionError) as error:
        raise SnapshotError(f"not JSON: {error}") from None
    for row, key in twice:
        for path in _find(row, document):
            raise SnapshotError(f"{joined(path, key)}: is given twice")
    if not isinstance(document, dict):
        raise SnapshotError("the snapshot must be a JSON object")
    return read(document, _GivenSnapshot, SnapshotError)


def _find(wanted: Any, value: Any, path: str = "") -> Iterator[str]:
    if value is wanted:
        yield path
    elif isinstance(value, dict | list):
        for key, item in value.items() if isinstance(value, dict) else enumerate(value):
            yield from _find(wanted, item, joined(path, key))


def _cluster(given: _GivenSnapshot) -> Cluster:
    nodes = _ids(given.nodes, "nodes")
    _ids(given.workers, "workers")
    for i, worker in enumerate(given.workers):
        _refuse_unknown("node", worker.node, nodes, f"workers[{i}].node")
    if any(node.cpu_capacity is not UNSET for node in given.nodes):
        return _sharing(given)
    workers = []
    for i, worker in enumerate(given.workers):
        if worker.cpu_capacity is UNSET:
            raise SnapshotError(
                f"workers[{i}].cpu_capacity: is missing, and no node has a cpu_capacity"
            )
        workers.append((worker.id, worker.node, worker.cpu_capacity))
    return Cluster.build(list(nodes), workers)


def _sharing(given: _GivenSnapshot) -> Cluster:
    """Lay out nodes whose workers share their CPU."""
    cores: dict[str, tuple[float, float]] = {}
    for i, node in enumerate(given.nodes):
        if node.cpu_capacity is UNSET:
            raise SnapshotError(f"nodes[{i}].cpu_capacity: is missing, and other nodes have one")
        cores[node.id] = node.cpu_capacity, node.cpu_others
    for i, worker in enumerate(given.workers):
        if worker.cpu_capacity is not UNSET:
            raise SnapshotError(f"workers[{i}].cpu_capacity: its node has one already")
    count = Counter(worker.node for worker in given.workers)
    cluster = Cluster.build(
        list(cores),
        [(one.id, one.node, cores[one.node][0] / count[one.node]) for one in given.workers],
    )
    node_cores, other_cores = np.array([cores[node] for node in cluster.nodes], np.float64).T
    link = {node.id: node.link_bytes_per_s for node in given.nodes}
    link_bytes_s = _known([link[node] for node in cluster.nodes])
    rows = {one.id: one for one in given.workers}
    told = {
        name: _known([getattr(rows[worker], name) for worker in cluster.workers])
        for space in SPACES
        for name in (space.held, space.most)
    }
    columns = {name: column for name, column in told.items() if column is not None}
    return replace(
        cluster,
        node_cores=node_cores.copy(),
        other_cores=other_cores.copy(),
        link_bytes_s=None if link_bytes_s is None else np.stack([link_bytes_s] * 2),
        spaces=levels_of(columns, len(cluster.workers)),
    )


def _known(given: Sequence[float | UnsetType]) -> Floats | None:
    """Take numbers, NaN where one is missing; None where all are."""
    found = np.array([np.nan if one is UNSET else one for one in given], np.float64)
    return None if np.isnan(found).all() else found


def _load(given: _GivenSnapshot, cluster: Cluster) -> LoadSnapshot:
    components = _ids(given.components, "components")
    workers = {name: i for i, name in enumerate(cluster.workers)}
    for i, one in enumerate(given.executors):
        _refuse_unknown("component", one.component, components, f"executors[{i}].component")
        _refuse_unknown("worker", one.worker, workers, f"executors[{i}].worker")
    for i, edge in enumerate(given.edges):
        _refuse_unknown("component", edge.source, components, f"edges[{i}].from")
        _refuse_unknown("component", edge.target, components, f"edges[{i}].to")
    _ids(given.executors, "executors")
    rows = sorted(given.executors, key=lambda one: natural_key(one.id))
    executors = tuple(one.id for one in rows)
    return LoadSnapshot(
        topology=given.topology,
        time_s=given.time_s,
        components=tuple(Component(c.id, c.kind, c.parallelism) for c in given.components),
        edges=tuple(Edge(e.source, e.target, e.stream, e.grouping) for e in given.edges),
        executors=executors,
        component_of=tuple(one.component for one in rows),
        place=np.array([workers[one.worker] for one in rows], dtype=np.int64),
        cpu_cores=np.array([one.cpu for one in rows], dtype=np.float64),
        queue=np.array([one.queue for one in rows], dtype=np.float64),
        pinned=tuple(one.pinned for one in rows),
        traffic=_traffic(given.traffic, executors),
    )


def _traffic(rows: Sequence[_GivenTraffic], executors: tuple[str, ...]) -> Traffic:
    index = {name: i for i, name in enumerate(executors)}
    seen: set[tuple[str, str]] = set()
    for i, row in enumerate(rows):
        for end in (row.source, row.target):
            _refuse_unknown("executor", end, index, f"traffic[{i}]")
        if (row.source, row.target) in seen:
            raise SnapshotError(f"traffic[{i}]: {row.source} to {row.target} is given twice")
        seen.add((row.source, row.target))
    traffic = Traffic.build(
        np.array([index[row.source] for row in rows], dtype=np.int64),
        np.array([index[row.target] for row in rows], dtype=np.int64),
        np.array([row.tps for row in rows], dtype=np.float64),
    )
    sizes = {
        (index[row.source], index[row.target]): row.size_bytes
        for row in rows
        if row.size_bytes is not UNSET
    }
    if not sizes:
        return traffic
    ends = zip(traffic.source.tolist(), traffic.target.tolist(), strict=True)
    return replace(traffic, size_bytes=np.array([sizes.get(pair, np.nan) for pair in ends]))


def _ids(
    rows: Sequence[_GivenComponent | _GivenNode | _GivenWorker | _GivenExecutor], key: str
) -> dict[str, None]:
    seen: dict[str, None] = {}
    for i, row in enumerate(rows):
        if row.id in seen:
            raise SnapshotError(f"{key}[{i}].id: {json.dumps(row.id)} is given twice")
        seen[row.id] = None
    return seen


def _refuse_unknown(what: str, name: str, known: Collection[str], path: str) -> None:
    if name not in known:
        raise SnapshotError(f"{path}: unknown {what} {json.dumps(name)}")

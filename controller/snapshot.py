"""Reads the snapshot format: one topology's places, load and traffic as JSON.

The format is stable: ``nstorm decide`` reads it and the journal writes it. Profiles of components
and machines are optional keys that only some policies need; keys this module does not know are
left alone.
"""

import json
import math
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any

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
from migration.model import Component, Edge


def parse(text: str) -> tuple[Cluster, LoadSnapshot]:
    """Read a snapshot, or refuse it.

    Parameters
    ----------
    text : str
        A JSON object as in the README's section on the format.

    Returns
    -------
    Cluster
        Nodes and workers, all open.
    LoadSnapshot
        Executors on them, and their traffic.

    Raises
    ------
    SnapshotError
        The text is not JSON, a field is missing or of the wrong kind, an id is unknown or given
        twice, a quantity is negative or not a number; the message starts with the field.
    """
    try:
        document = json.loads(text)
    except ValueError as error:
        raise SnapshotError(f"not JSON: {error}") from None
    if not isinstance(document, dict):
        raise SnapshotError("the snapshot must be a JSON object")
    cluster = _cluster(document)
    return cluster, _load(document, cluster)


def _cluster(document: dict[str, Any]) -> Cluster:
    nodes = _ids(document, "nodes")
    workers = []
    for field, row in _rows(document, "workers"):
        capacity = _quantity(row, "cpu_capacity", field)
        if capacity == 0:
            raise SnapshotError(f"{field}.cpu_capacity: must be above 0")
        workers.append((_text(row, "id", field), _one_of(row, "node", field, nodes), capacity))
    _ids(document, "workers")
    machines = {
        _text(row, "id", field): _machine(row, field) for field, row in _rows(document, "nodes")
    }
    return replace(Cluster.build(nodes, workers), machines=machines)


def _machine(row: dict[str, Any], field: str) -> Machine:
    return Machine(
        _text(row, "type", field) if "type" in row else "",
        _quantity(row, "speed_hz", field) if "speed_hz" in row else 0.0,
    )


def _load(document: dict[str, Any], cluster: Cluster) -> LoadSnapshot:
    components = tuple(
        Component(_text(row, "id", field), _kind(row, field), _count(row, "parallelism", field))
        for field, row in _rows(document, "components")
    )
    known = _ids(document, "components")
    ids = _ids(document, "executors")
    worker_index = {name: i for i, name in enumerate(cluster.workers)}
    rows = list(_rows(document, "executors"))
    rows = [rows[i] for i in order(ids)]
    executors = tuple(ids[i] for i in order(ids))
    return LoadSnapshot(
        topology=_text(document, "topology", ""),
        time_s=_quantity(document, "time_s", ""),
        components=components,
        edges=_edges(document, known),
        executors=executors,
        component_of=tuple(_one_of(row, "component", field, known) for field, row in rows),
        place=np.array(
            [worker_index[_one_of(row, "worker", field, worker_index)] for field, row in rows],
            dtype=np.int64,
        ),
        cpu_cores=np.array([_quantity(row, "cpu", f) for f, row in rows], dtype=np.float64),
        queue=np.array([_quantity(row, "queue", f) for f, row in rows], dtype=np.float64),
        pinned=tuple(_pinned(row, field) for field, row in rows),
        traffic=_traffic(document, executors),
        profiles={
            _text(row, "id", field): _profile(row["profile"], f"{field}.profile")
            for field, row in _rows(document, "components")
            if "profile" in row
        },
        rate_tps=_quantity(document, "rate", "") if "rate" in document else None,
    )


def _profile(profile: Any, field: str) -> Profile:
    if not isinstance(profile, dict):
        raise SnapshotError(f"{field}: must be an object")
    points = _optional_rows(profile, "performance", field)
    costs = _optional_rows(profile, "costs", field)
    return Profile(
        _quantity(profile, "selectivity", field) if "selectivity" in profile else 1.0,
        tuple(
            Performance(
                _count(row, "threads", at),
                _quantity(row, "rate", at),
                _quantity(row, "cpu", at),
                _quantity(row, "memory", at),
            )
            for at, row in points
        ),
        tuple(
            Cost(
                _text(row, "machine", at),
                _quantity(row, "ms_per_tuple", at),
                _quantity(row, "overhead", at),
            )
            for at, row in costs
        ),
    )


def _edges(document: dict[str, Any], components: Iterable[str]) -> tuple[Edge, ...]:
    return tuple(
        Edge(
            _one_of(row, "from", field, components, what="component"),
            _one_of(row, "to", field, components, what="component"),
            _text(row, "stream", field) if "stream" in row else "default",
            _text(row, "grouping", field),
        )
        for field, row in _rows(document, "edges")
    )


def _traffic(document: dict[str, Any], executors: tuple[str, ...]) -> Traffic:
    index = {name: i for i, name in enumerate(executors)}
    seen: set[tuple[int, int]] = set()
    tps = []
    for i, row in enumerate(_list(document, "traffic")):
        field = f"traffic[{i}]"
        if not isinstance(row, list) or len(row) != 3:
            raise SnapshotError(f"{field}: must be [from, to, tuples per second]")
        for end in row[:2]:
            if not isinstance(end, str) or end not in index:
                raise SnapshotError(f"{field}: unknown executor {json.dumps(end)}")
        pair = (index[row[0]], index[row[1]])
        if pair in seen:
            raise SnapshotError(f"{field}: {row[0]} to {row[1]} is given twice")
        seen.add(pair)
        tps.append((*pair, _nonnegative(row[2], field)))
    ends = np.array([row[:2] for row in tps], dtype=np.int64).reshape(-1, 2)
    return Traffic.build(ends[:, 0], ends[:, 1], np.array([row[2] for row in tps], dtype=float))


def _list(document: dict[str, Any], key: str) -> list[Any]:
    value = document.get(key)
    if not isinstance(value, list):
        raise SnapshotError(f"{key}: must be a list")
    return value


def _rows(document: dict[str, Any], key: str) -> Iterator[tuple[str, dict[str, Any]]]:
    for i, row in enumerate(_list(document, key)):
        if not isinstance(row, dict):
            raise SnapshotError(f"{key}[{i}]: must be an object")
        yield f"{key}[{i}]", row


def _optional_rows(
    document: dict[str, Any], key: str, field: str
) -> Iterator[tuple[str, dict[str, Any]]]:
    """Read a list of objects that may be missing."""
    rows = _rows(document, key) if key in document else iter(())
    return ((f"{field}.{at}", row) for at, row in rows)


def _ids(document: dict[str, Any], key: str) -> list[str]:
    seen: list[str] = []
    for field, row in _rows(document, key):
        name = _text(row, "id", field)
        if name in seen:
            raise SnapshotError(f"{field}.id: {json.dumps(name)} is given twice")
        seen.append(name)
    if not seen:
        raise SnapshotError(f"{key}: must not be empty")
    return seen


def _text(row: dict[str, Any], key: str, field: str) -> str:
    value = row.get(key)
    if not isinstance(value, str) or not value:
        raise SnapshotError(f"{_path(field, key)}: must be a non-empty string")
    return value


def _one_of(
    row: dict[str, Any], key: str, field: str, known: Iterable[str], *, what: str | None = None
) -> str:
    value = _text(row, key, field)
    if value not in known:
        raise SnapshotError(f"{_path(field, key)}: unknown {what or key} {json.dumps(value)}")
    return value


def _kind(row: dict[str, Any], field: str) -> str:
    return _one_of(row, "kind", field, ("spout", "bolt", "system"))


def _count(row: dict[str, Any], key: str, field: str) -> int:
    value = row.get(key)
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise SnapshotError(f"{_path(field, key)}: must be a whole number of at least 1")
    return value


def _quantity(row: dict[str, Any], key: str, field: str) -> float:
    return _nonnegative(row.get(key), _path(field, key))


def _nonnegative(value: Any, field: str) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise SnapshotError(f"{field}: must be a number")
    if not math.isfinite(value) or value < 0:
        raise SnapshotError(f"{field}: must be finite and not negative, is {value}")
    return float(value)


def _pinned(row: dict[str, Any], field: str) -> str | None:
    return None if row.get("pinned") is None else _text(row, "pinned", field)


def _path(field: str, key: str) -> str:
    return f"{field}.{key}" if field else key

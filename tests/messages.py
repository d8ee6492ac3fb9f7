"""Makes the messages of PROTOCOL.md for tests; what a test does not care about is filled in."""

import dataclasses
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from typing import Any, TypeVar

from msgspec import Struct, structs

from migration.model import (
    Component,
    ExecutorId,
    ExecutorLoad,
    Node,
    NodeAcks,
    PersistedSlot,
    PlacedExecutor,
    Publication,
    Slot,
    SupervisorAck,
    WorkerAck,
    WorkerLoad,
    traffic_of,
)
from migration.wire import SPEAKS

START_SECS = 50

T = TypeVar("T")


def replace(value: T, **changes: Any) -> T:
    """Change some fields of a value, be it a message or not."""
    if isinstance(value, Struct):
        return structs.replace(value, **changes)
    return dataclasses.replace(value, **changes)  # type: ignore[type-var]


def executor(task: int) -> ExecutorId:
    return ExecutorId(task, task)


def publication(
    places: Mapping[int, Slot],
    nodes: Iterable[Node] = (),
    *,
    spouts: Collection[int] = (),
    start_secs: Mapping[int, int] | None = None,
    **changes: Any,
) -> Publication:
    """Publish executors of one task each, in the slots where Storm has them."""
    component = {task: "spout" if task in spouts else "bolt" for task in places}
    made = Publication(
        topology="wc-1",
        name="wc",
        status="ACTIVE",
        refresh_poll_secs=10,
        components=tuple(
            Component(name, name, count) for name, count in Counter(component.values()).items()
        ),
        edges=(),
        nodes=tuple(nodes),
        executors=tuple(
            PlacedExecutor(
                executor(task), component[task], slot, (start_secs or {}).get(task, START_SECS)
            )
            for task, slot in places.items()
        ),
        speaks=SPEAKS,
    )
    return replace(made, **changes)


def worker_ack(slot: Slot, tasks: Iterable[int], **changes: Any) -> WorkerAck:
    """Answer as a worker that runs executors of these tasks and has read no plan."""
    made = WorkerAck(
        topology="wc-1",
        slot=slot,
        pid=1,
        incarnation="1-1",
        hooks="0",
        speaks=SPEAKS,
        time_ms=0,
        cluster="",
        epoch=0,
        version=-1,
        executors=tuple(map(executor, tasks)),
    )
    return replace(made, **changes)


def node_acks(
    node: str,
    workers: Iterable[WorkerAck],
    cluster: str,
    *,
    time_ms: int = 0,
    keeps: Iterable[PersistedSlot] = (),
) -> NodeAcks:
    """Answer as the agent of a node whose supervisor has the hooks."""
    supervisor = SupervisorAck(node, 1, "0", SPEAKS, 0, cluster, (), tuple(keeps))
    return NodeAcks(node, time_ms, "0", SPEAKS, cluster, tuple(workers), supervisor)


def worker_load(
    slot: Slot,
    tasks: Collection[int],
    since_s: float,
    tps: Mapping[tuple[int, int], float],
    *,
    other_cores: float = 0.0,
) -> WorkerLoad:
    """Report a worker in which each executor took 0.1 cores since second 0 and sent at a rate."""
    return WorkerLoad(
        topology="wc-1",
        slot=slot,
        incarnation="1-1",
        time_ms=round(since_s * 1000),
        process_cpu_ns=round(since_s * (1e8 * len(tasks) + 1e9 * other_cores)),
        executors=tuple(
            ExecutorLoad(executor(task), "bolt", round(since_s * 1e8), 0, None) for task in tasks
        ),
        traffic=traffic_of((a, b, round(rate * since_s)) for (a, b), rate in tps.items()),
    )

"""The load that is recorded, and journals of it."""

from collections.abc import Callable
from pathlib import Path

import numpy as np

from controller.config import build
from controller.core.cluster import Floats, Ints
from controller.ingest.world import Window, WindowWorld, record_windows
from controller.journal.writer import Bounds, Writer
from migration.model import Component, Edge, ExecutorId, Node, PlacedExecutor, Publication, Slot

EXECUTORS_PER_WORKER, WORKERS_PER_NODE, PEERS, TICK_S = 50, 2, 10, 5.0


def publication(executors: int) -> Publication:
    """Lay a spout and bolts over workers of 50 executors.

    Returns
    -------
    Publication
        Of two workers a node, with room for twice the load of `windows`.
    """
    workers = max(executors // EXECUTORS_PER_WORKER, 2 * WORKERS_PER_NODE)
    nodes = [f"n{n}" for n in range(workers // WORKERS_PER_NODE)]
    ports = tuple(range(6700, 6700 + WORKERS_PER_NODE))
    slots = [Slot(node, port) for node in nodes for port in ports]
    capacity = 100.0 * executors / len(nodes)
    return Publication(
        topology="bench-1",
        name="bench",
        status="ACTIVE",
        refresh_poll_secs=10,
        components=(Component("spout", "spout", 2), Component("bolt", "bolt", executors - 2)),
        edges=(Edge("spout", "bolt", "default", "fields"),),
        nodes=tuple(Node(n, n, capacity, ports, WORKERS_PER_NODE) for n in nodes),
        executors=tuple(
            PlacedExecutor(
                ExecutorId(i + 1, i + 1),
                "spout" if i < 2 else "bolt",
                slots[i % len(slots)],
                50,
            )
            for i in range(executors)
        ),
    )


def windows(executors: int) -> Callable[[int], Window]:
    """Let each executor send to ten others, at rates that noise goes around."""
    rng = np.random.default_rng(7)
    keys = np.unique(rng.integers(0, executors**2, PEERS * executors))
    source, target = keys // executors, keys % executors
    rates, cores = rng.gamma(1.0, 100.0, len(keys)), rng.uniform(0.05, 0.4, executors)

    def window(tick: int) -> Window:
        noise = np.random.default_rng([7, tick])
        tuples: Floats = np.round(rates * TICK_S * noise.uniform(0.9, 1.1, len(keys)))
        cpu: Floats = cores * noise.uniform(0.9, 1.1, executors)
        ends: tuple[Ints, Ints] = source, target
        return Window(1.7e9 + tick * TICK_S, TICK_S, cpu, *ends, tuples)

    return window


def record(executors: int, ticks: int, folder: Path, segment_bytes: int = 2**26) -> list[Path]:
    """Let a controller write a journal of some ticks; it only measures, and so searches nothing."""
    world, window = WindowWorld(publication(executors)), windows(executors)
    writer = Writer(folder, "bench", Bounds(size_bytes=2**40, segment_bytes=segment_bytes))
    for _ in record_windows(world, map(window, range(ticks)), build({"mode": "observe"}), writer):
        pass
    return sorted(folder.iterdir(), key=lambda path: path.name.split("-")[2])

"""Measures what the journal costs the controller and what a replayed tick costs.

All figures are of one process and one run, so they can be compared with each other only.
"""

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import numpy as np

from controller.config import build
from controller.core.cluster import Floats, Ints
from controller.journal.reader import Log
from controller.journal.recorder import Message, RecordedController
from controller.journal.writer import Bounds, Writer
from controller.loop import CycleReport
from controller.ports import TopologyView
from controller.replay.ingest.world import Window, WindowWorld
from controller.replay.playback import replay
from controller.replay.recording import spans
from controller.replay.rerun import rerun
from migration import wire
from migration.model import (
    Component,
    Edge,
    ExecutorId,
    Node,
    NodeAcks,
    NodeLoad,
    PlacedExecutor,
    Plan,
    Publication,
    Slot,
)

EXECUTORS_PER_WORKER, WORKERS_PER_NODE, PEERS, TICK_S = 50, 2, 10, 5.0

M = TypeVar("M", Publication, NodeAcks, NodeLoad)


@dataclass(frozen=True, slots=True)
class Figures:
    """What one run measured; times of the processor, medians over the ticks.

    Attributes
    ----------
    executors, pairs, ticks : int
        Size of the run.
    controller_s : float
        Of a cycle without a journal, with reading the messages from their bytes.
    journal_s : float
        What the journal takes of a cycle on the loop's thread.
    head_s : float
        What the beginning of a segment takes there.
    writer_s : float
        What the writer's thread takes of a tick, compression left out.
    tick_bytes : int
        Of a record before compression.
    replay_s : float
        Of a tick decided again through the whole loop.
    rerun_s : float
        Of a tick of the array replay.
    """

    executors: int
    pairs: int
    ticks: int
    controller_s: float
    journal_s: float
    head_s: float
    writer_s: float
    tick_bytes: int
    replay_s: float
    rerun_s: float


class _Bytes:
    """Hands messages over as the agents' and Nimbus' bytes, and decodes them as the mirror does."""

    def __init__(self, world: WindowWorld) -> None:
        self._world = world
        self._bytes: list[tuple[type[Message], bytes]] = []
        self._data: dict[int, bytes] = {}
        self._plan: Plan | None = None

    def prepare(self) -> None:
        """Encode what the others would have written meanwhile; not the controller's time."""
        (view,) = self._world.topologies()
        messages: list[Message] = [view.publication, *view.acks, *self._world.loads()]
        self._bytes = [(type(message), wire.encode(message)) for message in messages]
        self._plan = view.plan
        self._data = {}

    def topologies(self) -> list[TopologyView]:
        """Decode the publication and the answers."""
        (publication,) = self._decoded(Publication)
        assert self._plan is not None
        return [TopologyView(publication, self._plan, tuple(self._decoded(NodeAcks)))]

    def loads(self) -> list[NodeLoad]:
        """Decode the reports."""
        return self._decoded(NodeLoad)

    def paused(self) -> str | None:
        """Nobody pauses it."""
        return None

    def data_of(self, messages: Sequence[Message]) -> list[bytes]:
        """Give the bytes back."""
        return [self._data[id(message)] for message in messages]

    def _decoded(self, kind: type[M]) -> list[M]:
        data = [data for of, data in self._bytes if of is kind]
        messages = [wire.decode(kind, one) for one in data]
        self._data |= {id(m): one for m, one in zip(messages, data, strict=True)}
        return messages


class _Timed(RecordedController):
    """Takes the time of all that the journal adds to a cycle."""

    journal_s = 0.0

    def head(self) -> bytes:
        """Begin a segment."""
        return self._head()

    def _tick_record(self, reports: Iterable[CycleReport]) -> bytes:
        begun_s = time.thread_time()
        body = super()._tick_record(reports)
        self.journal_s = time.thread_time() - begun_s
        return body


def figures(executors: int, ticks: int, folder: Path) -> Figures:
    """Measure.

    Parameters
    ----------
    executors, ticks : int
        Size of the run.
    folder : Path
        Where the journal goes.

    Returns
    -------
    Figures
        Medians.
    """
    world, window = WindowWorld(_publication(executors)), _windows(executors)
    source = _Bytes(world)
    config = build({"mode": "advise"})
    writer = Writer(folder, "bench", Bounds())
    recorded = _Timed(
        config,
        view=source,
        source=source,
        sink=world,
        lead=world,
        clock=world,
        journal=writer,
        data_of=source.data_of,
    )
    spent: list[tuple[float, float, float]] = []
    for tick in range(ticks):
        world.advance(window(tick))
        source.prepare()
        others_s = time.process_time() - time.thread_time()
        whole_s = _cpu_s(recorded.cycle)
        writer.wait()
        others_s = time.process_time() - time.thread_time() - others_s
        spent.append((whole_s - recorded.journal_s, recorded.journal_s, others_s))
    begun_s = time.thread_time()
    recorded.head()
    head_s = time.thread_time() - begun_s
    recorded.close()
    controller_s, journal_s, writer_s = np.median(np.array(spent[2:]), axis=0)
    log = Log.open([folder])
    begun_s = time.thread_time()
    count = sum(1 for _ in replay(log, 0))
    replay_s = (time.thread_time() - begun_s) / count
    found = list(spans(Log.open([folder])))
    begun_s = time.thread_time()
    series = rerun(found, config)
    rerun_s = (time.thread_time() - begun_s) / len(series.time_s)
    size = sum(path.stat().st_size for path in folder.glob("*.jsonl"))
    return Figures(
        executors=executors,
        pairs=len(found[0].source),
        ticks=ticks,
        controller_s=float(controller_s),
        journal_s=float(journal_s),
        head_s=head_s,
        writer_s=float(writer_s),
        tick_bytes=size // ticks,
        replay_s=replay_s,
        rerun_s=rerun_s,
    )


def _cpu_s(run: Callable[[], object]) -> float:
    begun_s = time.thread_time()
    run()
    return time.thread_time() - begun_s


def _publication(executors: int) -> Publication:
    workers = max(executors // EXECUTORS_PER_WORKER, 2 * WORKERS_PER_NODE)
    nodes = [f"n{n}" for n in range(workers // WORKERS_PER_NODE)]
    ports = tuple(range(6700, 6700 + WORKERS_PER_NODE))
    slots = [Slot(node, port) for node in nodes for port in ports]
    capacity = 100.0 * executors / len(nodes)
    return Publication(
        topology="bench-1",
        name="bench",
        status="ACTIVE",
        time_ms=0,
        hooks="0",
        scheduler="s",
        message_timeout_secs=30,
        refresh_poll_secs=10,
        round=1,
        plan=None,
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


def _windows(executors: int) -> Callable[[int], Window]:
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

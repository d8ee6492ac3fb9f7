"""A small world of two nodes whose load is known tick by tick, and recorded cycles over it."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any

import msgspec
import numpy as np
from msgspec import structs

from controller.config import Config, build
from controller.cycle import CycleInput, Memory, cycle, failed
from controller.ingest.cycle import cycle_with_searches
from controller.ingest.world import Window, WindowWorld
from controller.journal.lines import compact, from_line, to_line
from controller.journal.recorder import Recorder
from controller.journal.writer import Bounds, Writer
from controller.policies.gather.goal import Answer
from controller.report import Report, TopologyReport
from migration.model import Edge, ExecutorId, Node, NodeLoad, Publication, Slot, WorkerLoad
from tests import messages
from tests.messages import replace
from tests.watched import first_memory

SLOTS = tuple(Slot(node, port) for node in "ab" for port in (1, 2))
BEGIN_S = 1_700_000_000.0
TICK_S = 5.0


_PLAIN = msgspec.json.Decoder(dict[str, Any])


def plain(line: bytes) -> dict[str, Any]:
    """Read a whole line of a journal as any tool would."""
    found = from_line(line, _PLAIN)
    assert found is not None
    del found["crc"]
    return found


def edit(segment: Path, change: Callable[[dict[str, Any]], object], row: int = 0) -> None:
    """Change a row of a segment, else its head, and give it a checksum that fits."""
    lines = segment.read_bytes().splitlines(keepends=True)
    found = plain(lines[row])
    change(found)
    lines[row] = to_line(compact(found))
    segment.write_bytes(b"".join(lines))


def publication(executors: int) -> Publication:
    """A spout and bolts, laid over the slots in turn."""
    nodes = sorted({slot.supervisor for slot in SLOTS})
    per_node = len(SLOTS) // len(nodes)
    return messages.publication(
        {i + 1: SLOTS[i % len(SLOTS)] for i in range(executors)},
        [Node(n, f"host-{n}", 100.0 * executors / len(nodes), (1, 2), per_node) for n in nodes],
        spouts={1},
        edges=(Edge("spout", "bolt", "default", "fields"),),
    )


def windows(executors: int, seed: int = 1) -> Callable[[int], Window]:
    """Give the load of each tick: noise around rates that stay."""
    rng = np.random.default_rng(seed)
    keys = np.unique(rng.integers(0, executors**2, 4 * executors))
    source, target = keys // executors, keys % executors
    rates = rng.gamma(1.0, 200.0, len(keys))
    cores = rng.uniform(0.05, 0.2, executors)
    # Half a worker each: no two of these fit one worker, so none is left by all and ends.
    cores[: len(SLOTS)] = executors / 8

    def window(tick: int) -> Window:
        noise = np.random.default_rng([seed, tick])
        tuples = np.round(rates * TICK_S * noise.uniform(0.8, 1.2, len(keys)))
        cpu = cores * noise.uniform(0.8, 1.2, executors)
        return Window(BEGIN_S + tick * TICK_S, TICK_S, cpu, source, target, tuples)

    return window


def with_meters(loads: Iterable[NodeLoad]) -> tuple[NodeLoad, ...]:
    """Let nodes of two cores use 1.5 of them, and workers collect a fifth of the time."""
    metered = with_workers(
        loads, lambda worker: {"meters": {"heap_live_bytes": 700, "gc_ms": worker.time_ms // 5}}
    )
    return tuple(
        structs.replace(
            load, meters={"machine_cpu_ns": load.time_ms * 1_500_000, "machine_cores": 2}
        )
        for load in metered
    )


def with_heaps(loads: Iterable[NodeLoad]) -> tuple[NodeLoad, ...]:
    """Let 128 to 384 MB live in heaps of 512 MB, by port and time, and states have 1 MB each.

    These are known from the fourth report on.
    """

    def filled(worker: WorkerLoad) -> dict[str, Any]:
        live = 128_000_000 + (worker.time_ms * (worker.slot.port + 1)) % 256_000_000
        more = {"meters": {"heap_live_bytes": live, "heap_max_bytes": 512_000_000}}
        known = worker.time_ms >= 1e3 * (BEGIN_S + 3 * TICK_S)
        states = {"state_bytes": (1_000_000,) * len(worker.executors)}
        return more | ({"executor_meters": states} if known else {})

    return with_workers(loads, filled)


def with_sizes(loads: Iterable[NodeLoad]) -> tuple[NodeLoad, ...]:
    """Let tuples of the spout have 100 bytes, and those of the bolts 40."""
    return with_workers(
        loads,
        lambda worker: {
            "sizes": (
                ("spout", "bolt", worker.time_ms, 100 * worker.time_ms),
                ("bolt", "bolt", worker.time_ms, 40 * worker.time_ms),
                ("bolt", "spout", worker.time_ms, 40 * worker.time_ms),
            )
        },
    )


def with_spouts(loads: Iterable[NodeLoad]) -> tuple[NodeLoad, ...]:
    """Let 500 tuples/s be acked in 40 to 48 ms, and 2 tuples/s fail, all in one worker."""

    def counted(worker: WorkerLoad) -> dict[str, Any]:
        if worker.slot != SLOTS[0]:
            return {}
        acked, failed = worker.time_ms // 2, worker.time_ms // 500
        return {
            "meters": {"acked_tuples": acked, "failed_tuples": failed},
            "latency": ((22, worker.time_ms // 40),),
        }

    return with_workers(loads, counted)


def with_workers(
    loads: Iterable[NodeLoad], more: Callable[[WorkerLoad], dict[str, Any]]
) -> tuple[NodeLoad, ...]:
    """Let the reports of workers have more."""
    return tuple(
        structs.replace(
            load,
            workers=tuple(structs.replace(worker, **more(worker)) for worker in load.workers),
        )
        for load in loads
    )


def three_cycles(
    config: Config, *, meters: bool = True, spouts: bool = False
) -> tuple[CycleInput, Memory, Report]:
    """Run three cycles over a world whose load is known, with meters and acks or without."""
    world, window, memory = WindowWorld(publication(8)), windows(8), Memory()
    for tick in range(3):
        world.advance(window(tick))
        seen = world.seen()
        if meters:
            seen = replace(seen, loads=with_meters(seen.loads))
        if spouts:
            seen = replace(seen, loads=with_spouts(seen.loads))
        memory, report = cycle(memory, seen, config)
    return seen, memory, report


@dataclass
class Recorded:
    """A world whose cycles are recorded; a test may change what the next look shows."""

    world: WindowWorld
    recorder: Recorder
    config: Config
    delay_ticks: int = 0
    epoch: int | None = 0
    error: Exception | None = None
    shift_s: float = 0.0
    unwritten: bool = False
    rests: tuple[tuple[str, ExecutorId, float], ...] = ()
    memory: Memory = field(default_factory=Memory)
    searching: dict[str, tuple[int, Answer]] = field(default_factory=dict)

    def look(self) -> CycleInput:
        seen = replace(self.world.seen(), epoch=self.epoch)
        if self.epoch is None:  # who waits looks at nothing
            seen = replace(seen, topologies=(), loads=())
        answers = tuple((t, answer) for t, (left, answer) in self.searching.items() if not left)
        self.searching = {t: (left - 1, a) for t, (left, a) in self.searching.items() if left}
        seen = replace(
            seen,
            time_s=seen.time_s - self.shift_s,
            rests=self.rests,
            answers=answers,
            searches=tuple((topology, seen.now_s - 1) for topology in self.searching),
        )
        self.rests = ()
        return seen

    def tick(self) -> tuple[TopologyReport, ...]:
        before, seen = self.memory, None
        if self.error is not None:
            self.memory, report = failed(before, self.world.seen().time_s, self.error)
        elif not self.delay_ticks:
            self.memory, report, seen = cycle_with_searches(before, self.look(), self.config)
        else:
            seen = self.look()
            self.memory, report = cycle(before, seen, self.config)
        for question in report.questions:
            topology = question.topology
            if topology not in self.searching:
                self.searching[topology] = self.delay_ticks - 1, question.answer()
        unwritten = ("wc-1",) if self.unwritten else ()
        self.recorder.record(before, seen, report, unwritten)
        if not self.unwritten:
            self.world.write(report)
        return report.topologies


def record(
    folder: Path,
    *,
    executors: int = 8,
    ticks: range = range(12),
    name: str = "one",
    bounds: Bounds | None = None,
    epoch: int | None = 0,
    mode: str = "auto",
    policy: str = "gather",
    delay_ticks: int = 0,
    keys: Mapping[str, float | None] = MappingProxyType({}),
    each: Callable[[int, Recorded], None] = lambda tick, run: None,
) -> list[TopologyReport]:
    """Run recorded cycles over some ticks; a search takes the number given."""
    world, window = WindowWorld(publication(executors)), windows(executors)
    each_worker = {"worker.cpu.capacity": executors / len(SLOTS)}
    config = build(
        {"mode": mode, "policy": policy, "cooldown.executor.secs": 12, **each_worker, **keys}
    )
    writer = Writer(folder, name, bounds or Bounds())
    memory = first_memory(BEGIN_S + ticks.start * TICK_S)
    run = Recorded(world, Recorder(config, writer), config, delay_ticks, epoch, memory=memory)
    reports: list[TopologyReport] = []
    for tick in ticks:
        world.advance(window(tick))
        each(tick, run)
        reports += run.tick()
        writer.wait()
    run.recorder.close()
    return reports

"""A small world of two nodes whose load is known tick by tick, and a controller that records it."""

from collections.abc import Callable
from pathlib import Path

import messages
import numpy as np
from structlog.testing import capture_logs

from controller.config import build
from controller.journal.recorder import RecordedController
from controller.journal.writer import Bounds, Writer
from controller.loop import CycleReport
from controller.replay.ingest.world import Window, WindowWorld
from controller.targeting.search import Search, at_once
from migration.model import Edge, Node, Publication, Slot

SLOTS = tuple(Slot(node, port) for node in "ab" for port in (1, 2))
BEGIN_S = 1_700_000_000.0
TICK_S = 5.0


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
    cores = rng.uniform(0.05, 0.3, executors)

    def window(tick: int) -> Window:
        noise = np.random.default_rng([seed, tick])
        tuples = np.round(rates * TICK_S * noise.uniform(0.8, 1.2, len(keys)))
        cpu = cores * noise.uniform(0.8, 1.2, executors)
        return Window(BEGIN_S + tick * TICK_S, TICK_S, cpu, source, target, tuples)

    return window


class LedWorld(WindowWorld):
    """A world in which the test says who leads."""

    leads: int | None = 0

    @property
    def epoch(self) -> int | None:
        """The epoch the test gave."""
        return self.leads


def record(
    folder: Path,
    *,
    executors: int = 8,
    ticks: range = range(12),
    name: str = "one",
    bounds: Bounds | None = None,
    epoch: int | None = 0,
    mode: str = "auto",
    policy: str = "safe",
    search: Search = at_once,
    each: Callable[[int, RecordedController, LedWorld], None] = lambda tick, controller, world: (
        None
    ),
) -> list[CycleReport]:
    """Run a recorded controller over some ticks."""
    world, window = LedWorld(publication(executors)), windows(executors)
    world.leads = epoch
    writer = Writer(folder, name, bounds or Bounds())
    controller = RecordedController(
        build({"mode": mode, "policy": policy, "cooldown.executor.secs": 12}),
        view=world,
        source=world,
        sink=world,
        lead=world,
        clock=world,
        journal=writer,
        search=search,
    )
    reports = []
    with capture_logs():  # a traceback takes longer to print than a cycle
        for tick in ticks:
            world.advance(window(tick))
            each(tick, controller, world)
            reports += controller.cycle()
            writer.wait()
        controller.close()
    return reports

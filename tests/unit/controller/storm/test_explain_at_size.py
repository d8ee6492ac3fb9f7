"""An explanation of a topology of 1,000 executors is quick; ``pytest -s`` prints how quick."""

import time
from collections.abc import Callable

import msgspec
import numpy as np
import pytest

from controller.config import build
from controller.cycle import Memory, cycle
from controller.ingest.world import Window, WindowWorld
from controller.report import TopologyReport
from controller.storm.answers import explain
from migration.model import Edge, Node, Publication, Slot
from tests import messages

EXECUTORS, NODES, PORTS = 1000, 20, (1, 2)
CONFIG = build({"mode": "advise"})


def publication() -> Publication:
    slots = [Slot(f"n{node}", port) for node in range(NODES) for port in PORTS]
    capacity = 100.0 * EXECUTORS / NODES
    nodes = [Node(f"n{node}", f"host-{node}", capacity, PORTS, 2) for node in range(NODES)]
    places = {task: slots[task % len(slots)] for task in range(1, EXECUTORS + 1)}
    edges = (Edge("spout", "bolt", "default", "fields"),)
    return messages.publication(places, nodes, spouts={1}, edges=edges)


@pytest.fixture(scope="module")
def decided() -> TopologyReport:
    chosen, world, memory = np.random.default_rng(1), WindowWorld(publication()), Memory()
    pairs = np.unique(chosen.integers(0, EXECUTORS**2, 20_400))
    source, target = pairs // EXECUTORS, pairs % EXECUTORS
    cores, tuples = chosen.uniform(0.05, 0.2, EXECUTORS), chosen.gamma(1.0, 1000.0, len(pairs))
    for tick in range(3):
        world.advance(Window(1.7e9 + 5 * tick, 5.0, cores, source, target, np.round(tuples)))
        memory, report = cycle(memory, world.seen(), CONFIG)
    (one,) = report.topologies
    assert one.moves
    return one


def cpu_ms(do: Callable[[], object]) -> float:
    began_s = time.thread_time()
    do()
    return 1000 * (time.thread_time() - began_s)


@pytest.mark.parametrize("what", ["7-7", "n3:1", "host-4", ""])
def test_an_explanation_takes_less_than_200_ms(decided: TopologyReport, what: str) -> None:
    took_ms = [
        cpu_ms(lambda: msgspec.json.encode(explain(decided, what, CONFIG), enc_hook=float))
        for _ in range(3)
    ]
    print(f"explain {what or 'all'}: first {took_ms[0]:.1f} ms, then {min(took_ms[1:]):.1f} ms")
    assert max(took_ms) < 200

"""What must hold of the cycles of a cluster in which the slots of topologies open and close."""

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field

from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.strategies import DrawFn, composite

from controller.config import Config, Mode
from controller.core.topology import TopologyView, free_slots
from controller.cycle import CycleInput, Memory
from controller.ingest.cycle import cycle_with_searches
from migration.model import (
    ExecutorId,
    ExecutorLoad,
    Node,
    NodeLoad,
    Plan,
    Slot,
    WorkerLoad,
    traffic_of,
)
from tests.messages import executor, node_acks, publication, replace, worker_ack

CLUSTER, PORTS = "c", (1, 2, 3)
CONFIG = Config(mode=Mode.AUTO, cooldown_s=15.0, max_moves=2)
# Longer than an executor rests, and than a search is awaited.
REST_CYCLES = round(2 * CONFIG.cooldown_s / CONFIG.cycle_s) + 2
MOST_CYCLES = 150


@dataclass
class Topology:
    """Executors of one task each, and what they use and send to each other at a load of 1."""

    id: str
    places: dict[int, Slot]
    cores: Mapping[int, float]
    tps: Mapping[tuple[int, int], float]
    version: int = 0
    # By slot, until its worker ends.
    used_ns: dict[Slot, dict[int, float]] = field(default_factory=dict)
    sent: dict[Slot, dict[tuple[int, int], float]] = field(default_factory=dict)

    def slots(self) -> set[Slot]:
        return set(self.places.values())

    def work(self, seconds: float, load: float) -> None:
        """Count in each worker what its executors have used and sent."""
        for slot in self.used_ns.keys() - self.slots():
            del self.used_ns[slot], self.sent[slot]
        for slot in self.slots():
            self.used_ns.setdefault(slot, defaultdict(float))
            self.sent.setdefault(slot, defaultdict(float))
        for task, slot in self.places.items():
            self.used_ns[slot][task] += 1e9 * self.cores[task] * load * seconds
        for (a, b), rate in self.tps.items():
            self.sent[self.places[a]][a, b] += rate * load * seconds

    def load(self, slot: Slot, now_s: float) -> WorkerLoad:
        used = {task: round(ns) for task, ns in self.used_ns[slot].items()}
        here = [
            ExecutorLoad(executor(task), "bolt", ns, 0, None)
            for task, ns in used.items()
            if self.places[task] == slot
        ]
        rows = traffic_of((a, b, round(count)) for (a, b), count in self.sent[slot].items())
        time_ms = round(1000 * now_s)
        return WorkerLoad(self.id, slot, "1-1", time_ms, sum(used.values()), tuple(here), rows)


class World:
    """A cluster whose moves end at once."""

    def __init__(self, nodes: list[Node], topologies: list[Topology]) -> None:
        self.nodes, self.topologies = nodes, topologies
        self.now_s, self.memory = 100.0, Memory()
        self.rests: list[tuple[str, ExecutorId, float]] = []

    def seen(self) -> CycleInput:
        in_use = {slot for one in self.topologies for slot in one.slots()}
        nodes = [
            replace(node, slots_in_use=sum(slot.supervisor == node.id for slot in in_use))
            for node in self.nodes
        ]
        by_slot = {slot: one for one in self.topologies for slot in one.slots()}
        acks = tuple(
            node_acks(
                node.id,
                [
                    worker_ack(slot, tasks_at(one, slot), topology=one.id)
                    for slot, one in sorted(by_slot.items())
                    if slot.supervisor == node.id
                ],
                CLUSTER,
            )
            for node in nodes
        )
        views = tuple(
            TopologyView(
                publication(one.places, nodes, topology=one.id, name=one.id),
                Plan(CLUSTER, 1, one.version, one.id),
                acks,
            )
            for one in self.topologies
        )
        loads = tuple(
            NodeLoad(
                node.id,
                round(1000 * self.now_s),
                tuple(
                    one.load(slot, self.now_s)
                    for slot, one in sorted(by_slot.items())
                    if slot.supervisor == node.id
                ),
            )
            for node in nodes
        )
        rests, self.rests = tuple(self.rests), []
        return CycleInput(
            self.now_s,
            1.7e9 + self.now_s,
            1,
            topologies=views,
            loads=loads,
            rests=rests,
            free=free_slots(nodes, in_use, acks),
        )

    def cycle(self, load: float) -> bool:
        """Decide once, and move; True if anything has moved."""
        self.now_s += CONFIG.cycle_s
        for one in self.topologies:
            one.work(CONFIG.cycle_s, load)
        self.memory, report, _ = cycle_with_searches(self.memory, self.seen(), CONFIG)
        assert report.error is None, report.error
        for one in self.topologies:
            plan = report.plans.get(one.id)
            for entry in plan.entries if plan else ():
                one.places[entry.executor.start] = entry.target
                self.rests.append((one.id, entry.executor, self.now_s))
            one.version += 1
        return bool(report.plans)


def tasks_at(topology: Topology, slot: Slot) -> list[int]:
    return [task for task, at in topology.places.items() if at == slot]


@composite
def worlds(draw: DrawFn) -> World:
    count = draw(st.integers(2, 4))
    nodes = [Node(f"n{i}", f"h{i}", 200.0, PORTS, 0) for i in range(count)]
    slots = [Slot(node.id, port) for node in nodes for port in PORTS]
    topologies = []
    for i in range(draw(st.integers(1, 3))):
        # Each has a port of its own, so that no slot is taken twice.
        mine = [slot for slot in slots if slot.port == PORTS[i]]
        mine = draw(st.lists(st.sampled_from(mine), min_size=1, max_size=2, unique=True))
        tasks = range(1, draw(st.integers(2, 8)) + 1)
        pairs = draw(
            st.lists(st.tuples(st.sampled_from(tasks), st.sampled_from(tasks)), max_size=12)
        )
        topologies.append(
            Topology(
                f"t{i}",
                {task: draw(st.sampled_from(mine)) for task in tasks},
                {task: draw(st.floats(0.01, 0.6)) for task in tasks},
                {pair: draw(st.floats(1.0, 1000.0)) for pair in pairs if pair[0] != pair[1]},
            )
        )
    return World(nodes, topologies)


def settle(world: World, load: float) -> tuple[int, int]:
    """Let it come to rest at a load; gives how many slots were opened, and closed."""
    opened, closed, still = set[Slot](), set[Slot](), 0
    for _ in range(MOST_CYCLES):
        before = [one.slots() for one in world.topologies]
        still = 0 if world.cycle(load) else still + 1
        new, left = set[Slot](), set[Slot]()
        for was, one in zip(before, world.topologies, strict=True):
            new |= one.slots() - was
            left |= was - one.slots()
        hosts = [slot.supervisor for slot in new]
        assert len(hosts) == len(set(hosts)), "two slots of one host in one cycle"
        # One that was opened may close again: another topology leaves the host in that very cycle.
        assert not new & opened, "a slot is opened a second time"
        opened |= new
        closed |= left
        if still == REST_CYCLES:
            return len(opened), len(closed)
    raise AssertionError("it does not come to rest")


@settings(max_examples=40, deadline=None)
@given(worlds(), st.lists(st.floats(0.05, 3.0), min_size=1, max_size=3))
def test_slots_open_and_close_as_the_load_changes_and_then_all_rests(
    world: World, loads: list[float]
) -> None:
    for load in loads:
        settle(world, load)

"""Makes a cluster on paper: nodes, topologies, where Storm has put them, who sends how much."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np

from controller.core.cluster import Floats, Ints
from migration.model import (
    Component,
    Edge,
    ExecutorId,
    Node,
    Nodes,
    PlacedExecutor,
    Publication,
    Slot,
)

EXECUTORS_A_NODE = 10
# A topology of 300 executors has some 100 workers: 3 executors each.
EXECUTORS_A_WORKER = 3.3
LARGEST_TOPOLOGY = 333
PORTS = (6700, 6701, 6702, 6703)
CORES_A_NODE = 4.0
CORES_AN_EXECUTOR = 0.25
# What a spout emits; each bolt of the chain passes on as much as it gets.
SPOUT_TPS = 500.0
START_SECS = 1_700_000_000
ACKER = "__acker"


@dataclass(frozen=True, slots=True)
class Sent:
    """What one worker sends: pairs of tasks, in order, and tuples per second of each."""

    source: Ints
    target: Ints
    tps: Floats


@dataclass(frozen=True)
class Topology:
    """One topology: a chain of a spout and three to five bolts, and ackers.

    Attributes
    ----------
    component_of : dict of int to str
        Component of each task; each executor has one task.
    slot_of : dict of int to Slot
        Where Storm has put it at first.
    """

    id: str
    components: tuple[Component, ...]
    edges: tuple[Edge, ...]
    component_of: dict[int, str]
    slot_of: dict[int, Slot]
    pairs: Sent

    @property
    def name(self) -> str:
        """Its name."""
        return self.id.rsplit("-", 2)[0]

    @cached_property
    def slots(self) -> tuple[Slot, ...]:
        """Its workers."""
        return tuple(sorted(set(self.slot_of.values())))

    @cached_property
    def nodes(self) -> tuple[str, ...]:
        """Where it has a worker."""
        return tuple(sorted({slot.supervisor for slot in self.slots}))

    @cached_property
    def kind_of(self) -> dict[str, str]:
        """Spout, bolt or system, by component."""
        return {component.id: component.kind for component in self.components}

    @cached_property
    def movable(self) -> tuple[int, ...]:
        """The tasks of bolts."""
        return tuple(
            task for task, name in self.component_of.items() if self.kind_of[name] == "bolt"
        )

    def sent_by(self, slot: Slot) -> Sent:
        """Take out what the executors send that are in a slot at first."""
        here = np.array([task for task, at in self.slot_of.items() if at == slot])
        rows = np.isin(self.pairs.source, here)
        return Sent(self.pairs.source[rows], self.pairs.target[rows], self.pairs.tps[rows])

    def publication(self, slot_of: dict[int, Slot]) -> Publication:
        """Publish it as the hook in Nimbus does."""
        return Publication(
            topology=self.id,
            name=self.name,
            status="ACTIVE",
            refresh_poll_secs=10,
            components=self.components,
            edges=self.edges,
            executors=tuple(
                PlacedExecutor(ExecutorId(task, task), component, slot_of[task], START_SECS)
                for task, component in self.component_of.items()
            ),
        )


@dataclass(frozen=True, slots=True)
class PaperCluster:
    """All nodes and topologies."""

    nodes: tuple[str, ...]
    topologies: tuple[Topology, ...]

    @property
    def executors(self) -> int:
        """How many threads there are."""
        return sum(len(topology.component_of) for topology in self.topologies)

    @property
    def pairs(self) -> int:
        """How many pairs of tasks talk."""
        return sum(len(topology.pairs.tps) for topology in self.topologies)

    def supervisors(self) -> Nodes:
        """Publish the nodes as the hook in Nimbus does."""
        in_use = dict.fromkeys(self.nodes, 0)
        for topology in self.topologies:
            for slot in topology.slots:
                in_use[slot.supervisor] += 1
        return Nodes(
            tuple(
                Node(name, f"host-{name}", 100 * CORES_A_NODE, PORTS, used)
                for name, used in in_use.items()
            )
        )


def paper_cluster(nodes: int) -> PaperCluster:
    """Make a cluster of ten executors a node, in topologies of at most 333.

    Parameters
    ----------
    nodes : int
        How many; 1,000 have 10,000 executors in 30 topologies.
    """
    random = np.random.default_rng(1)
    names = tuple(f"{n:08x}-node-{n:04}" for n in range(nodes))
    executors = nodes * EXECUTORS_A_NODE
    count = max(round(executors / LARGEST_TOPOLOGY), 1)
    sizes = [executors // count + (i < executors % count) for i in range(count)]
    free = dict.fromkeys(names, len(PORTS))
    made = []
    for number, size in enumerate(sizes):
        slots = _chosen(free, round(size / EXECUTORS_A_WORKER), random)
        made.append(_topology(number, size, slots, random))
    return PaperCluster(names, tuple(made))


def _chosen(free: dict[str, int], count: int, random: np.random.Generator) -> list[Slot]:
    """Take one slot on each of the nodes with the most free ones, as Storm's even scheduler."""
    tie = dict(zip(free, random.random(len(free)), strict=True))
    best = sorted(free, key=lambda node: (-free[node], tie[node]))[:count]
    slots = [Slot(node, PORTS[len(PORTS) - free[node]]) for node in best]
    for node in best:
        free[node] -= 1
    return slots


def _topology(
    number: int, executors: int, slots: Sequence[Slot], random: np.random.Generator
) -> Topology:
    ackers = spouts = max(executors // 11, 1)
    bolts = int(random.integers(3, 6))
    weights = random.uniform(0.5, 1.5, bolts)
    counts = np.maximum((executors - ackers - spouts) * weights / weights.sum(), 1).astype(int)
    counts[-1] += executors - ackers - spouts - counts.sum()
    parallelism = {ACKER: ackers, "spout": spouts}
    parallelism |= {f"bolt-{i + 1}": int(count) for i, count in enumerate(counts)}
    kinds = {ACKER: "system", "spout": "spout"}
    tasks: dict[str, Ints] = {}
    first = 1
    for name, count in parallelism.items():
        tasks[name] = np.arange(first, first + count)
        first += count
    chain = [name for name in parallelism if name != ACKER]
    edges = [
        Edge(one, other, "default", "fields" if i % 2 else "shuffle")
        for i, (one, other) in enumerate(pairwise(chain))
    ]
    total_tps = SPOUT_TPS * spouts
    pairs = [(edge.source, edge.target, edge.grouping) for edge in edges]
    pairs += [(name, ACKER, "fields") for name in chain]
    pairs.append((ACKER, "spout", "direct"))
    sent = [
        _between(tasks[one], tasks[other], total_tps, grouping, random)
        for one, other, grouping in pairs
    ]
    source = np.concatenate([part.source for part in sent])
    target = np.concatenate([part.target for part in sent])
    order = np.lexsort((target, source))
    tps = np.concatenate([part.tps for part in sent])
    component_of = {int(task): name for name, found in tasks.items() for task in found}
    return Topology(
        id=f"topology{number:02}-{number + 1}-{START_SECS}",
        components=tuple(
            Component(name, kinds.get(name, "bolt"), count) for name, count in parallelism.items()
        ),
        edges=tuple(edges),
        component_of=component_of,
        slot_of={task: slots[task % len(slots)] for task in component_of},
        pairs=Sent(source[order], target[order], tps[order]),
    )


def _between(
    source: Ints,
    target: Ints,
    total_tps: float,
    grouping: str,
    random: np.random.Generator,
) -> Sent:
    """Spread tuples over pairs: evenly, or by keys of which some are frequent."""
    share = np.ones(len(target))
    if grouping == "fields":
        share = random.pareto(2.0, len(target)) + 0.2
    tps = np.outer(random.uniform(0.9, 1.1, len(source)), share).ravel()
    return Sent(
        np.repeat(source, len(target)),
        np.tile(target, len(source)),
        total_tps * tps / tps.sum(),
    )

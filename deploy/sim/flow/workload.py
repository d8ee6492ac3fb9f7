"""The topologies that a simulation feeds, as tuples, costs and groupings.

Costs are processor time without serialisation, which depends on the placement and is the cluster's.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from types import MappingProxyType
from typing import Annotated, Literal

import networkx as nx  # type: ignore[import-untyped]
from msgspec import Meta, Struct

from controller.strict import MOST, Count, Quantity

ACKER = "__acker"


@dataclass(frozen=True, slots=True)
class Part:
    """A component; `kind` is spout, bolt or system."""

    id: str
    kind: str
    executors: int
    cost_us: float  # processor time of one tuple
    # What one executor does at most, however much processor it has: it waits for others.
    max_tps: float = math.inf
    # Sigma of the log-normal factor by which the executors' costs differ, as their keys do.
    uneven: float = 0.0


@dataclass(frozen=True, slots=True)
class Link:
    """A stream between two components."""

    source: str
    target: str
    # shuffle; near (a shuffle that prefers the own worker, then the own node); fields.
    grouping: str
    # Tuples for each one that the source emits (spout) or works off (bolt).
    selectivity: float = 1.0
    # For fields: exponent of the frequencies of the keys, and how many different keys there are.
    zipf: float = 1.0
    keys: int = 6000


@dataclass(frozen=True, slots=True)
class SimulatedTopology:
    """Components and streams, acknowledgements among them; no cycle but by them."""

    parts: tuple[Part, ...]
    links: tuple[Link, ...]

    def depth_of(self) -> dict[str, int]:
        """Tell how far each component is from the spouts, by the longest way; ackers are last."""
        graph = nx.DiGraph((link.source, link.target) for link in self.data_links)
        graph.add_nodes_from(part.id for part in self.parts)
        layers = enumerate(nx.topological_generations(graph))
        depth = {name: level for level, names in layers for name in names}
        return depth | ({ACKER: len(depth)} if ACKER in depth else {})

    @property
    def data_links(self) -> tuple[Link, ...]:
        """All links but acknowledgements."""
        return tuple(link for link in self.links if ACKER not in (link.source, link.target))

    def visits(self) -> dict[str, float]:
        """Count the tuples that each component gets for one tuple of all spouts together.

        Acknowledgements do not count.
        """
        depth = self.depth_of()
        spouts = [part for part in self.parts if part.kind == "spout"]
        count = {part.id: 0.0 for part in self.parts}
        count |= {part.id: 1 / len(spouts) for part in spouts}
        for link in sorted(self.data_links, key=lambda link: depth[link.source]):
            count[link.target] += count[link.source] * link.selectivity
        return count


def acked(topology: SimulatedTopology, ackers: int, cost_us: float) -> SimulatedTopology:
    """Add ackers, as Storm does: a tuple to them for each one made or worked off, one back."""
    if not ackers:
        return topology
    acks = sum(topology.visits().values())
    to = [Link(part.id, ACKER, "fields", zipf=0.0) for part in topology.parts]
    spouts = [part.id for part in topology.parts if part.kind == "spout"]
    back = [Link(ACKER, name, "shuffle", 1 / acks / len(spouts)) for name in spouts]
    acker = Part(ACKER, "system", ackers, cost_us)
    return SimulatedTopology((acker, *topology.parts), (*topology.links, *to, *back))


class _Workload(Struct, frozen=True, forbid_unknown_fields=True, tag_field="name"):
    """What a scenario names and describes."""


class WordCount(_Workload, frozen=True, tag="wordcount"):
    """Sentences are split into words, words are counted (004, section 5.1)."""

    spouts: Count = 2
    splits: Count = 12
    counts: Count = 24
    ackers: Annotated[int, Meta(ge=0, le=int(MOST))] = 0
    words: Count = 10
    grouping: Literal["shuffle", "near", "fields"] = "shuffle"
    zipf: Quantity = 1.0
    vocabulary: Count = 6000
    spout_us: Quantity = 5.0
    split_us: Quantity = 20.0
    count_us: Quantity = 5.0
    ack_us: Quantity = 2.0
    uneven: Quantity = 0.0

    def topology(self) -> SimulatedTopology:
        split = Part("split", "bolt", self.splits, self.split_us, uneven=self.uneven)
        parts = (
            Part("count", "bolt", self.counts, self.count_us),
            split,
            Part("spout", "spout", self.spouts, self.spout_us),
        )
        links = (
            Link("spout", "split", self.grouping, 1.0, 0.0),
            Link("split", "count", "fields", self.words, self.zipf, self.vocabulary),
        )
        return acked(SimulatedTopology(parts, links), self.ackers, self.ack_us)


class Chain(_Workload, frozen=True, tag="chain"):
    """Components in a row that pass on what they get (003, section 4.1)."""

    sizes: Annotated[tuple[Count, ...], Meta(min_length=1)] = (2, 4, 6, 8, 8, 6, 4, 2)
    grouping: Literal["shuffle", "near"] = "near"
    cost_us: Quantity = 50.0

    def topology(self) -> SimulatedTopology:
        names = [f"po{i}" for i in range(1, len(self.sizes) + 1)]
        kinds = ["spout"] + ["bolt"] * (len(names) - 1)
        parts = tuple(
            Part(name, kind, size, self.cost_us)
            for name, kind, size in zip(names, kinds, self.sizes, strict=True)
        )
        return SimulatedTopology(
            parts, tuple(Link(a, b, self.grouping) for a, b in pairwise(names))
        )


# Rate and CPU share of one thread alone on one slot (001, profile of the authors' scripts).
_THREAD: Mapping[str, tuple[float, float]] = MappingProxyType(
    {
        "blob": (2.0, 0.0673),
        "table": (3.0, 0.0102),
        "xml": (310.0, 0.8469),
        "pi": (105.0, 0.9235),
        "file": (60000.0, 0.5827),
    }
)
# Diamond and star as read in 001: its figure is not in the text.
_SHAPES: Mapping[str, str] = MappingProxyType(
    {
        "linear": "source>blob blob>table table>xml xml>pi pi>file file>sink",
        "diamond": "source>blob source>table source>xml source>file "
        "blob>pi table>pi xml>pi file>pi pi>sink",
        "star": "source>blob source>table blob>xml table>xml xml>pi xml>file pi>sink file>sink",
    }
)


class Micro(_Workload, frozen=True, tag="micro"):
    """The micro-benchmark graphs of 001, with the threads that linear scaling gives (LSA)."""

    shape: Literal["linear", "diamond", "star"] = "linear"
    planned_tps: Quantity = 50.0

    def topology(self) -> SimulatedTopology:
        pairs = [pair.partition(">") for pair in _SHAPES[self.shape].split()]
        links = tuple(Link(source, target, "shuffle") for source, _, target in pairs)
        names = sorted({name for link in links for name in (link.source, link.target)})
        # Source and sink cost 10 % of a slot, at a rate that 001 does not name: the planned one.
        idle_us = 0.1 / self.planned_tps * 1e6
        sketch = SimulatedTopology(
            tuple(Part(n, "spout" if n == "source" else "bolt", 1, idle_us) for n in names), links
        )
        visits = sketch.visits()

        def part(name: str) -> Part:
            if name not in _THREAD:
                return Part(name, "spout" if name == "source" else "bolt", 1, idle_us)
            rate_tps, cpu_frac = _THREAD[name]
            threads = math.ceil(visits[name] * self.planned_tps / rate_tps)
            return Part(name, "bolt", threads, cpu_frac / rate_tps * 1e6, rate_tps)

        return SimulatedTopology(tuple(part(name) for name in names), links)


class PageViews(_Workload, frozen=True, tag="page-views"):
    """Source, view, count, sink, each emitting for every click (003, section 4.5)."""

    executors: Count = 4
    users: Count = 100
    cost_us: Quantity = 50.0

    def topology(self) -> SimulatedTopology:
        names = ("source", "view", "count", "sink")
        parts = tuple(
            Part(n, "spout" if n == "source" else "bolt", self.executors, self.cost_us)
            for n in sorted(names)
        )
        links = (
            Link("source", "view", "near"),
            Link("view", "count", "fields", 1.0, 0.0, self.users),
            Link("count", "sink", "near"),
        )
        return SimulatedTopology(parts, links)


Workload = WordCount | Chain | Micro | PageViews

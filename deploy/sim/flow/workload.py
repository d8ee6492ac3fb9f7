"""The topologies that a simulation feeds, as tuples, costs and groupings.

Costs are processor time without serialisation, which depends on the placement and is the cluster's.
"""

import math
from dataclasses import dataclass
from typing import Annotated, Literal

import networkx as nx  # type: ignore[import-untyped]
from msgspec import Meta, Struct

from controller.core.quantities import MOST, Count, Name, Quantity
from deploy.sim import ScenarioError

ACKER = "__acker"
ACK_BYTES = 30.0  # two numbers, the task ids and the header of a frame
Unbounded = Annotated[float, Meta(ge=0)]  # infinite where nothing binds


class Part(Struct, frozen=True, forbid_unknown_fields=True):
    """A component."""

    id: Name
    kind: Literal["spout", "bolt", "system"]
    executors: Count
    cost_us: Quantity  # processor time of one tuple
    # What one executor does at most, however much processor it has: it waits for others.
    max_tps: Unbounded = math.inf
    # Sigma of the log-normal factor by which the executors' costs differ, as their keys do.
    uneven: Quantity = 0.0
    state_mb: Quantity = 0.0  # heap that one executor's state fills
    memory_mb: Quantity = 0.0  # what one executor declares


class Link(Struct, frozen=True, forbid_unknown_fields=True):
    """A stream between two components."""

    source: Name
    target: Name
    # near: a shuffle that prefers the own worker, then the own node.
    grouping: Literal["shuffle", "near", "fields"]
    # Tuples for each one that the source emits (spout) or works off (bolt).
    selectivity: Quantity = 1.0
    # For fields: exponent of the frequencies of the keys, and how many different keys there are.
    zipf: Quantity = 1.0
    keys: Count = 6000
    size_bytes: Quantity = 0.0  # of a tuple


@dataclass(frozen=True, slots=True)
class SimulatedTopology:
    """Components and streams, acknowledgements among them; no cycle but by them."""

    parts: tuple[Part, ...]
    links: tuple[Link, ...]

    def depth_of(self) -> dict[str, int]:
        """Compute each component's distance from the spouts, by the longest way; ackers last."""
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
    size = ACK_BYTES
    to = [Link(p.id, ACKER, "fields", zipf=0.0, size_bytes=size) for p in topology.parts]
    spouts = [part.id for part in topology.parts if part.kind == "spout"]
    back = [
        Link(ACKER, name, "shuffle", 1 / acks / len(spouts), size_bytes=size) for name in spouts
    ]
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
    sentence_bytes: Quantity = 0.0
    word_bytes: Quantity = 0.0
    memory_mb: Quantity = 0.0  # what each executor declares, but for ackers

    def topology(self) -> SimulatedTopology:
        mb = self.memory_mb
        split = Part("split", "bolt", self.splits, self.split_us, uneven=self.uneven, memory_mb=mb)
        parts = (
            Part("count", "bolt", self.counts, self.count_us, memory_mb=mb),
            split,
            Part("spout", "spout", self.spouts, self.spout_us, memory_mb=mb),
        )
        links = (
            Link("spout", "split", self.grouping, zipf=0.0, size_bytes=self.sentence_bytes),
            Link(
                "split",
                "count",
                "fields",
                self.words,
                self.zipf,
                self.vocabulary,
                self.word_bytes,
            ),
        )
        return acked(SimulatedTopology(parts, links), self.ackers, self.ack_us)


class ListedGraph(_Workload, frozen=True, tag="graph"):
    """Components and streams as the scenario lists them."""

    parts: Annotated[tuple[Part, ...], Meta(min_length=1)]
    links: tuple[Link, ...] = ()
    ackers: Annotated[int, Meta(ge=0, le=int(MOST))] = 0
    ack_us: Quantity = 2.0

    def topology(self) -> SimulatedTopology:
        names = {part.id for part in self.parts}
        graph = nx.DiGraph((link.source, link.target) for link in self.links)
        if len(names) < len(self.parts) or not names >= set(graph):
            raise ScenarioError("workload: parts must differ by id, and links be between parts")
        unfed = names - {link.target for link in self.links}
        if unfed != {part.id for part in self.parts if part.kind == "spout"}:
            raise ScenarioError("workload: links must lead to every part but the spouts")
        if not nx.is_directed_acyclic_graph(graph):
            raise ScenarioError("workload: links may not lead round")
        return acked(SimulatedTopology(self.parts, self.links), self.ackers, self.ack_us)


Workload = WordCount | ListedGraph

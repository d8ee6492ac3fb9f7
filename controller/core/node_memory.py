"""The memory that each node has for the executors of a topology, in a placement.

As in `declared.py`, which adds it up.
"""

from dataclasses import dataclass

import numpy as np

from controller.core.cluster import Cluster, Floats, Ints, LoadSnapshot, Marks
from controller.core.declared import TOLERANCE_MB, lacking


@dataclass(frozen=True, slots=True, eq=False)
class NodeMemory:
    """What the executors of a topology declare, and what its nodes have for them and for others."""

    nodes: tuple[str, ...]
    node_of: Ints  # (W,), index of each worker's node
    each_mb: Floats  # (E,)
    has_mb: Floats  # (N,)
    others_mb: Floats  # (N,), what other topologies declare

    @classmethod
    def of(cls, cluster: Cluster, snapshot: LoadSnapshot) -> "NodeMemory | None":
        """Put it together; None where nothing counts it."""
        each_mb, has_mb, others_mb = snapshot.memory_mb, cluster.memory_mb, cluster.other_memory_mb
        if each_mb is None or has_mb is None:
            return None
        others_mb = np.zeros(len(has_mb)) if others_mb is None else others_mb
        return cls(cluster.nodes, cluster.node_of, each_mb, has_mb, others_mb)

    def held_mb(self, place: Ints) -> Floats:
        """Add up what is declared on each node in a placement, (N,)."""
        own = np.bincount(self.node_of[place], self.each_mb, len(self.nodes))
        return (self.others_mb + own).astype(np.float64)

    def left_mb(self, place: Ints) -> Floats:
        """Compute what may still come to each node, (N,); nothing where there is too much."""
        return np.maximum(self.has_mb - self.held_mb(place), 0.0) + TOLERANCE_MB

    def takes(self, executors: Ints, workers: Ints, place: Ints) -> Marks:
        """Mark the executors that may come to the node of the worker of the same row."""
        homes, ends = self.node_of[place[executors]], self.node_of[workers]
        found: Marks = (homes == ends) | (self.each_mb[executors] <= self.left_mb(place)[ends])
        return found

    def full(self, place: Ints) -> set[str]:
        """List the nodes to which not even the smallest executor may come."""
        is_full = self.each_mb.min(initial=np.inf) > self.left_mb(place)
        return {self.nodes[n] for n in np.flatnonzero(is_full)}

    def overfilled(self, place: Ints, before: Ints) -> Ints:
        """List the nodes that hold more than they have, and more than before."""
        most = np.maximum(self.has_mb, self.held_mb(before))
        return np.flatnonzero(self.held_mb(place) > most + TOLERANCE_MB)

    def why_not(self, executor: int, worker: int, place: Ints) -> str:
        """Write why an executor may not come to the node of a worker."""
        n, what_comes = int(self.node_of[worker]), f"it brings {self.each_mb[executor]:.6g} MB"
        has_mb, held_mb = float(self.has_mb[n]), float(self.held_mb(place)[n])
        return lacking(f"node {self.nodes[n]}", has_mb, held_mb, what_comes)

    def why_overfilled(self, place: Ints, before: Ints) -> str | None:
        """Name the first node of `overfilled`, and by how much; None without."""
        over = self.overfilled(place, before)
        if not over.size:
            return None
        held_mb, has_mb = self.held_mb(place)[over[0]], self.has_mb[over[0]]
        what = f"would hold {held_mb:.6g} MB of declared memory, and has {has_mb:.6g} MB"
        return f"node {self.nodes[over[0]]} {what}"

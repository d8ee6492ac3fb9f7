"""Memory that components declare, in MB, where Storm's scheduler counts it; else it limits nothing.

No placement lets a node hold more of it than the node has, or than it holds anyway. What all
topologies declare counts. A move under way counts at both of its ends, for it may go back.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from controller.core.topology import TopologyView
from migration.model import Entry, ExecutorId, Phase

# Sums in another order differ in the last digits.
TOLERANCE_MB = 1e-6


@dataclass(frozen=True, slots=True)
class Declared:
    """What each node has, and what all topologies declare there; empty where nothing counts it."""

    has_mb: Mapping[str, float] = field(default_factory=dict)
    held_mb: Mapping[str, float] = field(default_factory=dict)

    @classmethod
    def of(cls, views: Sequence[TopologyView]) -> "Declared":
        """Add up what all topologies declare that are published."""
        has_mb = views[0].publication.memory_of_nodes if views else {}
        parts: list[Mapping[str, float]] = []
        for view in views if has_mb else ():
            parts += [view.publication.declared_mb, _coming_mb(view, view.plan.entries)]
        return cls(has_mb, _added(*parts))

    def with_begun(self, view: TopologyView, begun: Iterable[Entry]) -> "Declared":
        """Count moves that begin as well."""
        return Declared(self.has_mb, _added(self.held_mb, _coming_mb(view, begun)))

    def spread(self, what: str, mb: float, nodes: Iterable[str], of: str) -> "Declared | str":
        """Count what may come to any of some nodes; the reason where they have too little for it.

        `what` declares it, and the nodes are those `of` something, in the reason.
        """
        if not self.has_mb:
            return self
        left = {n: max(self.has_mb.get(n, 0.0) - self.held_mb.get(n, 0.0), 0.0) for n in nodes}
        all_mb = sum(left.values())
        if mb > all_mb + TOLERANCE_MB:
            return (
                f"{what} declare {mb:.6g} MB of memory, and the nodes of {of} have "
                f"{all_mb:.6g} MB left for Storm's scheduler"
            )
        shares = {node: mb * one / all_mb for node, one in left.items() if one}
        return Declared(self.has_mb, _added(self.held_mb, shares))

    def why_not(self, view: TopologyView, begun: Sequence[Entry]) -> str | None:
        """Name a node that has too little for moves of a topology; None if all have enough."""
        if not self.has_mb:
            return None
        each = [(entry, memory_mb(view, entry.executor)) for entry in begun]
        came = _added(*({entry.target.supervisor: mb} for entry, mb in each))
        went = _added(*({entry.source.supervisor: mb} for entry, mb in each))
        for node, came_mb in came.items():
            mb = came_mb - went.get(node, 0.0)
            has_mb, held_mb = self.has_mb.get(node, math.inf), self.held_mb.get(node, 0.0)
            if mb > TOLERANCE_MB and held_mb + mb > has_mb + TOLERANCE_MB:
                who = f"{begun[0].executor} brings" if len(begun) == 1 else "the moves bring"
                host = view.publication.hosts.get(node, node)
                return lacking(f"host {host}", has_mb, held_mb, f"{who} {mb:.6g} MB")
        return None


def lacking(where: str, has_mb: float, held_mb: float, what_comes: str) -> str:
    """Write why something may not come to a node."""
    return (
        f"{where} has {has_mb:.6g} MB of memory for Storm's scheduler, {held_mb:.6g} MB are "
        f"declared there, and {what_comes}"
    )


def _added(*parts: Mapping[str, float]) -> dict[str, float]:
    """Add up by node."""
    found: dict[str, float] = {}
    for part in parts:
        for node, mb in part.items():
            found[node] = found.get(node, 0.0) + mb
    return found


def _coming_mb(view: TopologyView, entries: Iterable[Entry]) -> dict[str, float]:
    """Add up, by node, what moves bring that Storm has elsewhere, and that do not go back."""
    found: dict[str, float] = {}
    for entry in entries:
        placed = view.observation.placed.get(entry.executor)
        if placed is None or placed.slot is None or entry.phase is Phase.UNDO:
            continue
        target = entry.target.supervisor
        if placed.slot.supervisor != target and entry.counts(placed.slot, placed.start_secs):
            found[target] = found.get(target, 0.0) + memory_mb(view, entry.executor)
    return found


def memory_mb(view: TopologyView, executor: ExecutorId) -> float:
    """Give what an executor of a topology declares."""
    component = view.observation.placed[executor].component
    return view.publication.memory_mb.get(component, 0.0)

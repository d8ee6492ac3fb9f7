"""What is still on hosts that operators drain."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from controller.core.excluded import nodes_named
from controller.core.pins import pinned
from controller.core.topology import TopologyView, settled_placement
from migration.model import ExecutorId


@dataclass(frozen=True, slots=True)
class Undrained:
    """The executors of a topology that are still on a drained host, and why some of them stay."""

    executors: tuple[ExecutorId, ...]
    stays: Mapping[ExecutorId, str]


def left_on(view: TopologyView, drained: Collection[str]) -> Undrained:
    """List what is still on drained hosts."""
    nodes = nodes_named(view.publication.hosts, drained)
    placement = settled_placement(view.publication, view.plan)
    here = tuple(sorted(e for e, slot in placement.items() if slot.supervisor in nodes))
    stays = pinned(view.observation) if here else {}
    return Undrained(here, {e: stays[e] for e in here if e in stays})

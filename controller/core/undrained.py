"""What is still on hosts that operators drain."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from controller.core.excluded import Excluded, nodes_named
from controller.core.pins import pinned
from controller.core.topology import TopologyView, settled_placement
from migration.model import ExecutorId

# The states of a topology that pass within seconds.
_PASSES = frozenset({"REBALANCING", "KILLED"})


@dataclass(frozen=True, slots=True)
class Undrained:
    """The executors of a topology that are still on a drained host, and why some of them stay."""

    executors: tuple[ExecutorId, ...]
    stays: Mapping[ExecutorId, str]


def all_stays(view: TopologyView, excluded: Excluded) -> str | None:
    """Return why no drain moves an executor of a topology now; None if one does."""
    publication = view.publication
    if excluded.has_topology(view.id, publication.name):
        return f"topology {publication.name} is excluded"
    is_active = publication.status == "ACTIVE"
    return None if is_active else f"topology {publication.name} is {publication.status}"


def left_on(view: TopologyView, drained: Collection[str], excluded: Excluded) -> Undrained:
    """List what is still on drained hosts; of what is excluded, only the topologies count."""
    nodes = nodes_named(view.publication.hosts, drained)
    placement = settled_placement(view.publication, view.plan)
    here = tuple(sorted(e for e, slot in placement.items() if slot.supervisor in nodes))
    why = all_stays(view, excluded)
    is_excluded = excluded.has_topology(view.id, view.publication.name)
    if why is not None and (is_excluded or view.publication.status not in _PASSES):
        return Undrained(here, dict.fromkeys(here, why))
    stays = pinned(view.observation) if here else {}
    return Undrained(here, {e: stays[e] for e in here if e in stays})

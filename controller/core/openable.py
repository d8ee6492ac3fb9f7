"""The slots where a worker of a topology could be started."""

from collections.abc import Collection

from controller.core.capacity import Capacity, Spare
from controller.core.topology import TopologyView
from migration.model import Slot


def slots_to_open(
    view: TopologyView, free: Collection[Slot], capacity: Capacity, *, anywhere: bool = False
) -> list[Spare]:
    """List what could be opened for a topology, the one with the most CPU first.

    It is one slot of each node where the topology has no worker, or of each, if `anywhere`. The
    node's CPU still has a share of it. There is none while one of its JVMs or agents does not know
    of slots that are opened.
    """
    if not view.observation.can_open:
        return []
    used = {slot.supervisor for slot in view.observation.slots}
    one_a_node = {slot.supervisor: slot for slot in sorted(free, reverse=True)}
    slots = [slot for node, slot in sorted(one_a_node.items()) if anywhere or node not in used]
    found = [opened_slot(view, slot, capacity) for slot in slots]
    return sorted((s for s in found if s is not None), key=lambda spare: -spare.capacity)


def opened_slot(view: TopologyView, slot: Slot, capacity: Capacity) -> Spare | None:
    """Return what a slot would be with a worker more on its node; None if its node has gone."""
    node = view.publication.node_of.get(slot.supervisor)
    if node is None:
        return None
    return Spare(str(slot), node.id, capacity.of(node, more=1))

"""Finds free slots where a worker of a topology could be started."""

from collections.abc import Collection, Sequence
from dataclasses import replace

from controller.core.case import TopologyCase
from controller.core.cluster import Spare
from controller.core.fit import Capacity
from controller.core.topology import TopologyView
from migration.model import Slot


def slots_each(
    cases: Sequence[TopologyCase],
    *,
    drains: bool,  # whether any host is drained
    free: Collection[Slot],
    capacity: Capacity,
) -> list[TopologyCase]:
    """List what could be opened for the topologies that may want it; none where nothing is free.

    They have a worker above the limit, or executors may have to leave a host.
    """
    return [
        replace(case, slots=tuple(slots_to_open(case.view, free, capacity)))
        if free and case.picture and (drains or case.picture.fit.is_high.any())
        else case
        for case in cases
    ]


def slots_to_open(view: TopologyView, free: Collection[Slot], capacity: Capacity) -> list[Spare]:
    """List what could be opened for a topology, the one with the most CPU first.

    It is one slot of each node where the topology has no worker, and of which the node's CPU still
    has a share. There is none while one of its JVMs or agents does not know of slots that are
    opened.
    """
    if not view.observation.can_open:
        return []
    used = {slot.supervisor for slot in view.observation.slots}
    one_a_node = {slot.supervisor: slot for slot in sorted(free, reverse=True)}
    slots = [slot for node, slot in sorted(one_a_node.items()) if node not in used]
    found = [opened_slot(view, slot, capacity) for slot in slots]
    return sorted((s for s in found if s is not None), key=lambda spare: -spare.capacity)


def opened_slot(view: TopologyView, slot: Slot, capacity: Capacity) -> Spare | None:
    """Return what a slot would be with a worker more on its node; None if its node has gone."""
    node = view.publication.node_of.get(slot.supervisor)
    if node is None:
        return None
    return Spare(str(slot), node.id, capacity.of(node, more=1))

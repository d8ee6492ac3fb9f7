"""Finds free slots where a worker of a topology could be started."""

from collections.abc import Collection, Sequence
from dataclasses import replace

from controller.core.capacity import Capacity
from controller.core.case import TopologyCase
from controller.core.openable import slots_to_open
from controller.core.picture import Picture
from controller.core.spaces import any_full
from migration.model import Slot


def slots_each(
    cases: Sequence[TopologyCase],
    *,
    drains: bool,  # whether any host is drained
    free: Collection[Slot],
    capacity: Capacity,
) -> list[TopologyCase]:
    """List what could be opened for the topologies that may want it; none where nothing is free.

    They have a worker above the limit, or executors may have to leave a host. Another worker of the
    same node brings it no CPU, but another heap.
    """

    def with_slots(case: TopologyCase, made: Picture) -> TopologyCase:
        is_high = bool(made.fit.is_high.any())
        is_full = any_full(made.fit, made.snapshot)
        if not (drains or is_high or is_full):
            return case
        slots = slots_to_open(case.view, free, capacity, anywhere=is_full)
        return replace(case, slots=tuple(slots))

    return [with_slots(one, one.picture) if free and one.picture else one for one in cases]

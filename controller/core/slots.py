"""Finds free slots where a worker of a topology could be started."""

from collections.abc import Collection, Sequence
from dataclasses import replace

from controller.core.capacity import Capacity
from controller.core.case import TopologyCase
from controller.core.openable import slots_to_open
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

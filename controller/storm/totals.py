"""Counts what components have been sent: totals that go on through moves, as Storm's own do not."""

from collections.abc import Iterator, Mapping

import numpy as np

from controller.core.metrics import Rates, sent_between
from controller.core.tasks import FIRST_COMPONENT, component_targets, ends_of, row_by_task
from controller.core.topology import TopologyView
from migration.model import Publication


class TupleTotals:
    """Remembers the totals of the cycle before, by topology."""

    def __init__(self) -> None:
        self._before: Mapping[str, Rates] = {}

    def since(
        self, views: tuple[TopologyView, ...], rates: Mapping[str, Rates]
    ) -> Iterator[tuple[str, str, float]]:
        """Give topology, component, and the tuples it was sent since the last call.

        A total that is seen for the first time has no rate yet.
        """
        before, self._before = self._before, {view.id: rates[view.id] for view in views}
        for view in views:
            if view.id in before:
                more = _by_component(view.publication, before[view.id], rates[view.id])
                yield from ((view.id, component, tuples) for component, tuples in more.items())


def _by_component(publication: Publication, before: Rates, after: Rates) -> dict[str, float]:
    targets = component_targets(publication)
    _, target = ends_of(after.pairs)
    row = row_by_task([placed.executor for placed in publication.executors])
    # Where no executor has a task, the last one: none.
    of_row = [targets[placed.component] - FIRST_COMPONENT for placed in publication.executors]
    component_of = np.array([*of_row, len(targets)], np.int64)[row]
    last = len(row) - 1
    named = target <= last
    component = np.where(named, component_of[np.minimum(target, last)], target - FIRST_COMPONENT)
    component = np.clip(component, 0, len(targets))  # a task that has gone is of none
    sums = np.bincount(component, sent_between(before, after), len(targets) + 1)
    return dict(zip(targets, sums.tolist(), strict=False))

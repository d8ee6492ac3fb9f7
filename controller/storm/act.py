"""Acts: writes the plans that begin moves, and drives the moves in them."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from controller.core.decision import Move
from controller.core.topology import TopologyView, moves_under_way
from controller.cycle import CycleInput
from controller.report import Report
from controller.storm.apply import Applier
from controller.storm.last import LastCycle, asked_by
from migration.model import MOVING, Plan


class Act:
    """Begins moves, and knows which of the last cycle could not begin."""

    def __init__(self, applier: Applier, last: Callable[[], LastCycle]) -> None:
        self._applier = applier
        self._last = last
        # Topologies whose plan of the last cycle is not written: another controller had changed it.
        self.unwritten: set[str] = set()
        self.settles = False  # whether all moves under way are beyond STOP

    def drive(self, views: Sequence[TopologyView]) -> bool:
        """Look at the moves under way; return whether there are any."""
        moving = self._applier.step(views)
        self.settles = moving and not moves_under_way(views, MOVING)
        return moving

    def write(self, seen: CycleInput | None, report: Report) -> None:
        """Write the plans of a report; where ZooKeeper goes away the rest stays unwritten."""
        plans = report.plans
        self.unwritten = set(plans)
        before = {view.id: view.plan for view in seen.topologies} if seen else {}
        for one in report.topologies:
            plan = plans.get(one.topology)
            if plan is None:
                continue
            asked = asked_by(one, self._last().config)
            if self.begin(before[one.topology], plan, asked):
                self.unwritten.discard(one.topology)

    def begin(self, before: Plan, after: Plan, asked: Mapping[str, Any]) -> bool:
        """Write a plan that begins moves, and remember what there was before them.

        Returns whether that worked.
        """
        self.settles = False
        now = self._last().figures(before.topology) or {}
        return self._applier.begin(before, after, {**asked, "before": now})

    def not_begun(self, report: Report) -> tuple[tuple[str, Move], ...]:
        """List the moves, with their topology, that were not written, as far as is known."""
        return tuple(
            (one.topology, move)
            for one in report.topologies
            if one.topology in self.unwritten
            for move in one.moves
        )

"""Where the mode auto would come to, for topologies whose moves only wait or are advice."""

import math
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from msgspec.structs import replace

from controller.core.decision import Move, Outcome
from controller.report import TopologyReport
from controller.storm.answer_records import PlanAnswer
from controller.storm.leader_status import WaySum
from controller.storm.missed import Missed

# How long a way counts as known, as long as it begins with the same moves.
WAY_S = 60.0
_LONGEST_CYCLES = 3  # beyond this, the traffic since the last cycle is not known


class WayAhead(NamedTuple):
    moves: tuple[Move, ...] = ()  # that it begins with
    found_s: float = -math.inf  # Unix seconds
    summed: WaySum = WaySum()


class Ways:
    """Sums up the ways of topologies, and the tuples that they would have kept off the network."""

    def __init__(self, plan_of: Callable[[TopologyReport], PlanAnswer], cycle_s: float) -> None:
        self._plan_of = plan_of
        self._cycle_s = cycle_s
        self.known: dict[str, WayAhead] = {}  # by topology
        self.missed = Missed()

    def update(self, reports: Sequence[TopologyReport]) -> None:
        """Take in the reports of a cycle.

        At most one way is found again: with many topologies, or large ones, a cycle would be late.
        """
        # What has moved is not summed up: a way takes its time, and moves under way wait for it.
        shown = [r for r in reports if r.picture and r.moves and r.outcome is not Outcome.MOVED]
        known = {one.topology: self.known.get(one.topology, WayAhead()) for one in shown}
        for one in sorted(shown, key=lambda one: known[one.topology].found_s):
            moves, found_s, _ = known[one.topology]
            if moves != one.moves or one.time_s - found_s >= WAY_S:
                known[one.topology] = WayAhead(one.moves, one.time_s, self._summed(one))
                break
        self.known = known
        self._miss(shown, reports[0].time_s)

    def shown(self, reports: Iterable[TopologyReport]) -> dict[str, WaySum]:
        """Give the sums, by topology, of the ways that begin with the moves reported."""
        return {
            one.topology: replace(
                self.known[one.topology].summed,
                missed_tuples_today=self.missed.tuples[one.topology],
            )
            for one in reports
            if one.topology in self.known and self.known[one.topology].moves == one.moves
        }

    def _summed(self, report: TopologyReport) -> WaySum:
        found = self._plan_of(report)
        return WaySum(sum(len(step.moves) for step in found.steps), found.inter_node_frac)

    def _miss(self, shown: Iterable[TopologyReport], time_s: float) -> None:
        saved_tps = {}
        for one in shown:
            before, after = self.known[one.topology].summed.inter_node_frac
            assert one.picture is not None
            total_tps = one.picture.snapshot.traffic.total_tps
            saved_tps[one.topology] = float((before - after) * total_tps)
        self.missed.add(saved_tps, time_s, _LONGEST_CYCLES * self._cycle_s)

"""Looks: puts together all that a cycle may depend on."""

import time
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import replace

from controller.core.decision import Move
from controller.core.topology import TopologyView
from controller.cycle import CycleInput
from controller.searching import SubprocessSearches
from controller.storm.apply import Applier
from controller.storm.collect import LiveCluster
from controller.storm.history import History
from controller.storm.move_record import MoveRecord
from controller.storm.queries import Queries
from migration import ModelError
from migration.model import ExecutorId


class Look:
    """Looks at the cluster, at moves that have ended and at searches that have."""

    def __init__(
        self,
        view: LiveCluster,
        applier: Applier,
        history: History,
        searches: SubprocessSearches,
        queries: Queries,
        *,
        cooldown_s: float,
    ) -> None:
        self._view = view
        self._applier = applier
        self._history = history
        self._searches = searches
        self._queries = queries
        self._cooldown_s = cooldown_s
        # The moves of the last cycle whose write was refused, or had no answer, by topology.
        self.not_begun: tuple[tuple[str, Move], ...] = ()
        self.ended: list[MoveRecord] = []  # moves that have ended since these were last taken
        self._earlier: tuple[tuple[str, ExecutorId, float], ...] = ()  # as in `CycleInput`

    def led(self) -> None:
        """Let executors rest on that have moved under an earlier leader."""
        now_s, time_s, found = time.monotonic(), time.time(), []
        for move in self._history.ended:
            with suppress(ModelError):  # a record of a newer version may have other names
                at_s = now_s - max(time_s - move.ended_s, 0.0)
                found.append(self._rest(move, at_s))
        rests = (one for one in found if now_s - one[-1] < self._cooldown_s)
        self._earlier = tuple(rests)

    def seen(self, time_s: float, epoch: int | None) -> CycleInput:
        """Look; who does not lead, and has no epoch, looks at no topology.

        `time_s` are Unix seconds.
        """
        seen = CycleInput(time.monotonic(), time_s, epoch)
        if epoch is not None:
            views = self._view.topologies()
            seen = replace(
                seen,
                controls=self._view.controls(),
                drained=tuple(self._view.drained()),
                topologies=tuple(views),
                free=self._view.free(views),
                loads=tuple(self._view.loads()),
            )
        # Last, for what is taken here would be lost if ZooKeeper did not answer.
        earlier, self._earlier = self._earlier, ()
        return replace(
            seen,
            rests=self._rests(),
            earlier=earlier,
            not_begun=self._not_begun(seen.topologies),
            answers=self._searches.take_answers(),
            searches=self._searches.begun_s,
            begun=self._history.hour(time_s),
            refused=self._history.refused(),
            guard_answers=self._queries.answers(),
        )

    def _not_begun(self, topologies: Iterable[TopologyView]) -> tuple[tuple[str, ExecutorId], ...]:
        """Name what stands in no plan; it may be written though no answer came."""
        begun = {
            (view.id, str(entry.executor), str(entry.target))
            for view in topologies
            for entry in view.plan.entries
        }
        return tuple(
            (topology, ExecutorId.parse(move.executor))
            for topology, move in self.not_begun
            if (topology, move.executor, move.target) not in begun
        )

    def _rests(self) -> tuple[tuple[str, ExecutorId, float], ...]:
        """Let an executor rest after its move, whether the policy or an operator asked for it."""
        ended = self._applier.take_ended()
        self.ended += [move for move, _ in ended]
        return tuple(self._rest(move, at_s) for move, at_s in ended)

    def _rest(self, move: MoveRecord, at_s: float) -> tuple[str, ExecutorId, float]:
        """Give topology, executor and when it moved; later than it did where it rests longer."""
        longer_s = self._history.rest_s(move, self._cooldown_s) - self._cooldown_s
        return move.topology, ExecutorId.parse(move.executor), at_s + longer_s

    def take_ended(self) -> list[MoveRecord]:
        ended, self.ended = self.ended, []
        return ended

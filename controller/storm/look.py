"""Looks: puts together all that a cycle may depend on."""

import time
from dataclasses import replace

from controller.cycle import CycleInput
from controller.searching import SubprocessSearches
from controller.storm.apply import Applier
from controller.storm.collect import LiveCluster
from controller.storm.history import History
from controller.storm.move_record import MoveRecord
from controller.storm.queries import Queries
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
        # The moves of the last cycle whose plan could not be written, as in `CycleInput`.
        self.not_begun: tuple[tuple[str, ExecutorId], ...] = ()
        self.ended: list[MoveRecord] = []  # moves that have ended since these were last taken
        # Moves that have ended under earlier leaders, each with its monotonic seconds.
        self._earlier: list[tuple[MoveRecord, float]] = []

    def led(self) -> None:
        """Let executors rest on that have moved under an earlier leader."""
        now_s, time_s = time.monotonic(), time.time()
        self._earlier = [
            (move, now_s - max(time_s - move.ended_s, 0.0)) for move in self._history.ended
        ]

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
        return replace(
            seen,
            rests=self._rests(),
            not_begun=self.not_begun,
            answers=self._searches.take_answers(),
            begun=self._history.hour(time_s),
            refused=self._history.refused(),
            guard_answers=self._queries.answers(),
        )

    def _rests(self) -> tuple[tuple[str, ExecutorId, float], ...]:
        """Let an executor rest after its move, whether the policy or an operator asked for it.

        Where it rests for longer than usual, it is as if it had moved later.
        """
        ended, usual_s = self._applier.take_ended(), self._cooldown_s
        self.ended += [move for move, _ in ended]
        earlier, self._earlier = self._earlier, []
        return tuple(
            (
                move.topology,
                ExecutorId.parse(move.executor),
                at_s + self._history.rest_s(move, usual_s) - usual_s,
            )
            for move, at_s in (*earlier, *ended)
        )

    def take_ended(self) -> list[MoveRecord]:
        ended, self.ended = self.ended, []
        return ended

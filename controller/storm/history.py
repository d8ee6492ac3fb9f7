"""The last moves of the cluster: who asked, why, how each ended, and what it changed."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from itertools import takewhile
from typing import Any

import msgspec

from controller.core.figures import Effect
from controller.core.runs import GOING_BACK, Refused
from controller.core.times import DAY_S, HOUR_S
from controller.storm.move_record import REMEMBERED_MOVES, Figures, MoveRecord, stored_moves
from kvstore.zookeeper import Stored
from migration import wire
from migration.model import Entry
from migration.table import TRANSITIONS

LONGEST_REASON = 500  # characters
# What the doubling begins with where executors need not rest.
LEAST_REST_S = 30.0
# Loads are smoothed: so long after a move they show it, and no longer what came before.
MEASURED_AFTER_S = 30.0
MEASURED_UNTIL_S = 300.0

CANCELLED = tuple({row.reason for row in TRANSITIONS if row.event == "cancelled"})
SWITCHED_OFF = "nstorm was switched off"


class History:
    """The moves of all topologies, oldest first; `changed` until it has been stored."""

    def __init__(self) -> None:
        self.moves: list[MoveRecord] = []
        self.changed = False

    @property
    def ended(self) -> list[MoveRecord]:
        return [move for move in self.moves if move.outcome]

    def load(self, stored: Stored | None) -> None:
        """Take over what an earlier leader stored, but for ends that could not be stored here."""
        ended = {(move.topology, move.id, move.begun_s): move for move in self.ended}
        found = stored_moves(stored)
        self.moves = [
            one if one.outcome else ended.get((one.topology, one.id, one.begun_s), one)
            for one in found
        ]
        self.changed = self.moves != found

    def dump(self) -> bytes:
        """Give what is stored; the oldest moves are forgotten where all would not fit."""
        while True:
            data = wire.packed(msgspec.json.encode(self.moves))
            if len(data) <= wire.LARGEST_NODE_BYTES:
                return data
            self.moves = self.moves[len(self.moves) // 4 + 1 :]

    def begin(self, topology: str, entry: Entry, time_s: float, asked: Mapping[str, Any]) -> None:
        """Note a move; `asked` are fields of its record, but `asc_tps` by executor."""
        made = _record(topology, entry)
        facts = {**asked, "asc_tps": asked.get("asc_tps", {}).get(made.executor)}
        self._keep(replace(made, begun_s=time_s, **facts))

    @property
    def under_way(self) -> list[MoveRecord]:
        return [move for move in self.moves if not move.outcome]

    def of(self, topology: str, entry: Entry) -> MoveRecord:
        """Return what is known of a move under way, which may have begun unseen."""
        begun = (m for m in reversed(self.moves) if (m.topology, m.id) == (topology, entry.id))
        return next((m for m in begun if not m.outcome), _record(topology, entry))

    def end(self, move: MoveRecord, **how: Any) -> MoveRecord:
        """Note how a move ended, in place of what was known of it under way."""
        key = move.topology, move.id, ""
        self.moves = [m for m in self.moves if (m.topology, m.id, m.outcome) != key]
        self._keep(replace(move, **how))
        return self.moves[-1]

    def rest_s(self, move: MoveRecord, cooldown_s: float) -> float:
        """Return for how long an executor rests after a move that has ended.

        From the second move on that was undone it doubles, up to a day. Moves count of the executor
        since it last moved, or to this node since it last came there. What an operator has
        cancelled, or switched off, does not count.
        """
        same = [
            one
            for one in self.ended
            if (one.topology, one.executor) == (move.topology, move.executor)
            and one.outcome != "VOID"
            and not one.reason.startswith((*CANCELLED, SWITCHED_OFF))
        ]
        there = [one for one in same if _node(one.target) == _node(move.target)]
        count = max(_undone_last(same), _undone_last(there))
        if move.outcome != "UNDONE" or count < 2:
            return cooldown_s
        # A number of 200 bits is no float, and a day is less.
        doubled_s = max(cooldown_s, LEAST_REST_S) * 2.0 ** min(count - 1, 60)
        return max(cooldown_s, min(doubled_s, DAY_S))

    def _keep(self, move: MoveRecord) -> None:
        why, reason = move.why[:LONGEST_REASON], move.reason[:LONGEST_REASON]
        self.moves = [*self.moves, replace(move, why=why, reason=reason)][-REMEMBERED_MOVES:]
        self.changed = True

    def measure(self, now: Mapping[str, Figures], time_s: float) -> None:
        """Note what topologies look like after moves, but for executors that have moved on."""
        for row, move in enumerate(self.moves):
            since_s = time_s - move.ended_s
            waits = move.outcome == "MOVED" and not move.after and move.topology in now
            if not waits or not MEASURED_AFTER_S <= since_s <= MEASURED_UNTIL_S:
                continue
            begun_s = move.begun_s or move.ended_s
            here = [m for m in self.moves if m is not move and m.topology == move.topology]
            meanwhile = [m for m in here if not m.outcome or m.ended_s > begun_s]
            if all(m.executor != move.executor for m in meanwhile):
                figures = now[move.topology]
                self.moves[row] = replace(move, after=figures, measured_with=len(meanwhile))
                self.changed = True

    def judge(self, effects: Mapping[str, Iterable[Effect]]) -> None:
        """Note the effects of runs that are measured to their end, by topology."""
        final = {
            (topology, move): effect
            for topology, of in effects.items()
            for effect in of
            if effect.is_final
            for move in effect.moves
        }
        for row, move in enumerate(self.moves):
            effect = final.get((move.topology, move.id))
            head = move.effect.partition(":")[0]
            if effect is None or not move.outcome or (head and GOING_BACK not in head):
                continue
            if str(effect) == move.effect:
                continue
            self.moves[row] = replace(
                move,
                effect=str(effect),
                like_tps=effect.like_tps,
                predicted_cpu=effect.predicted_cpu,
                measured_cpu=effect.measured_cpu,
            )
            self.changed = True

    def refused(self) -> tuple[tuple[str, Refused], ...]:
        """List by topology what was taken back, run by run, for a leader that has not seen it."""
        runs: dict[tuple[str, str, tuple[float, float]], list[str]] = {}
        for move in self.moves:
            if move.like_tps is not None:
                run = move.topology, move.effect, move.like_tps
                runs.setdefault(run, []).append(move.executor)
        return tuple(
            (topology, Refused(tuple(dict.fromkeys(executors)), like_tps, why))
            for (topology, why, like_tps), executors in runs.items()
        )

    def hour(self, time_s: float) -> tuple[tuple[float, str, str], ...]:
        """List begin, source node and target node of the moves of the last hour."""
        return tuple(
            (m.begun_s, _node(m.source), _node(m.target))
            for m in self.moves
            # Nor one of a clock that was ahead.
            if m.begun_s is not None and abs(time_s - m.begun_s) < HOUR_S
        )


def _undone_last(moves: list[MoveRecord]) -> int:
    return sum(1 for _ in takewhile(lambda move: move.outcome == "UNDONE", reversed(moves)))


def _node(slot: str) -> str:
    return slot.rpartition(":")[0]


def _record(topology: str, entry: Entry) -> MoveRecord:
    ends = str(entry.executor), str(entry.source), str(entry.target)
    return MoveRecord(topology, entry.id, *ends)

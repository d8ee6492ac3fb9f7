"""The last moves of the cluster: who asked, why, how each ended, and what it changed."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from itertools import takewhile
from math import inf
from pathlib import Path
from typing import Any

import msgspec

from controller.core.effect import Effect
from controller.core.runs import GOING_BACK, Refused
from controller.journal.record import from_line
from controller.journal.writer import move_lines
from kvstore.zookeeper import Stored
from migration import wire
from migration.model import Entry, Phase
from migration.table import TRANSITIONS

HISTORY = f"{wire.ROOT}/history"
REMEMBERED_MOVES = 200
LONGEST_REASON = 500  # characters
HOUR_S, DAY_S = 3600.0, 86_400.0
# What the doubling begins with where executors need not rest.
LEAST_REST_S = 30.0
# Loads are smoothed: so long after a move they show it, and no longer what came before.
MEASURED_AFTER_S = 30.0
MEASURED_UNTIL_S = 300.0

CANCELLED = tuple({row.reason for row in TRANSITIONS if row.event == "cancelled"})
SWITCHED_OFF = "nstorm was switched off"

Figures = dict[str, float | None]  # inter_node_frac, total_tps, most_load_frac of any worker


@dataclass(frozen=True, slots=True)
class MoveRecord:
    """One move; while it is under way it has no outcome."""

    topology: str
    id: str
    executor: str
    source: str
    target: str
    outcome: str = ""  # MOVED, UNDONE or VOID
    reason: str = ""  # why it ended so
    phase_s: dict[str, float] = field(default_factory=dict)  # how long each phase lasted
    # From PREPARE to STOPPED; None if it did not get there, or began under an earlier leader.
    stopped_after_s: float | None = None
    ended_s: float = 0.0  # Unix seconds; so is the next
    begun_s: float | None = None
    asked_by: str = "unknown"  # "policy gather", "drain", or a person, as of `Command.asked_by`
    why: str = ""
    asc_tps: float | None = None  # by how much traffic inside nodes was to grow
    before: Figures = field(default_factory=dict)
    after: Figures = field(default_factory=dict)  # once measured
    # How many other moves of the topology began before that, and have a part in it.
    measured_with: int = 0
    # What the run of moves has changed that it belongs to, once no more is measured.
    effect: str = ""
    # Where it was taken back: for an input from this to that, in tuples/s, its executor stays.
    like_tps: tuple[float, float] | None = None

    @property
    def pause_s(self) -> float | None:
        """For how long no copy has worked, at most; None if the source has not stopped."""
        if self.stopped_after_s is None:
            return None
        if Phase.CARRY in self.phase_s:
            return self.phase_s[Phase.CARRY] + self.phase_s.get(Phase.RECALL, 0.0)
        return self.stopped_after_s - self.phase_s.get(Phase.PREPARE, 0.0)


_LINE = msgspec.json.Decoder(MoveRecord)


class History:
    """The moves of all topologies, oldest first; `changed` until it has been stored."""

    def __init__(self) -> None:
        self.moves: list[MoveRecord] = []
        self.changed = False

    @property
    def ended(self) -> list[MoveRecord]:
        return [move for move in self.moves if move.outcome]

    def load(self, stored: Stored | None) -> None:
        """Take over what an earlier leader stored."""
        self.moves = stored_moves(stored)

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

    def end(self, topology: str, entry: Entry, **how: Any) -> MoveRecord:
        """Note how a move ended; one that began unseen is remembered from here on."""
        key = topology, entry.id, ""
        begun = [m for m in self.moves if (m.topology, m.id, m.outcome) == key]
        self.moves = [move for move in self.moves if move not in begun]
        self._keep(replace(begun[-1] if begun else _record(topology, entry), **how))
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
            self.moves[row] = replace(move, effect=str(effect), like_tps=effect.like_tps)
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
            if m.begun_s is not None and time_s - m.begun_s < HOUR_S
        )


def _undone_last(moves: list[MoveRecord]) -> int:
    return sum(1 for _ in takewhile(lambda move: move.outcome == "UNDONE", reversed(moves)))


def _node(slot: str) -> str:
    return slot.rpartition(":")[0]


def stored_moves(stored: Stored | None) -> list[MoveRecord]:
    """Read the moves as the leading controller stored them; none from garbage."""
    try:
        data = wire.unpacked(stored.data if stored else b"[]")
        return msgspec.json.decode(data, type=list[MoveRecord])
    except (ValueError, msgspec.DecodeError, RecursionError):
        return []


def known_moves(stored: Stored | None, journals: Iterable[Path]) -> list[MoveRecord]:
    """Read the moves that ZooKeeper and journals have, the oldest first, each once.

    Raises `JournalError` where a move is of another version of nstorm.
    """
    lines = (line for journal in journals for line in move_lines(journal))
    read = [move for line in lines if (move := from_line(line, _LINE)) is not None]
    found: dict[tuple[str, str, float | None], MoveRecord] = {}
    for move in (*read, *stored_moves(stored)):
        key = move.topology, move.id, move.begun_s
        # The journal of one leader may lack what the next one has measured.
        if key not in found or _known(move) >= _known(found[key]):
            found[key] = move
    return sorted(found.values(), key=lambda move: move.begun_s or move.ended_s or inf)


def _known(move: MoveRecord) -> int:
    """Count what was measured of a move."""
    return bool(move.after) + bool(move.effect)


def _record(topology: str, entry: Entry) -> MoveRecord:
    ends = str(entry.executor), str(entry.source), str(entry.target)
    return MoveRecord(topology, entry.id, *ends)

"""A move as the history has it, and the last moves of the cluster as ZooKeeper keeps them."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from math import inf
from pathlib import Path

import msgspec

from controller.journal.lines import from_line, move_lines
from kvstore.zookeeper import Stored
from migration import wire
from migration.model import Phase

HISTORY = f"{wire.ROOT}/history"
REMEMBERED_MOVES = 200

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
    # By what factor the run was to change the CPU for each input tuple, and by what it has.
    predicted_cpu: float | None = None
    measured_cpu: float | None = None
    # How much was left when it began, and was to be left after the moves of its decision.
    headroom: str = ""

    @property
    def pause_s(self) -> float | None:
        """For how long no copy has worked, at most.

        None if the source has not stopped, and of a live move, which pauses nothing.
        """
        if self.stopped_after_s is None or not self.phase_s.keys() & {Phase.QUIET, Phase.CARRY}:
            return None
        if Phase.CARRY in self.phase_s:
            return self.phase_s[Phase.CARRY] + self.phase_s.get(Phase.RECALL, 0.0)
        return self.stopped_after_s - self.phase_s.get(Phase.PREPARE, 0.0)


_LINE = msgspec.json.Decoder(MoveRecord)


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

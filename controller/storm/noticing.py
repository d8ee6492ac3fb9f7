"""Decides what people get a notice of: a function of what a cycle saw, and of what it saw before.

What lasts is noticed once: again only after it was away for `AWAY_S`. A new leader remembers
nothing, and notices what lasts once more.
"""

import shlex
from collections.abc import Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from msgspec import Struct

from controller.core.decision import Outcome
from controller.core.figures import GuardState
from controller.core.hostnames import shown
from controller.core.receivers import NoticeKind
from controller.core.runs import KEPT
from controller.report import TopologyReport
from controller.storm.move_record import MoveRecord
from kvstore.printable import printable
from migration.model import topology_name
from migration.protocol import MoveOutcome

# What is missing for less than this may be a burst.
CAPACITY_S = 60.0
# What is not seen for so long, and for this number of cycles, has ended.
AWAY_S = 300.0
_AWAY_CYCLES = 3
LONGEST = 500  # characters


class Notice(Struct, frozen=True):
    """One line for a person."""

    kind: NoticeKind
    topology: str  # its name
    text: str
    time_s: float  # Unix seconds


@dataclass(frozen=True, slots=True)
class Spell:
    """Since when something lasts, and when it was last seen, in monotonic seconds."""

    since_s: float
    seen_s: float
    is_noticed: bool = False


@dataclass(frozen=True, slots=True)
class Noticed:
    """What one cycle leaves for the next."""

    spells: Mapping[Hashable, Spell] = field(default_factory=dict)
    ends: Mapping[tuple[str, float], str] = field(default_factory=dict)  # of runs, by their begin


@dataclass(frozen=True, slots=True)
class _State:
    """What a topology has now: noticed once it lasts for `after_s`."""

    key: Hashable
    kind: NoticeKind
    text: str
    after_s: float = 0.0


def noticed(
    before: Noticed,
    reports: Iterable[TopologyReport],
    ended: Iterable[MoveRecord],
    hosts: Mapping[str, str],
    now_s: float,
    *,
    cycle_s: float,
) -> tuple[Noticed, tuple[Notice, ...]]:
    """Give what to remember and the notices of a cycle.

    `ended` are the moves that have ended since the cycle before, `hosts` the host of each node by
    the node's id, `now_s` monotonic seconds. A cycle begins every `cycle_s`.
    """
    found = [
        _notice(NoticeKind.MOVE, move.topology, _of_move(move), hosts, move.ended_s)
        for move in ended
    ]
    ends: dict[tuple[str, float], str] = {}
    away_s = max(AWAY_S, _AWAY_CYCLES * cycle_s)
    spells = {key: one for key, one in before.spells.items() if now_s - one.seen_s < away_s}
    for report in reports:
        for effect in report.felt.effects:
            run = report.topology, effect.begun_s
            ends[run] = effect.end
            if effect.end not in ("", KEPT, before.ends.get(run)):
                text = f"run of {len(effect.moves)} moves: {effect}"
                found.append(_notice(NoticeKind.RUN, report.topology, text, hosts, report.time_s))
        for state in _states(report):
            was = spells.get(state.key) or Spell(now_s, now_s)
            is_new = not was.is_noticed and now_s - was.since_s >= state.after_s
            spells[state.key] = Spell(was.since_s, now_s, was.is_noticed or is_new)
            if is_new:
                found.append(_notice(state.kind, report.topology, state.text, hosts, report.time_s))
    # A cycle that could not look has no runs, and forgets none.
    return Noticed(spells, ends or before.ends), tuple(found)


def _states(report: TopologyReport) -> Iterator[_State]:
    topology, felt = report.topology, report.felt
    for row in felt.guards:
        if row.state is GuardState.BREACHED:
            text = f"guard {row}: no new moves begin"
            key = topology, NoticeKind.GUARD, row.name, row.limit, row.secs
            yield _State(key, NoticeKind.GUARD, text)
    if felt.pause:
        name = topology_name(topology)
        resumes = f"nstorm resume --topology {shlex.quote(name)}"
        text = f"{name} pauses until `{resumes}`: {felt.pause}"
        yield _State((topology, "pause"), NoticeKind.GUARD, text)
    if report.outcome is Outcome.NO_LOW_WORKER:
        text = "; ".join((report.reason, *report.warnings))
        yield _State((topology, NoticeKind.CAPACITY), NoticeKind.CAPACITY, text, CAPACITY_S)


def _of_move(move: MoveRecord) -> str:
    if move.outcome == MoveOutcome.MOVED:
        return f"{move.executor} has moved from {move.source} to {move.target}: {move.why}"
    return (
        f"{move.executor} from {move.source} to {move.target} ended as {move.outcome}: "
        f"{move.reason}"
    )


def _notice(
    kind: NoticeKind, topology: str, text: str, hosts: Mapping[str, str], time_s: float
) -> Notice:
    """Make one line of a text, whatever it has of others."""
    name, line = (_line(one) for one in (topology_name(topology), shown(text, hosts)))
    return Notice(kind, name, line, time_s)


def _line(text: str) -> str:
    """Leave no control character, no end of a line and no half character."""
    return " ".join(printable(text.encode(errors="replace").decode()).split())[:LONGEST]

"""Which moves paid: the runs of moves in a log, each as it was judged when it happened."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec
from msgspec import Struct

from controller.core.figures import Effect, Verdict
from controller.journal.lines import of_another_version
from controller.output import counted
from migration.model import topology_name


class JudgedRun(Struct, frozen=True):
    """A run of moves, and what it changed."""

    topology: str
    begun_s: float  # Unix seconds
    moves: int
    verdict: Verdict
    effect: str  # as `nstorm history` shows it


def runs(rows: Iterable[Mapping[str, Any]]) -> list[JudgedRun]:
    """Read rows of the kind `RUN`; raises `JournalError` where they are of another version."""
    found = []
    for row in rows:
        try:
            effect = msgspec.json.decode(row["effect"], type=Effect)
        except msgspec.ValidationError as error:
            raise of_another_version(error) from error
        name = topology_name(row["topology"])
        found.append(JudgedRun(name, row["time_s"], effect.count, effect.verdict, str(effect)))
    return found


def line(found: Sequence[JudgedRun]) -> str:
    """Answer in a sentence."""
    if not found:
        return "The log has no run of moves."
    counts = Counter(one.verdict for one in found)
    moves = sum(one.moves for one in found)
    each = ", ".join(f"{counts[verdict]} {verdict.value}" for verdict in Verdict if counts[verdict])
    return f"{counted(len(found), 'run')} of {counted(moves, 'move')}: {each}."

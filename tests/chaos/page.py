"""Writes docs/chaos.md from all tries that were kept."""

from collections.abc import Callable, Iterable, Sequence

from deploy.lab.home.versions import REPOSITORY
from migration.model import Way
from tests.chaos.judge import NO_MOVE, Seen
from tests.chaos.kept import newest
from tests.chaos.run import SOAK, SOAK_EXPECTED, Result
from tests.chaos.tries import CELLS, EXTRAS, MOMENTS, VICTIMS, Harm, Moment, cell_name

NOT_RUN = "not run"
_HEAD = """# Faults in the middle of a move

`make chaos` makes these tries, and `.venv/bin/python -m tests.chaos --page` writes this page from
all that are kept. A real Storm cluster carries an acked WordCount of 200 sentences/s. While one
executor is in one phase of its move, a process is struck by `kill -9`, or by `SIGSTOP` for 20 s.
The executor is a bolt without memory unless the column names another. A counter moves with its
counts. Storm, or a service manager after 6 s, restarts what ends. *No move* is the same fault
while nothing moves.

After each fault, once it is lifted, four things have to become true, and to stay true for 3 s:

- the move has ended;
- the plan is empty;
- each executor has one live copy, by thread dumps of all workers;
- that copy lives where Storm's assignment has it.

No sentence may be acked twice. Then a plain move under load must lose nothing. In the matrix all
has to be whole within 30 s, or 90 s where a JVM of Storm starts or ZooKeeper was away. No worker
may restart but the one that was killed.

In the matrix sentences may fail in two cases only. In the first, a worker was struck. In the
second, ZooKeeper or the agent of an end was struck while a counter is in CARRY. No copy of the
counter works until both ends have read of that, and a sentence that waits for 8 s fails. Each other
fault has a limit of its own, which its row names. In some of them sentences may fail and Storm may
restart workers.

UNDO is brought about by writing it into the plan in PREPARE, as the leader does at that phase's
limit. The leader is held by SIGSTOP for the moment in which the fault strikes, so that the phase
does not end before. The controller that leads is *leader*, a worker at neither end is *bystander*,
and *supervisor* is the source's.

`.venv/bin/python -m tests.chaos --cell target-killed@SWITCH --seed 3` makes one cell. The seed
chooses the executor, its target and the bystander. Each try stays in `build/chaos/`, next to later
ones of its cell, so `make chaos` continues where it was broken off. Delete that folder to begin
again.
"""


def page(tries: Sequence[Result], seed: int, machine: str) -> str:
    """Give the page; what has no try is shown as not run."""
    tries = _of_page(tries)
    dates = sorted({result.date for result in tries}) or ["never"]
    loads = sorted(result.seen.load for result in tries if result.seen.load) or [0.0]
    known = [*dict.fromkeys(result.commit for result in tries if result.commit)]
    commits = f" Commits {', '.join(known)}." if known else ""
    wrong = [result for result in tries if result.wrong]
    return "\n".join(
        (
            _HEAD,
            f"Seed {seed}; {' to '.join({dates[0]: 0, dates[-1]: 0})}; {machine}. "
            f"Load average {loads[0]} to {loads[-1]}.{commits} {summary(tries)}",
            "\n## Outcome\n",
            "A cell has how the move ended, the seconds from the lifting of the fault until "
            "all was whole, and a",
            "number of sentences. These failed, so that a source that replays would send them "
            "again, or were in flight in a spout",
            "that died. A cell shows its newest try. In **bold** are those of which any try was "
            "not as expected.\n",
            *_matrix(tries, _outcome),
            "\n## Downtime\n",
            "The longest gap between two acks, in seconds, from the fault until all was whole. "
            "After the slash stand the seconds",
            "in which the rate of acks fell by 60 % or more. Each is one try, at a load in the "
            "range above, so small differences",
            "mean nothing. A dash: not taken.\n",
            *_matrix(tries, _downtime),
            "\n## Other faults\n",
            "The limit is that of the seconds until all is whole. A dash in their place: the fault "
            "itself rebuilds what has to be",
            "whole.\n",
            "| fault | limit | outcome | downtime |",
            "|---|---|---|---|",
            *(
                f"| {name} | {limit_s:.0f} s | {_outcome(tries, name)} | {_downtime(tries, name)} |"
                for name, limit_s in (
                    *((row.name, row.expected.within_s) for row in EXTRAS),
                    (SOAK, SOAK_EXPECTED.within_s),
                )
            ),
            "\n## Not as expected\n",
            *(f"- `{result.name}`: {_words(result)}" for result in wrong),
            *([] if wrong else ["Nothing."]),
            "",
        )
    )


def summary(tries: Sequence[Result]) -> str:
    """Count what was tried, and all tries that were not as expected."""
    tries = _of_page(tries)
    wrong = sum(1 for result in tries if result.wrong)
    return (
        f"{len(newest(tries))} of {len(_NAMES)} faults were tried. "
        f"{len(tries)} tries were made, {wrong} not as expected."
    )


_NAMES = frozenset((SOAK, *(row.name for row in (*CELLS, *EXTRAS))))
_OF = {Way.SPOUT: " of a spout", Way.ACKER: " of an acker", Way.CARRY: " of a counter"}
_UNTIMED = frozenset(row.name for row in EXTRAS if not row.timed)


def _of_page(tries: Sequence[Result]) -> Sequence[Result]:
    return [result for result in tries if result.name in _NAMES]


def _matrix(tries: Sequence[Result], tell: Callable[[Sequence[Result], str], str]) -> Iterable[str]:
    yield "| | " + " | ".join(map(_heading, MOMENTS)) + " |"
    yield "|---" * (1 + len(MOMENTS)) + "|"
    for harm in Harm:
        for victim in VICTIMS:
            row = (tell(tries, cell_name(victim.name, harm, moment)) for moment in MOMENTS)
            yield f"| {victim.name} {harm.value} | " + " | ".join(row) + " |"


def _heading(moment: Moment) -> str:
    return "no move" if moment.phase is None else f"{moment.phase}{_OF.get(moment.way, '')}"


def _outcome(tries: Sequence[Result], name: str) -> str:
    of_name = [result for result in tries if result.name == name]
    if not of_name:
        return NOT_RUN
    seen = of_name[-1].seen
    ended = [] if seen.outcome == NO_MOVE else [seen.outcome]
    told = ", ".join((*ended, _whole(name, seen), str(seen.failed + seen.lost)))
    wrong = sum(1 for result in of_name if result.wrong)
    if wrong and len(of_name) > 1:
        told += f" ({wrong} of {len(of_name)} tries not as expected)"
    return f"**{told}**" if wrong else told


def _whole(name: str, seen: Seen) -> str:
    if seen.recovered_s is None:
        return "never whole"
    return "-" if name in _UNTIMED else f"{seen.recovered_s:.0f} s"


def _downtime(tries: Sequence[Result], name: str) -> str:
    result = newest(tries).get(name)
    if result is None:
        return NOT_RUN
    seen = result.seen
    return NO_MOVE if seen.gap_s is None else f"{seen.gap_s:.2f} / {seen.degraded_s}"


def _words(result: Result) -> str:
    return "; ".join(result.wrong).replace(f"{REPOSITORY}/", "")

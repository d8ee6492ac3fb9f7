"""Writes docs/chaos.md from the results of a run."""

from collections.abc import Callable, Iterable, Mapping

from deploy.lab.home.assemble import REPOSITORY
from tests.chaos.judge import NO_MOVE
from tests.chaos.run import SOAK, Result
from tests.chaos.tries import CELLS, EXTRAS, PHASES, VICTIMS, Harm, cell_name

NOT_RUN = "not run"
_HEAD = """# Faults in the middle of a move

`make chaos` writes this page. A real Storm cluster carries an acked WordCount of 200 sentences/s;
a process is struck by `kill -9` or by `SIGSTOP` for 20 s while one executor is in one phase of
its move. Whatever ends is started again, by Storm or, after 6 s, by a service manager. *No move*
is the same fault while nothing moves.

After each fault, once it is lifted, all of this has to become true, and to stay true for 3 s: the
move has ended, the plan is empty, each executor has one live copy (by thread dumps of all
workers), and it lives where Storm's assignment has it. It takes at most 30 s, or 90 s where Storm
starts a JVM or ZooKeeper was away. No sentence fails unless a worker was struck, none is acked
twice, and no worker restarts beside the one that was killed. Then a plain move under load must
lose nothing. UNDO is brought about by writing it into the plan in PREPARE, as the leader does at
that phase's limit. The leader is held by SIGSTOP for the moment in which the fault strikes, so
that the phase does not end before. The controller that leads is *leader*, a worker at neither end
is *bystander*, and *supervisor* is the source's.

`.venv/bin/python -m tests.chaos --cell target-killed@SWITCH --seed 3` makes one cell. The seed
says which executor moves, and which target and bystander are taken of those there are. Finished
cells stay in `build/chaos/`, so `make chaos` goes on where it was broken off; delete that folder
to begin anew.
"""


def page(results: Mapping[str, Result], seed: int, machine: str) -> str:
    """Give the page; what has no result is shown as not run."""
    of_page = [result for name, result in results.items() if name in _names()]
    dates = sorted({result.date for result in of_page}) or ["never"]
    loads = sorted(result.seen.load for result in of_page if result.seen.load) or [0.0]
    wrong = [result for result in of_page if result.wrong]
    return "\n".join(
        (
            _HEAD,
            f"Seed {seed}; {' to '.join({dates[0]: 0, dates[-1]: 0})}; {machine}; load average "
            f"{loads[0]} to {loads[-1]}. {len(of_page)} of {len(_names())} tries were made, and "
            f"{len(wrong)} of them were not as expected.",
            "\n## Outcome\n",
            "How the move ended; seconds from the lifting of the fault until all was whole; "
            "sentences that failed (Storm",
            "replays them) or were in flight in a spout that died. **Bold** is not as expected.\n",
            *_matrix(results, _outcome),
            "\n## Downtime\n",
            "The longest gap between two acks, in seconds, from the fault until all was whole, and "
            "after the slash the seconds in",
            "which the rate of acks fell by 60 % or more. What a phase has beyond *no move* is the "
            "move's own part. A dash: not taken.\n",
            *_matrix(results, _downtime),
            "\n## Other faults\n",
            "| fault | outcome | downtime |",
            "|---|---|---|",
            *(
                f"| {name} | {_outcome(results.get(name))} | {_downtime(results.get(name))} |"
                for name in (*(row.name for row in EXTRAS), SOAK)
            ),
            "\n## Not as expected\n",
            *(f"- `{result.name}`: {_words(result)}" for result in wrong),
            *([] if wrong else ["Nothing."]),
            "",
        )
    )


def _names() -> frozenset[str]:
    return frozenset((SOAK, *(row.name for row in (*CELLS, *EXTRAS))))


def _matrix(results: Mapping[str, Result], tell: Callable[[Result | None], str]) -> Iterable[str]:
    yield "| | " + " | ".join(phase or "no move" for phase in PHASES) + " |"
    yield "|---" * (1 + len(PHASES)) + "|"
    for harm in Harm:
        for victim in VICTIMS:
            row = (tell(results.get(cell_name(victim.name, harm, phase))) for phase in PHASES)
            yield f"| {victim.name} {harm.value} | " + " | ".join(row) + " |"


def _outcome(result: Result | None) -> str:
    if result is None:
        return NOT_RUN
    seen = result.seen
    whole = "never whole" if seen.recovered_s is None else f"{seen.recovered_s:.0f} s"
    ended = [] if seen.outcome == NO_MOVE else [seen.outcome]
    told = ", ".join((*ended, whole, str(seen.failed + seen.lost)))
    return f"**{told}**" if result.wrong else told


def _downtime(result: Result | None) -> str:
    if result is None:
        return NOT_RUN
    seen = result.seen
    return NO_MOVE if seen.gap_s is None else f"{seen.gap_s:.2f} / {seen.degraded_s}"


def _words(result: Result) -> str:
    return "; ".join(result.wrong).replace(f"{REPOSITORY}/", "")

"""Guards: the limits of signals that users watch, and for how long one may be exceeded.

A signal is a number of the topology's spouts, or the answer to a query in PromQL. A guard that is
exceeded, or cannot be read, holds new moves. Where it was exceeded for its time since a run of
moves began, the run goes back and the topology pauses.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Literal

from msgspec import Meta, Struct

from controller.core.figures import GuardRow, GuardState, SpoutFigures
from controller.core.quantities import MOST

# What is not looked at for so long, and for this number of cycles, may have been within its limit.
_LONGEST_S = 30.0
_LONGEST_CYCLES = 3
NO_ACKS = "no acks of the spouts are known, or too few tuples"


class Guard(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A limit of a signal: exactly one of `signal` and `query` is there, with `url` for a query."""

    limit: Annotated[float, Meta(ge=-MOST, le=MOST)]
    secs: Annotated[float, Meta(ge=0, le=86_400)] = 30.0  # how long it may be exceeded
    topology: str = ""  # its name; empty for every topology
    signal: Literal["ack.p99.ms", "failed.tps"] | None = None
    query: Annotated[str, Meta(min_length=1)] | None = None
    url: Annotated[str, Meta(min_length=1)] | None = None  # of a server that answers PromQL

    @property
    def name(self) -> str:
        return self.signal or self.query or ""


class GuardAnswer(Struct, frozen=True):
    """What a signal is now, or why that is not known."""

    value: float | None = None
    problem: str = ""


# Answers to queries, as (URL, query, answer).
Answers = tuple[tuple[str, str, GuardAnswer], ...]


@dataclass(frozen=True, slots=True)
class Above:
    """Since when a guard is exceeded, and when that was last seen, in monotonic seconds."""

    since_s: float
    seen_s: float


def guard_each(
    guards: Sequence[Guard],
    topologies: Mapping[str, tuple[str, SpoutFigures]],  # name and figures, by id
    answers: Answers,
    before: Mapping[str, Mapping[str, Above]],  # by topology and guard
    now_s: float,
    *,
    cycle_s: float,
) -> tuple[dict[str, tuple[GuardRow, ...]], dict[str, dict[str, Above]]]:
    """Read the guards of topologies; also gives since when which are exceeded."""
    answered = {(url, query): answer for url, query, answer in answers}
    longest_s = max(_LONGEST_S, _LONGEST_CYCLES * cycle_s)
    rows: dict[str, tuple[GuardRow, ...]] = {}
    above: dict[str, dict[str, Above]] = {}
    for topology, (name, figures) in topologies.items():
        found: list[GuardRow] = []
        for guard in guards:
            if guard.topology not in ("", name):
                continue
            answer = _read(guard, figures, answered)
            was = before.get(topology, {}).get(_key(guard))
            if was is not None and now_s - was.seen_s > longest_s:
                was = None
            if answer.value is not None and answer.value > guard.limit:
                since_s = was.since_s if was else now_s
                above.setdefault(topology, {})[_key(guard)] = Above(since_s, now_s)
                found.append(_row(guard, answer, now_s - since_s))
            else:
                # It may still be exceeded: an answer is often late where a cluster is in trouble.
                if answer.value is None and was is not None:
                    above.setdefault(topology, {})[_key(guard)] = was
                found.append(_row(guard, answer, None))
        rows[topology] = tuple(found)
    return rows, above


def breached(rows: Sequence[GuardRow], since_s: float) -> str | None:
    """Name a guard that is breached, and was within its limit `since_s` seconds ago."""
    states = (row for row in rows if row.state is GuardState.BREACHED and row.above_s <= since_s)
    return next((f"guard {row}" for row in states), None)


def holding(rows: Sequence[GuardRow]) -> str | None:
    """Return why no new moves begin; None if all guards hold."""
    return next((f"guard {row}" for row in rows if row.state is not GuardState.HOLDS), None)


def _read(
    guard: Guard, figures: SpoutFigures, answered: Mapping[tuple[str, str], GuardAnswer]
) -> GuardAnswer:
    if guard.query is not None and guard.url is not None:
        return answered.get(
            (guard.url, guard.query), GuardAnswer(problem="nobody has answered yet")
        )
    value = figures.latency_p99_ms if guard.signal == "ack.p99.ms" else figures.failed_tps
    return GuardAnswer(problem=NO_ACKS) if value is None else GuardAnswer(value)


def _row(guard: Guard, answer: GuardAnswer, above_s: float | None) -> GuardRow:
    state = GuardState.HOLDS
    if answer.value is None:
        state = GuardState.NOT_READ
    elif above_s is not None:
        state = GuardState.BREACHED if above_s >= guard.secs else GuardState.ABOVE
    return GuardRow(
        guard.name, guard.limit, guard.secs, state, answer.value, above_s or 0.0, answer.problem
    )


def _key(guard: Guard) -> str:
    return f"{guard.name} {guard.url or ''} {guard.limit!r} {guard.secs!r}"

"""A decision: the moves that a policy wants, or the outcome without one, and why.

A policy reads the vetoes from the snapshot (`pinned` executors) and the cluster (`closed` workers)
and never looks at a clock. So live run, file and simulation get the same answer.
"""

import hashlib
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum


class Outcome(StrEnum):
    """How a cycle ends: in exactly one of these."""

    MOVED = "MOVED"
    WOULD_MOVE = "WOULD_MOVE"
    AWAITING_APPROVAL = "AWAITING_APPROVAL"
    NOTHING_TO_GAIN = "NOTHING_TO_GAIN"
    BELOW_THRESHOLD = "BELOW_THRESHOLD"
    COOLDOWN = "COOLDOWN"
    EXCLUDED = "EXCLUDED"
    STALE_METRICS = "STALE_METRICS"
    STAND_BACK = "STAND_BACK"
    PAUSED = "PAUSED"
    CAPPED = "CAPPED"
    NOT_LEADER = "NOT_LEADER"
    MOVE_IN_FLIGHT = "MOVE_IN_FLIGHT"
    WATCHING = "WATCHING"
    NO_LOW_WORKER = "NO_LOW_WORKER"
    LAST_IN_WORKER = "LAST_IN_WORKER"
    NO_WORKER_IN_SLOT = "NO_WORKER_IN_SLOT"


@dataclass(frozen=True, slots=True)
class Veto:
    """The outcome of a cycle if nothing else is left, and the reason."""

    outcome: Outcome
    reason: str


# These end at a known time.
PASSING = frozenset({Outcome.COOLDOWN, Outcome.CAPPED})
# These end with time, or with moves.
TEMPORARY = PASSING | {Outcome.MOVE_IN_FLIGHT, Outcome.LAST_IN_WORKER}


@dataclass(frozen=True, slots=True)
class Vetoes:
    """Vetoes by the id of the executor that would move and of the worker it would move to."""

    executors: Mapping[str, Veto] = field(default_factory=dict)
    workers: Mapping[str, Veto] = field(default_factory=dict)

    def without(self, outcomes: Collection[Outcome]) -> "Vetoes":
        executors, workers = (
            {name: veto for name, veto in of.items() if veto.outcome not in outcomes}
            for of in (self.executors, self.workers)
        )
        return Vetoes(executors, workers)


def first_of(*found: Vetoes) -> Vetoes:
    """Put vetoes together; of several on one thing the first stays."""
    executors: dict[str, Veto] = {}
    workers: dict[str, Veto] = {}
    for vetoes in reversed(found):
        executors |= vetoes.executors
        workers |= vetoes.workers
    return Vetoes(executors, workers)


@dataclass(frozen=True, slots=True)
class Move:
    """A move that a policy wants: ids of the executor and of the two workers.

    `asc_tps` is by how much traffic inside nodes grows, unweighted, whatever the policy maximises.
    """

    executor: str
    source: str
    target: str
    asc_tps: float

    def as_row(self) -> dict[str, str | float]:
        """Make a row of the stable output format."""
        return {
            "executor": self.executor,
            "from": self.source,
            "to": self.target,
            "asc": self.asc_tps,
        }


def proposal_id(topology: str, moves: Iterable[Move]) -> str:
    """Name moves that wait for approval: the same moves have the same name, under every leader."""
    text = " ".join((topology, *(f"{m.executor} {m.source} {m.target}" for m in moves)))
    return f"p-{hashlib.sha256(text.encode()).hexdigest()[:6]}"


@dataclass(frozen=True, slots=True)
class Decision:
    """The moves that a policy wants, and why.

    The outcome is WOULD_MOVE exactly if there are moves; the reason is one line that names the
    numbers; warnings name what placement cannot repair. The moves of an exchange begin together or
    not at all: each goes where others make room. `relieves` marks the way to a placement where less
    is too full, whatever its next step is. The only move of one `for_room` leaves more room where
    no CPU is too full, or in a space that is.
    """

    outcome: Outcome
    reason: str
    moves: tuple[Move, ...] = ()
    warnings: tuple[str, ...] = ()
    is_exchange: bool = False
    relieves: bool = False
    for_room: bool = False
    fills: str = ""

    def cut_to(self, most: int) -> "Decision":
        """Leave out moves beyond this number; an exchange stays whole."""
        return self if self.is_exchange else replace(self, moves=self.moves[:most])

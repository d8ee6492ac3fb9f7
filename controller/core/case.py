"""One topology on its way through a cycle: each step gives a case that knows more."""

from collections import defaultdict
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from typing import Any

from controller.core.capacity import Spare
from controller.core.decision import Decision, Move, Veto, Vetoes
from controller.core.fit import shifted_cores
from controller.core.picture import Picture
from controller.core.policy import Decided
from controller.core.topology import TopologyView
from migration.model import ExecutorId, Plan, Slot


@dataclass(frozen=True, slots=True, eq=False)
class TopologyCase:
    """A topology, as far as the steps of a cycle have come with it."""

    view: TopologyView
    picture: Picture | None = None  # None where a part of it is not known
    # Why no policy decides about it now, and why nothing is drained: there may be no picture.
    stop: Veto | None = None
    drain_stop: Veto | None = None
    slots: tuple[Spare, ...] = ()  # that could be opened for it, the one with the most CPU first
    restarted: Vetoes = field(default_factory=Vetoes)  # on workers that start again and again
    drain: Decision | None = None  # which takes its executors away from drained hosts
    back: Decision | None = None  # which takes back a run of moves that was for the worse
    vetoes: Vetoes | None = None  # None where no policy decides
    guard: Veto | None = None  # why a guard lets no policy decide
    waits: Veto | None = None  # why a move for gain alone does not begin yet
    cold_s: float = 0.0  # how long code of its JVMs is still compiled
    decided: Decided[Any] | None = None
    plan: Plan | None = None  # that begins the moves

    @classmethod
    def of(cls, view: TopologyView, made: Picture | Veto, restarted: Vetoes) -> "TopologyCase":
        if isinstance(made, Picture):
            return cls(view, made, restarted=restarted)
        return cls(view, stop=made, drain_stop=made, restarted=restarted)

    @property
    def id(self) -> str:
        return self.view.id

    def resting(self, rests: Collection[tuple[str, ExecutorId]]) -> set[str]:
        """Name its executors of those, by topology and executor, that rest after a move."""
        return {str(executor) for topology, executor in rests if topology == self.id}

    @property
    def decision(self) -> Decision:
        assert self.decided is not None, "no step has decided about it"
        return self.decided.decision


@dataclass(frozen=True, slots=True)
class Budget:
    """The moves that the topologies of a cluster share."""

    free_moves: int  # how many more may be under way
    may_exceed: bool  # whether an exchange may begin that has more: nothing is under way

    def without(self, moves: int) -> "Budget":
        """Take the moves that begin."""
        return Budget(self.free_moves - moves, self.may_exceed and not moves) if moves else self


def shift(shifted: defaultdict[str, float], made: Picture, moves: Iterable[Move]) -> None:
    """Note what moves take along: cores by node, for the topologies that are decided after them."""
    ends = ((m.executor, Slot.parse(m.source), Slot.parse(m.target)) for m in moves)
    nodes = ((executor, one.supervisor, other.supervisor) for executor, one, other in ends)
    for node, cores in shifted_cores(made.snapshot, nodes):
        shifted[node] += cores

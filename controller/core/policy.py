"""The contract of a policy: decide about one topology, with a memory that nobody else reads."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from types import NoneType
from typing import Any, Generic, Protocol, TypeVar

from controller.core.cluster import Cluster, LoadSnapshot
from controller.core.decision import Decision, Veto
from controller.core.limits import Limits
from migration.settings import DEFAULT

M = TypeVar("M")
# A policy that remembers nothing.
Rule = Callable[[Cluster, LoadSnapshot, Limits], Decision]


@dataclass(frozen=True, slots=True, eq=False)
class Case:
    """One topology to decide about; what may not move is `pinned` and `closed` in it."""

    cluster: Cluster
    snapshot: LoadSnapshot
    limits: Limits
    waits: Veto | None = None  # why a move for gain alone does not begin yet
    cold_s: float = 0.0  # how long code of its JVMs is still compiled
    cycle_s: float = DEFAULT["cycle.secs"]  # from one decision to the next
    # How long its search may still take; None where none is known to run.
    search_left_s: float | None = None


class Question(Protocol):
    """A search that takes longer than a cycle, to be made where it holds nothing up."""

    @property
    def topology(self) -> str:
        """The id of the topology."""

    @property
    def failed(self) -> Any:
        """The answer to give where the search failed."""

    def answer(self) -> Any:
        """Search."""


# A search that takes longer counts as one that has found nothing.
SEARCH_LIMIT_S = 600.0
# Gives the answer once it is there; None as long as it is not.
Search = Callable[[Question], Any]


def search_inline(question: Question) -> Any:
    """Search here and now: for files, simulations and replays with other settings."""
    return question.answer()


@dataclass(frozen=True, slots=True)
class Decided(Generic[M]):
    """A decision, the memory for the next one, and what the policy asks.

    `awaits` is what a search may still change of a decision without a move; empty if nothing is
    searched.
    """

    decision: Decision
    memory: M | None
    question: Question | None = None
    awaits: str = ""


class Policy(ABC, Generic[M]):
    """A policy; M is what it remembers of one topology, a value that a journal can hold."""

    memory_type: type[M]
    answer_type: type[Any] = NoneType  # of the answers to its questions

    @property
    def weighs_each(self) -> bool:
        """Whether it weighs each executor alone, not all places together."""
        return False

    @abstractmethod
    def decide(self, case: Case, memory: M | None) -> Decided[M]:
        """Decide; without a memory it is the first decision about the topology."""

    @abstractmethod
    def at_once(self, case: Case) -> Decision:
        """Decide without a memory and without a search."""

    def heard(self, memory: M | None, answer: Any) -> M | None:
        """Take in the answer to a question."""
        return memory

    def lasting(self, memory: M) -> M | None:  # most remember nothing for long
        """Leave of a memory what is still true after the controller was away."""
        return None


@dataclass(frozen=True, slots=True)
class Stateless(Policy[None]):
    """A rule as a policy."""

    rule: Rule
    memory_type = NoneType

    def decide(self, case: Case, memory: None) -> Decided[None]:
        return Decided(self.at_once(case), None)

    def at_once(self, case: Case) -> Decision:
        return self.rule(case.cluster, case.snapshot, case.limits)


@dataclass(frozen=True, slots=True)
class AtOnce(Policy[None]):
    """A policy that neither remembers nor searches."""

    policy: Policy[Any]
    memory_type = NoneType

    def decide(self, case: Case, memory: None) -> Decided[None]:
        return Decided(self.policy.at_once(case), None)

    def at_once(self, case: Case) -> Decision:
        return self.policy.at_once(case)


@dataclass(frozen=True, slots=True)
class Searching(Policy[M]):
    """A policy whose questions are answered within its decision."""

    policy: Policy[M]
    search: Search = search_inline

    def decide(self, case: Case, memory: M | None) -> Decided[M]:
        decided = self.policy.decide(case, memory)
        if decided.question is None:
            return decided
        answer = self.search(decided.question)
        if answer is None:
            return decided
        return self.policy.decide(case, self.policy.heard(memory, answer))

    @property
    def weighs_each(self) -> bool:
        return self.policy.weighs_each

    def at_once(self, case: Case) -> Decision:
        return self.policy.at_once(case)

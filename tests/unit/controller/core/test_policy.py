"""A policy with a memory and a question of its own, in the cycle."""

import sys
from dataclasses import dataclass, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from controller.config import Config, Mode, build
from controller.core.decision import Decision, Outcome
from controller.core.policy import Case, Decided, Policy
from controller.cycle import Memory
from controller.journal.lines import JournalError
from controller.journal.record import made
from controller.policies import registry
from controller.policies.gather.policy import Remembered
from controller.snapshot import parse
from controller.walk import walk
from migration.model import ExecutorId
from tests.unit.controller.test_cycle import World
from tests.watched import cycle


@dataclass(frozen=True)
class Sum:
    topology: str
    numbers: tuple[int, ...]
    failed: int = -1

    def answer(self) -> int:
        return sum(self.numbers)


class Counting(Policy[tuple[int, ...]]):
    """Remembers the answers, and asks for the sum of all that it has heard."""

    memory_type = tuple[int, ...]
    answer_type = int

    def decide(self, case: Case, memory: tuple[int, ...] | None) -> Decided[tuple[int, ...]]:
        heard = memory or (1,)
        question = Sum(case.snapshot.topology, heard)
        return Decided(Decision(Outcome.NOTHING_TO_GAIN, str(heard)), heard, question)

    def at_once(self, case: Case) -> Decision:
        return Decision(Outcome.NOTHING_TO_GAIN, "")

    def heard(self, memory: tuple[int, ...] | None, answer: int) -> tuple[int, ...]:
        return (*(memory or ()), answer)


@pytest.fixture
def counting(monkeypatch: pytest.MonkeyPatch) -> type[Counting]:
    """Give a policy of this file a line in the registry."""
    module = SimpleNamespace(counting=Counting())
    monkeypatch.setitem(sys.modules, "controller.policies.counting", module)
    monkeypatch.setattr(registry, "PAPERS", {"counting": "counting:counting"})
    return Counting


def test_a_policy_that_cannot_take_an_answer_in_costs_nothing_else(
    counting: type[Counting], monkeypatch: pytest.MonkeyPatch
) -> None:
    def heard(self: Counting, memory: Any, answer: Any) -> Any:
        raise ZeroDivisionError

    monkeypatch.setattr(counting, "heard", heard)
    config, world = Config(mode=Mode.AUTO, policy="counting"), World()
    moved = ("wc-1", ExecutorId(2, 2), world.seen().now_s)
    seen = replace(world.seen(), answers=(("wc-1", 1),), rests=(moved,))
    memory, report = cycle(Memory(), seen, config)
    assert "ZeroDivisionError" in report.topologies[0].reason
    assert memory.moved_s == {moved[:2]: moved[2]}


@pytest.mark.usefixtures("counting")
def test_it_takes_its_own_file_and_a_line_in_the_registry() -> None:
    config, world, memory = Config(mode=Mode.AUTO, policy="counting"), World(), Memory()
    memory, _ = cycle(memory, world.seen(), config)  # nothing is measured yet
    answers: tuple[tuple[str, Any], ...] = ()
    reasons = []
    for _ in range(3):
        world.now += 1
        memory, report = cycle(memory, replace(world.seen(), answers=answers), config)
        reasons.append(report.topologies[0].reason)
        answers = tuple((question.topology, question.answer()) for question in report.questions)
    assert reasons == ["(1,)", "(1, 1)", "(1, 1, 2)"]


def test_a_memory_of_another_shape_is_of_another_version() -> None:
    with pytest.raises(JournalError, match="another version"):
        made(Remembered, {"in_vain": "never"})


def test_what_is_answered_at_once_weighs_as_what_is_not() -> None:
    """Else a file's reason is a veto on what the policy would not have wanted."""
    file = Path(__file__).parents[3] / "golden" / "decide" / "saddle.json"
    (step,) = walk(*parse(file.read_text()), build({"excluded.components": ["bolt1"]}), 1)
    assert step.decision.outcome is Outcome.NOTHING_TO_GAIN

"""A policy with a memory and a question of its own, in the cycle."""

import sys
from dataclasses import dataclass, replace
from types import SimpleNamespace
from typing import Any

import pytest

from controller.config import Config, Mode
from controller.core.decision import Decision, Outcome
from controller.core.policy import Case, Decided, Policy
from controller.cycle import Memory, cycle
from controller.policies import registry
from tests.unit.controller.test_cycle import World


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


def test_it_takes_its_own_file_and_a_line_in_the_registry(monkeypatch: pytest.MonkeyPatch) -> None:
    module = SimpleNamespace(counting=Counting())
    monkeypatch.setitem(sys.modules, "controller.policies.counting", module)
    monkeypatch.setattr(registry, "_PAPERS", {"counting": "counting:counting"})
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

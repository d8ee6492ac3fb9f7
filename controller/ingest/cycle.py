"""Decides in worlds that have no processes outside of the cycle."""

from dataclasses import replace

from controller.config import Config
from controller.cycle import CycleInput, Memory, cycle
from controller.report import Report


def cycle_with_searches(
    memory: Memory, seen: CycleInput, settings: Config
) -> tuple[Memory, Report, CycleInput]:
    """Decide once, each search answered on the spot.

    The answers are in the `CycleInput` that comes back.
    """
    while True:
        after, report = cycle(memory, seen, settings)
        if not report.questions:
            return after, report, seen
        question = report.questions[0]
        answer = question.topology, question.answer()
        seen = replace(seen, answers=(*seen.answers, answer))

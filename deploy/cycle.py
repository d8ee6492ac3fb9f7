"""Decides in worlds that have no processes beside the cycle."""

from dataclasses import replace

from controller.config import Config
from controller.cycle import Memory, Seen, cycle
from controller.report import Report


def cycle_with_searches(
    memory: Memory, seen: Seen, settings: Config
) -> tuple[Memory, Report, Seen]:
    """Decide once, each search answered on the spot.

    The answers are in the `Seen` that comes back.
    """
    while True:
        after, report = cycle(memory, seen, settings)
        if not report.questions:
            return after, report, seen
        question = report.questions[0]
        answer = question.topology, question.answer()
        seen = replace(seen, answers=(*seen.answers, answer))

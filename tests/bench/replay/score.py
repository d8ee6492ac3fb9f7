"""Takes a configuration through recorded spans in one go."""

from collections.abc import Iterable

from controller.replay.recording import Span
from controller.replay.rerun import Rerun, Series


def through(score: Rerun, spans: Iterable[Span]) -> Series:
    """Go through spans in their order; they are read once."""
    for span in spans:
        score.take(span)
    return score.series()

"""Tries parameter sets on an episode: the ticks of one topology on one day, in their order.

An episode's state stays in its task; what comes out is a few rows a set.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass

import numpy as np
import pyarrow as pa

from controller.config import Config
from controller.core.policy import search_inline
from controller.pipeline.figures import Figures
from controller.pipeline.schemas import ANSWERS, TRIALS
from controller.pipeline.ticks import Batches, spans_of
from controller.replay.recording import Span
from controller.replay.rerun import Rerun


@dataclass(frozen=True, slots=True)
class Tried:
    """What is tried on one episode."""

    topology: str
    day: int
    chosen_s: float | None  # as in `Episode`
    configs: Sequence[tuple[int, Config]]  # by number of the parameter set
    searches: bool


def tried(batches: Iterable[pa.RecordBatch], of: Tried) -> Batches:
    """Let every configuration go through an episode.

    Yields
    ------
    pyarrow.RecordBatch
        Two rows of `TRIALS` a configuration.
    """
    search = search_inline if of.searches else None
    runs = [(n, Rerun(config, explain=False, search=search)) for n, config in of.configs]
    found = {(n, held_back): Figures() for n, _ in runs for held_back in (False, True)}
    for held_back, span in _cut(spans_of(batches), of.chosen_s):
        for number, run in runs:
            run.take(span)
            found[number, held_back] += Figures.of(run.cut(), span.ended)
    rows = [
        {"set": n, "topology": of.topology, "day": of.day, "held_back": late, **asdict(figures)}
        for (n, late), figures in found.items()
    ]
    yield pa.RecordBatch.from_pylist(rows, TRIALS)


def costed(
    batches: Iterable[pa.RecordBatch], settings: Sequence[str], cost: Callable[[Figures], float]
) -> Batches:
    """Name the sets of trials, and give each trial its cost; rows of `ANSWERS`."""
    for batch in batches:
        rows = [
            {"settings": settings[row["set"]], "cost": cost(Figures.of_row(row)), **row}
            for row in batch.to_pylist()
        ]
        yield pa.RecordBatch.from_pylist(rows, ANSWERS)


def _cut(spans: Iterable[Span], chosen_s: float | None) -> Iterator[tuple[bool, Span]]:
    """Mark the spans that are held back, and cut the one in which that begins."""
    gone_s = 0.0
    for span in spans:
        # Each second is added to all before it, in whatever pieces ticks come.
        gone = np.cumsum(np.append(gone_s, span.span_s * ~span.held))[1:]
        gone_s = float(gone[-1])
        row = len(gone) if chosen_s is None else int(np.searchsorted(gone, chosen_s, side="right"))
        for held_back, part in ((False, span.rows(0, row)), (True, span.rows(row, len(gone)))):
            if len(part.time_s):
                yield held_back, part

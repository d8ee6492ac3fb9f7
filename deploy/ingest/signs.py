"""Sure signs that a table does not hold what its columns name, or not in their units.

Each of them would make the journal wrong by orders of magnitude without a warning.
"""

from collections import defaultdict
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from controller.errors import ControllerError
from controller.output import counted

# Unix seconds reach this in the year 5138; milliseconds reached it in 1973.
MOST_S = 1e11
# An executor is one thread; what is measured over a short window may be a bit more.
MOST_CORES = 1.5
# Totals nearly always rise, and fall where a worker began again. Of so few windows nobody knows.
# Times fall so seldom where a clock was set back.
RISING_FRAC, FALLING_FRAC, LEAST_STEPS = 0.9, 0.02, 10
# Windows this many times shorter than a pair's are no windows, if more of them are than this share.
SHORTER_TIMES, SHORTER_FRAC = 20, 0.1
# A window this many times as long as the others has a gap before it.
GAP_TIMES = 10
HOUR_S, HOUR_SLACK_S = 3600.0, 60.0


class IngestError(ControllerError):
    """A file cannot be made into a journal; the message names file, row and column."""


@dataclass(frozen=True, slots=True)
class Sent:
    """A row of a table of edges; `row` names it."""

    row: str
    time_s: float
    source: str
    target: str
    tuples: float


def check_time(row: str, time_s: float) -> float:
    """Refuse what is no Unix seconds."""
    if time_s > MOST_S:
        raise IngestError(f"{row}: time_s must be Unix seconds, {time_s:.0f} looks like ms or less")
    return time_s


def check_cores(row: str, cores: float) -> float:
    """Refuse what no thread can use."""
    if cores > MOST_CORES:
        raise IngestError(
            f"{row}: cpu_cores is {cores:g}, and an executor is one thread: is it in per cent?"
        )
    return cores


def check_edges(path: str, rows: Sequence[Sent]) -> list[str]:
    """Refuse a table of edges with a sure sign; gives lines on what is doubtful."""
    pairs: dict[tuple[str, str], list[Sent]] = defaultdict(list)
    for row in rows:
        pairs[row.source, row.target].append(row)
    _check_clock(pairs.values())
    doubtful = _check_repeated(path, rows)
    _check_totals(path, pairs.values())
    _check_times(path, rows, pairs.values())
    return doubtful


def _check_clock(pairs: Collection[list[Sent]]) -> None:
    steps = [step for rows in pairs for step in pairwise(rows)]
    back = [(before, row) for before, row in steps if row.time_s < before.time_s]
    if len(back) > FALLING_FRAC * len(steps):
        return  # in no order at all
    for before, row in back:
        back_s = before.time_s - row.time_s
        if abs(back_s - HOUR_S) <= HOUR_SLACK_S:
            raise IngestError(
                f"{row.row}: time_s is {back_s:g} s before the row before of the same pair: local "
                "time, whose clock was set back? Unix seconds are needed"
            )


def _check_repeated(path: str, rows: Sequence[Sent]) -> list[str]:
    first: dict[tuple[float, str, str], Sent] = {}
    again = [
        (known, row)
        for row in rows
        if (known := first.setdefault((row.time_s, row.source, row.target), row)) is not row
    ]
    same = [(known, row) for known, row in again if known.tuples == row.tuples]
    if 2 * len(same) > len(again):
        known, row = same[0]
        count = f"{len(same)} of {len(rows)} rows"
        raise IngestError(f"{row.row}: is the same as {known.row}; {count} are there twice")
    if not again:
        return []
    return [f"{path}: {counted(len(again), 'row')} of a pair and time that others have: added up"]


def _check_totals(path: str, pairs: Collection[list[Sent]]) -> None:
    steps = [
        (row.tuples > before.tuples) - (row.tuples < before.tuples)
        for rows in pairs
        for before, row in pairwise(sorted(rows, key=lambda row: row.time_s))
    ]
    rising, falling = steps.count(1), steps.count(-1)
    often = rising >= RISING_FRAC * len(steps) and falling <= FALLING_FRAC * len(steps)
    if often and len(steps) >= LEAST_STEPS:
        raise IngestError(
            f"{path}: tuples rises from time to time, in {rising} of {len(steps)} steps: it must "
            "be the count of each window, not a total that goes on"
        )


def _check_times(path: str, rows: Sequence[Sent], pairs: Collection[list[Sent]]) -> None:
    """Refuse windows that are far shorter than the steps of any pair."""
    spans_s = np.diff(np.unique([row.time_s for row in rows]))
    of_pairs = [np.diff(np.unique([row.time_s for row in one])) for one in pairs]
    step_s = min((float(np.median(steps)) for steps in of_pairs if len(steps) > 1), default=0.0)
    short = spans_s < step_s / SHORTER_TIMES
    if short.sum() > SHORTER_FRAC * len(spans_s):
        raise IngestError(
            f"{path}: {short.sum()} of {len(spans_s)} windows are shorter than "
            f"{step_s / SHORTER_TIMES:.3g} s, though no pair has rows closer than {step_s:.3g} s "
            "most of the time: all rows of a window need the same time_s"
        )


def gaps(times_s: Sequence[float]) -> tuple[float, list[tuple[float, float]]]:
    """Find the usual span of a window, and the times before which there are none for long."""
    spans_s = np.diff(times_s)
    usual_s = float(np.median(spans_s)) if len(spans_s) else 0.0
    long = np.flatnonzero(spans_s > GAP_TIMES * usual_s).tolist()
    return usual_s, [(float(times_s[i + 1]), float(spans_s[i])) for i in long]

"""Sure signs that a table does not hold what its columns name, or not in their units.

Each of them would make the journal wrong by orders of magnitude without a warning. A sign is of a
row where that row alone is wrong, and of the file where all of it is.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from itertools import chain, pairwise

import numpy as np

from controller.errors import ControllerError
from controller.ingest.metrics_log import CAPACITY, GAP_TIMES, Sample
from controller.output import counted

# Unix seconds reach this in the year 5138; milliseconds reached it in 1973.
MOST_S = 1e11
# An executor is one thread; what is measured over a short window may be a bit more.
MOST_CORES = 1.5
ABOVE_A_CORE = "thread above a core"
# Totals nearly always rise, and fall where a worker began again. Of so few windows nobody knows.
# Times fall so seldom where a clock was set back.
RISING_FRAC, FALLING_FRAC, LEAST_STEPS = 0.9, 0.02, 10
# A load may rise as well, but neither for a day nor by so small a part of itself in each window.
RISING_S, OF_STEP_TIMES = 86_400.0, 1000
# Windows this many times shorter than a pair's are no windows, if more of them are than this share.
SHORTER_TIMES, SHORTER_FRAC = 20, 0.1
LIKE_TIMES = 4
HOUR_S, HOUR_SLACK_S = 3600.0, 60.0


class IngestError(ControllerError):
    """A file cannot be made into a journal; the message names file, row and column."""


@dataclass(frozen=True, slots=True)
class Sign:
    """A sign, of a row or of the whole file."""

    row: int | None  # as an editor counts them, the head is 1; None for the whole file
    rule: str
    value: str  # as the file has it; empty for the whole file
    why: str  # for people


@dataclass(frozen=True, slots=True)
class Sent:
    """A row of a table of edges."""

    row: int
    time_s: float
    source: str
    target: str
    tuples: float
    stream: str = ""


@dataclass(frozen=True, slots=True)
class Used:
    """A row of a table of CPU."""

    row: int
    time_s: float
    executor: str
    cores: float


def wrong_capacity(samples: Sequence[Sample]) -> list[Sign]:
    """Find capacities that no thread can have.

    Storm measures one tuple of twenty: a short window may show more than there is.
    """
    return [
        Sign(
            one.line,
            ABOVE_A_CORE,
            f"{one.value:g}",
            f"{CAPACITY} of task {one.task} is {one.value:g}, and an executor is one thread",
        )
        for one in samples
        if one.name == CAPACITY and one.value > MOST_CORES
    ]


def wrong_time(row: int, time_s: float) -> Sign | None:
    """Find what is no Unix seconds."""
    if time_s <= MOST_S:
        return None
    value = f"{time_s:.0f}"
    why = f"time_s must be Unix seconds, {value} looks like ms or less"
    return Sign(row, "time not in seconds", value, why)


def wrong_cpu(rows: Sequence[Used]) -> list[Sign]:
    """Find what no thread can use, and what has the time and executor of another row.

    Where an executor is above a core in most of its rows, the unit of the whole file is wrong.
    """
    found: list[Sign] = []
    seen: dict[tuple[float, str], int] = {}
    above: dict[str, list[bool]] = defaultdict(list)
    for row in rows:
        above[row.executor].append(row.cores > MOST_CORES)
        if row.cores > MOST_CORES:
            why = f"cpu_cores is {row.cores:g}, and an executor is one thread: is it in per cent?"
            found.append(Sign(row.row, ABOVE_A_CORE, f"{row.cores:g}", why))
        known = seen.setdefault((row.time_s, row.executor), row.row)
        if known != row.row:
            why = f"has the time and executor of row {known}"
            found.append(Sign(row.row, "row twice", f"{row.cores:g}", why))
    for executor, high in above.items():
        if 2 * sum(high) > len(high) >= LEAST_STEPS:
            why = (
                f"cpu_cores of {executor} is above {MOST_CORES:g} in {sum(high)} of "
                f"{counted(len(high), 'row')}, and an executor is one thread: is it in per cent?"
            )
            found.append(Sign(None, ABOVE_A_CORE, "", why))
            break
    return found


def wrong_edges(rows: Sequence[Sent]) -> tuple[list[Sign], list[str]]:
    """Find the signs in a table of edges; gives lines on what is doubtful too."""
    pairs: dict[tuple[str, str], list[Sent]] = defaultdict(list)
    for row in rows:
        pairs[row.source, row.target].append(row)
    every = [sorted(of_pair, key=lambda row: row.time_s) for of_pair in pairs.values()]
    again, doubtful = _repeated(rows, every)
    totals, rising = _totals(every)
    return [*_clock(pairs.values()), *again, *totals, *_times(rows)], [*doubtful, *rising]


def _clock(pairs: Collection[list[Sent]]) -> list[Sign]:
    steps = [step for rows in pairs for step in pairwise(rows)]
    back = [(before, row) for before, row in steps if row.time_s < before.time_s]
    hours = [
        (before, row)
        for before, row in back
        if abs(before.time_s - row.time_s - HOUR_S) <= HOUR_SLACK_S
    ]
    # A short table has one such step in each pair; rows in no order have others as well.
    alone = len(hours) == len(back) <= min(len(pairs), len(steps) / 2)
    if hours and (alone or len(back) <= FALLING_FRAC * len(steps)):
        before, row = hours[0]
        why = (
            f"time_s of row {row.row} is {before.time_s - row.time_s:g} s before the row before of "
            "the same pair: local time, whose clock was set back? Unix seconds are needed"
        )
        return [Sign(None, "hour set back", "", why)]
    return []


def _repeated(rows: Sequence[Sent], pairs: Collection[list[Sent]]) -> tuple[list[Sign], list[str]]:
    first: dict[tuple[float, str, str, str], Sent] = {}
    again = [
        (known, row)
        for row in rows
        if (known := first.setdefault((row.time_s, row.source, row.target, row.stream), row))
        is not row
    ]
    same = [(known, row) for known, row in again if known.tuples == row.tuples]
    # Where windows that follow each other are equal, so are several rows of one.
    steps = [
        before.tuples == row.tuples
        for of_pair in pairs
        for before, row in pairwise(of_pair)
        if before.time_s < row.time_s
    ]
    by_chance_frac = sum(steps) / max(len(steps), 1)
    if 2 * len(same) > (1 + by_chance_frac) * len(again):
        again = [pair for pair in again if pair[0].tuples != pair[1].tuples]
    else:
        same = []  # equal by chance: several rows a window, that add up
    found = [
        Sign(row.row, "row twice", f"{row.tuples:g}", f"is the same as row {known.row}")
        for known, row in same
    ]
    doubtful = f"{counted(len(again), 'row')} of a pair and time that others have: added up"
    return found, [doubtful] * bool(again)


def _totals(pairs: Collection[list[Sent]]) -> tuple[list[Sign], list[str]]:
    """Find totals that go on; gives a line where it may be a load that rises as well.

    Rows of a pair are in the order of time.
    """
    both = [(before, row) for rows in pairs for before, row in pairwise(rows)]
    steps = [row.tuples - before.tuples for before, row in both]
    rising, falling = sum(step > 0 for step in steps), sum(step < 0 for step in steps)
    often = rising >= RISING_FRAC * len(steps) and falling <= FALLING_FRAC * len(steps)
    if not often or len(steps) < LEAST_STEPS:
        return [], []
    what = f"tuples rises from time to time, in {rising} of {len(steps)} steps"
    must = "it must be the count of each window, not a total that goes on"
    longest_s = max(rows[-1].time_s - rows[0].time_s for rows in pairs)
    small = [OF_STEP_TIMES * step < row.tuples for step, (_, row) in zip(steps, both, strict=True)]
    if longest_s >= RISING_S or 2 * sum(small) > len(small):
        return [Sign(None, "total that goes on", "", f"{what}: {must}")], []
    return [], [f"{what}: taken as a load that rises; {must}"]


def times_apart(rows: Iterable[tuple[float, str, str]]) -> str:
    """Explain which windows are far shorter than the steps of any pair; empty if none are."""
    pairs: dict[tuple[str, str], list[float]] = defaultdict(list)
    for time_s, source, target in rows:
        pairs[source, target].append(time_s)
    every_s = np.unique(list(chain.from_iterable(pairs.values())))
    spans_s = np.diff(every_s)
    # Windows may become shorter or longer: then a pair has rows at both ends.
    own = np.zeros(len(spans_s), bool)
    of_pairs = []
    for times_s in map(np.unique, pairs.values()):
        at = np.searchsorted(every_s, times_s)
        own[at[:-1][np.diff(at) == 1]] = True
        of_pairs.append(np.diff(times_s))
    step_s = min((float(np.median(steps)) for steps in of_pairs if len(steps) > 1), default=0.0)
    short = (spans_s < step_s / SHORTER_TIMES) & ~own
    if short.sum() <= SHORTER_FRAC * len(spans_s):
        return ""
    return (
        f"{short.sum()} of {len(spans_s)} windows are shorter than {step_s / SHORTER_TIMES:.3g} s, "
        f"though no pair has rows closer than {step_s:.3g} s most of the time. All rows of a "
        "window need the same time_s"
    )


def _times(rows: Sequence[Sent]) -> list[Sign]:
    why = times_apart((row.time_s, row.source, row.target) for row in rows)
    return [Sign(None, "times apart within a window", "", why)] * bool(why)


def gaps(times_s: Sequence[float]) -> tuple[float, list[tuple[float, float]]]:
    """Find the usual span of a window, and the times before which there are none for long."""
    spans_s = np.diff(times_s)
    usual_s = float(np.median(spans_s)) if len(spans_s) else 0.0
    # Where windows become longer, the next one is about as long.
    long = spans_s > GAP_TIMES * usual_s
    before_s, after_s = spans_s[:-1], spans_s[1:]
    alike = (after_s < LIKE_TIMES * before_s) & (before_s < LIKE_TIMES * after_s)
    long[1:] &= ~alike
    long[:-1] &= ~alike
    found = np.flatnonzero(long).tolist()
    return usual_s, [(float(times_s[i + 1]), float(spans_s[i])) for i in found]

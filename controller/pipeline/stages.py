"""The stages: each takes the one before it, and leaves a table that can be read alone.

``raw`` → ``ticks`` → ``episodes`` → ``trials`` → ``answers``. A part of a table that is whole stays
as it is, so a run goes on where another one broke off.
"""

import itertools
import math
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import partial
from typing import Any, NamedTuple, TypeAlias

import pyarrow as pa

from controller.config import Config
from controller.errors import TuneError
from controller.journal.lacking import lacking_texts
from controller.journal.reader import Log, by_writer, no_segment
from controller.pipeline.engine import Engine, Episode, Job, RawFile, Rows, digest
from controller.pipeline.figures import FeltDay, Figures
from controller.pipeline.hours import added_up
from controller.pipeline.schemas import (
    ANSWERS,
    BY,
    CONCLUDED,
    DECODED,
    HOURS,
    LED,
    LEFT_OUT,
    PART,
    RUN,
    SEGMENT,
    TRIALS,
)
from controller.pipeline.ticks import Batches, decoded, led, spans_of
from controller.pipeline.trials import Tried, costed, tried
from controller.replay.playback import recorded_config
from controller.replay.recording import Span
from migration.model import topology_name

FAR_DAYS = 365
# Of each topology's time in which something could be decided.
HELD_BACK_FRAC = 0.3
# This number of parts for each core keeps all of them busy to the end, and shows the time to go.
PARTS_PER_CORE, PARTS_OF_ONE = 4, 16
# After this number of ticks it is known what an episode takes.
SAMPLE_TICKS = 720
# Folders of trials begin so, and a day follows.
_TRIALS = "trials/part="

# The order of rows that are not ticks.
_ORDER = *SEGMENT, "topology", "day"

# When epochs began, by cluster and epoch.
_Epochs: TypeAlias = dict[tuple[str, int], float]
Progress = Callable[[float], None]  # the share that is done, up to 1


@dataclass(frozen=True, slots=True)
class Raw:
    """Files of journals, one controller's after the other's, each in order."""

    files: tuple[RawFile, ...]
    log: Log  # the same, opened where they lie
    lacks: tuple[str, ...] = ()  # one line a rule by which rows of tables were left out before

    def keys(self) -> dict[str, Any]:
        """Read the settings at its end; raises `JournalError` as `recorded_config` does."""
        return dict(recorded_config(self.log.newest_head()).keys)


@dataclass(frozen=True, slots=True)
class Ticks:
    """Decoded segments."""

    folders: tuple[str, ...]  # in order
    parts: tuple["SegmentPart", ...]
    left_out: tuple[str, ...]  # one line a rule


@dataclass(frozen=True, slots=True)
class SegmentPart:
    """What a segment holds of one topology on one day."""

    folder: str
    topology: str
    day: int
    ticks: int
    executors: int
    span_s: float
    free_s: float


class Judged(NamedTuple):
    """How a parameter set did."""

    chosen_by: Figures  # with the load it is chosen by
    held_back: Figures  # with the load that came later
    by_day: tuple[Figures, ...]  # the same by day
    felt: tuple[FeltDay, ...]  # by users, on the days of all load on which that is known


def raw(engine: Engine, paths: Sequence[str]) -> Raw:
    """Find the segments in folders and files.

    Raises `JournalError` where a path is not there, or there is no segment at all.
    """
    found = {
        replace(file.segment, opened=partial(engine.opened, file)): file
        for file in engine.files(paths)
    }
    writers = by_writer(found, lambda one: found[one].size_bytes)
    if not writers:
        raise no_segment(", ".join(paths))
    files = tuple(found[one] for one in itertools.chain(*writers))
    return Raw(files, Log(writers, {}), tuple(lacking_texts(engine.quarantined(paths))))


def ticks(engine: Engine, of: Raw, progress: Progress) -> Ticks:
    """Decode the segments, each for itself."""
    ended_by = _ended_by(engine, of)
    near = _neighbours(of)
    jobs = [
        _decoding(file, order_s, ended_by, *near[file.uri]) for file, order_s in _ordered(of.files)
    ]
    _do(engine, jobs, progress)
    made = found(engine, jobs)
    return replace(made, left_out=(*made.left_out, *of.lacks))


def found(engine: Engine, jobs: Sequence[Job]) -> Ticks:
    """Read what jobs that decode have found."""
    folders = tuple(job.folder for job in jobs)
    decoded_of = [(job, job.of.segment) for job in jobs if isinstance(job.of, RawFile)]
    folder_of = {(segment.writer, segment.number): one.folder for one, segment in decoded_of}
    of_part = [field.name for field in fields(SegmentPart) if field.name != "folder"]
    rows = _small(engine, folders, PART, "row", *(name for name in of_part if name not in _ORDER))
    again = _copies(rows)
    # A million of them are not rare: no dictionary for each, nor a name of its own.
    names: dict[str, str] = {}
    columns = [rows[name].to_pylist() for name in ("writer", "number", *of_part)]
    parts = [
        SegmentPart(folder_of[writer, number], names.setdefault(topology, topology), *what)
        for writer, number, topology, *what in zip(*columns, strict=True)
        if (writer, number) not in again
    ]
    kept = _near(parts)
    far = sum(part.ticks for part in parts) - sum(part.ticks for part in kept)
    left_out = Counter({"segments that are there twice": len(again)})
    left_out["ticks of a clock that was wrong by a year or more"] += far
    for row in _small(engine, folders, LEFT_OUT, "rule", "count").to_pylist():
        left_out[row["rule"]] += row["count"]
    said = tuple(f"{count} {rule}" for rule, count in sorted(left_out.items()) if count)
    return Ticks(folders, tuple(kept), said)


def _near(parts: Sequence[SegmentPart]) -> list[SegmentPart]:
    """Keep the time with the most ticks where a year or more without any lies between.

    A controller that starts before its clock is set has a few ticks of 1970.
    """
    ticks_of = Counter[int]()
    for part in parts:
        ticks_of[part.day] += part.ticks
    times: list[list[int]] = []
    for day in sorted(ticks_of):
        if not times or day - times[-1][-1] >= FAR_DAYS:
            times.append([])
        times[-1].append(day)
    days = set(max(times, key=lambda days: sum(ticks_of[day] for day in days), default=[]))
    return [part for part in parts if part.day in days]


def _copies(rows: pa.Table) -> set[tuple[str, int]]:
    """Find segments that begin no later than one before them: copies under another number."""
    latest: dict[str, tuple[int, int]] = {}
    found = set()
    known = rows.filter(rows["row"].is_valid())
    columns = (known[name].to_pylist() for name in ("writer", "number", "row"))
    for writer, number, row in sorted(set(zip(*columns, strict=True))):
        before, begins = latest.get(writer, (-1, -1))
        if number == before:
            continue
        if row <= begins:
            found.add((writer, number))
        else:
            latest[writer] = number, row
    return found


def _small(engine: Engine, folders: Sequence[str], kind: str, *columns: str) -> pa.Table:
    """Read columns of rows that are not ticks, in order; what they are ordered by comes along."""
    rows = engine.rows(folders, DECODED, [*_ORDER, *columns], kind=kind)
    return rows.sort_by([(name, "ascending") for name in _ORDER])


def episodes(of: Ticks, topology: str | None = None) -> list[Episode]:
    """Name the episodes of one topology (by id or name), or of all, by day.

    The last part of each topology's time is held back. Raises `TuneError` where there is nothing to
    tune with.
    """
    every = {part.topology for part in of.parts}
    wanted = {name for name in every if topology in (None, name, topology_name(name))}
    if not every:
        raise TuneError("the log holds no tick in which a topology was measured")
    if not wanted:
        raise TuneError(f"the log has no topology {topology}, it has {', '.join(sorted(every))}")
    found: list[Episode] = []
    for name in sorted(wanted):
        days: dict[int, list[SegmentPart]] = {}
        for part in of.parts:
            if part.topology == name:
                days.setdefault(part.day, []).append(part)
        whole_s = sum(part.free_s for day in sorted(days) for part in days[day])
        left_s = (1 - HELD_BACK_FRAC) * whole_s
        for day in sorted(days):
            episode = _episode(name, day, days[day], left_s)
            found.append(episode)
            left_s -= episode.free_s
    return sorted(found, key=lambda one: (one.day, one.topology))


def samples(engine: Engine, of: Sequence[Episode]) -> Iterator[tuple[str, int, float, list[Span]]]:
    """Read the beginning of the longest episode of each topology; the smallest topology first.

    Yields
    ------
    tuple
        The topology, its executors, its ticks by those of the sample, and the spans. They have at
        least `SAMPLE_TICKS` ticks where there are more, and at most those of a segment above it.
    """
    for name in sorted(
        {one.topology for one in of},
        key=lambda name: (max(one.executors for one in of if one.topology == name), name),
    ):
        own = [one for one in of if one.topology == name]
        longest = max(own, key=lambda one: one.ticks)
        found: list[Span] = []
        count = 0
        for folder in longest.folders:
            if count < SAMPLE_TICKS:
                found += spans_of(engine.ticks(longest, [folder]))
                count = sum(len(span.time_s) for span in found)
        yield name, longest.executors, sum(one.ticks for one in own) / count, found


def trials(
    engine: Engine,
    of: Sequence[Episode],
    configs: Sequence[Config],
    progress: Progress,
    searched: Collection[str] = (),
) -> list[str]:
    """Try all configurations on all episodes; gives the folders of what came out.

    Policies search for the topologies that are `searched` for, by id, and for no others. The result
    does not depend on the engine, its cores or their order.
    """
    parts = PARTS_PER_CORE * engine.cores if engine.cores > 1 else PARTS_OF_ONE
    groups = min(-(-parts // len(of)), len(configs))
    numbered = list(enumerate(configs))
    jobs = [
        _trying(one, numbered[group::groups], one.topology in searched)
        for one in of
        for group in range(groups)
    ]
    _do(engine, jobs, progress)
    return [job.folder for job in jobs]


def answers(engine: Engine, folders: Sequence[str], count: int) -> list[Judged]:
    """Add up how each set did, in the order in which they were tried; `count` were."""
    chosen_by = [Figures()] * count
    by_day: list[dict[int, Figures]] = [{} for _ in range(count)]
    felt: list[list[FeltDay]] = [[] for _ in range(count)]
    for row in _tried(engine, folders):
        figures = Figures.of_row(row)
        number, day, held_back = row["set"], row["day"], row["held_back"]
        if (one := figures.felt(row["topology"], day, held_back=held_back)) is not None:
            felt[number].append(one)
        if not held_back:
            chosen_by[number] += figures
        elif figures.ticks:
            by_day[number][day] = by_day[number].get(day, Figures()) + figures
    return [
        Judged(chosen, sum(days.values(), Figures()), tuple(days.values()), tuple(users))
        for chosen, days, users in zip(chosen_by, by_day, felt, strict=True)
    ]


def answers_by_day(
    engine: Engine, folders: Sequence[str], count: int
) -> dict[str, list[dict[int, Figures]]]:
    """Add up how each of `count` sets did, by name of topology, set and day; all of the load."""
    found: dict[str, list[dict[int, Figures]]] = {}
    for row in _tried(engine, folders):
        name = topology_name(row["topology"])
        sets = found.setdefault(name, [{} for _ in range(count)])
        by_day = sets[row["set"]]
        by_day[row["day"]] = by_day.get(row["day"], Figures()) + Figures.of_row(row)
    return found


def _tried(engine: Engine, folders: Sequence[str]) -> Iterator[dict[str, Any]]:
    """Read rows of `TRIALS` in a fixed order: sums of floats depend on it.

    They come by day, so no more than a day of them is held.
    """
    for _, own in itertools.groupby(sorted(folders, key=_day_of), key=_day_of):
        rows = engine.rows(list(own), TRIALS).to_pylist()
        yield from sorted(rows, key=lambda row: (row["topology"], row["held_back"]))


def costs(
    engine: Engine,
    folders: Sequence[str],
    settings: Sequence[str],
    cost: Callable[[Figures], float],
) -> pa.Table:
    """Leave `ANSWERS` to the trials in some folders, and read it: what each set costs in each.

    `settings` names the sets, in the order in which they were tried. What `cost` shows of itself
    has to be all that it depends on.
    """
    work = partial(costed, settings=tuple(settings), cost=cost)
    name = f"answers/part={digest(*folders, settings, cost)}"
    job = Job(name, Rows(tuple(folders), TRIALS), work, ANSWERS)
    engine.do([job], lambda job: None)
    order = ("set", "topology", "day", "held_back")
    return engine.rows([job.folder], ANSWERS).sort_by([(name, "ascending") for name in order])


def hours(engine: Engine, of: Sequence[Episode], progress: Progress) -> list[str]:
    """Add all episodes up by hour; gives the folders of what came out."""
    jobs = []
    for one in of:
        work = partial(added_up, topology=one.topology, day=one.day)
        name = f"hours/part={one.day}-{digest(one)}"
        jobs.append(Job(name, one, work, HOURS, weight=float(one.ticks)))
    _do(engine, jobs, progress)
    return [job.folder for job in jobs]


def concluded(engine: Engine, folders: Sequence[str], work: partial[Batches]) -> bytes:
    """Let one task work on the hours of all episodes; gives what it came to.

    The work leaves one row of `CONCLUDED`. Its keywords are all that it depends on.
    """
    name = f"concluded/part={digest(*folders, work.keywords)}"
    job = Job(name, Rows(tuple(folders), HOURS), work, CONCLUDED)
    engine.do([job], lambda job: None)
    (found,) = engine.rows([job.folder], CONCLUDED)["found"].to_pylist()
    return bytes(found)


def runs(engine: Engine, of: Ticks) -> list[dict[str, Any]]:
    """List the runs of moves in the order in which they began, each as it was known last."""
    days = {part.day for part in of.parts}
    near = range(min(days, default=0) - FAR_DAYS, max(days, default=0) + FAR_DAYS)
    rows = {
        (row["topology"], row["time_s"]): row
        for row in _small(engine, of.folders, RUN, "time_s", "effect").to_pylist()
        if row["day"] in near
    }
    return [rows[key] for key in sorted(rows, key=lambda key: (key[1], key[0]))]


def _do(engine: Engine, jobs: Sequence[Job], progress: Progress) -> None:
    whole = sum(job.weight for job in jobs) or 1.0
    done = 0.0

    def count(job: Job) -> None:
        nonlocal done
        done += job.weight
        progress(min(done / whole, 1.0))

    engine.do(jobs, count)


def _ended_by(engine: Engine, of: Raw) -> Mapping[tuple[str, int], _Epochs]:
    """Find of each segment the epochs that began before its end, and ended those that it has.

    Of any others no segment depends: or else each start of a controller would make all parts again.
    A controller alone is never overtaken.
    """
    if len(of.log.writers) < 2:
        return {}
    jobs = [Job(f"led/{_name(file)}-{digest()}", file, led, LED) for file in of.files]
    engine.do(jobs, lambda job: None)
    rows = engine.rows([job.folder for job in jobs], LED).to_pylist()
    began_s: _Epochs = {}
    for row in rows:
        key = row["cluster"], row["epoch"]
        began_s[key] = min(began_s.get(key, row["time_s"]), row["time_s"])
    found: dict[tuple[str, int], _Epochs] = {}
    for row in rows:
        own = row["cluster"], row["epoch"]
        later = [(at, key) for key, at in began_s.items() if key[0] == own[0] and key > own]
        at_s, first = min(later, default=(math.inf, own))
        if at_s <= row["last_s"]:
            found.setdefault((row["writer"], row["number"]), {})[first] = at_s
    return found


def _ordered(files: Sequence[RawFile]) -> list[tuple[RawFile, float]]:
    """Give the files in the order of their ticks, with what they are ordered by.

    A clock that was set back does not change the order within one controller's.
    """
    latest: dict[str, float] = {}
    found = []
    for file in files:
        one = file.segment
        latest[one.writer] = max(latest.get(one.writer, one.begun_s), one.begun_s)
        found.append((file, latest[one.writer]))
    return sorted(found, key=lambda row: (row[1], row[0].segment.writer, row[0].segment.number))


def _neighbours(of: Raw) -> dict[str, tuple[bool, RawFile | None]]:
    """Find of each file whether one is before it, and which one is after it."""
    found: dict[str, tuple[bool, RawFile | None]] = {}
    for _, group in itertools.groupby(of.files, key=lambda file: file.segment.writer):
        own = list(group)
        for number, (file, after) in enumerate(zip(own, [*own[1:], None], strict=True)):
            found[file.uri] = number > 0, after
    return found


def _decoding(
    file: RawFile,
    order_s: float,
    ended_by: Mapping[tuple[str, int], _Epochs],
    follows: bool,
    after: RawFile | None,
) -> Job:
    read = [one.segment for one in (file, after) if one is not None]
    epochs = [ended_by.get((one.writer, one.number), {}) for one in read]
    began_s = dict(sorted(item for one in epochs for item in one.items()))
    made_of = digest(order_s, began_s, follows, after and after.segment.number)
    work = partial(decoded, order_s=order_s, began_s=began_s, follows=follows)
    name = f"ticks/{_name(file)}-{made_of}"
    return Job(name, file, work, DECODED, after, BY, file.size_bytes)


def _name(file: RawFile) -> str:
    one = file.segment
    return f"segment={one.begun}-{one.writer}-{one.number:06d}-{file.size_bytes}"


def _episode(topology: str, day: int, parts: Sequence[SegmentPart], left_s: float) -> Episode:
    free_s = sum(part.free_s for part in parts)
    # Sums in another order differ in the last digits: what ends there is not cut.
    chosen_s = None if free_s <= left_s else left_s if left_s > 0 else -1.0
    return Episode(
        topology,
        day,
        tuple(part.folder for part in parts),
        sum(part.ticks for part in parts),
        max(part.executors for part in parts),
        sum(part.span_s for part in parts),
        free_s,
        chosen_s,
    )


def _trying(of: Episode, configs: Sequence[tuple[int, Config]], searches: bool) -> Job:
    keys = [(number, sorted(config.keys.items())) for number, config in configs]
    made_of = digest(of, keys, searches)
    what = Tried(of.topology, of.day, of.chosen_s, tuple(configs), searches)
    weight = float(of.ticks * len(configs))
    return Job(f"{_TRIALS}{of.day}-{made_of}", of, partial(tried, of=what), TRIALS, weight=weight)


def _day_of(folder: str) -> int:
    """Take the day out of the name of a folder of trials."""
    return int(folder.removeprefix(_TRIALS).partition("-")[0])

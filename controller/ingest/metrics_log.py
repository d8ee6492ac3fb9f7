"""Reads the traffic in Storm's own metrics: how much each task got from each component.

Storm does not count who sent to whom. What a task got from a component is therefore split over the
component's tasks by how much each of them sent. That is right for shuffles and a guess for fields
groupings.
"""

import math
import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from statistics import median
from typing import NamedTuple

import numpy as np

from controller.core.cluster import Floats

# LoggingMetricsConsumer of Storm 2: "%d\t%15s:%-4d\t%3d:%-11s\t", then name and value.
_LOGGED = re.compile(
    r"(\d{9,13})\t\s*(\S+):(\d+)\s*\t\s*(-?\d+):([^\t]*[^\t ])\s*\t(\S+)\s*\t(.*?)\s*$", re.ASCII
)
# Graphite's plain text, with the names of Storm's StormMetricRegistry.
_GRAPHITE = re.compile(
    r"(?:\S+\.)?storm\.worker\.([^.\s]+)\.([^.\s]+)\.([^.\s]+)\.(?:\S+?\.)?(-?\d+)\.(\d+)-(\S+)"
    r"\s+(\S+)\s+(\d{9,13})\s*$",
    re.ASCII,
)
# Ids may have commas and equal signs of their own: a value ends its pair.
_PAIR = re.compile(r"(\S.*?)=(-?[0-9.eE+-]+)(?=, |}?$)(?:, )?")
# Storm's default, of a log in which no task has two samples.
INTERVAL_S = 60.0
# A window this many times as long as the others has a gap before it.
GAP_TIMES = 10
# A window at the end may lack so much of a task that was there until then.
LACKING_FRAC = 0.05
_EXECUTED, _SENT, CAPACITY = "__execute-count", "__transfer-count", "__capacity"


@dataclass(frozen=True, slots=True)
class Sample:
    """One number of one task."""

    time_s: float  # Unix seconds
    task: str
    component: str
    worker: str  # ``host:port``
    name: str  # `__execute-count`, `__transfer-count` or `__capacity`
    source: str  # for executed tuples, the component they came from
    stream: str  # a task has a count of each
    value: float
    is_total: bool  # counts since the worker's start, not since the last sample
    line: int  # of the file, from 1


def samples(lines: Iterable[str], others: set[str] | None = None) -> Iterator[Sample]:
    """Read the lines on the load of user components; others are passed over.

    The lines are of worker.log.metrics, or of Graphite's plain text. `others` takes the names of
    user components' metrics that are passed over.
    """
    for at, line in enumerate(lines, 1):
        logged, graphite = _LOGGED.search(line), _GRAPHITE.match(line)
        if logged is not None:
            time, host, port, task, component, name, text = logged.groups()
        elif graphite is not None:
            _, host, component, task, port, name, text, time = graphite.groups()
        else:
            continue
        if component.startswith("__") or int(task) < 0:
            continue
        time_s = float(time) / (1000 if len(time) > 10 else 1)
        if others is not None and not name.startswith((_EXECUTED, _SENT, CAPACITY)):
            others.add(name)
        for short, key, value, is_total in _values(name.removesuffix(".count"), text):
            source, _, stream = key.rpartition(":") if short == _EXECUTED else ("", "", key)
            where = f"{host}:{port}"
            yield Sample(time_s, task, component, where, short, source, stream, value, is_total, at)


def _values(name: str, text: str) -> Iterator[tuple[str, str, float, bool]]:
    """Take a metric apart: maps count since the last sample, names with a stream are totals."""
    for short in (_EXECUTED, _SENT, CAPACITY):
        if name == short:
            pairs = _PAIR.findall(text[1:]) if text.startswith("{") else [("", text)]
            for key, value in pairs:
                yield from _value(short, key, value, is_total=False)
        elif name.startswith(f"{short}-") and not name.endswith("_rate"):
            yield from _value(short, name[len(short) + 1 :], text, is_total=True)


def _value(
    short: str, key: str, text: str, *, is_total: bool
) -> Iterator[tuple[str, str, float, bool]]:
    try:
        value = float(text)
    except ValueError:
        return
    if 0 <= value < float("inf"):
        yield short, key.strip(), value, is_total


class _Series(NamedTuple):
    """What one number of a task is of; a task that moves begins another one."""

    task: str
    worker: str
    name: str
    source: str
    stream: str
    is_total: bool


@dataclass(slots=True)
class Loads:
    """The metrics in the terms of the other files."""

    edges: list[tuple[float, str, str, float]]  # time, source task, target task, tuples
    cpu: list[tuple[float, str, float]]
    places: dict[str, tuple[str, str]]  # component and worker of each task
    times_s: list[float] = field(default_factory=list)  # ends of windows with samples
    interval_s: float = 0.0  # between two windows
    # At the end, where the samples of some tasks do not reach: left out.
    cut_s: float = 0.0
    cut_tuples: float = 0.0
    # Left out: tuples from components that have no task in the samples.
    unknown: dict[str, float] = field(default_factory=lambda: defaultdict(float))


def loads(found: Iterable[Sample]) -> Loads:
    """Put the samples of all logs of a run together.

    Received tuples are split over the senders by what each sent.
    Each worker ticks at seconds of its own. Windows are common to all: they end at the first sample
    of all, and each interval after it. So a sample is divided over the windows that it is of.
    """
    made = Loads([], [], {})
    tasks: dict[str, set[str]] = defaultdict(set)
    series: dict[_Series, dict[float, float]] = defaultdict(dict)
    last_s: dict[str, float] = {}
    for one in sorted(found, key=lambda s: (s.time_s, s.task, s.name, s.source)):
        made.places[one.task] = (one.component, one.worker)
        tasks[one.component].add(one.task)
        key = _Series(one.task, one.worker, one.name, one.source, one.stream, one.is_total)
        series[key][one.time_s] = one.value
        last_s[one.task] = one.time_s
    if not series:
        return made
    made.interval_s = _interval(series.values())
    times_s = np.unique([time_s for values in series.values() for time_s in values])
    first_s = float(times_s[0])
    ends_s, whole = _windows(times_s, last_s.values(), made.interval_s)
    made.cut_s = max(max(last_s.values()) - float(ends_s[whole - 1]), 0.0)
    sent: dict[str, Floats] = defaultdict(lambda: np.zeros(len(ends_s)))
    got: dict[tuple[str, str], Floats] = defaultdict(lambda: np.zeros(len(ends_s)))
    sampled: set[float] = set()
    for key, values in series.items():
        # The window that has most of each sample.
        most_s = [
            first_s + made.interval_s * math.ceil((time_s - first_s) / made.interval_s - 0.5)
            for time_s in values
        ]
        sampled.update(most_s)
        if key.name == CAPACITY:
            rows = zip(most_s, values.values(), strict=True)
            made.cpu += [(time_s, key.task, value) for time_s, value in rows]
        elif key.name == _SENT:
            sent[key.task] += _counted(values, key, ends_s, made.interval_s)
        else:
            got[key.task, key.source] += _counted(values, key, ends_s, made.interval_s)
    for (task, component), tuples in got.items():
        senders = sorted(tasks[component])
        if not senders:
            # Those of Storm itself, such as ackers, were passed over.
            if not component.startswith("__"):
                made.unknown[component] += float(tuples.sum())
            continue
        made.cut_tuples += float(tuples[whole:].sum())
        shares = np.array([sent[sender][:whole] for sender in senders])
        shares[:, shares.sum(axis=0) <= 0] = 1.0
        split = tuples[:whole] * shares / shares.sum(axis=0)
        for sender, window in np.argwhere(split > 0).tolist():
            edge = (float(ends_s[window]), senders[sender], task, float(split[sender, window]))
            made.edges.append(edge)
    made.edges.sort()
    made.times_s = sorted(time_s for time_s in sampled if time_s <= ends_s[whole - 1])
    return made


def _interval(every: Iterable[Iterable[float]]) -> float:
    steps_s = [after - before for times in every for before, after in pairwise(sorted(times))]
    return median(steps_s) if steps_s else INTERVAL_S


def _windows(times_s: Floats, last_s: Collection[float], interval_s: float) -> tuple[Floats, int]:
    """Give the ends of the windows that have samples, and how many of them are whole.

    A task was there until the end unless its last sample is an interval and a half before that of
    all. A window that lacks such a task for long is not whole.
    """
    # The last window of each sample, the one before, and those of a short gap.
    at = np.unique(np.ceil((times_s - times_s[0]) / interval_s))
    near = np.unique(at[:, None] + np.arange(-1, GAP_TIMES))
    ends_s = times_s[0] + interval_s * near[(near >= 0) & (near <= at[-1])]
    known_s = min(time_s for time_s in last_s if time_s > times_s[-1] - 1.5 * interval_s)
    return ends_s, int((ends_s <= known_s + LACKING_FRAC * interval_s).sum())


def _counted(
    values: Mapping[float, float], key: _Series, ends_s: Floats, interval_s: float
) -> Floats:
    """Divide the tuples of a series over the windows, by the time that they have in common."""
    times_s: list[float] = []
    sums: list[float] = []
    before_s, total, counted = -math.inf, None, 0.0
    for time_s, value in sorted(values.items()):
        begin_s, tuples = max(before_s, time_s - interval_s), value
        if key.is_total:
            # The first total has no beginning, and a lower one is of a new worker.
            if total is None:
                tuples = 0.0
            elif value >= total:
                begin_s, tuples = before_s, value - total
            total = value
        if begin_s > before_s:
            times_s.append(begin_s)
            sums.append(counted)
        counted += tuples
        times_s.append(time_s)
        sums.append(counted)
        before_s = time_s
    begun, ended = (np.interp(at_s, times_s, sums) for at_s in (ends_s - interval_s, ends_s))
    return np.asarray(ended - begun, dtype=np.float64)

"""Reads the traffic in Storm's own metrics: how much each task got from each component.

Storm does not count who sent to whom. What a task got from a component is therefore split over the
component's tasks by how much each of them sent. That is right for shuffles and a guess for fields
groupings.
"""

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

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


@dataclass(slots=True)
class Loads:
    """The metrics in the terms of the other files."""

    edges: list[tuple[float, str, str, float]]  # time, source task, target task, tuples
    cpu: list[tuple[float, str, float]]
    places: dict[str, tuple[str, str]]  # component and worker of each task


def loads(found: Iterable[Sample]) -> Loads:
    """Put samples together; received tuples are split over the senders by what each sent."""
    sent: dict[tuple[float, str], dict[str, float]] = defaultdict(lambda: defaultdict(float))
    got: dict[tuple[float, str, str], float] = defaultdict(float)
    tasks: dict[str, set[str]] = defaultdict(set)
    made = Loads([], [], {})
    before: dict[tuple[str, str, str, str, str], float] = {}
    for sample in sorted(found, key=lambda s: (s.time_s, s.task, s.name, s.source)):
        made.places[sample.task] = (sample.component, sample.worker)
        tasks[sample.component].add(sample.task)
        value = sample.value
        if sample.is_total:
            key = (sample.worker, sample.task, sample.name, sample.source, sample.stream)
            last, before[key] = before.get(key), value
            # The first total has no beginning, and a lower one is of a new worker.
            value = 0.0 if last is None else value - last if value >= last else value
        if sample.name == CAPACITY:
            made.cpu.append((sample.time_s, sample.task, value))
        elif sample.name == _SENT:
            sent[sample.time_s, sample.component][sample.task] += value
        else:
            got[sample.time_s, sample.task, sample.source] += value
    for (time_s, task, component), tuples in sorted(got.items()):
        shares = sent.get((time_s, component)) or dict.fromkeys(tasks[component], 1.0)
        whole = sum(shares.values())
        for sender, share in sorted(shares.items()):
            if whole and tuples * share:
                made.edges.append((time_s, sender, task, tuples * share / whole))
    return made

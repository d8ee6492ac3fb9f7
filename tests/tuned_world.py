"""Made-up recorded load for which one knows the best setting, in the tables of the pipeline."""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from controller.config import build
from controller.core.cluster import Cluster, LoadSnapshot, Traffic
from controller.journal.reader import Segment
from controller.pipeline.engine import Engine, Episode, Job, RawFile
from controller.pipeline.fold import Fold
from controller.pipeline.schemas import BY, DECODED
from controller.pipeline.stages import Ticks, answers, episodes, found, trials
from controller.pipeline.ticks import rows_of
from controller.replay.recording import Ended, Room, Span
from controller.tune.choice import SetOutcome
from controller.tune.space import ParameterSet, Space, parameter_sets
from migration.model import Component

BEGIN_S, TICK_S = 1_700_006_400.0, 5.0
# One worker on each of two nodes.
CLUSTER = Cluster.build("ab", [("a:1", "a", 4.0), ("b:1", "b", 4.0)])
HUBS = 4


def span(
    ticks: int,
    guests: Sequence[int],
    tps: Callable[[int], Sequence[tuple[int, int, float]]],
    *,
    cpu_cores: float = 0.1,
    begin_s: float = BEGIN_S,
) -> Span:
    """Two pinned hubs on each worker (executors 0 and 1 on a, 2 and 3 on b), and guests."""
    place = np.array([0, 0, 1, 1, *guests], dtype=np.int64)
    count = len(place)
    rows = [tps(tick) for tick in range(ticks)]
    pairs = sorted({(s, t) for row in rows for s, t, _ in row})
    table = np.zeros((ticks, len(pairs)), dtype=np.float32)
    for tick, row in enumerate(rows):
        for source, target, rate in row:
            table[tick, pairs.index((source, target))] += rate
    ends = np.array(pairs, dtype=np.int64).reshape(-1, 2)
    cpu = np.full((ticks, count), cpu_cores, dtype=np.float32)
    first = LoadSnapshot(
        topology="wc-1-7",
        time_s=begin_s,
        components=(Component("bolt", "bolt", count),),
        edges=(),
        executors=tuple(f"{e + 1}-{e + 1}" for e in range(count)),
        component_of=("bolt",) * count,
        place=place,
        cpu_cores=cpu[0].astype(float),
        queue=np.zeros(count),
        pinned=("hub",) * HUBS + (None,) * len(guests),
        traffic=Traffic(ends[:, 0], ends[:, 1], table[0].astype(float)),
    )
    return Span(
        cluster=CLUSTER,
        first=first,
        place=place,
        # A tick is at the end of its time.
        time_s=begin_s + TICK_S * np.arange(1, ticks + 1, dtype=np.float64),
        span_s=np.full(ticks, TICK_S),
        cpu_cores=cpu,
        traffic_tps=table,
        source=ends[:, 0],
        target=ends[:, 1],
        size_bytes=np.full(len(ends), np.nan),
        hosts={},
        held=np.zeros(ticks, dtype=np.bool_),
        ended=Ended.unknown(ticks),
        room=Room.unknown(ticks, 2),
        shifts=(),
    )


def strong_and_fickle(ticks: int) -> Span:
    """Four guests that should move for 5 % of all traffic each, and four that had better not.

    The fickle talk with one node and then the other, 1 % of all traffic each, in turns of 12 ticks.
    """

    def tps(tick: int) -> list[tuple[int, int, float]]:
        strong = [(0, guest, 50.0) for guest in range(HUBS, HUBS + 4)]
        there = 0 if tick // 12 % 2 else 2
        fickle = [(there, guest, 10.0) for guest in range(HUBS + 4, HUBS + 8)]
        return [*strong, *fickle, (0, 1, 380.0), (2, 3, 380.0)]

    return span(ticks, [1] * 8, tps)


def three_that_go_together(ticks: int) -> Span:
    """Three guests that talk to hubs on a, and more to each other: one or two gain nothing."""
    one, two, three = range(HUBS, HUBS + 3)

    def tps(tick: int) -> list[tuple[int, int, float]]:
        among = [(one, two, 100.0), (two, three, 100.0), (one, three, 100.0)]
        return [(0, one, 60.0), (1, two, 60.0), (0, three, 60.0), *among, (2, 3, 100.0)]

    return span(ticks, [1, 1, 1], tps)


def laid_out(spans: Iterable[Span], tables: Path) -> tuple[Fold, Ticks]:
    """Lay made-up load out, a segment each, in which it comes."""
    engine, jobs = Fold(tables), []
    for number, one in enumerate(spans):
        segment = Segment(Path(f"{number}"), "20231115T000000", "made", number)
        work = partial(_made, span=one, number=number)
        file = RawFile(f"{number}", 1, segment)
        jobs.append(Job(f"ticks/{number}", file, work, DECODED, None, BY))
    engine.do(jobs, lambda job: None)
    return engine, found(engine, jobs)


def _made(batches: object, span: Span, number: int) -> Iterator[Any]:
    return rows_of([span], BEGIN_S, "made", number)


def outcomes_of(
    engine: Engine,
    of: Sequence[Episode],
    sets: Sequence[ParameterSet],
    searched: Collection[str] = (),
) -> list[SetOutcome]:
    """Try all sets on all episodes."""
    configs = [one.config for one in sets]
    folders = trials(engine, of, configs, lambda share: None, searched)
    figures = answers(engine, folders, len(sets))
    return [SetOutcome(one, *both) for one, both in zip(sets, figures, strict=True)]


def swept(
    spans: Sequence[Span],
    tables: Path,
    space: Space,
    today: Mapping[str, object],
    searched: Collection[str] = (),
) -> tuple[list[Episode], list[SetOutcome]]:
    """Sweep a space over made-up load."""
    engine, ticks = laid_out(spans, tables)
    of = episodes(ticks)
    return of, outcomes_of(engine, of, parameter_sets(space, build(today).keys), searched)

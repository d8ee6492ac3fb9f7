"""Made-up recorded load for which one knows the best setting, and an engine without Spark."""

from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path

import numpy as np

from controller.config import build
from controller.core.cluster import Cluster, LoadSnapshot, Traffic
from controller.replay.recording import Span
from controller.tune.chunks import Chunk, unpack
from controller.tune.space import Space, parameter_sets
from controller.tune.sweep import SetOutcome, SweptChunk, Trial, Wave, step, sweep
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
        time_s=begin_s + TICK_S * np.arange(ticks, dtype=np.float64),
        span_s=np.full(ticks, TICK_S),
        cpu_cores=cpu,
        traffic_tps=table,
        source=ends[:, 0],
        target=ends[:, 1],
        size_bytes=np.full(len(ends), np.nan),
        hosts={},
        held=np.zeros(ticks, dtype=np.bool_),
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


def here(wave: Wave, trials: Sequence[Trial], done: Callable[[int], None]) -> list[SweptChunk]:
    """Work all off in this process, the last first."""
    found = [step(wave, trial) for trial in reversed(trials)]
    done(len(found))
    return found


def swept(
    spans: Sequence[Span],
    folder: Path,
    space: Space,
    today: Mapping[str, object],
    searched: Collection[str] = (),
) -> tuple[list[Chunk], list[SetOutcome]]:
    """Sweep a space over made-up load."""
    chunks = unpack(spans, folder)
    sets = parameter_sets(space, build(today).keys)
    return chunks, sweep(chunks, sets, here, lambda share: None, searched)

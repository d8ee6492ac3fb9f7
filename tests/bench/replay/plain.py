"""A replay in plain Python, to compare the speed of ours with: OTD on dicts, lists and loops."""

import time
from dataclasses import replace
from typing import Any

import numpy as np

from controller.config import build
from controller.core.classify import Limits
from controller.core.cluster import Cluster, LoadSnapshot, Traffic
from controller.replay.recording import Span
from controller.replay.rerun import OVERLOAD_FRAC, Rerun
from tests.bench.decide.plain import plain_otd
from tests.bench.replay.cost import cpu_s
from tests.bench.replay.score import through

# Nothing rests, and every gain counts, as in the paper.
KEYS = {"policy": "otd", "cooldown.executor.secs": 0, "asc.threshold": 0.0, "load.ewma": 0.3}
Loads = tuple[list[float], dict[tuple[int, int], float]]


def against_plain_python(span: Span, repeats: int) -> dict[str, Any]:
    """Replay one span with OTD both ways; the log is in memory, decoded, for both.

    Parameters
    ----------
    span : Span
        Recorded load.
    repeats : int
        How often ours is timed; plain Python is timed once.

    Returns
    -------
    dict
        Decisions a second and core, how many times faster ours are, and whether both moved alike.
    """
    config = build(KEYS)
    limits = replace(config.limits, gain_frac=0.0)
    plain_s, plain_moves = plain_replay(span, limits, config.ewma)
    times_s = [cpu_s(lambda: through(Rerun(config), [span])) for _ in range(repeats)]
    moves = [(m.executor, m.target) for m in through(Rerun(config), [span]).moves]
    ticks = len(span.time_s)
    return {
        "executors": len(span.first.executors),
        "pairs": len(span.source),
        "ticks": ticks,
        "plain_python_per_s": round(ticks / plain_s, 1),
        "ours_per_s": round(ticks / min(times_s), 1),
        "times_faster": round(plain_s / min(times_s), 1),
        "moves": len(moves),
        "same_moves": moves == plain_moves,
    }


def plain_replay(span: Span, limits: Limits, ewma: float) -> tuple[float, list[tuple[str, str]]]:
    """Smooth, decide, move and keep score, tick by tick.

    Parameters
    ----------
    span : Span
        Recorded load.
    limits : Limits
        Thresholds.
    ewma : float
        Weight of the newest rate.

    Returns
    -------
    tuple of float and list of (str, str)
        Seconds of the processor, and executor and worker of each move. Laying the smoothed load
        out for `plain_otd` is not counted.
    """
    place, moves, spent_s = span.place.tolist(), [], 0.0
    smooth: Loads | None = None
    for row in range(len(span.time_s)):
        load = _plain(span, row)
        begun_s = time.thread_time()
        smooth = load if smooth is None else _smooth(load, smooth, ewma)
        _score(span.cluster, place, load)
        spent_s += time.thread_time() - begun_s
        snapshot = _snapshot(span, place, smooth)
        begun_s = time.thread_time()
        move = plain_otd(span.cluster, snapshot, limits)
        spent_s += time.thread_time() - begun_s
        if move is not None:
            place[move[0]] = move[1]
            moves.append((span.first.executors[move[0]], span.cluster.workers[move[1]]))
    return spent_s, moves


def _plain(span: Span, row: int) -> Loads:
    ends = zip(span.source.tolist(), span.target.tolist(), strict=True)
    return span.cpu_cores[row].tolist(), dict(
        zip(ends, span.traffic_tps[row].tolist(), strict=True)
    )


def _smooth(new: Loads, old: Loads, ewma: float) -> Loads:
    keep = 1 - ewma
    cpu = [ewma * a + keep * b for a, b in zip(new[0], old[0], strict=True)]
    tps = {
        pair: ewma * new[1].get(pair, 0.0) + keep * old[1].get(pair, 0.0)
        for pair in new[1].keys() | old[1].keys()
    }
    return cpu, tps


def _score(cluster: Cluster, place: list[int], load: Loads) -> tuple[float, float, float, int]:
    node = [int(cluster.node_of[w]) for w in place]
    crossing = leaving = 0.0
    for (source, target), tps in load[1].items():
        crossing += tps if node[source] != node[target] else 0.0
        leaving += tps if place[source] != place[target] else 0.0
    used = [0.0] * len(cluster.workers)
    for executor, cores in enumerate(load[0]):
        used[place[executor]] += cores
    share = [a / b for a, b in zip(used, cluster.capacity_cores.tolist(), strict=True)]
    return crossing, leaving, max(share), sum(one > OVERLOAD_FRAC for one in share)


def _snapshot(span: Span, place: list[int], load: Loads) -> LoadSnapshot:
    pairs = sorted(load[1])
    ends = np.array(pairs, dtype=np.int64).reshape(-1, 2)
    tps = np.array([load[1][pair] for pair in pairs])
    return replace(
        span.first,
        place=np.array(place),
        cpu_cores=np.array(load[0]),
        traffic=Traffic(ends[:, 0], ends[:, 1], tps),
    )

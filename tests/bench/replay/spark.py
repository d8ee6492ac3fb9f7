"""Compares a sweep on Spark with the same sweep without it, and two cores with one.

Times are of the clock, because the point is how long one waits; rounds are interleaved, and medians
compared.
"""

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

from controller.config import build
from controller.journal.reader import Log
from controller.replay.recording import spans
from controller.tune.chunks import Chunk, unpack
from controller.tune.space import ParameterSet, Space, parameter_sets
from controller.tune.spark import spark
from controller.tune.sweep import SweptChunk, Trial, Wave, step, sweep
from tests.bench.frame import in_turn
from tests.bench.replay.cases import TICK_S, record


def against_no_spark(
    executors: int, ticks: int, sets: int, rounds: int, folder: Path
) -> dict[str, Any]:
    """Sweep without Spark, with Spark on one core, and on two, in turn.

    Returns
    -------
    dict
        Seconds, medians; Spark's overhead, with its start and without; two cores against one; and
        whether all gave the same figures.
    """
    chunks, tried = prepared(executors, ticks, sets, folder)
    ways: dict[str, Callable[[], tuple[float, Any]]] = {
        "alone": partial(_timed, chunks, tried, alone),
        "one": partial(_on_spark, chunks, tried, "local[1]", folder),
        "two": partial(_on_spark, chunks, tried, "local[2]", folder),
    }
    begun_s: dict[str, list[float]] = {name: [] for name in ways}
    swept_s: dict[str, list[float]] = {name: [] for name in ways}
    found = []
    for number in range(1, rounds + 1):
        for name in in_turn(ways, number):
            at_s = time.perf_counter()
            took_s, figures = ways[name]()
            begun_s[name].append(time.perf_counter() - at_s)
            swept_s[name].append(took_s)
            found.append(figures)
    whole, sweeping = ({n: median(s) for n, s in of.items()} for of in (begun_s, swept_s))
    return {
        "executors": executors,
        "ticks": ticks,
        "parameter_sets": len(tried),
        "rounds": rounds,
        "sweep_s": {name: round(s, 2) for name, s in sweeping.items()},
        "spark_overhead_frac": round(sweeping["one"] / sweeping["alone"] - 1, 4),
        "spark_overhead_with_start_frac": round(whole["one"] / whole["alone"] - 1, 4),
        "two_cores_against_one": round(sweeping["one"] / sweeping["two"], 3),
        "same_figures": all(one == found[0] for one in found),
    }


def prepared(
    executors: int, ticks: int, sets: int, folder: Path
) -> tuple[list[Chunk], list[ParameterSet]]:
    """Record a log and choose what to try."""
    unpacked = folder / "chunks"
    unpacked.mkdir(parents=True)
    chunks = unpack(spans(Log.open(record(executors, ticks, folder / "log"))), unpacked)
    return chunks, _tried(sets)


def _tried(sets: int) -> list[ParameterSet]:
    today = dict(build({}).keys)
    space = Space(Space().narrowed(today).values, sets)
    return parameter_sets(space, today)


def day(executors: int, recorded: int, times: int, sets: int, folder: Path) -> dict[str, float]:
    """Sweep a long log on two cores: a recorded time, over and over.

    Parameters
    ----------
    times : int
        How often it comes.

    Returns
    -------
    dict
        How much it was, and how long that took, without reading it and without Spark's start.
    """
    log = list(spans(Log.open(record(executors, recorded, folder / "quarter"))))
    whole_s = recorded * TICK_S
    again = (
        replace(span, time_s=span.time_s + turn * whole_s) for turn in range(times) for span in log
    )
    unpacked = folder / "day"
    unpacked.mkdir()
    chunks, tried = unpack(again, unpacked), _tried(sets)
    took_s, figures = _on_spark(chunks, tried, "local[2]", folder)
    return {
        "executors": executors,
        "ticks": sum(chunk.ticks for chunk in chunks),
        "parameter_sets": len(tried),
        "moves": sum(chosen_by.moves + held_back.moves for chosen_by, held_back in figures),
        "sweep_minutes": round(took_s / 60, 2),
    }


def alone(wave: Wave, trials: Sequence[Trial], done: Callable[[int], None]) -> Iterable[SweptChunk]:
    """Work trials off one after the other, in this process."""
    for count, trial in enumerate(trials, 1):
        yield step(wave, trial)
        done(count)


def _timed(chunks: Sequence[Chunk], sets: Sequence[ParameterSet], engine: Any) -> tuple[float, Any]:
    at_s = time.perf_counter()
    outcomes = sweep(chunks, sets, engine, lambda share: None)
    return time.perf_counter() - at_s, [(one.chosen_by, one.held_back) for one in outcomes]


def _on_spark(
    chunks: Sequence[Chunk], sets: Sequence[ParameterSet], master: str, folder: Path
) -> tuple[float, Any]:
    with spark(master, folder / "spark.log") as engine:
        return _timed(chunks, sets, engine)

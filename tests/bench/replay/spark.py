"""Compares a sweep on Spark with the same sweep without it, and two cores with one.

Times are of the clock, because the point is how long one waits; rounds are interleaved, and medians
compared.
"""

import shutil
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

from controller.config import build
from controller.pipeline import stages
from controller.pipeline.engine import Engine, Episode
from controller.pipeline.fold import Fold
from controller.pipeline.spark import spark
from controller.tune.space import ParameterSet, Space, parameter_sets
from tests.bench.frame import in_turn
from tests.bench.replay.cases import record


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
    of = prepared(record(executors, ticks, folder / "log"), folder)
    tried = _tried(sets)
    ways: dict[str, Callable[[], tuple[float, Any]]] = {
        "alone": partial(_timed, of, tried, folder, Fold(folder)),
        "one": partial(_on_spark, of, tried, "local[1]", folder),
        "two": partial(_on_spark, of, tried, "local[2]", folder),
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


def prepared(log: Sequence[Path], tables: Path) -> list[Episode]:
    """Decode a log in this process, which leaves its tables."""
    engine = Fold(tables)
    found = stages.ticks(engine, stages.raw(engine, list(map(str, log))), lambda share: None)
    return stages.episodes(found)


def _tried(sets: int) -> list[ParameterSet]:
    today = dict(build({}).keys)
    space = Space(Space().narrowed(today).values, sets)
    return parameter_sets(space, today)


def _timed(
    of: Sequence[Episode], sets: Sequence[ParameterSet], tables: Path, engine: Engine
) -> tuple[float, list[stages.Judged]]:
    # What is there would not be tried again.
    shutil.rmtree(tables / "trials", ignore_errors=True)
    at_s = time.perf_counter()
    folders = stages.trials(engine, of, [one.config for one in sets], lambda share: None)
    figures = stages.answers(engine, folders, len(sets))
    return time.perf_counter() - at_s, figures


def _on_spark(
    of: Sequence[Episode], sets: Sequence[ParameterSet], master: str, tables: Path
) -> tuple[float, list[stages.Judged]]:
    with spark(master, tables / "spark.log", str(tables)) as engine:
        return _timed(of, sets, tables, engine)

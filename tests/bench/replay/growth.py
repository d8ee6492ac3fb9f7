"""Shows how time and memory grow with the log's length and with the number of executors.

Each point is measured in a process of its own, so that its peak of memory is its own.
"""

import multiprocessing
import re
import time
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from controller.config import build
from controller.journal.reader import Log
from controller.replay.recording import spans
from controller.replay.rerun import Rerun
from tests.bench.replay.cases import record
from tests.bench.replay.cost import cpu_s

SEGMENT_BYTES = 2**23
SHARES = (4, 2, 1)


def by_length(executors: int, ticks: int, folder: Path) -> dict[str, Any]:
    """Replay a quarter of a log, a half of it and all of it.

    Parameters
    ----------
    executors, ticks : int
        Size of the log.
    folder : Path
        Where it goes.

    Returns
    -------
    dict
        One row a length, and how time and memory grow: 1 is linear, 0 is not at all.
    """
    segments = record(executors, ticks, folder, SEGMENT_BYTES)
    rows = [_point(segments[: max(len(segments) // share, 1)]) for share in SHARES]
    return {
        "rows": rows,
        "time_exponent": _exponent(rows, "ticks", "cpu_s"),
        "memory_exponent": _exponent(rows, "ticks", "peak_mb"),
    }


def by_executors(sizes: Sequence[int], ticks: int, folder: Path) -> dict[str, Any]:
    """Replay logs of the same length with more and more executors.

    Parameters
    ----------
    sizes : sequence of int
        Numbers of executors.
    ticks : int
        Length of each log.
    folder : Path
        Where they go.

    Returns
    -------
    dict
        One row a size, and how the time of a tick grows: 1 is linear.
    """
    rows = []
    for executors in sizes:
        segments = record(executors, ticks, folder / str(executors))
        rows.append({"executors": executors, **_point(segments)})
    return {
        "rows": rows,
        "read_exponent": _exponent(rows, "executors", "read_ms"),
        "rerun_exponent": _exponent(rows, "executors", "rerun_ms"),
    }


def _point(segments: Sequence[Path]) -> dict[str, float]:
    # Started anew, not forked: a fork would begin with this process's memory.
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(1, mp_context=context) as pool:
        return pool.submit(_measured, list(segments)).result()


def _measured(segments: list[Path]) -> dict[str, float]:
    """Read a log and run one configuration over it, as it comes."""
    _load_what_is_compiled(segments)
    rerun, rerun_s, ticks = Rerun(build({})), 0.0, 0
    begun_s = time.thread_time()
    for span in spans(Log.open(segments)):
        rerun_s += cpu_s(partial(rerun.take, span))
        ticks += len(span.time_s)
    whole_s = time.thread_time() - begun_s
    return {
        "ticks": ticks,
        "cpu_s": round(whole_s, 4),
        "read_ms": round(1e3 * (whole_s - rerun_s) / ticks, 4),
        "rerun_ms": round(1e3 * rerun_s / ticks, 4),
        "peak_mb": _peak_mb(),
    }


def _load_what_is_compiled(segments: list[Path]) -> None:
    first = next(spans(Log.open(segments)))
    Rerun(build({})).take(first.within(-np.inf, first.time_s[:2][-1]))


def _peak_mb() -> float:
    """Read this process's own peak of memory; that of `getrusage` begins with its parent's."""
    found = re.search(r"VmHWM:\s+(\d+) kB", Path("/proc/self/status").read_text())
    assert found is not None
    return round(int(found[1]) / 1024, 1)


def _exponent(rows: Sequence[dict[str, float]], of: str, what: str) -> float:
    """Fit a straight line through the logarithms."""
    x, y = (np.log([row[key] for row in rows]) for key in (of, what))
    return round(float(np.polyfit(x, y, 1)[0]), 3)

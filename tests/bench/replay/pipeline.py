"""Measures the stages of the pipeline as a user starts them, each as a process of its own."""

import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from shutil import rmtree
from typing import Any

import psutil
from rich.table import Table

from tests.bench.frame import load_average, table

NSTORM = (sys.executable, "-c", "from controller.cli import main; main()")
SAMPLED_S = 0.2
# Decoding, and then the default sets.
STAGES = {"read": "ticks", "try": "answers"}


def measured(
    log: Path,
    master: str,
    rounds: int,
    folder: Path,
    tell: Callable[[str], None],
    *,
    space: Path | None = None,
) -> dict[str, Any]:
    """Go from a log to answers, several times from the beginning.

    Returns
    -------
    dict
        Seconds of the clock with the start of Spark, and CPU seconds of all processes that this has
        started. The highest resident memory in MB: of the driver's Python, and of its JVM, in which
        executors are too with a `local` master. Of each the least, the median and the most. Sizes
        are in MB, of the files.
    """
    found: dict[str, list[float]] = {}
    tables = folder / "tables"
    load = [load_average()]
    for number in range(rounds):
        rmtree(tables, ignore_errors=True)
        for name, stage in STAGES.items():
            tell(f"round {number + 1} of {rounds}: {stage}")
            given = ["pipeline", stage, str(log), "--master", master]
            given += ["--tables", f"file:{tables.absolute()}"]
            given += ["--out", str(folder / "out"), "-o", "json"]
            given += [] if space is None else ["--space", str(space)]
            for key, value in _run(given).items():
                found.setdefault(f"{name}_{key}", []).append(value)
        load.append(load_average())
    found["whole_s"] = [sum(both) for both in zip(found["read_s"], found["try_s"], strict=True)]
    return {
        **{key: _spread(values) for key, values in sorted(found.items())},
        "journal_mb": _mb(log),
        "ticks_mb": _mb(tables / "ticks"),
        "tables_mb": _mb(tables),
        "load_average": [min(load), max(load)],
    }


def as_tables(found: Mapping[str, Any]) -> Iterator[Table]:
    """Make a table for people."""
    yield table("stages of the pipeline", [{"": key, "is": found[key]} for key in found])


def _run(arguments: Sequence[str]) -> dict[str, float]:
    """Run a command, and look at its memory and CPU while it runs."""
    begun_s, python, jvm = time.perf_counter(), 0, 0
    spent_s: dict[int, float] = {}
    with subprocess.Popen([*NSTORM, *arguments], stdout=subprocess.DEVNULL) as process:
        driver = psutil.Process(process.pid)
        while process.poll() is None:
            try:
                python = max(python, driver.memory_info().rss)
                jvm = max([jvm, *(one.memory_info().rss for one in driver.children())])
                for one in (driver, *driver.children(recursive=True)):
                    spent_s[one.pid] = sum(one.cpu_times()[:2])
            except psutil.NoSuchProcess:
                continue
            time.sleep(SAMPLED_S)
    if process.returncode:
        raise subprocess.CalledProcessError(process.returncode, arguments)
    return {
        "s": time.perf_counter() - begun_s,
        "cpu_s": sum(spent_s.values()),
        "driver_python_mb": python / 1e6,
        "driver_jvm_mb": jvm / 1e6,
    }


def _spread(values: Sequence[float]) -> dict[str, float]:
    ordered = sorted(values)
    middle = ordered[len(ordered) // 2]
    return {
        name: round(value, 1)
        for name, value in (("least", ordered[0]), ("median", middle), ("most", ordered[-1]))
    }


def _mb(folder: Path) -> float:
    sizes = (path.stat().st_size for path in folder.rglob("*") if path.is_file())
    return round(sum(sizes) / 1e6, 1)

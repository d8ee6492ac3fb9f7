"""Builds the JMH benchmarks next to the shipped jar, runs them and reads what they measured."""

import json
import statistics
import subprocess
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from deploy.lab import LabError
from deploy.lab.cluster import HOOKS_JAR
from deploy.lab.home.versions import REPOSITORY
from deploy.lab.interval import paired_ratio
from deploy.lab.layout import java
from tests.bench.frame import in_turn

PROJECT = REPOSITORY / "tests/bench/jmh-project"
LOG = REPOSITORY / "build/jmh.log"
PAIRS = 3
PATHS = ("local", "remote")
RUN_LIMIT_S = 300.0


def build() -> None:
    """Compile the benchmarks; the first time Maven fetches JMH.

    Raises
    ------
    LabError
        If the shipped jar is missing or Maven fails.
    """
    if not HOOKS_JAR.is_file():
        raise LabError(f"{HOOKS_JAR} is not built: run `make setup`")
    command = ["mvn", "-q", "-B", "-f", str(PROJECT / "pom.xml"), "process-classes"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise LabError(f"{' '.join(command)} failed: {done.stdout[-2000:]}")


def run(
    pattern: str, *, hooks: bool = False, params: Mapping[str, str] | None = None
) -> dict[str, list[float]]:
    """Run benchmarks in one JVM of their own.

    Parameters
    ----------
    hooks : bool
        Whether the JVM has the jar as its agent, in the role of a worker.

    Returns
    -------
    dict of str to list of float
        Nanoseconds of CPU an operation, one figure an iteration, by "Class.method" and, where it
        has more than one value, the parameters'.

    Raises
    ------
    LabError
        If it fails or takes longer than `RUN_LIMIT_S`.
    """
    classpath = f"{PROJECT / 'target/classes'}:{(PROJECT / 'target/classpath').read_text()}"
    with tempfile.TemporaryDirectory(prefix="nstorm-jmh-") as directory:
        result = Path(directory) / "result.json"
        command = [
            *(java(), "-Xmx512m", "-XX:+UseSerialGC", f"-Djava.io.tmpdir={directory}"),
            *([f"-javaagent:{HOOKS_JAR}=role=worker"] if hooks else []),
            *("-cp", classpath, "nstorm.bench.Measure", pattern),
            # This JVM is the fork: stock and hooked ones take turns, as JMH's own cannot.
            *("-f", "0", "-foe", "true", "-wi", "8", "-w", "250ms", "-i", "20", "-r", "100ms"),
            *("-rf", "json", "-rff", str(result)),
            *(part for key, value in (params or {}).items() for part in ("-p", f"{key}={value}")),
        ]
        _run(command)
        if not result.is_file():
            raise LabError(f"JMH has measured nothing: see {LOG}")
        return cpu_ns(json.loads(result.read_text()))


def _run(command: Sequence[str]) -> None:
    LOG.parent.mkdir(exist_ok=True)
    with LOG.open("w") as log:
        try:
            done = subprocess.run(
                command, stdout=log, stderr=subprocess.STDOUT, timeout=RUN_LIMIT_S, check=False
            )
        except subprocess.TimeoutExpired as error:
            raise LabError(f"JMH took longer than {RUN_LIMIT_S:.0f} s: see {LOG}") from error
    if done.returncode != 0:
        raise LabError(f"JMH ended with {done.returncode}: see {LOG}")


def cpu_ns(results: Sequence[Mapping[str, Any]]) -> dict[str, list[float]]:
    """Read what JMH wrote."""
    found = {}
    for result in results:
        name = ".".join(result["benchmark"].rsplit(".", 2)[1:])
        values = [value for key, value in result.get("params", {}).items() if key != "dir"]
        spent, done = (
            result["secondaryMetrics"][metric]["rawData"][0] for metric in ("cpuNs", "operations")
        )
        figures = [cpu / count for cpu, count in zip(spent, done, strict=True) if count > 0]
        found[" ".join([name, *values])] = figures
    return found


def tuple_cost(tell: Callable[[str], None]) -> dict[str, Any]:
    """Measure what the hooks add to the least cost of a tuple, in JVMs without and with in turn."""
    found: dict[bool, list[dict[str, list[float]]]] = {False: [], True: []}
    # By name and so in this order: both kinds of JVM have done the same before TuplePath.
    patterns = {False: "TuplePath", True: "TuplePath|WovenCalls"}
    for pair in range(1, PAIRS + 1):
        tell(f"JMH, pair {pair} of {PAIRS}")
        for hooks in in_turn(patterns, pair):
            found[hooks].append(run(patterns[hooks], hooks=hooks))
    return summary(found[False], found[True])


def summary(
    stock: Sequence[Mapping[str, list[float]]], hooked: Sequence[Mapping[str, list[float]]]
) -> dict[str, Any]:
    """Put the figures of stock and hooked JVMs side by side.

    Returns
    -------
    dict
        For a tuple within a worker ("local") and one between workers ("remote"). Its CPU time in
        stock Storm, the CPU time of what the advices call for it, and the latter as share of the
        former. Also the ratio of the whole path in hooked and stock JVMs with its interval.
    """
    report: dict[str, Any] = {"pairs": len(stock), "goal_share": 0.02}
    for path in PATHS:
        stock_ns = [statistics.median(run[f"TuplePath.{path}"]) for run in stock]
        hooked_ns = [statistics.median(run[f"TuplePath.{path}"]) for run in hooked]
        added_ns = [
            statistics.median(run[f"WovenCalls.{path}"])
            - statistics.median(run["WovenCalls.stock"])
            for run in hooked
        ]
        report[path] = {
            "stock_ns": round(statistics.median(stock_ns), 1),
            "added_ns": round(statistics.median(added_ns), 2),
            "added_share": round(statistics.median(added_ns) / statistics.median(stock_ns), 4),
            "on_over_off": asdict(paired_ratio(hooked_ns, stock_ns)),
        }
    return report

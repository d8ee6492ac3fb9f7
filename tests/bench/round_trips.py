"""Moves one executor back and forth many times and looks whether the workers' JVMs have grown."""

import re
import statistics
import subprocess
import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from controller.storm.command_record import Command
from deploy.lab import LabError
from deploy.lab.cluster import Lab
from deploy.lab.layout import java
from deploy.lab.operator import Operator, Placement, kill_meters
from migration.model import ExecutorId, Slot
from tests.bench.moves import message_timeout_s

# The first moves load classes and register metrics that every later one finds there.
WARM_UP_TRIPS = 3
MOVE_LIMIT_S = 120.0
JCMD_LIMIT_S = 60.0
_TIMER_ENTRY = "org.apache.storm.StormTimer$QueueEntry"
_METRICS = ("com.codahale.metrics.", "org.apache.storm.metrics2.")


@dataclass(frozen=True, slots=True)
class Footprint:
    """What one JVM holds on to.

    Attributes
    ----------
    threads : int
        Live Java threads, without those of the compiler, which come and go.
    heap_bytes : int
        Of live objects, right after a full collection.
    metrics : int
        Live objects of the classes that metrics are made of.
    """

    threads: int
    heap_bytes: int
    timers: int
    metrics: int
    files: int


def run_round_trips(lab: Lab, operator: Operator, topology: str, *, trips: int) -> dict[str, Any]:
    """Move an executor to a worker of another node and back, and compare the JVMs.

    Parameters
    ----------
    trips : int
        How many times back and forth, after a few that warm the JVMs up.
    """
    executor, home, away = choose(operator.placement())
    for slot in (away, home) * WARM_UP_TRIPS:
        _go(operator, executor, slot)
    pids, meters = lab.worker_pids(), kill_meters(lab)
    before = _at_rest(lab, pids)
    ended = [_go(operator, executor, slot) for slot in (away, home) * trips]
    after = _at_rest(lab, pids)
    totals = lab.ledger(topology).drain()
    spent = [move.stopped_after_s for move in ended if move.stopped_after_s is not None]
    return {
        "executor": str(executor),
        "home": str(home),
        "away": str(away),
        "round_trips": trips,
        "states": dict(Counter(move.state for move in ended)),
        "move_s_median": statistics.median(spent) if spent else None,
        "workers": [
            {"slot": slot, "before": asdict(before[slot]), "after": asdict(after[slot])}
            for slot in sorted(pids)
        ],
        "tuples": {**asdict(totals), "pending": totals.pending},
        "worker_restarts": sum(lab.worker_pids().get(slot) != pid for slot, pid in pids.items()),
        "kill_meters_risen": dict(kill_meters(lab) - meters),
    }


def choose(placement: Placement) -> tuple[ExecutorId, Slot, Slot]:
    """Choose who travels, and between which workers.

    Returns
    -------
    tuple of (ExecutorId, Slot, Slot)
        The first that may move and is not alone, its worker, and the first worker of another node.

    Raises
    ------
    LabError
        When there is none.
    """
    for executor in placement.free:
        home = placement.slot_of[executor]
        others = sorted(slot for slot in placement.staying if slot.supervisor != home.supervisor)
        if placement.staying[home] > 1 and others:
            return executor, home, others[0]
    raise LabError("no executor may leave its worker for another node")


def live_threads(dump: str) -> int:
    """Count the threads of a thread dump.

    Parameters
    ----------
    dump : str
        From ``jcmd Thread.print``.

    Returns
    -------
    int
        Java's own, which have a number, without the compiler's.
    """
    names: list[str] = re.findall(r'^"(.*)" #\d+ ', dump, re.MULTILINE)
    return sum("CompilerThread" not in name for name in names)


def live_objects(histogram: str) -> tuple[Counter[str], int]:
    """Read a histogram of classes.

    Parameters
    ----------
    histogram : str
        From ``jcmd GC.class_histogram``.

    Returns
    -------
    tuple of (Counter, int)
        Instances by class, and the bytes of all together.

    Raises
    ------
    LabError
        When it has no last line with the total.
    """
    rows = re.findall(r"^ *\d+: +(\d+) +\d+ +(\S+)", histogram, re.MULTILINE)
    total = re.search(r"^Total +\d+ +(\d+)", histogram, re.MULTILINE)
    if total is None:
        raise LabError(f"no total in the histogram of classes: {histogram[:200]!r}")
    return Counter({name: int(instances) for instances, name in rows}), int(total[1])


def _go(operator: Operator, executor: ExecutorId, slot: Slot) -> Command:
    """Move, and wait until the executor may move again."""
    return operator.follow(operator.ask(executor, slot), lambda now: False, MOVE_LIMIT_S)


def _at_rest(lab: Lab, pids: Mapping[str, int]) -> dict[str, Footprint]:
    # So long a stopped executor's queue still hands on what comes late.
    time.sleep(message_timeout_s(lab) + 5.0)
    return {slot: _footprint(pid) for slot, pid in pids.items()}


def _footprint(pid: int) -> Footprint:
    # The histogram first: it collects the garbage.
    instances, heap_bytes = live_objects(_jcmd(pid, "GC.class_histogram"))
    return Footprint(
        threads=live_threads(_jcmd(pid, "Thread.print")),
        heap_bytes=heap_bytes,
        timers=instances[_TIMER_ENTRY],
        metrics=sum(count for name, count in instances.items() if name.startswith(_METRICS)),
        files=sum(1 for _ in Path(f"/proc/{pid}/fd").iterdir()),
    )


def _jcmd(pid: int, question: str) -> str:
    program = Path(java()).resolve().with_name("jcmd")
    try:
        asked = subprocess.run(
            [program, str(pid), question],
            capture_output=True,
            text=True,
            check=True,
            timeout=JCMD_LIMIT_S,
        )
    except (OSError, subprocess.SubprocessError) as error:
        raise LabError(f"{program} does not answer {question} for {pid}: {error}") from error
    return asked.stdout

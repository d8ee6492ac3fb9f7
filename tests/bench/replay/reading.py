"""Times how a long log is read: a recorded one, over and over, whose totals go on growing."""

import gzip
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from shutil import rmtree
from typing import Any

import msgspec

from controller.journal.lines import compact, to_line
from controller.journal.reader import Log
from controller.replay.recording import spans
from tests.bench.frame import load_average
from tests.bench.replay.cases import TICK_S, record

# A segment has some 64 MB in a journal: 200 ticks of a thousand executors.
SEGMENT_EXECUTOR_TICKS = 200_000
_BEGUN_S = 1_700_000_000


def reading(executors: int, recorded: int, ticks: int, folder: Path) -> dict[str, Any]:
    """Read a long log as a sweep does.

    Parameters
    ----------
    recorded, ticks : int
        Length of what is recorded, and of the log that is made of it.
    folder : Path
        Where the log goes; one of this size that is there is read as it is.
    """
    long = laid_out(executors, recorded, ticks, folder)
    measured = 0
    begun = time.thread_time(), time.process_time(), time.perf_counter()
    for span in spans(Log.open([long])):
        measured += len(span.time_s)
    ended = time.thread_time(), time.process_time(), time.perf_counter()
    spent_s = [b - a for a, b in zip(begun, ended, strict=True)]
    return {
        "executors": executors,
        "ticks": ticks,
        "measured_ticks": measured,
        "thread_cpu_s": round(spent_s[0], 2),
        "process_cpu_s": round(spent_s[1], 2),
        "took_s": round(spent_s[2], 2),
        "tick_ms": round(1e3 * spent_s[0] / ticks, 3),
        "load_average": load_average(),
    }


def laid_out(executors: int, recorded: int, ticks: int, folder: Path) -> Path:
    """Make a long log below a folder, unless it is there."""
    long = folder / f"{ticks}-of-{executors}"
    if not long.exists():
        short, made = folder / "recorded", folder / "unfinished"
        for begun_before in (short, made):
            rmtree(begun_before, ignore_errors=True)
        each = max(SEGMENT_EXECUTOR_TICKS // executors, 1)
        lay_out(record(executors, recorded, short), ticks, each, made)
        made.rename(long)
    return long


def lay_out(segments: Sequence[Path], ticks: int, each: int, folder: Path) -> None:
    """Make a long log of a short one, in packed segments of `each` ticks."""
    folder.mkdir(parents=True)
    head, *lines = [line for path in segments for line in _lines(path)]
    lines = [line for line in lines if b'"kind":"tick"' in line[:60]]
    last = msgspec.json.decode(lines[-1])
    begin, before = msgspec.json.decode(head), msgspec.json.decode(lines[0])["seq"] - 1
    del begin["crc"]
    for number, first in enumerate(range(0, ticks, each)):
        begun = time.strftime("%Y%m%dT%H%M%S", time.gmtime(_BEGUN_S + first * TICK_S))
        path = folder / f"{begun}-long-{number:06d}.jsonl.gz"
        with gzip.open(path, "wb", compresslevel=6) as file:
            # Or else each would be a copy of the first.
            file.write(to_line(compact({**begin, "seq": before + first})))
            for tick in range(first, min(first + each, ticks)):
                turn, row = divmod(tick, len(lines))
                later = _later(msgspec.json.decode(lines[row]), last, turn, len(lines))
                file.write(to_line(compact(later)))


def _lines(path: Path) -> Iterator[bytes]:
    with gzip.open(path, "rb") if path.suffix == ".gz" else path.open("rb") as file:
        yield from file


def _later(tick: dict[str, Any], last: dict[str, Any], turn: int, ticks: int) -> dict[str, Any]:
    """Shift a tick by whole turns, and raise its totals by what each turn adds."""
    del tick["crc"]
    shift_s = turn * ticks * TICK_S
    tick["seq"] += turn * ticks
    tick["now_s"] += shift_s
    tick["time_s"] += shift_s
    # All is written down at each tick, and in the same order.
    for load, of_turn in zip(tick["loads"], last["loads"], strict=True):
        load["time_ms"] += round(1e3 * shift_s)
        for jvm, end in zip(load["workers"], of_turn["workers"], strict=True):
            jvm["time_ms"] += round(1e3 * shift_s)
            jvm["process_cpu_ns"] += turn * end["process_cpu_ns"]
            for one, total in zip(jvm["executors"], end["executors"], strict=True):
                one["cpu_ns"] += turn * total["cpu_ns"]
            sent = {(source, target): tuples for source, target, tuples in end["traffic"]}
            jvm["traffic"] = [[a, b, n + turn * sent[a, b]] for a, b, n in jvm["traffic"]]
    return tick

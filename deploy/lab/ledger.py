"""Reads what the demo topology records of itself: the fate of every tuple, rates and latencies."""

import json
import statistics
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from deploy.lab.processes import start_ticks

SATURATE = -1.0
_SUB_BITS = 4
# A window is written within a fifth of a second of its end.
WRITE_DELAY_S = 0.6
# What is on its way arrives sooner, also on a busy machine.
STILL_S = 15.0
SLOTS_A_SECOND = 100
# The paper 004 counts seconds at each of these.
DEGRADATION_FRACS = (0.2, 0.4, 0.6, 0.8, 1.0)

Counts = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Totals:
    """Counts since the topology was submitted, over all its JVMs, dead ones included.

    Attributes
    ----------
    double_acked : int
        Acks and fails of ids that were not in flight.
    words_emitted, words_counted : int
        Words that the split bolts sent and the count bolts took.
    """

    emitted: int = 0
    acked: int = 0
    failed: int = 0
    double_acked: int = 0
    words_emitted: int = 0
    words_counted: int = 0
    ticks: int = 0

    @property
    def pending(self) -> int:
        """Sentences neither acked nor failed; those of a spout that died stay so."""
        return self.emitted - self.acked - self.failed


@dataclass(slots=True)
class LedgerWindow:
    """One second of wall clock, summed over the spout tasks.

    Attributes
    ----------
    t_s : int
        Unix time of its begin.
    pending : int
        Sentences in flight at its end.
    latency : Counter[int]
        Acks by latency bucket, see `latency_ms`.
    """

    t_s: int
    emitted: int = 0
    acked: int = 0
    failed: int = 0
    pending: int = 0
    max_ms: float = 0.0
    latency: Counter[int] = field(default_factory=Counter)

    def add(self, row: dict[str, Any]) -> None:
        """Add the window of one spout task."""
        self.emitted += row["emitted"]
        self.acked += row["acked"]
        self.failed += row["failed"]
        self.pending += row["pending"]
        self.max_ms = max(self.max_ms, row["max_us"] / 1000)
        self.latency.update(dict(row["latency"]))


class Ledger:
    """The ledger of one topology; it reads on from where it was each time it is asked."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self._read_bytes: dict[Path, int] = {}
        self._newest: dict[Path, dict[str, Any]] = {}
        self._windows: dict[int, LedgerWindow] = {}
        self._slots: dict[int, Counts] = {}
        self._rows: list[dict[str, Any]] = []

    def set_rate(self, tps: float) -> None:
        """Ask the spouts for a rate; they follow within a fifth of a second.

        Parameters
        ----------
        tps : float
            Sentences per second of all spout tasks together; 0 pauses, `SATURATE` is as many as
            `topology.max.spout.pending` lets through.
        """
        self._put("rate", str(tps))

    def rate(self) -> float:
        """Give the rate that the spouts are asked for."""
        file = self.directory / "rate"
        return float(file.read_text()) if file.exists() else 0.0

    def ask(self) -> int:
        """Ask every bolt that keeps something to report it, at its next tick.

        Returns
        -------
        int
            The number of this account, which its rows bear.
        """
        asked = self.directory / "asked"
        number = int(asked.read_text()) + 1 if asked.exists() else 1
        self._put("asked", str(number))
        return number

    def rows(self) -> list[dict[str, Any]]:
        """Give all that bolts have written apart from the counts."""
        self._read()
        return self._rows

    def kept(self) -> list[dict[str, Any]]:
        """Read the state of tasks that cannot be asked: each leaves it at a change."""
        living = (f for f in self.directory.glob("*.kept") if start_ticks(_pid(f)) is not None)
        return [json.loads(file.read_text()) for file in living]

    def keepers(self) -> set[int]:
        """List the tasks that keep something; that their JVM has died does not excuse them."""
        self._read()
        return {task for row in self._newest.values() for task in row["keepers"]}

    def emitted(self) -> list[tuple[int, int]]:
        """Give the task of each spout that ever was open, with its count of sentences."""
        self._read()
        spouts = [spout for row in self._newest.values() for spout in row["spouts"]]
        return [(spout["task"], spout["emitted"]) for spout in spouts]

    def lines(self) -> dict[int, list[str]]:
        """Read what each task of a spout repeats."""
        return {
            int(file.stem): file.read_text().splitlines() for file in self.directory.glob("*.lines")
        }

    def totals(self) -> Totals:
        """Give the counts so far, up to a fifth of a second old."""
        self._read()
        sums: Counter[str] = Counter()
        for row in self._newest.values():
            sums.update({key: row[key] for key in ("words_emitted", "words_counted", "ticks")})
            for spout in row["spouts"]:
                sums.update({key: count for key, count in spout.items() if key != "task"})
        return Totals(**sums)

    def tasks(self) -> set[int]:
        """List the tasks of spouts and bolts that are open in a living JVM."""
        return {task for row in self._of_living() for task in row["tasks"]}

    def in_flight(self) -> int:
        """Count the sentences whose fate a living spout still waits for.

        Returns
        -------
        int
            Unlike `Totals.pending` without those of spouts that have died.
        """
        spouts = [spout for row in self._of_living() for spout in row["spouts"]]
        return sum(spout["emitted"] - spout["acked"] - spout["failed"] for spout in spouts)

    def windows(self, from_s: float, to_s: float | None = None) -> list[LedgerWindow]:
        """Give every whole second of a stretch; a second without an entry is all zero.

        Parameters
        ----------
        to_s : float or None
            Unix time of the end; None for now. Seconds that may still change are left out.
        """
        seconds = self._seconds(from_s, to_s)
        return [self._windows.get(second) or LedgerWindow(second) for second in seconds]

    def acked_10ms(self, from_s: float, to_s: float | None = None) -> Counts:
        """Count the acks of each 10 ms, over all spout tasks; the seconds are those of `windows`.

        A spout's JVM that is killed takes the acks of its last fifth of a second with it.

        Returns
        -------
        Counts
            Shape (seconds, 100).
        """
        none = np.zeros(SLOTS_A_SECOND, dtype=np.int64)
        counts = [self._slots.get(second, none) for second in self._seconds(from_s, to_s)]
        return np.array(counts, dtype=np.int64).reshape(-1, SLOTS_A_SECOND)

    def drain(self, limit_s: float = 60.0) -> Totals:
        """Pause the spouts and wait until nothing is in flight and all words have arrived.

        Words that died with a worker never arrive: it waits no longer once none has come for
        `STILL_S`.

        Returns
        -------
        Totals
            The counts then; look at `pending` to see whether it drained.
        """
        self.set_rate(0)
        # The spouts see the new rate, and the counts of it are written, within two periods.
        time.sleep(WRITE_DELAY_S)
        changed_s = time.monotonic()
        deadline = changed_s + limit_s
        totals = self.totals()
        while totals.pending or totals.words_counted < totals.words_emitted:
            now_s = time.monotonic()
            if now_s > deadline or (not totals.pending and now_s > changed_s + STILL_S):
                break
            time.sleep(0.2)
            before, totals = totals, self.totals()
            if totals != before:
                changed_s = time.monotonic()
        time.sleep(WRITE_DELAY_S)
        return self.totals()

    def _seconds(self, from_s: float, to_s: float | None) -> range:
        """Give the whole seconds of a stretch that no longer change."""
        self._read()
        written_s = time.time() - WRITE_DELAY_S
        end_s = int(written_s if to_s is None else min(to_s, written_s))
        return range(-int(-from_s // 1), end_s)

    def _put(self, name: str, content: str) -> None:
        self.directory.mkdir(parents=True, exist_ok=True)
        partial = self.directory / f"{name}.partial"
        partial.write_text(content)
        partial.rename(self.directory / name)

    def _of_living(self) -> list[dict[str, Any]]:
        self._read()
        newest = self._newest.items()
        return [row for file, row in newest if start_ticks(_pid(file)) is not None]

    def _read(self) -> None:
        for file in self.directory.glob("*.jsonl"):
            with file.open("rb") as stream:
                stream.seek(self._read_bytes.get(file, 0))
                lines, _, _ = stream.read().rpartition(b"\n")
            if lines:
                self._read_bytes[file] = self._read_bytes.get(file, 0) + len(lines) + 1
                for line in lines.split(b"\n"):
                    self._book(file, json.loads(line))

    def _book(self, file: Path, row: dict[str, Any]) -> None:
        if "t_s" in row:
            self._windows.setdefault(row["t_s"], LedgerWindow(row["t_s"])).add(row)
        elif "slots_of_s" in row:
            slots = self._slots.setdefault(
                row["slots_of_s"], np.zeros(SLOTS_A_SECOND, dtype=np.int64)
            )
            slots[row["first"] :][: len(row["acked"])] += row["acked"]
        elif "row" in row:
            self._rows.append(row)
        else:
            self._newest[file] = row


def throughput_tps(windows: Sequence[LedgerWindow]) -> float:
    """Give the median rate of acked sentences."""
    return statistics.median(window.acked for window in windows)


def longest_gap_s(acked_10ms: Counts) -> float:
    """Give the longest time without an ack.

    Returns
    -------
    float
        Seconds, in steps of 0.01; it may have lasted 0.02 s longer.
    """
    busy = np.flatnonzero(acked_10ms)
    ends = np.concatenate(([-1], busy, [acked_10ms.size]))
    return float(np.diff(ends).max() - 1) / SLOTS_A_SECOND


def degraded_s(acked_10ms: Counts, normal_tps: float) -> dict[float, int]:
    """Count the seconds whose rate fell by a share of the normal one, or by more.

    Parameters
    ----------
    normal_tps : float
        What is acked in a second where nothing disturbs; above 0.
    """
    # A hair more: 1 - 0.8 is less than 0.2.
    left_frac = acked_10ms.sum(axis=1) / normal_tps - 1e-9
    return {frac: int((left_frac <= 1 - frac).sum()) for frac in DEGRADATION_FRACS}


def latency_ms(windows: Sequence[LedgerWindow], quantile: float) -> float:
    """Give a quantile of the ack latency, at most 6 per cent too high.

    Returns
    -------
    float
        Milliseconds; nan when nothing was acked.
    """
    merged: Counter[int] = Counter()
    for window in windows:
        merged.update(window.latency)
    seen, wanted = 0, quantile * merged.total()
    for bucket in sorted(merged):
        seen += merged[bucket]
        if seen >= wanted:
            return _upper_us(bucket) / 1000
    return float("nan")


def _upper_us(bucket: int) -> int:
    """Give the first microsecond beyond a bucket: 16 buckets to an octave, one µs each below 16."""
    per_octave = 1 << _SUB_BITS
    if bucket < per_octave:
        return bucket + 1
    octave, sub = divmod(bucket, per_octave)
    return (per_octave + sub + 1) << (octave - 1)


def _pid(file: Path) -> int:
    return int(file.stem.split("-")[1])

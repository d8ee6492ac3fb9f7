"""The reader of the ledger adds up what several JVMs wrote."""

import json
import math
import os
import time
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from deploy.lab.ledger import (
    Ledger,
    LedgerWindow,
    Totals,
    degraded_s,
    latency_ms,
    longest_gap_s,
    throughput_tps,
)

DEAD_PID = 4_194_305


def snapshot(tasks: list[int], acked: int, words: int = 0) -> dict[str, object]:
    spout = {"task": 1, "emitted": 10, "acked": acked, "failed": 1, "double_acked": 0}
    counts = {"t_ms": 0, "words_emitted": 5, "words_counted": words, "ticks": 2}
    return {**counts, "tasks": tasks, "spouts": [spout]}


def window(t_s: int, acked: int, latency: list[list[int]]) -> dict[str, object]:
    fixed = {"emitted": acked, "failed": 0, "pending": 3, "max_us": 1500}
    return {"t_s": t_s, "task": 1, "acked": acked, "latency": latency, **fixed}


def write(file: Path, *rows: object, tail: str = "") -> None:
    with file.open("a") as stream:
        stream.write("".join(json.dumps(row) + "\n" for row in rows) + tail)


def test_totals_add_the_newest_snapshot_of_each_jvm(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path)
    assert ledger.totals() == Totals()
    write(tmp_path / f"6700-{os.getpid()}.jsonl", snapshot([1], 3), snapshot([1], 7, 5))
    write(tmp_path / f"6701-{DEAD_PID}.jsonl", snapshot([2], 4), tail='{"t_ms":')
    totals = ledger.totals()
    assert (totals.emitted, totals.acked, totals.failed, totals.pending) == (20, 11, 2, 7)
    assert (totals.words_emitted, totals.words_counted, totals.ticks) == (10, 5, 4)
    assert ledger.tasks() == {1}
    assert ledger.in_flight() == 2


def test_draining_waits_no_longer_for_words_that_died_with_a_worker(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("deploy.lab.ledger.STILL_S", 0.5)
    monkeypatch.setattr("deploy.lab.ledger.WRITE_DELAY_S", 0.0)
    ledger = Ledger(tmp_path)
    write(tmp_path / f"6700-{os.getpid()}.jsonl", snapshot([1], 9, words=4))
    assert ledger.drain(limit_s=600.0).words_counted == 4
    write(tmp_path / f"6700-{os.getpid()}.jsonl", snapshot([1], 8, words=4))
    began_s = time.monotonic()
    assert ledger.drain(limit_s=1.0).pending == 1
    assert time.monotonic() - began_s >= 1.0, "it waits for what may still be acked"


def test_a_half_written_line_is_read_once_it_is_whole(tmp_path: Path) -> None:
    ledger, file = Ledger(tmp_path), tmp_path / "6700-1.jsonl"
    line = json.dumps(snapshot([1], 9))
    write(file, tail=line[:20])
    assert ledger.totals().acked == 0
    write(file, tail=line[20:] + "\n")
    assert ledger.totals().acked == 9


def test_windows_are_summed_over_tasks_and_have_no_gaps(tmp_path: Path) -> None:
    write(tmp_path / "6700-1.jsonl", window(100, 4, [[5, 4]]), window(102, 2, [[40, 2]]))
    write(tmp_path / "6701-2.jsonl", window(100, 1, [[5, 1]]))
    windows = Ledger(tmp_path).windows(99.5, 103)
    assert [(w.t_s, w.acked) for w in windows] == [(100, 5), (101, 0), (102, 2)]
    assert windows[0].pending == 6
    assert windows[0].max_ms == 1.5
    assert windows[0].latency == {5: 5}
    assert throughput_tps(windows) == 2
    assert Ledger(tmp_path).windows(99.5, 102.9)[-1].t_s == 101


def slots(t_s: int, first: int, acked: list[int]) -> dict[str, object]:
    return {"slots_of_s": t_s, "task": 1, "first": first, "acked": acked}


def test_slots_of_10_ms_are_summed_over_tasks_and_have_no_gaps(tmp_path: Path) -> None:
    write(tmp_path / "6700-1.jsonl", slots(100, 98, [1, 2]), slots(102, 0, [4]))
    write(tmp_path / "6701-2.jsonl", slots(100, 99, [5]))
    acked = Ledger(tmp_path).acked_10ms(99.5, 103)
    assert acked.shape == (3, 100)
    assert [acked[0, 98], acked[0, 99], acked[2, 0], acked.sum()] == [1, 7, 4, 12]
    assert Ledger(tmp_path).acked_10ms(99.5, 99.9).shape == (0, 100)


def test_the_longest_gap_crosses_seconds_and_counts_at_both_ends() -> None:
    acked = np.ones((3, 100), dtype=np.int64)
    assert longest_gap_s(acked) == 0
    acked[0, 95:] = 0
    acked[1, :20] = 0
    assert longest_gap_s(acked) == 0.25
    acked[2, 70:] = 0
    assert longest_gap_s(acked) == 0.3
    assert longest_gap_s(acked * 0) == 3


def test_a_second_counts_at_each_level_that_it_reaches() -> None:
    acked = np.zeros((5, 100), dtype=np.int64)
    acked[:, 0] = [100, 81, 80, 39, 0]
    assert degraded_s(acked, 100) == {0.2: 3, 0.4: 2, 0.6: 2, 0.8: 1, 1.0: 1}


# The same pairs are in LatenciesTest.java, which turns microseconds into buckets.
PAIRS = {
    **{0: 0, 15: 15, 16: 16, 31: 31, 32: 32, 33: 32, 34: 33, 1000: 111, 1023: 111, 1024: 112},
    **{1_000_000: 270, 30_000_000: 348},
}


@pytest.mark.parametrize(("us", "bucket"), PAIRS.items())
def test_a_latency_is_known_to_six_per_cent(us: int, bucket: int) -> None:
    found_ms = latency_ms([LedgerWindow(0, latency=Counter([bucket]))], 0.99)
    assert us < found_ms * 1000 <= us * 17 / 16 + 1


def test_quantiles_span_windows() -> None:
    windows = [LedgerWindow(0), LedgerWindow(1)]
    assert math.isnan(latency_ms(windows, 0.5))
    windows[0].latency.update({3: 98})
    windows[1].latency.update({112: 2})
    assert latency_ms(windows, 0.5) == 0.004
    assert latency_ms(windows, 0.98) == 0.004
    assert latency_ms(windows, 0.99) == 1.088


def test_rate_is_one_number(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "new")
    ledger.set_rate(400)
    ledger.set_rate(-1)
    assert float((tmp_path / "new" / "rate").read_text()) == -1
    assert [file.name for file in (tmp_path / "new").iterdir()] == ["rate"]

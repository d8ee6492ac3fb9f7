"""A controller that starts again knows the peaks that its journal has, and no more of it."""

from dataclasses import replace
from pathlib import Path
from typing import Any

from controller.config import build
from controller.core.peaks import Hour, Peaks
from controller.policies.gather.policy import InVain, Remembered
from controller.policies.gather.unpacked import Unpacked
from controller.storm.remembered import remembered
from tests.recorded_world import Recorded, edit, record

PEAKS = {"wc-1": Peaks((Hour(7, 900.0, 800.0),))}
KEPT = {"wc-1": Remembered(in_vain=InVain(7, 1.0), unpacked=Unpacked({}, {"1-1": 60.0}))}


def with_peaks(tick: int, run: Recorded) -> None:
    if tick == 0:
        run.memory = replace(run.memory, peaks=PEAKS, of_policy=KEPT)


def known(folder: Path | None, policy: str = "gather") -> tuple[Any, Any]:
    """Give what is remembered of peaks, and by the policy; nothing else is."""
    keys = {} if folder is None else {"journal.dir": str(folder)}
    found = remembered(build({**keys, "policy": policy}))
    assert (found.tick, found.rates, found.moved_s) == (0, {}, {})
    return found.peaks, found.of_policy


def test_peaks_are_those_of_the_newest_segment_that_has_some(tmp_path: Path) -> None:
    record(tmp_path, ticks=range(3), each=with_peaks)
    record(tmp_path, ticks=range(3), name="two", epoch=None)  # it does not lead
    lasting = {"wc-1": Remembered(unpacked=KEPT["wc-1"].unpacked)}
    assert known(tmp_path) == (PEAKS, lasting)
    assert known(tmp_path, "otd") == (PEAKS, {})


def test_the_last_head_of_a_segment_counts(tmp_path: Path) -> None:
    def each(tick: int, run: Recorded) -> None:
        if tick == 20:
            run.memory = replace(run.memory, peaks=PEAKS)

    record(tmp_path, ticks=range(26), each=each)
    assert known(tmp_path)[0]["wc-1"].hours[0] == PEAKS["wc-1"].hours[0]


def test_without_a_journal_nothing_is_known(tmp_path: Path) -> None:
    assert known(None) == known(tmp_path / "none") == known(tmp_path) == ({}, {})


def test_a_memory_of_another_version_is_left_alone(tmp_path: Path) -> None:
    record(tmp_path, ticks=range(3), each=with_peaks)
    (segment,) = tmp_path.glob("*.jsonl*")
    edit(segment, lambda head: head.update(memory="AAAA"))
    assert known(tmp_path) == ({}, {})

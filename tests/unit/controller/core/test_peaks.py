"""Peaks: which hours count, and that clocks, gaps and noise do not lose or invent one."""

import numpy as np
import pytest

from controller.core.cluster import LoadSnapshot, Traffic
from controller.core.figures import Peak
from controller.core.peaks import Hour, Peaks, input_tps, peaks_each
from controller.core.times import DAY_S, HOUR_S, MINUTE_S
from controller.journal.record import decode, encode
from migration.model import Component

LOOK_S = 5.0


def looked(found: Peaks, tps: float, begin_s: float, for_s: float) -> Peaks:
    """Look every five seconds at an input that stays the same."""
    for time_s in np.arange(begin_s, begin_s + for_s, LOOK_S).tolist():
        found = found.with_look(tps, time_s)
    return found


def days(count: int, begin_s: float = 0.0) -> Peaks:
    """Let each day have 1,000 tuples/s from 9 to 10, and 100 else; the last minute has not ended.

    Hours are looked at three times, once a minute, as that is all that counts.
    """
    found = Peaks()
    for hour in range(24 * count):
        for minute in (0, 20, 40):
            time_s = begin_s + hour * HOUR_S + minute * MINUTE_S
            found = found.with_look(1000.0 if hour % 24 == 9 else 100.0, time_s)
    return found


def test_a_fresh_topology_has_no_peak() -> None:
    found = Peaks().with_look(100.0, 0.0)
    assert (found.hours, found.peak_tps(1.0)) == ((), 0.0)
    assert Peak(100.0, found.peak_tps(1.0), 0).times == 1.0


def test_the_busiest_minute_of_an_hour_is_left_out() -> None:
    found = looked(Peaks(), 100.0, 0.0, 20 * MINUTE_S)
    found = looked(found, 5000.0, 20 * MINUTE_S, MINUTE_S)
    found = looked(found, 100.0, 21 * MINUTE_S, 2 * MINUTE_S)
    assert found.peak_tps(23 * MINUTE_S) == 100.0
    found = looked(found, 400.0, 23 * MINUTE_S, 2 * MINUTE_S)
    assert found.peak_tps(25 * MINUTE_S) == 400.0
    assert Peak(100.0, 400.0, 1).times == 4.0


def test_noise_of_single_looks_is_no_peak() -> None:
    random, found = np.random.default_rng(8), Peaks()
    for look in range(720):
        found = found.with_look(100.0 * float(np.exp(random.normal(0, 0.2))), look * LOOK_S)
    assert 100.0 < found.peak_tps(HOUR_S) < 120.0


def test_the_peak_of_a_day_counts_through_the_next_one() -> None:
    found = days(3)
    for hour in range(24):
        assert found.peak_tps(3 * DAY_S + hour * HOUR_S) == 1000.0


def test_the_day_to_come_counts_as_it_was_a_week_ago() -> None:
    week = days(1)  # a Thursday, then six days without a peak
    for hour in range(24, 168):
        for minute in (0, 20, 40):
            week = week.with_look(100.0, hour * HOUR_S + minute * MINUTE_S)
    wednesday_8, wednesday_10 = (6 * DAY_S + hour * HOUR_S for hour in (8, 10))
    assert week.peak_tps(wednesday_8) == 100.0
    assert week.peak_tps(wednesday_10) == 1000.0
    assert len(week.hours) <= 168


@pytest.mark.parametrize("jump_s", [10 * 365 * DAY_S, -5 * 365 * DAY_S, HOUR_S, -HOUR_S])
def test_a_clock_that_jumps_loses_no_peak(jump_s: float) -> None:
    begin_s = 20 * 365 * DAY_S
    found, now_s = days(2, begin_s), begin_s + 2 * DAY_S
    assert found.peak_tps(now_s + jump_s) == 1000.0
    found = looked(found, 100.0, now_s + jump_s, 10 * MINUTE_S)
    assert found.peak_tps(now_s + jump_s + 10 * MINUTE_S) == 1000.0
    found = looked(found, 100.0, now_s + 10 * MINUTE_S, 10 * MINUTE_S)
    assert found.peak_tps(now_s + 20 * MINUTE_S) == 1000.0
    kept = peaks_each({"wc": found}, {"wc-1-7": 100.0}, now_s + jump_s)
    assert kept["wc"].peak_tps(now_s + jump_s) == 1000.0


def test_a_clock_that_goes_to_and_fro_adds_no_hours() -> None:
    found = days(2)
    for minute in range(200):
        found = found.with_look(100.0, 2 * DAY_S + (minute % 2) * HOUR_S + minute * MINUTE_S / 4)
    assert found.peak_tps(2 * DAY_S) == 1000.0


def test_a_gap_is_no_idle_time() -> None:
    found = days(2)
    later_s = 5 * DAY_S
    assert found.peak_tps(later_s) == 1000.0
    found = looked(found, 100.0, later_s, 2 * MINUTE_S)
    assert found.peak_tps(later_s + 2 * MINUTE_S) == 1000.0


def test_a_release_keeps_the_peaks_and_what_has_gone_is_forgotten() -> None:
    kept = peaks_each({}, {"wc-1-7": 100.0}, 0.0)
    kept = peaks_each(kept, {"wc-1-7": 100.0}, 60.0)
    kept = peaks_each(kept, {"wc-2-8": None}, 120.0)
    assert kept["wc"].hours == (Hour(0, 100.0),)
    assert peaks_each(kept, {}, 3600.0) == kept
    assert peaks_each(kept, {}, 2 * DAY_S) == {}
    assert peaks_each(kept, {"wc-3-9": None}, 2 * DAY_S) == kept


def test_little_follows_from_next_to_nothing() -> None:
    assert Peak(0.0, 1000.0, 5).times == 10.0
    assert Peak(2000.0, 1000.0, 5).times == 1.0


def test_a_journal_holds_peaks() -> None:
    found = days(2)
    assert decode(Peaks, encode(found)) == found


def test_the_input_is_what_spouts_emit() -> None:
    snapshot = LoadSnapshot(
        topology="t-1-7",
        time_s=0.0,
        components=(Component("s", "spout", 1), Component("b", "bolt", 1)),
        edges=(),
        executors=("1-1", "2-2"),
        component_of=("s", "b"),
        place=np.array([0, 0]),
        cpu_cores=np.array([0.1, 0.1]),
        queue=np.zeros(2),
        pinned=(None, None),
        traffic=Traffic.build(np.array([0, 1]), np.array([1, 0]), np.array([70.0, 40.0])),
    )
    assert input_tps(snapshot) == 70.0

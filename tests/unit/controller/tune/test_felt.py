"""What users felt with a set and with today's settings, on days of one kind and the other."""

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

from controller.pipeline.figures import FeltDay, Figures
from controller.tune.felt import worse
from migration.model import LATENCY_BUCKETS

DAYS = 24


def days(
    p99_ms: Sequence[float],
    input_tps: Sequence[float] = (100.0,) * DAYS,
    topology: str = "wc-1-7",
) -> tuple[FeltDay, ...]:
    pairs = enumerate(zip(p99_ms, input_tps, strict=True))
    return tuple(FeltDay(topology, day, False, tps, 0.0, p99) for day, (p99, tps) in pairs)


def set_and_today(
    every: Sequence[FeltDay],
) -> tuple[tuple[FeltDay, ...], tuple[FeltDay, ...]]:
    """Give the days of a set, every third one, and those of today's settings, which are all."""
    return tuple(one for one in every if one.day % 3 == 2), tuple(every)


def test_a_higher_p99_beyond_noise_is_worse_and_a_lower_one_is_not() -> None:
    noise = 1 + 0.05 * np.random.default_rng(3).normal(size=DAYS)
    slow = [50.0 if day % 3 == 2 else 20.0 for day in range(DAYS)]
    assert (worse(*set_and_today(days(slow * noise))) or "").startswith("wc: p99 20.1 → 49.1 ms")
    fast = [10.0 if day % 3 == 2 else 20.0 for day in range(DAYS)]
    assert worse(*set_and_today(days(fast * noise))) == ""
    # Less than 5 % is no reason, however sure it is.
    assert worse(*set_and_today(days([20.0 + 0.8 * (day % 3 == 2) for day in range(DAYS)]))) == ""


def test_fails_count_where_no_time_is_known() -> None:
    every = [
        FeltDay("wc-1-7", day, False, 100.0, 0.02 * (day % 3 == 2), None) for day in range(DAYS)
    ]
    assert worse(*set_and_today(every)) == "wc: fails 0.00% → 2.00%"
    few = [one._replace(failed_frac=0.0005 * (one.day % 3 == 2)) for one in every]
    assert worse(*set_and_today(few)) == ""


def test_input_and_trend_are_taken_out() -> None:
    input_tps = [100.0 + 3 * (day % 3) + day % 5 for day in range(DAYS)]
    assert worse(*set_and_today(days([tps**3 / 1e5 for tps in input_tps], input_tps))) == ""
    every = days([20.0 * 1.1**day for day in range(DAYS)])
    assert worse(every[DAYS // 2 :], every) == ""


@pytest.mark.parametrize("times", [1.5, 1 / 1.5])
def test_days_of_another_input_show_nothing(times: float) -> None:
    input_tps = [100.0 * (times if day % 3 == 2 else 1.0) for day in range(DAYS)]
    assert worse(*set_and_today(days(input_tps, input_tps))) is None


def test_too_few_days_of_either_kind_show_nothing() -> None:
    every = days([90.0, 90.0, *[20.0] * (DAYS - 2)])
    assert worse(every[:2], every) is None
    assert worse(every, every) is None
    assert worse(every[:-2], every) is None
    assert worse((), every) is None
    # Nor do days of another topology.
    assert worse(days([90.0] * DAYS, topology="other-1-7"), every) is None


def test_by_chance_alone_few_sets_are_worse() -> None:
    """Of twenty topologies whose days are noise none is worse, in 95 % of the logs at least."""
    chance = np.random.default_rng(5)
    found = 0
    for _ in range(100):
        every = [
            one
            for topology in range(20)
            for one in days(chance.lognormal(3.0, 0.3, DAYS).tolist(), topology=f"{topology}-1-7")
        ]
        found += bool(worse(*set_and_today(every)))
    assert found <= 0.05 * 100 + 3 * (0.05 * 0.95 * 100) ** 0.5


def test_a_day_counts_where_executors_stood_so_for_most_of_it() -> None:
    timed = tuple(100 * (bucket == 22) for bucket in range(LATENCY_BUCKETS))
    whole = Figures(100, span_s=500.0, recorded_s=450.0, acked=900.0, failed=0.0, timed=timed)
    felt = whole.felt("wc-1-7", 3, held_back=True)
    assert felt is not None
    assert felt[:5] == ("wc-1-7", 3, True, 2.0, 0.0)
    assert math.isclose(felt.latency_p99_ms or 0.0, 47.92, rel_tol=1e-3)
    assert replace(whole, recorded_s=449.0).felt("wc-1-7", 3, held_back=True) is None
    assert replace(whole, acked=0.0).felt("wc-1-7", 3, held_back=True) is None

"""The pure parts of the benchmarks: intervals, quantiles, and what is made of raw figures."""

import json
import math
import random
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from deploy.lab import LabError
from deploy.lab.interval import Ratio, paired_ratio, quantile
from kvstore.writer import PlanWriter
from migration.model import LocalPlan
from migration.wire import PLAN_KEY, decode, encode
from tests.bench.jmh import cpu_ns, summary
from tests.bench.overhead import (
    Stretch,
    process_cpu_s,
    report,
    thread_cpu,
    thread_share,
    total,
    whole,
)
from tests.bench.plan import Arrival, Watched, latencies, sample_plan

STRETCH = Stretch(100, 103, 1.5, {"nstorm-load": 0.006, "nstorm-worker": 0.003}, 6000)


def test_the_interval_of_three_ratios_is_students() -> None:
    """Logarithms -0.1, 0 and 0.1: mean 0, standard error 0.1/√3, t(0.975, 2) = 4.3027."""
    over = [math.exp(-0.1), 5.0, 7 * math.exp(0.1)]
    half = 4.302653 * 0.1 / math.sqrt(3)
    ratio = paired_ratio(over, [1.0, 5.0, 7.0])
    assert ratio.ratio == pytest.approx(1)
    assert (ratio.low, ratio.high) == pytest.approx((math.exp(-half), math.exp(half)))


def test_what_both_of_a_round_share_falls_out() -> None:
    """The machine is five times slower in half of the rounds; the ratio is 0.98 in all."""
    off = [1000.0, 200.0] * 10
    ratio = paired_ratio([0.98 * rate for rate in off], off)
    assert ratio.ratio == pytest.approx(0.98)
    assert ratio.within(1e-9)


def test_about_95_of_100_intervals_hold_the_truth() -> None:
    chance, held = random.Random(1), 0
    for _ in range(400):
        over = [0.97 * math.exp(chance.gauss(0, 0.2)) for _ in range(12)]
        ratio = paired_ratio(over, [1.0] * 12)
        held += ratio.low <= 0.97 <= ratio.high
    assert 0.92 <= held / 400 <= 0.98


def test_one_pair_says_nothing_about_the_interval() -> None:
    ratio = paired_ratio([3.0], [2.0])
    assert ratio.ratio == pytest.approx(1.5)
    assert (ratio.low, ratio.high) == (0.0, math.inf)
    assert not paired_ratio([3.0], [2.0]).within(0.02)


@pytest.mark.parametrize(("over", "under"), [([], []), ([1.0], []), ([0.0], [1.0])])
def test_what_has_no_ratio_is_refused(over: list[float], under: list[float]) -> None:
    with pytest.raises(ValueError, match="no pairs"):
        paired_ratio(over, under)


def test_an_interval_counts_by_its_farther_end() -> None:
    assert Ratio(1.0, 0.985, 1.0199).within(0.02)
    assert not Ratio(1.0, 0.97, 1.01).within(0.02)


@pytest.mark.parametrize(
    ("share", "expected"), [(0.001, 1), (0.5, 50), (0.99, 99), (0.991, 100), (1.0, 100)]
)
def test_a_quantile_is_the_nearest_rank(share: float, expected: int) -> None:
    values = list(range(1, 101))
    random.Random(2).shuffle(values)
    assert quantile(values, share) == expected


def test_rounds_without_an_ack_are_left_out() -> None:
    none = replace(STRETCH, acked=0)
    assert whole([STRETCH, none, STRETCH], [STRETCH, STRETCH, none]) == [(STRETCH, STRETCH)]


def test_the_report_of_rounds() -> None:
    on = [replace(STRETCH, acked=acked) for acked in (5940, 2970, 0)]
    off = [replace(STRETCH, acked=acked, thread_s={}) for acked in (6000, 3000, 3000)]
    said = report(on, off, [9.0, 10.0, 12.0])
    assert said["throughput_on_over_off"] == pytest.approx(
        {"ratio": 0.99, "low": 0.99, "high": 0.99}
    )
    assert said["within_2_points"]
    assert said["rounds"] == 3
    assert said["rounds_left_out"] == 1
    # As much CPU for fewer sentences.
    assert said["cpu_a_tuple_on_over_off"]["ratio"] == pytest.approx(1 / 0.99)
    assert said["sampler_share"] == pytest.approx(0.004)
    assert said["hook_threads_share"] == pytest.approx(0.006)
    assert said["load_average"] == [9.0, 10.0, 12.0]
    json.dumps(said)


def test_no_round_with_acks_is_an_error() -> None:
    none = [replace(STRETCH, acked=0)]
    with pytest.raises(LabError, match="nothing was acked"):
        report(none, none, [1.0])


def test_a_tuple_is_one_of_fourteen_of_a_sentence() -> None:
    assert replace(STRETCH, cpu_s=1.4, acked=100_000).cpu_us_a_tuple == pytest.approx(1.0)


def test_the_stretches_of_a_round_are_added_up() -> None:
    both = total([STRETCH, replace(STRETCH, thread_s={"nstorm-load": 0.004}, acked=3000)])
    assert (both.acked_tps, both.cpu_s) == (1500.0, 3.0)
    assert both.thread_s == pytest.approx({"nstorm-load": 0.01, "nstorm-worker": 0.003})


def test_the_share_of_threads_is_over_all_stretches() -> None:
    busy = replace(STRETCH, cpu_s=4.5, thread_s={"nstorm-load": 0.024, "nstorm-strays": 0.03})
    assert thread_share([STRETCH, busy], "nstorm-load") == pytest.approx(0.005)


def test_threads_are_found_by_name_and_may_vanish(tmp_path: Path) -> None:
    for task, name in (("7", "nstorm-load"), ("8", "main"), ("9", "nstorm-worker")):
        (tmp_path / "task" / task).mkdir(parents=True)
        (tmp_path / "task" / task / "comm").write_text(f"{name}\n")
        (tmp_path / "task" / task / "schedstat").write_text("2500000000 17 3\n")
    (tmp_path / "task" / "9" / "schedstat").unlink()
    assert list(thread_cpu(tmp_path, "nstorm-")) == [("nstorm-load", 2.5)]


def test_a_process_whose_name_has_brackets_is_read(tmp_path: Path) -> None:
    before = "4 (a) b) S 1 1 1 0 -1 4194560 6378 0 0 0"
    (tmp_path / "stat").write_text(f"{before} 250 50 3 5 20 0 1 0 99 0 0\n")
    assert process_cpu_s(tmp_path) == pytest.approx(3.0)


def jmh_result(
    name: str, cpu: list[float], params: dict[str, str] | None = None
) -> dict[str, object]:
    secondary = {"cpuNs": {"rawData": [cpu]}, "operations": {"rawData": [[10.0] * len(cpu)]}}
    result: dict[str, object] = {"benchmark": f"nstorm.bench.{name}", "secondaryMetrics": secondary}
    return result if params is None else {**result, "params": params}


def test_jmh_results_are_read_by_iteration() -> None:
    results = [
        jmh_result("TuplePath.local", [4000.0, 5000.0]),
        jmh_result("PlanRead.changed", [70.0], {"dir": "/somewhere", "entries": "100"}),
    ]
    expected = {"TuplePath.local": [400.0, 500.0], "PlanRead.changed 100": [7.0]}
    assert cpu_ns(results) == expected


def test_what_the_hooks_add_is_what_they_call_less_the_loop() -> None:
    stock = [{"TuplePath.local": [400.0], "TuplePath.remote": [500.0]}]
    calls = {"WovenCalls.local": [9.0], "WovenCalls.remote": [12.0], "WovenCalls.stock": [2.0]}
    hooked = [{"TuplePath.local": [408.0], "TuplePath.remote": [515.0], **calls}]
    said = summary(stock, hooked)
    assert said["local"]["added_ns"] == 7.0
    assert said["local"]["added_share"] == 0.0175
    assert said["remote"]["added_share"] == 0.02
    assert said["local"]["on_over_off"]["ratio"] == pytest.approx(1.02)


def test_latencies_are_to_each_worker_and_to_the_last() -> None:
    said = latencies(
        [Arrival(0.001, (0.004,), (0.010, 0.020)), Arrival(0.002, (0.008,), (0.030, 0.015))]
    )
    assert said["plans"] == said["workers"] == 2
    assert said["worker_ms_p50"] == pytest.approx(15)
    assert said["worker_ms_max"] == pytest.approx(30)
    assert said["last_worker_ms_p50"] == pytest.approx(20)
    assert said["written_ms_p50"] == pytest.approx(1)
    assert said["agent_ms_p99"] == pytest.approx(8)


@pytest.mark.parametrize("entries", [0, 1, 100])
def test_sample_plans_are_plans(entries: int) -> None:
    plan = sample_plan(3, entries)
    assert decode(LocalPlan, encode(plan)) == plan
    assert len(plan.plans[0].entries) == entries


def test_a_store_shows_a_plan_once(tmp_path: Path) -> None:
    stored = sample_plan(4, 0)
    with PlanWriter(tmp_path, PLAN_KEY) as writer:
        writer.write(encode(stored))
    watched = Watched(tmp_path, PLAN_KEY)
    with closing(watched.reader):
        assert watched.shows(stored.plans[0])
        assert not watched.shows(stored.plans[0])
    another = Watched(tmp_path, PLAN_KEY)
    with closing(another.reader):
        assert not another.shows(sample_plan(5, 0).plans[0])

"""What is planted in made-up hours is found, and nothing is found where nothing is."""

from typing import Any

import msgspec
import numpy as np
import pyarrow as pa
import pytest

from controller.core.figures import Effect, Verdict
from controller.core.times import HOUR_S
from controller.journal.cycle_record import SHOWN_MOVES
from controller.pipeline.figures import Figures
from controller.pipeline.schemas import HOURS
from controller.weeks.auto import gained
from controller.weeks.disturbed import disturbed, full, lines
from controller.weeks.hosts import line, without_each
from controller.weeks.hours import Hours
from controller.weeks.log_report import LogReport, OfHours
from controller.weeks.need import LEAST_TREND_DAYS, Forecast, TopologyNeed, forecast, needs
from controller.weeks.page import page
from controller.weeks.paid import line as line_of_runs
from controller.weeks.paid import runs
from controller.weeks.run import answered
from tests.weeks_world import FIRST_DAY, FIRST_HOUR, made, made_rows, rhythm

SEEDS = 40


def forecasts(week_frac: float, days: int = 42) -> list[tuple[Forecast, float]]:
    """Forecast series with a trend, a week and noise; with what then came."""
    found = []
    for seed in range(SEEDS):
        noise = np.random.default_rng(seed).normal(0, 0.04, days + 30)
        every = np.arange(days + 30)
        week = np.where(every % 7 >= 5, 0.6, 1.0)
        peaks = 3 * (1 + week_frac) ** (every / 7) * week * np.exp(noise)
        one = forecast(FIRST_DAY + np.arange(days), peaks[:days])
        assert one is not None
        found.append((one, float(peaks[days:].max())))
    return found


def test_a_trend_is_found_and_its_intervals_hold_what_they_promise() -> None:
    for week_frac in (0.0, 0.03):
        found = forecasts(week_frac)
        trend = [low <= week_frac <= high for (low, _, high) in (one.week_frac for one, _ in found)]
        need = [one.cores[0] <= came <= one.cores[2] for one, came in found]
        # 95 % of 40 are 38; chance makes it less than 34 in 1 of 70 draws.
        assert sum(trend) >= 34 and sum(need) >= 34
        assert all(one.cores[2] / one.cores[0] < 1.6 for one, _ in found)
    assert all(one.week_frac[0] > 0 for one, _ in found)


def test_the_need_of_next_month_is_held_against_the_room() -> None:
    days = 42
    grows = 1.03 ** (np.arange(24 * days) // 24 / 7)
    cores = {"wc": {"a": rhythm(days) * grows}, "still": {"b": rhythm(days)}}
    by_name = {one.topology: one for one in needs(made(cores, capacity={"a": 2.8, "b": 2.8}))}
    growing, still = by_name["wc"], by_name["still"]
    assert growing.verdict.endswith("That does not fit.")
    assert "It grows by 3.0% a week" in growing.verdict
    assert still.verdict.endswith("That fits.")
    assert "No trend is seen" in still.verdict
    assert growing.headroom_factor == pytest.approx(2.8 / growing.peak_cores)
    assert growing.by_hour is not None and growing.by_weekday is not None
    assert int(np.argmax(np.array(growing.by_hour, np.float64))) == 19
    of_day = np.array(growing.by_weekday, np.float64)
    assert of_day[6] / of_day[0] < 0.8
    assert [day for day, _ in growing.daily] == list(range(FIRST_DAY, FIRST_DAY + days))


def test_a_short_log_is_said_to_be_one() -> None:
    (one,) = needs(made({"wc": {"a": rhythm(5)}}, capacity={"a": 4.0}))
    assert one.forecast is None and one.by_weekday is None
    assert f"a trend {LEAST_TREND_DAYS} whole days are needed, and the log has 5" in one.verdict
    assert one.by_hour is not None
    # Of days that were measured in part, the highest hour is not known.
    (one,) = needs(made({"wc": {"a": rhythm(30)}}, capacity={"a": 4.0}, seen_s=0.8 * HOUR_S))
    assert one.forecast is None and one.daily == () and one.by_hour is None
    (one,) = needs(made({"wc": {"a": np.zeros(24)}}, capacity={"a": 4.0}))
    assert one.verdict == "It used no CPU in the last week."


def shown_of(found: TopologyNeed) -> str:
    """Draw a report of one need."""
    none: dict[str, Any] = dict.fromkeys(LogReport.__struct_fields__, ())
    texts = dict.fromkeys(("about", "host_line", "run_line"), "")
    return page(LogReport(**{**none, **texts, "needs": (found,)}))


@pytest.mark.filterwarnings("error")
def test_hours_and_weekdays_that_were_never_measured_have_no_rhythm() -> None:
    cores = rhythm(28)
    every = np.arange(len(cores))
    # It is stopped from 2:00 to 4:00, and on Wednesdays.
    cores[(every % 24 == 2) | (every % 24 == 3) | (every // 24 % 7 == 2)] = np.nan
    (one,) = needs(made({"wc": {"a": cores}}, capacity={"a": 4.0}))
    assert one.by_hour is not None and one.by_weekday is not None
    assert [hour for hour, times in enumerate(one.by_hour) if times is None] == [2, 3]
    assert [day for day, times in enumerate(one.by_weekday) if times is None] == [2]
    assert np.mean([times for times in one.by_weekday if times is not None]) == pytest.approx(1)
    assert "nan" not in shown_of(one)


@pytest.mark.filterwarnings("error")
def test_days_without_cpu_have_no_rhythm() -> None:
    (one,) = needs(made({"wc": {"a": np.zeros(24 * 28)}}, capacity={"a": 4.0}))
    assert len(one.daily) == 28
    assert one.by_hour is None and one.by_weekday is None
    assert "as times the mean" not in shown_of(one)


def test_room_is_what_neighbours_leave() -> None:
    one, two = np.array([1.0, 1.0, 1.0]), np.array([1.0, 2.0, 0.0])
    hours = made({"one": {"a": one, "b": one}, "two": {"a": two}}, capacity={"a": 4.0, "b": 2.0})
    assert hours.headroom[0].tolist() == [2.0, 2.0, 2.0]
    assert hours.headroom[1][:2].tolist() == [3.0, 1.5]
    assert np.isnan(hours.headroom[1][2])


def test_a_topology_that_was_started_again_counts_once_in_that_hour() -> None:
    """The first id ran for a quarter of an hour on a and b, the second for half an hour on a."""
    before = {"topology": "wc-1-7", "hour": FIRST_HOUR}
    after = {"topology": "wc-2-8", "hour": FIRST_HOUR}
    a = {"unit": "a", "node": "a", "capacity_cores": 8.0}
    b = {"unit": "b", "node": "b", "capacity_cores": 4.0}
    table = pa.Table.from_pylist(
        [
            {**before, "seen_s": 900.0, "cores": 3.0, "peak_cores": 5.0, "input_tps": 300.0}
            | {"acked": 7.0, "failed": 1.0, "latency_p50_ms": 9.0},
            {
                **before,
                **a,
                "cores": 2.0,
                "peak_cores": 3.0,
                "own_core_s": 5.0,
                "usual_core_s": 6.0,
            },
            {**before, **b, "cores": 1.0, "peak_cores": 2.0},
            {**after, "seen_s": 1800.0, "cores": 3.0, "peak_cores": 4.0, "input_tps": 600.0}
            | {"acked": 8.0, "failed": 0.0},
            {**after, **a, "cores": 3.5, "peak_cores": 4.0, "own_core_s": 7.0, "usual_core_s": 8.0},
        ],
        HOURS,
    )
    hours = Hours.of(table)
    (one,) = hours.topologies
    assert (one.seen_s[0], one.cores[0], one.peak_cores[0]) == (2700.0, 3.0, 5.0)
    assert (one.input_tps[0], one.acked[0], one.failed[0]) == (500.0, 15.0, 1.0)
    assert one.latency_p50_ms[0] == 9.0
    assert hours.used_of_node[:, 0].tolist() == [4.0, 2.0]
    assert hours.headroom[0].tolist() == [2.0]
    assert hours.cores_on(0) == pytest.approx([3.0, 1 / 3])
    assert hours.own_core_s[hours.unit == 0].tolist() == [12.0]
    assert np.isnan(hours.own_core_s[hours.unit == 1]).all()


def neighbours(seed: int, slower: float, days: int = 7) -> list[tuple[str, str, float]]:
    """A topology whose latency follows its own input, and, times `slower`, bursts of another one.

    A third one has the rhythm of the first, and a fourth is on another node.
    """
    random = np.random.default_rng(seed)
    hours = 24 * days
    own = rhythm(days) * random.uniform(0.95, 1.05, hours)
    bursts = np.where(random.random(hours) < 0.2, 2.0, 0.2)
    latency = 10 * own**0.5 * np.exp(random.normal(0, 0.05, hours))
    latency *= np.where(bursts > 1, slower, 1.0)
    cores = {
        "wc": {"a": own},
        "batch": {"a": bursts},
        "same": {"a": rhythm(days) * random.uniform(0.95, 1.05, hours)},
        "far": {"b": bursts},
    }
    world = made(cores, capacity={"a": 8.0, "b": 8.0}, latency_ms={"wc": latency})
    return [(one.topology, one.by, one.times) for one in disturbed(world)]


def test_a_noisy_neighbour_is_found() -> None:
    for seed in range(10):
        ((topology, by, times),) = neighbours(seed, 1.5)
        assert (topology, by) == ("wc", "batch")
        assert times == pytest.approx(1.5, rel=0.1)


def test_who_disturbs_nobody_is_not_named() -> None:
    assert [found for seed in range(30) for found in neighbours(seed, 1.0)] == []


def test_full_nodes_and_who_was_there() -> None:
    cores = {"one": {"a": np.array([1.0, 3.0, 1.0])}, "two": {"a": np.array([1.0, 0.8, 0.0])}}
    (one,) = full(made(cores, capacity={"a": 4.0}), 0.85)
    assert (one.node, one.hours, one.at_s) == ("a", 1, (FIRST_HOUR + 1) * HOUR_S)
    assert one.fullest_frac == pytest.approx(0.95)
    assert one.by == (("one", 3.0), ("two", 0.8))
    assert lines([], [one], 0.85)[1] == (
        "a was above 85% in 1 hours; in the fullest it had one 3 cores, two 0.8 cores"
    )


def test_a_host_less() -> None:
    cores = {"wc": {"a": np.array([3.0, 1.0]), "b": np.array([1.0, 2.0]), "c": np.zeros(2)}}
    found = without_each(made(cores, capacity={"a": 6.0, "b": 2.0, "c": 4.0}))
    assert [one.node for one in found] == ["a", "c", "b"]
    assert [one.rest_frac for one in found] == pytest.approx([4 / 6, 4 / 8, 4 / 10])
    assert found[0].at_s == FIRST_HOUR * HOUR_S
    assert line(found, 0.85) == (
        "Without a the other 2 would be 67% full in the busiest hour, below load.high (85%). "
        "For the next month the log is too short."
    )
    assert "above load.high (60%)" in line(found, 0.6)
    assert line(found[:1], 0.85) == "There is one host: without it nothing runs."
    days = made({"wc": {"a": rhythm(42), "b": rhythm(42)}}, capacity={"a": 6.0, "b": 6.0})
    worst = without_each(days)[0]
    assert worst.next_month_frac is not None
    assert worst.next_month_frac[1] == pytest.approx(2 * 2.2 / 6, rel=0.02)


def test_a_host_that_has_gone_takes_nothing_over() -> None:
    hour = np.arange(24 * 2)
    here = np.where(hour < 28, 1.0, 1.5)
    cores = {"wc": {"a": here, "b": here, "c": np.where(hour < 28, 1.0, np.nan)}}
    found = without_each(made(cores, capacity=dict.fromkeys("abc", 2.0)))
    assert [(one.node, one.rest_frac) for one in found] == [("a", 1.5), ("b", 1.5)]
    assert line(found, 0.8).startswith("Without a the other host would be 150% full")


def test_without_the_only_host_that_has_cpu_none_is_left() -> None:
    cores = {"wc": {"a": np.ones(2), "b": np.zeros(2)}}
    found = without_each(made(cores, capacity={"a": 4.0, "b": 0.0}))
    assert [(one.node, one.rest_frac) for one in found] == [("a", None), ("b", 0.25)]
    assert line(found, 0.8) == "Without a no CPU is left."
    none: dict[str, Any] = dict.fromkeys(LogReport.__struct_fields__, ())
    texts = dict.fromkeys(("about", "host_line", "run_line"), "")
    assert "without b" in page(LogReport(**{**none, **texts, "hosts": tuple(found)}))


def test_the_time_is_that_of_the_topologies_that_are_shown() -> None:
    new = np.where(np.arange(48) < 40, np.nan, 1.0)
    table = made_rows({"old": {"a": np.ones(48)}, "new": {"a": new}}, capacity={"a": 4.0})
    (row,) = (batch for batch in answered(table.to_batches(), shown=["new"], high_frac=0.8))
    found = msgspec.msgpack.decode(row.to_pylist()[0]["found"], type=OfHours)
    assert found.begun_s == (FIRST_HOUR + 40) * HOUR_S
    assert found.ended_s == (FIRST_HOUR + 48) * HOUR_S


def test_only_workers_that_are_there_have_cpu() -> None:
    """Each day the topology comes back on another port of a, and its old worker is gone."""
    rows = []
    for day in range(4):
        for hour in range(24 * day, 24 * day + 24):
            known = {"topology": f"wc-{day}-7", "hour": FIRST_HOUR + hour}
            rows.append({**known, "seen_s": HOUR_S, "cores": 1.9, "peak_cores": 1.9})
            for node, port, cores in (("a", 6700 + day, 0.95), ("b", 6700, 0.95)):
                unit = {"unit": f"{node}:{port}", "node": node, "capacity_cores": 1.0}
                rows.append({**known, **unit, "cores": cores, "peak_cores": cores})
    hours = Hours.of(pa.Table.from_pylist(rows, HOURS))
    assert hours.node_cores.tolist() == [1.0, 1.0]
    assert [(one.node, one.hours) for one in full(hours, 0.85)] == [("a", 96), ("b", 96)]
    assert [one.capacity_cores for one in without_each(hours)] == [1.0, 1.0]
    assert "190% full in the busiest hour, above load.high" in line(without_each(hours), 0.85)


def test_what_auto_gains_and_risks() -> None:
    def day(crossing: float, moves: int, unserved: float = 0.0) -> Figures:
        return Figures(100, moves, 1000.0, 500.0, crossing, crossing, unserved)

    idle = {day_: day(200.0, 0) for day_ in range(4)}
    auto = {0: day(100.0, 5), 1: day(100.0, 0), 2: day(110.0, 1), 3: day(210.0, 3, 50.0)}
    (one,) = gained({"wc": [auto, idle]})
    assert (one.worse_days, [d.moves for d in one.days]) == (1, [5, 0, 1, 3])
    assert one.interval_frac is not None and one.interval_frac[0] < 0 < one.gain_frac
    assert (
        "Risked: 9 moves; each day begins from the recorded placement. "
        "The cost was higher on 1 of 4 days, and 50 core-" in one.verdict
    )
    assert "Instead of 40% of the tuples, 26% go between nodes" in one.verdict
    (short,) = gained({"wc": [{0: auto[0]}, {0: idle[0]}]})
    assert short.interval_frac is None
    assert "to know how sure that is, 3 days are needed" in short.verdict
    (still,) = gained({"wc": [{0: idle[0]}, {0: idle[0]}]})
    assert still.verdict == "auto would have moved nothing."


def test_which_runs_paid() -> None:
    def row(begun_s: float, verdict: Verdict, moves: int) -> dict[str, object]:
        effect = Effect(verdict, "CPU −3 %", tuple(f"m{n}" for n in range(moves)), begun_s)
        # The journal names only the last moves.
        text = msgspec.json.encode(effect.cut_to(SHOWN_MOVES)).decode()
        return {"topology": "wc-1-7", "time_s": begun_s, "effect": text}

    found = runs([row(1.0, Verdict.BETTER, 3), row(2.0, Verdict.WORSE, 40)])
    assert [(one.topology, one.moves, one.verdict) for one in found] == [
        ("wc", 3, "better"),
        ("wc", 40, "worse"),
    ]
    assert line_of_runs(found) == "2 runs of 43 moves: 1 better, 1 worse."
    assert line_of_runs([]) == "The log has no run of moves."

"""Ranking, front, and what is suggested."""

from dataclasses import replace

import numpy as np
import pytest

from controller.config import build
from controller.errors import TuneError
from controller.pipeline.figures import Figures
from controller.tune.choice import (
    MOVE_S,
    Objective,
    SetOutcome,
    crossing_frac,
    front,
    ranked,
    suggest,
)
from controller.tune.space import ParameterSet

NOTHING = Figures()


def figures(crossing: float, moves: int = 0, unserved_core_s: float = 0.0) -> Figures:
    crossed = 1000.0 * crossing
    return Figures(100, moves, 500.0, 1000.0, crossed, crossed, unserved_core_s)


def outcome(chosen_by: Figures, held_back: Figures, **changes: float) -> SetOutcome:
    return SetOutcome(ParameterSet(tuple(changes.items()), build({})), chosen_by, held_back)


def test_the_cost_is_in_seconds_of_crossing_traffic() -> None:
    some = Figures(1, 2, 100.0, 1000.0, 200.0, 500.0, 10.0)
    assert crossing_frac(some) == pytest.approx(0.8 * 0.2 + 0.2 * 0.5)
    assert Objective().cost(some) == pytest.approx(0.26 + (10 + 2 * MOVE_S) / 100)
    assert Objective.parse("traffic=0,overload,moves=0").cost(some) == pytest.approx(0.1)
    assert Objective.parse("moves=3, traffic=0, overload=0").cost(some) == pytest.approx(0.06)
    assert Objective.parse("moves=3") == Objective(moves=3.0)
    assert Objective.parse("balanced") == Objective()
    assert Objective().cost(NOTHING) == crossing_frac(NOTHING) == 0.0


@pytest.mark.parametrize(
    "text", ["speed", "traffic=much", "traffic=-1", "", "traffic=nan", "moves=inf", "traffic,,"]
)
def test_another_objective_is_refused(text: str) -> None:
    with pytest.raises(TuneError, match=r"--objective .*must be balanced, or traffic, overload"):
        Objective.parse(text)
    with pytest.raises(TuneError, match="one weight must be above 0"):
        Objective.parse("traffic=0,overload=0,moves=0")


def test_equals_are_ranked_by_fewer_changes_then_as_they_came() -> None:
    sets = [
        outcome(figures(0.3), NOTHING),
        outcome(figures(0.1), NOTHING, a=1, b=2),
        outcome(figures(0.1 + 1e-15), NOTHING, c=1),
        outcome(figures(0.1), NOTHING, d=1),
    ]
    assert ranked(sets, Objective()) == [sets[2], sets[3], sets[1], sets[0]]


def test_the_front_keeps_what_no_other_beats() -> None:
    sets = [
        outcome(figures(0.5, 0), NOTHING),
        outcome(figures(0.3, 5), NOTHING, a=1),
        outcome(figures(0.3, 6), NOTHING, a=2),
        outcome(figures(0.2, 9), NOTHING, a=3),
        outcome(figures(0.2, 9), NOTHING, a=4),
        outcome(figures(0.6, 0, 1.0), NOTHING, a=5),
        outcome(figures(0.1, 9, 50.0), NOTHING, a=6),
    ]
    assert front(sets) == [sets[0], sets[1], sets[3], sets[6]]


def by_days(*held_back: float, chosen_by: float | None = None, **changes: float) -> SetOutcome:
    """Give a set by its share of crossing traffic on the days held back."""
    days = tuple(map(figures, held_back))
    first = days[0] if chosen_by is None else figures(chosen_by)
    return SetOutcome(
        ParameterSet(tuple(changes.items()), build({})), first, sum(days, NOTHING), days
    )


def test_only_what_helps_later_too_is_suggested() -> None:
    today = by_days(*[0.4] * 5)
    better = by_days(*[0.3] * 5, chosen_by=0.2, a=1)
    found = suggest([today, better], Objective())
    assert (found.best, found.helps) == (better, True)
    assert found.gain_frac == pytest.approx(0.5)
    assert found.held_back_gain_frac == pytest.approx(0.25)
    assert "falls by 50.0%" in found.reason and "by 25.0% with the load held back" in found.reason
    fitted = by_days(*[0.399] * 5, chosen_by=0.1, a=2)
    found = suggest([today, better, fitted], Objective())
    # The second best is not tried on what is held back: that would be fitting to it.
    assert (found.best, found.helps) == (fitted, False)
    assert "75.0%" in found.reason and "less than 1% is noise" in found.reason


def test_what_leaves_more_demand_unserved_is_not_suggested() -> None:
    today, better = by_days(*[0.4] * 5), by_days(*[0.2] * 5, a=1)
    assert suggest([today, better], Objective()).helps
    starved = replace(better, held_back=figures(0.2, unserved_core_s=3.0))
    found = suggest([today, starved], Objective())
    assert found.held_back_gain_frac > 0.4
    assert not found.helps
    assert "leaves 3 core-seconds of demand unserved, and today's 0." in found.reason


def test_what_fills_a_link_more_comes_last_and_is_not_suggested() -> None:
    def with_bytes(one: SetOutcome, chosen_by: float, held_back: float) -> SetOutcome:
        return replace(
            one,
            chosen_by=replace(one.chosen_by, fullest_bytes=chosen_by, sized_s=500.0),
            held_back=replace(one.held_back, fullest_bytes=held_back, sized_s=500.0),
        )

    today = with_bytes(by_days(*[0.4] * 5), 100.0, 100.0)
    better, fuller = by_days(*[0.2] * 5, a=1), by_days(*[0.1] * 5, a=2)
    as_full = with_bytes(better, 100.5, 99.0)
    sets = [today, as_full, with_bytes(fuller, 150.0, 90.0)]
    assert ranked(sets, Objective()) == [as_full, today, sets[2]]
    assert (suggest(sets, Objective()).best, suggest(sets, Objective()).helps) == (as_full, True)
    later = with_bytes(better, 90.0, 5000.0)
    found = suggest([today, later], Objective())
    assert (found.best, found.helps) == (later, False)
    assert found.reason.endswith("carries 10 bytes/s with the best set, and 0.2 with today's.")
    # Where no size is known, nothing is held against a set.
    assert ranked([by_days(0.4), fuller], Objective())[0] is fuller


def test_a_gain_that_may_be_chance_is_not_suggested() -> None:
    today = by_days(*[0.4] * 6)
    each = suggest([today, by_days(0.31, 0.29, 0.3, 0.3, 0.32, 0.28, a=1)], Objective())
    assert each.helps
    # 0.1 of 0.4, and Student's 2.571 times 0.01414 / sqrt(6) / 0.4 either way.
    assert each.interval_frac == pytest.approx((0.2129, 0.2871), abs=0.001)
    assert "Its 6 days show 21.3% to 28.7% (95% confidence)." in each.reason
    assert each.reason.endswith("does not show whether users would feel it in latency or fails.")
    # The sum of all days gains; without the first day none of it is left.
    one = suggest([today, by_days(0.1, *[0.41] * 5, a=1)], Objective())
    assert one.held_back_gain_frac > 0.1
    assert not one.helps
    assert one.interval_frac is not None and one.interval_frac[0] < 0 < one.interval_frac[1]
    assert one.reason.startswith("Keep what you have: the gain of the best set may be chance.")
    few = suggest([by_days(*[0.4] * 2), by_days(*[0.3] * 2, a=1)], Objective())
    assert (few.helps, few.interval_frac) == (False, None)
    assert few.reason.startswith("Keep what you have: the best set lowers the cost by 25.0%")
    assert few.reason.endswith("3 days must be held back, and there are 2.")


def test_by_chance_alone_few_sets_are_suggested() -> None:
    """Days whose gains are noise: at most 2.5 % are taken for better, as the interval has it."""
    chance = np.random.default_rng(5)
    taken = 0
    for _ in range(400):
        noise = chance.normal(0.4, 0.05, size=6)
        today, same = by_days(*[0.4] * 6), by_days(*noise, chosen_by=0.3, a=1)
        taken += suggest([today, same], Objective()).helps
    assert taken <= 0.025 * 400 + 3 * (0.025 * 0.975 * 400) ** 0.5


def test_fewer_changes_win_where_nearly_as_good() -> None:
    today = outcome(figures(0.4), figures(0.4))
    most = outcome(figures(0.2), figures(0.2), a=1, b=1, c=1)
    near = outcome(figures(0.2005), figures(0.2005), a=1)
    assert suggest([today, most, near], Objective()).best is near
    far = outcome(figures(0.202), figures(0.202), a=1)
    assert suggest([today, most, far], Objective()).best is most
    same = outcome(figures(0.4), figures(0.4), a=1)
    assert suggest([today, same], Objective()).best is today


def test_a_log_too_short_to_test_gives_no_suggestion() -> None:
    today, better = outcome(figures(0.4), NOTHING), outcome(figures(0.2), NOTHING, a=1)
    found = suggest([today, better], Objective())
    assert not found.helps
    assert "too short" in found.reason

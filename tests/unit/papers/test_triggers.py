"""B, X, P and R of 002: when a new schedule is due, and when it is worth following."""

import numpy as np

from tests.papers.triggers import Rules, Trigger, begin, look, worthwhile

RULES = Rules(
    capacity=np.array([1.0, 2.0]), window_s=np.array([30.0, 5.0]), period_s=100.0, gain_frac=0.1
)


def reactions(*looks: tuple[float, float, float]) -> list[Trigger | None]:
    watch, found = begin(RULES, 0.0), []
    for time_s, *load in looks:
        watch, trigger = look(RULES, watch, time_s, np.array(load))
        found.append(trigger)
    return found


def test_overload_must_last_for_more_than_the_window() -> None:
    at_capacity = [(10.0, 1.0, 0.0), (40.0, 1.0, 0.0), (40.1, 1.0, 0.0)]
    assert reactions(*at_capacity) == [None, None, Trigger.OVERLOAD]


def test_one_look_below_starts_the_window_anew() -> None:
    looks = [(10.0, 1.5, 0.0), (30.0, 0.9, 0.0), (45.0, 1.5, 0.0), (74.0, 1.5, 0.0)]
    assert reactions(*looks, (76.0, 1.5, 0.0)) == [None, None, None, None, Trigger.OVERLOAD]


def test_each_node_has_its_own_capacity_and_window() -> None:
    assert reactions((0.0, 1.5, 1.9), (6.0, 1.5, 2.0), (12.0, 1.5, 2.0)) == [
        None,
        None,
        Trigger.OVERLOAD,
    ]


def test_a_period_counts_from_the_last_one() -> None:
    looks = [(99.0, 0.0, 0.0), (101.0, 0.0, 0.0), (200.0, 0.0, 0.0), (201.0, 0.0, 0.0)]
    assert reactions(*looks) == [None, Trigger.PERIOD, None, Trigger.PERIOD]


def test_overload_goes_before_a_period_and_leaves_it_due() -> None:
    hot, cool = (100.0, 1.0, 0.0), (101.0, 0.0, 0.0)
    assert reactions((0.0, 1.0, 0.0), hot, cool) == [None, Trigger.OVERLOAD, Trigger.PERIOD]


def test_a_change_forgets_everything() -> None:
    watch, _ = look(RULES, begin(RULES, 0.0), 90.0, np.array([1.0, 0.0]))
    watch = begin(RULES, 95.0)
    watch, trigger = look(RULES, watch, 125.0, np.array([1.0, 0.0]))
    assert trigger is None
    assert look(RULES, watch, 155.1, np.array([1.0, 0.0]))[1] is Trigger.OVERLOAD


def test_worth_it_is_more_than_the_share() -> None:
    assert not worthwhile(RULES, 100.0, 90.0)
    assert worthwhile(RULES, 100.0, 89.9)
    assert not worthwhile(RULES, 0.0, 0.0)

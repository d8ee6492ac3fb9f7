"""What is learnt of hops from the stays before and after runs of moves."""

import numpy as np
import pytest

from controller.core.figures import PRIOR_DEVIATION
from controller.core.learnt import INPUT_FACTOR, MOST_TIMES, OLD_S, Known, Learnt, Stay


def stay(
    hops_us: float, cores_us: float, *, looks: int = 18, tps: float = 1e4, at_s: float = 0.0
) -> Stay:
    return Stay(at_s, at_s, looks, tps, cores_us / 1e6, 0.0, hops_us / 1e6, 4 / tps)


BEFORE, AFTER = stay(4.0, 20.0), stay(1.0, 11.0)  # 9 µs less, by 3 µs of hops


def test_one_that_is_sure_outweighs_the_prior() -> None:
    known = Known().with_run(BEFORE, AFTER, 1.0)
    assert known.found(1.0)[0] == pytest.approx(3.0, abs=0.3)
    assert known.deviation(1.0) < 0.2
    again = known.with_run(AFTER, BEFORE, 1.0)
    assert again.found(1.0)[0] == pytest.approx(3.0, abs=0.15)
    assert again.deviation(1.0) < known.deviation(1.0)
    assert again.runs == 2


def test_one_that_is_not_sure_leaves_the_prior() -> None:
    few = stay(4.0, 20.0, looks=1), stay(3.9, 19.0, looks=1)
    assert Known().with_run(few[0], few[1], 1.0).found(1.0)[0] == pytest.approx(1.0, abs=0.05)


def test_what_is_learnt_is_neither_negative_nor_beyond_belief() -> None:
    cheaper = Known().with_run(stay(4.0, 20.0), stay(1.0, 30.0), 1.0)
    assert cheaper.found(1.0)[0] == 0.0
    known = Known()
    for _ in range(20):
        known = known.with_run(stay(4.0, 60.0), stay(1.0, 5.0), 1.0)
    assert known.found(1.0)[0] == MOST_TIMES


def test_one_strange_run_among_many_changes_little() -> None:
    known = Known()
    for _ in range(10):
        known = known.with_run(BEFORE, AFTER, 1.0)
    strange = known.with_run(stay(4.0, 20.0), stay(1.0, 40.0), 1.0)
    assert strange.found(1.0)[0] == pytest.approx(3.0, abs=0.3)


def test_what_a_jvm_needs_is_told_from_hops() -> None:
    """Each worker needs 0.05 cores more, at any load; a hop costs what it does in the lab."""
    known = Known()
    chance = np.random.default_rng(1)
    for _ in range(12):
        ends = []
        for _ in range(2):
            hops_us, workers = chance.uniform(1.0, 5.0), int(chance.integers(1, 6))
            cores_us = 12.0 + hops_us + 0.05 * workers / 1e4 * 1e6
            one = stay(hops_us, cores_us)
            ends.append(Stay(0.0, 0.0, 18, 1e4, one.cores, 0.0, one.hops, workers / 1e4))
        known = known.with_run(ends[0], ends[1], 1.0)
    assert known.found(1.0) == pytest.approx([1.0, 0.05], abs=0.02)


def test_another_input_and_old_stays_are_not_compared() -> None:
    assert Learnt(stay=AFTER, before=BEFORE).is_run
    other = stay(1.0, 11.0, tps=1e4 * INPUT_FACTOR * 1.01)
    assert not Learnt(stay=other, before=BEFORE).is_run
    assert not Learnt(stay=stay(1.0, 11.0, at_s=OLD_S + 1), before=BEFORE).is_run
    assert Learnt(stay=other, before=BEFORE).figures == Learnt().figures


def test_looks_are_averaged_and_of_many_the_last_ones_count() -> None:
    one = Stay(0.0)
    for look in range(100):
        one = one.looked_at(10.0 * look, 1e4, 0.2 if look < 50 else 0.1, 0.03, 4)
    assert one.looks == 100
    assert one.cores == pytest.approx(1e-5, rel=0.1)
    assert one.hops == pytest.approx(3e-6)
    steady, doubtful = stay(3.0, 10.0).error, one.error
    assert steady < (0.1e-6) ** 2 < doubtful
    assert stay(3.0, 10.0, looks=1).error > 10 * steady


def test_what_is_seen_at_rest_is_believed_before_a_run_and_bounds_what_it_shows() -> None:
    known = Known()
    assert known.found(6.0)[0] == 6.0
    assert known.deviation(6.0) == pytest.approx(6 * PRIOR_DEVIATION)
    for _ in range(20):
        known = known.with_run(stay(4.0, 160.0), stay(1.0, 5.0), 6.0)
    assert known.found(6.0)[0] == 6 * MOST_TIMES
    text = str(Learnt(prior=6.0).figures)
    assert text.startswith("6.00 times the lab's, by the CPU of the threads")

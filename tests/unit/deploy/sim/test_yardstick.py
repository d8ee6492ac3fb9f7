"""The measures that everything is compared by, against sums done by hand."""

from dataclasses import replace

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from controller.core.distance import inter_node_frac
from deploy.sim.yardstick import (
    NodeMove,
    degradation_s,
    ping_pongs,
    thrash,
)
from tests.snapshots import cluster
from tests.unit.controller.policies.placement_worlds import topology

PLACES = cluster([2, 1])
# 10 in a worker, 6 between two workers of a node, 4 between nodes.
SNAPSHOT = replace(
    topology({"c": 4}, (), [(0, 1, 10), (1, 2, 6), (3, 2, 4)], [0.5, 0.25, 0.15, 0.6]),
    place=np.array([0, 0, 1, 2]),
)


def test_traffic_between_places() -> None:
    assert inter_node_frac(PLACES, SNAPSHOT) == 4 / 20


def test_no_traffic_is_no_ratio_but_a_number() -> None:
    silent = topology({"c": 2})
    assert inter_node_frac(PLACES, silent) == 0.0


def test_degradation_counts_windows_at_a_level_or_worse() -> None:
    tps = [100.0, 80.0, 60.0, 59.0, 40.0, 20.0, 1.0, 0.0, 130.0]
    assert degradation_s(tps, 2.0, 100.0) == (14.0, 12.0, 8.0, 6.0, 2.0)
    assert degradation_s([], 1.0, 100.0) == (0.0,) * 5
    assert degradation_s([0.0], 1.0, 0.0) == (0.0,) * 5


def test_degradation_is_not_lost_to_rounding() -> None:
    # 1 - 24/30 is a little less than 0.2 in binary.
    assert degradation_s([24.0], 1.0, 30.0)[0] == 1.0


def test_thrash_leaves_out_the_trend() -> None:
    assert thrash([1, 2, 4, 9]) == thrash([9, 4, 1]) == thrash([5]) == thrash([]) == 0
    assert thrash([0, 1, 0]) == 2
    assert thrash([0, 3, 2, 5]) == 2
    assert thrash([5, 1, 3, 0]) == 4


@given(st.lists(st.integers(-9, 9), min_size=1), st.integers(-9, 9), st.integers(0, 9))
def test_thrash_is_the_same_upside_down_backwards_and_shifted(
    series: list[int], shift: int, scale: int
) -> None:
    value = thrash(series)
    assert value >= 0
    assert thrash(series[::-1]) == thrash([-x for x in series]) == value
    assert thrash([shift + scale * x for x in series]) == scale * value


def test_ping_pong_is_a_return_within_some_cycles() -> None:
    there, back = NodeMove(10, "e", "n0", "n1"), NodeMove(30, "e", "n1", "n0")
    assert ping_pongs([there, back], 20) == 1
    assert ping_pongs([there, back], 19) == 0
    assert ping_pongs([there, NodeMove(20, "e", "n1", "n2"), back], 20) == 1
    assert ping_pongs([there, NodeMove(11, "f", "n1", "n0")], 20) == 0
    assert ping_pongs([there, NodeMove(20, "e", "n1", "n2")], 20) == 0


def test_every_return_counts_from_the_last_time_it_left() -> None:
    swing = [NodeMove(i, "e", f"n{i % 2}", f"n{(i + 1) % 2}") for i in range(5)]
    assert ping_pongs(swing, 2) == 4
    assert ping_pongs([NodeMove(0, "e", "n0", "n0"), NodeMove(1, "e", "n1", "n0")], 9) == 0

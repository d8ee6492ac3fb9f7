"""Moves that leave more room for input, where nothing is too full yet."""

from dataclasses import replace

import numpy as np
import pytest

from controller.core.cluster import Cluster, Floats, LoadSnapshot
from controller.core.decision import Outcome
from controller.core.fit import Fit
from controller.core.limits import Limits
from controller.core.moved import applied
from controller.policies.greedy import greedy
from tests.snapshots import snapshot

LIMITS = Limits(high_frac=0.8, low_frac=0.4)
# Executors 0 and 1 exchange tuples on node a, 2 is alone there, and 3 is on node b.
PLACE, DEMAND = [0, 0, 0, 1], [0.5, 0.4, 0.4, 0.2]


def nodes(*cores: float, link_bytes_s: Floats | None = None) -> Cluster:
    rows = [(f"{name}:1", name, each) for name, each in zip("abc", cores, strict=False)]
    cluster = Cluster.build("abc"[: len(cores)], rows)
    return replace(cluster, node_cores=np.array(cores), link_bytes_s=link_bytes_s)


def load(
    place: list[int] = PLACE, demand: list[float] = DEMAND, size: float | None = 100.0
) -> LoadSnapshot:
    made = snapshot(["c"] * len(place), place, demand, [(0, 1, 2000.0), (2, 0, 10.0)])
    sizes = None if size is None else np.full(2, size)
    return replace(made, traffic=replace(made.traffic, size_bytes=sizes))


def fast(count: int = 2, bytes_s: float = 1e9) -> Floats:
    return np.full((2, count), bytes_s)


def test_what_talks_least_leaves_a_node_that_is_full_first() -> None:
    cluster = nodes(2.0, 2.0, link_bytes_s=fast())
    found = greedy(cluster, load(), LIMITS)
    assert [(m.executor, m.source, m.target) for m in found.moves] == [("2-2", "a:1", "b:1")]
    assert found.reason.startswith(
        "input can grow 1.54 times until a is full, and 2 times is wanted: 2-2"
    )
    after = applied(found.moves, cluster, load())
    assert Fit.of(cluster, after).growth > 2
    assert greedy(cluster, after, LIMITS).outcome is Outcome.NOTHING_TO_GAIN


def test_a_node_that_may_stay_as_it_is_does_so() -> None:
    cluster = nodes(2.0, 2.0, link_bytes_s=fast())
    assert not greedy(cluster, load(), replace(LIMITS, headroom_min=1.4)).moves
    # Each executor would leave as little room elsewhere.
    assert not greedy(nodes(2.0, 0.5, link_bytes_s=fast()), load(), LIMITS).moves
    held = load().holding(dict.fromkeys(range(4), "a test"))
    assert not greedy(cluster, held, LIMITS).moves


def test_what_is_too_full_goes_first() -> None:
    cluster = nodes(2.0, 2.0, 1.0, link_bytes_s=fast(3))
    found = greedy(cluster, load([0, 0, 0, 2], [0.5, 0.4, 0.4, 0.9]), LIMITS)
    assert found.reason.startswith("c at 0.9 of its CPU is above 0.8: 3-3")


@pytest.mark.parametrize(
    ("size", "bytes_s", "moves"),
    [
        (100.0, 1e9, ["2-2"]),
        (100.0, 1_500.0, []),  # the tuples of 2-2 would fill two thirds of a link
        (None, 1e9, ["2-2"]),  # with the largest size known, or 1,000 bytes
        (None, 1e4, []),
        (100.0, None, []),  # what is not known is no room
    ],
)
def test_no_link_is_left_with_less_room(
    size: float | None, bytes_s: float | None, moves: list[str]
) -> None:
    cluster = nodes(2.0, 2.0, link_bytes_s=None if bytes_s is None else fast(2, bytes_s))
    found = greedy(cluster, load(size=size), LIMITS)
    assert [move.executor for move in found.moves] == moves


def test_a_link_of_unknown_capacity_is_no_room() -> None:
    links = fast(3)
    links[:, 0] = np.nan
    assert not greedy(nodes(2.0, 2.0, 2.0, link_bytes_s=links), load(), LIMITS).moves


def test_a_node_of_which_others_leave_nothing_is_not_the_one() -> None:
    cluster = replace(
        nodes(2.0, 2.0, 2.0, link_bytes_s=fast(3)),
        other_cores=np.array([0.0, 0.0, 1.0]),
        peak_cores=np.array([0.0, 0.0, 1.0]),
    )
    found = greedy(cluster, load([0, 0, 0, 2], [0.5, 0.4, 0.4, 0.06]), LIMITS)
    assert [(m.executor, m.target) for m in found.moves] == [("2-2", "b:1")]


def test_a_decision_ends_with_a_move_for_room() -> None:
    found = greedy(nodes(2.0, 2.0, link_bytes_s=fast()), load(), replace(LIMITS, max_moves=4))
    assert found.for_room and len(found.moves) == 1


def test_where_a_link_is_full_first_the_cpu_is_left_alone() -> None:
    apart = load([0, 1, 0, 0], [0.5, 0.4, 0.4, 0.4])
    cluster = nodes(2.0, 2.0, link_bytes_s=fast(2, 250_000.0))  # 200,000 cross
    assert "can grow" not in greedy(cluster, apart, LIMITS).reason

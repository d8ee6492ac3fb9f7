"""Sorted slots and the even scheduler."""

from dataclasses import replace

import pytest

from controller.core.decision import Outcome
from controller.core.limits import Limits
from controller.policies.even import even, even_place, sort_slots
from tests.snapshots import cluster
from tests.unit.controller.policies.placement_worlds import chain, topology


@pytest.mark.parametrize(
    ("slots", "expected"),
    [
        ([1, 3, 2], [1, 4, 0, 2, 5, 3]),
        ([2, 2], [0, 2, 1, 3]),
        ([0, 2], [0, 1]),
        ([], []),
    ],
)
def test_slots_go_node_by_node_in_turn_the_roomiest_first(
    slots: list[int], expected: list[int]
) -> None:
    assert sort_slots(cluster(slots)).tolist() == expected


def test_even_deals_in_the_order_of_the_components_system_last() -> None:
    snapshot = topology({"__acker": 1, "spout": 2, "bolt": 3}, [("spout", "bolt")])
    assert even_place(cluster([2, 2]), snapshot).tolist() == [2, 0, 2, 1, 3, 0]


def test_a_decision_lists_all_moves_but_those_of_pinned_executors() -> None:
    snapshot = replace(chain(1, 2), pinned=("spout", None, None))
    decision = even(cluster([1, 1]), replace(snapshot, place=snapshot.place + 1), Limits())
    assert decision.outcome is Outcome.WOULD_MOVE
    # Executor 1 should be on n0 and stays; 2 is where it should be; 3 goes.
    assert [(move.executor, move.target) for move in decision.moves] == [("3-3", "n0:6700")]
    assert "1 of 3 executors move, 1 more may not" in decision.reason


def test_one_node_or_nothing_to_place_is_an_outcome() -> None:
    assert even(cluster([1]), chain(2), Limits()).outcome is Outcome.NOTHING_TO_GAIN
    assert even(cluster([1]), topology({"gone": 0}), Limits()).outcome is Outcome.NOTHING_TO_GAIN

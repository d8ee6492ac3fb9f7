"""Tasks, and components that a worker names in their place, become executors."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from controller.core.tasks import FIRST_COMPONENT, TaskMap, component_targets
from migration.model import ExecutorId, PlacedExecutor, Publication, Slot

EXECUTORS = (ExecutorId(1, 1), ExecutorId(2, 4), ExecutorId(5, 5), ExecutorId(6, 6))
COMPONENTS = ("spout", "count", "count", "sink")


def published() -> Publication:
    slot = Slot("n", 6700)
    placed = [PlacedExecutor(e, c, slot, 1) for e, c in zip(EXECUTORS, COMPONENTS, strict=True)]
    return Publication("t-1-1", "t", "ACTIVE", 10, (), (), tuple(placed))


TARGETS = component_targets(published())
MAP = TaskMap.of(EXECUTORS, COMPONENTS, TARGETS)


def between(*pairs: tuple[int, int]) -> list[tuple[int, int, int, float]]:
    ends = np.array(pairs, np.int64).reshape(-1, 2)
    rows, source, target, share = MAP.between(ends[:, 0], ends[:, 1])
    found = zip(rows.tolist(), source.tolist(), target.tolist(), share.tolist(), strict=True)
    return list(found)


def test_components_have_numbers_beyond_all_tasks() -> None:
    assert TARGETS == {"count": 2**22, "sink": 2**22 + 1, "spout": 2**22 + 2}


def test_tasks_of_a_range_belong_to_one_executor() -> None:
    assert between((1, 3), (4, 6)) == [(0, 0, 1, 1.0), (1, 1, 3, 1.0)]


def test_tasks_of_nobody_and_unknown_components_are_left_out() -> None:
    assert between((1, -1), (-1, 1), (7, 1), (1, 7), (1, FIRST_COMPONENT + 3)) == []
    assert between((99, FIRST_COMPONENT)) == []


def test_what_was_folded_is_spread_evenly_over_the_tasks_of_the_component() -> None:
    spread = between((6, TARGETS["count"]), (1, 6))
    assert spread == [(1, 0, 3, 1.0), (0, 3, 1, 0.75), (0, 3, 2, 0.25)]


@given(st.lists(st.tuples(st.integers(-1, 8), st.sampled_from([*range(-1, 9), *TARGETS.values()]))))
def test_the_parts_of_a_pair_are_the_whole_of_it(pairs: list[tuple[int, int]]) -> None:
    parts = np.zeros(len(pairs))
    for row, *_, share in between(*pairs):
        parts[row] += share
    known = [
        1 <= source <= 6 and (1 <= target <= 6 or target >= FIRST_COMPONENT)
        for source, target in pairs
    ]
    np.testing.assert_allclose(parts, known)

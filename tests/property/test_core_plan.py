"""Placements, the moves between them and the plans made of them."""

from hypothesis import given
from hypothesis import strategies as st
from hypothesis.strategies import DrawFn, composite

from controller.core.plan import Move, apply, diff, settled_placement
from migration.model import (
    Base,
    Entry,
    ExecutorId,
    Phase,
    PlacedExecutor,
    Plan,
    Publication,
    Slot,
)

slots = st.builds(Slot, st.sampled_from(["a", "b"]), st.integers(6700, 6702))
Placement = dict[ExecutorId, Slot]


@composite
def placements(draw: DrawFn) -> tuple[Placement, Placement]:
    executors = [ExecutorId(i, i) for i in range(1, draw(st.integers(1, 8)) + 1)]
    return {e: draw(slots) for e in executors}, {e: draw(slots) for e in executors}


def publication(placement: Placement) -> Publication:
    executors = tuple(PlacedExecutor(e, "c", slot, 100) for e, slot in placement.items())
    return Publication(
        "t-1", "t", "ACTIVE", 0, "0.1.0", "s", 30, 10, 1, None, (), (), (), executors
    )


@given(placements())
def test_diff_and_apply_are_inverse(pair: tuple[Placement, Placement]) -> None:
    before, after = pair
    moves = diff(before, after)
    assert apply(before, moves) == after
    assert apply(after, [Move(m.executor, m.target, m.source) for m in moves]) == before
    assert diff(before, before) == ()


@given(placements(), st.integers(1, 5))
def test_a_plan_of_the_difference_settles_at_the_new_placement(
    pair: tuple[Placement, Placement], epoch: int
) -> None:
    before, after = pair
    storm = publication(before)
    plan = Plan("c", 1, -1, "t-1")
    moves = diff(before, after)
    for i, move in enumerate(moves):
        base = Base(move.source, 100)
        entry = Entry(f"m{i}", move.executor, move.source, move.target, Phase.PREPARE, base)
        plan = plan.followed_by((*plan.entries, entry), epoch)
    assert plan.version == len(moves) - 1
    assert settled_placement(storm, plan) == after
    assert settled_placement(storm, None) == before


@given(placements())
def test_void_entries_and_undone_moves_leave_the_executor_where_storm_has_it(
    pair: tuple[Placement, Placement],
) -> None:
    before, after = pair
    entries = tuple(
        Entry(
            f"m{i}",
            move.executor,
            move.source,
            move.target,
            Phase.UNDO if i % 2 else Phase.SWITCH,
            Base(move.source, 100),
            None if i % 2 else "Storm assigned the executor elsewhere",
        )
        for i, move in enumerate(diff(before, after))
    )
    assert settled_placement(publication(before), Plan("c", 1, 3, "t-1", entries)) == before

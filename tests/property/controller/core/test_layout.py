"""Where executors will be once the moves of a plan have ended."""

from hypothesis import given
from hypothesis import strategies as st
from hypothesis.strategies import DrawFn, composite

from controller.core.topology import settled_placement
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
from migration.protocol import following

slots = st.builds(Slot, st.sampled_from(["a", "b"]), st.integers(6700, 6702))
Placement = dict[ExecutorId, Slot]


@composite
def placements(draw: DrawFn) -> tuple[Placement, Placement]:
    executors = [ExecutorId(i, i) for i in range(1, draw(st.integers(1, 8)) + 1)]
    return {e: draw(slots) for e in executors}, {e: draw(slots) for e in executors}


def differing(before: Placement, after: Placement) -> list[tuple[ExecutorId, Slot, Slot]]:
    return [(e, slot, after[e]) for e, slot in before.items() if after[e] != slot]


def publication(placement: Placement) -> Publication:
    executors = tuple(PlacedExecutor(e, "c", slot, 100) for e, slot in placement.items())
    return Publication("t-1", "t", "ACTIVE", 10, (), (), executors)


@given(placements(), st.integers(1, 5))
def test_a_plan_of_the_difference_settles_at_the_new_placement(
    pair: tuple[Placement, Placement], epoch: int
) -> None:
    before, after = pair
    storm = publication(before)
    plan = Plan("c", 1, -1, "t-1")
    moves = differing(before, after)
    for i, (executor, source, target) in enumerate(moves):
        entry = Entry(f"m{i}", executor, source, target, Phase.PREPARE, Base(source, 100))
        plan = following(plan, (*plan.entries, entry), epoch)
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
            executor,
            source,
            target,
            Phase.UNDO if i % 2 else Phase.SWITCH,
            Base(source, 100),
            None if i % 2 else "Storm assigned the executor elsewhere",
        )
        for i, (executor, source, target) in enumerate(differing(before, after))
    )
    assert settled_placement(publication(before), Plan("c", 1, 3, "t-1", entries)) == before

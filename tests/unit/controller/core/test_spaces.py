"""What executors keep goes with them, and no space, such as a heap, is filled too much."""

from dataclasses import replace

import numpy as np
import pytest

from controller.core.capacity import Spare
from controller.core.cluster import Cluster, Level, LoadSnapshot
from controller.core.decision import Decision, Move, Outcome
from controller.core.limits import Limits
from controller.core.loops.moves import is_barred
from controller.core.moved import applied
from controller.core.reserve import Reserve
from controller.core.resources import SPACES
from controller.core.spaces import SpaceUse, carried, uses_of
from controller.core.view import View
from controller.policies.gather import evaluate
from controller.policies.gather.problem import Problem
from controller.policies.gather.search import search
from controller.policies.greedy import greedy
from controller.policies.options import TargetOptions
from tests.snapshots import cluster, snapshot

MB = 1e6
(HEAP,) = SPACES
BARE_BYTES = HEAP.bare


def world(live_mb: list[float], heap_mb: list[float]) -> tuple[Cluster, LoadSnapshot]:
    """Let two pairs of executors talk across two nodes that have CPU for all of them."""
    places = replace(
        cluster((1, 1)),
        node_cores=np.array([8.0, 8.0]),
        spaces={
            HEAP.name: Level(BARE_BYTES + np.array(live_mb) * MB, np.array(heap_mb) * MB),
        },
    )
    load = snapshot(["c"] * 4, [0, 1, 0, 1], 0.1, [(0, 1, 100.0), (2, 3, 100.0)])
    return places, load


def heap_of(places: Cluster, load: LoadSnapshot) -> SpaceUse:
    (found,) = uses_of(places, load)
    return found


def test_each_executor_keeps_its_share_of_what_its_jvm_has_above_a_bare_worker() -> None:
    heap = heap_of(*world([100, 40], [768, 768]))
    assert (heap.held / MB).tolist() == [50, 20, 50, 20]
    share = (140 * MB + BARE_BYTES) / (768 * MB)
    assert heap.share_at(np.zeros(4, np.int64)).tolist() == [pytest.approx(share), 0]


def test_what_a_component_keeps_in_the_mean_counts() -> None:
    """Of b there are two more where 120 MB more live."""
    places, _ = world([200, 80], [768, 768])
    load = snapshot([*"aabbb", *"aab"], [0] * 5 + [1] * 3, 0.1)
    heap = heap_of(places, load)
    held = heap.held / MB
    a, b = held[[0, 1, 5, 6]], held[[2, 3, 4, 7]]
    assert a.max() < 30, "in even shares it may have 40"
    assert b.min() > 35, "and b 27"
    assert heap.held_at(load.place) / MB == pytest.approx([215, 95])  # with the bare workers
    # Where all JVMs have the same components nothing is known of these.
    alike = snapshot([*"aabb"], [0, 1, 0, 1], 0.1)
    assert (heap_of(places, alike).held / MB).tolist() == pytest.approx([100, 40, 100, 40])


def test_where_a_heap_is_not_known_executors_keep_as_much_as_their_component_elsewhere() -> None:
    places, _ = world([100, np.nan], [768, 768])
    load = snapshot([*"abb", *"abc"], [0, 0, 0, 1, 1, 1], 0.1)
    held = heap_of(places, load).held
    assert held[3:5].tolist() == held[:2].tolist()
    assert held[5] == pytest.approx(100 * MB / 3), "a component of which nothing is known"


def test_what_executors_keep_goes_with_them_along_a_walk() -> None:
    places, load = world([300, 20], [768, 768])
    after = applied([Move("0-0", "n0:6700", "n1:6700", 0.0)], places, load)
    assert heap_of(places, after).held.tolist() == heap_of(places, load).held.tolist()
    heap = heap_of(places, after)
    assert heap.held_at(after.place) / MB == pytest.approx([150 + 15, 150 + 20 + 15])


def test_where_a_heap_is_not_known_executors_keep_as_much_as_others() -> None:
    places, load = world([100, np.nan], [768, np.nan])
    heap = heap_of(places, load)
    assert (heap.held / MB).tolist() == [50, 50, 50, 50]
    assert heap.growth == pytest.approx(768 * MB / (100 * MB + BARE_BYTES))
    nothing = np.full(2, np.nan)
    unknown = SpaceUse(HEAP, Level(nothing, places.spaces[HEAP.name].most), load)
    assert unknown.held.tolist() == [0] * 4
    assert unknown.growth == pytest.approx(768 * MB / BARE_BYTES)
    assert uses_of(replace(places, spaces={}), load) == ()


def test_an_executor_keeps_its_state_and_a_share_of_the_rest() -> None:
    places, load = world([100, 40], [768, 768])
    states = replace(load, state_bytes=np.array([70 * MB, np.nan, np.nan, 60 * MB]))
    heap = heap_of(places, states)
    # A state keeps no more than what lives, though it may have grown since the last collection.
    assert (heap.held / MB).tolist() == [85, 0, 15, 40]
    assert heap_of(places, replace(load, state_bytes=np.full(4, np.nan))).held.tolist() == (
        heap_of(places, load).held.tolist()
    )
    young = heap_of(world([100, np.nan], [768, 768])[0], states)
    assert (young.held / MB).tolist() == [85, 50, 15, 60], "its state at least"
    other = replace(HEAP, has_state=False)
    (level,) = places.spaces.values()
    assert (SpaceUse(other, level, states).held / MB).tolist() == [50, 20, 50, 20]


def test_states_that_are_estimated_too_high_fill_no_heap() -> None:
    places, load = world([200, 30], [800, 800])
    states = replace(load, state_bytes=np.array([500 * MB, 0, 400 * MB, 0]))
    reserve = Reserve.of(places, states, Limits())
    (heap,) = reserve.spaces
    assert heap.held[[0, 2]] / MB == pytest.approx([200 * 5 / 9, 200 * 4 / 9])
    assert heap.share_at(load.place)[0] == pytest.approx((200 * MB + BARE_BYTES) / (800 * MB))
    assert not reserve.full(reserve.fit)


def test_a_jvm_that_was_not_known_stays_so_in_another_placement() -> None:
    unknown = np.array([100 * MB, np.nan, np.nan])
    levels = {HEAP.name: Level(unknown, np.full(3, 768 * MB))}
    load = snapshot(["c"] * 4, [0, 0, 1, 1], 0.1)
    found = carried(levels, load, np.array([0, 1, 2, 1]))[HEAP.name].held
    assert np.isnan(found[1])
    assert not np.isnan(found[[0, 2]]).any(), "what had no executors holds what has come"


@pytest.mark.parametrize(
    ("growth", "least"),
    [
        (40.0, 4.0),  # as CPU keeps, and that is more than enough
        (3.0, 3.0),
        (1.5, 2.0),  # `headroom.min`
    ],
)
def test_a_heap_may_be_filled_while_as_much_room_as_asked_for_is_left(
    growth: float, least: float
) -> None:
    together = np.zeros(4, np.int64)
    for times, refused in ((1.01, False), (0.99, True)):
        heap_mb = times * least * (200 + BARE_BYTES / MB)
        reserve = Reserve.of(*world([100, 100], [heap_mb] * 2), Limits(), growth)
        assert reserve.overflows(together) is refused


def test_a_heap_that_is_too_full_may_get_emptier() -> None:
    places, load = world([700, 20], [768, 768])
    reserve = Reserve.of(places, load, Limits())
    assert not reserve.overflows(load.place)
    assert not reserve.overflows(np.array([0, 1, 1, 1]))
    assert reserve.overflows(np.zeros(4, np.int64))


def test_a_search_finds_what_heaps_hold() -> None:
    places, load = world([300, 300], [768, 768])
    problem = Problem.of(places, load, Limits(headroom_min=1.0), TargetOptions())
    # All in one heap would be 81 % of it. Each pair in one is as much as now.
    found = search(problem, 1.0)
    assert found is not None
    assert sorted(np.bincount(found, minlength=2).tolist()) == [2, 2]
    assert problem.cost_tps(found) == 0
    roomy = Problem.of(*world([30, 30], [768, 768]), Limits(), TargetOptions())
    assert roomy.reserve.refuses(np.zeros(4, np.int64)) is False


def test_a_move_for_traffic_or_for_relief_fills_no_heap_too_much() -> None:
    view = View.of(*world([300, 300], [768, 768]), Limits())
    assert is_barred(view.world, 0, 1)
    assert not is_barred(View.of(*world([10, 10], [768, 768]), Limits()).world, 0, 1)
    moves = view.score(np.array([0]), np.array([1]))
    assert len(moves.executors) == 1
    # Relief counts more than room: it may fill a heap up to `load.high`.
    assert len(view.below(view.fit.may_fill, moves).executors)
    full = View.of(*world([600, 300], [768, 768]), Limits())
    back = full.score(np.array([1]), np.array([0]))
    assert not len(full.below(full.fit.may_fill, back).executors)


@pytest.mark.parametrize(("heap_mb", "opens"), [(600, False), (900, False), (2000, True)])
def test_a_pair_is_opened_only_where_the_second_may_follow(heap_mb: int, opens: bool) -> None:
    """Two executors talk to each other, and each to another one on the second node.

    Once one of them is there, the other may keep all that fills the first worker.
    """
    places = replace(
        cluster((1, 1, 1)),
        node_cores=np.array([8.0, 8.0, 8.0]),
        spaces={
            HEAP.name: Level(
                BARE_BYTES + np.array([600, 10, 10]) * MB, np.array([900, heap_mb, 768]) * MB
            ),
        },
    )
    talk = [(0, 1, 100.0), (0, 2, 60.0), (1, 3, 60.0)]
    load = snapshot(["c"] * 5, [0, 0, 1, 1, 2], [0.1, 0.1, 0.1, 0.1, 1.0], talk)
    made = []
    while (decision := greedy(places, load, Limits())).moves:
        made.append((decision.moves[0].executor, decision.moves[0].target))
        load = applied(decision.moves, places, load)
    assert made == ([("0-0", "n1:6700"), ("1-1", "n1:6700")] if opens else [])


@pytest.mark.parametrize(
    ("live_mb", "place", "cpu_cores", "talk"),
    [
        (
            None,
            [1, 1, 2, 2, 2],
            [0.0, 0.6, 0.7, 0.1, 0.2],
            [(0, 1, 100.0), (1, 4, 60.0), (3, 4, 60.0), (1, 3, 30.0)],
        ),
        (
            [0, 500, 200],
            [2, 1, 2, 2, 0],
            [0.8, 0.8, 0.4, 0.1, 0.3],
            [(0, 1, 100.0), (4, 0, 90.0), (0, 2, 90.0), (0, 3, 10.0)],
        ),
    ],
    ids=["the first leaves more room for input", "the first takes its share along"],
)
def test_what_bars_the_second_in_one_world_alone_opens_nothing(
    live_mb: list[float] | None,
    place: list[int],
    cpu_cores: list[float],
    talk: list[tuple[int, int, float]],
) -> None:
    """After the first move the view has another room to keep, and what it took is not known."""
    places = replace(cluster((1, 1, 1)), node_cores=np.array([3.0, 2.0, 2.0]))
    if live_mb is not None:
        most = np.array([900, 900, 2000]) * MB
        places = replace(
            places, spaces={HEAP.name: Level(BARE_BYTES + np.array(live_mb) * MB, most)}
        )
    assert not greedy(places, snapshot(["c"] * 5, place, cpu_cores, talk), Limits()).moves


def test_a_later_move_of_a_decision_opens_only_what_the_next_decision_would() -> None:
    """CPU counted as measured where the first move of the decision had put its executor."""
    places = replace(cluster((1, 1, 1)), node_cores=np.array([2.0, 2.0, 1.0]))
    talk = [(4, 0, 600.0), (0, 2, 300.0), (3, 4, 600.0), (2, 1, 100.0), (3, 2, 100.0)]
    load = snapshot(["c"] * 5, [2, 1, 2, 0, 2], [0.2, 0.6, 0.2, 0.2, 0.8], talk)
    first = greedy(places, load, Limits(max_moves=3)).moves
    assert [(move.executor, move.target) for move in first] == [("4-4", "n0:6700")]
    assert not greedy(places, applied(first, places, load), Limits()).moves


def test_a_search_ends_where_single_moves_do_not(monkeypatch: pytest.MonkeyPatch) -> None:
    places, load = world([10, 10], [768, 768])

    def swings(_: Cluster, seen: LoadSnapshot, __: Limits) -> Decision:
        source, target = (places.workers[w] for w in (seen.place[0], 1 - seen.place[0]))
        return Decision(Outcome.WOULD_MOVE, "", (Move("0-0", source, target, 0.0),))

    monkeypatch.setattr(evaluate, "greedy", swings)
    (end,) = evaluate._end_of_greedy(places, load, Limits())
    assert end.tolist() == load.place.tolist()


def test_an_opened_slot_has_a_heap_as_the_smallest() -> None:
    places, _ = world([100, 40], [768, 512])
    opened = places.with_opened(Spare("n1:9", places.nodes[1], 1.0))
    heap = opened.spaces[HEAP.name]
    assert heap.most.tolist() == [768 * MB, 512 * MB, 512 * MB]
    assert np.isnan(heap.held[2])

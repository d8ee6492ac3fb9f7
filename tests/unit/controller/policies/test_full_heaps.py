"""What fills a heap above `load.high` leaves it for a worker that may hold it."""

from dataclasses import replace

import numpy as np
import pytest

from controller.core.capacity import Spare
from controller.core.cluster import Cluster, Level, LoadSnapshot
from controller.core.decision import Outcome
from controller.core.limits import Limits
from controller.core.moved import applied
from controller.core.policy import Case
from controller.core.reserve import Reserve
from controller.core.resources import HEAP
from controller.policies.gather.policy import Gather
from controller.policies.gather.unpacked import COLLECTED_S, SHOWS_S, STAYS_S, Unpacked
from controller.policies.greedy import greedy, greedy_opening
from controller.policies.options import TargetOptions
from tests.snapshots import cluster, snapshot

MB, MOST_MB = 1e6, 800.0
LIMITS = Limits()


def world(
    live_mb: list[float], place: list[int], component_of: str | None = None, cores: float = 8.0
) -> tuple[Cluster, LoadSnapshot]:
    """Let executors of 0.1 cores talk to the one before, with a worker on each node."""
    count, workers = len(place), len(live_mb)
    places = replace(
        cluster((1,) * workers),
        node_cores=np.full(workers, cores),
        spaces={HEAP.name: Level(np.array(live_mb) * MB, np.full(workers, MOST_MB * MB))},
    )
    talk = [(e, e + 1, 100.0) for e in range(count - 1)]
    return places, snapshot(component_of or "c" * count, place, 0.1, talk)


def moved(places: Cluster, load: LoadSnapshot) -> list[tuple[str, str]]:
    return [(move.executor, move.target) for move in greedy(places, load, LIMITS).moves]


@pytest.mark.parametrize(("live_mb", "moves"), [(670.0, False), (690.0, True)])
def test_a_heap_is_relieved_above_the_limit(live_mb: float, moves: bool) -> None:
    """Its 5 executors talk to each other, so traffic would keep them there."""
    places, load = world([live_mb, 30.0], [0, 0, 0, 0, 0, 1])
    assert bool(moved(places, load)) is moves
    if moves:
        decision = greedy(places, load, LIMITS)
        assert decision.reason.startswith(
            "n0:6700 fills 0.863 of a heap, above 0.85, some 0.17 by what leaves: "
        )
        assert decision.for_room


def test_what_keeps_most_leaves() -> None:
    """Where b is more often, more lives: so it is b that keeps something."""
    places, load = world([700.0, 240.0, 20.0], [0, 0, 0, 0, 1, 1, 2], "aabbaba")
    assert moved(places, load)[0][0] in {"2-2", "3-3"}


def test_it_goes_where_most_room_is_left() -> None:
    """The talk is with n1, which would leave less room than is wanted."""
    places, load = world([700.0, 250.0, 20.0], [0, 0, 0, 0, 1, 1, 2])
    ((_, target),) = moved(places, load)
    assert target == "n2:6700"


@pytest.mark.parametrize(
    "live_mb",
    [[700.0, 500.0], [700.0, np.nan], [np.nan, 30.0]],
    ids=["no room", "room not known", "not known to be full"],
)
def test_nothing_leaves_a_heap_without_a_gain(live_mb: list[float]) -> None:
    places, load = world(live_mb, [0, 0, 0, 0, 1])
    assert not moved(places, load)


def test_what_is_pinned_stays_and_so_does_what_would_fill_a_cpu() -> None:
    places, load = world([700.0, 30.0], [0, 0, 0, 0, 1])
    pinned = load.holding(dict.fromkeys(range(4), "it stays"))
    decision = greedy(places, pinned, LIMITS)
    assert not decision.moves
    assert decision.warnings == (
        "n0:6700 fills 0.875 of a heap, above 0.85, and cannot be relieved: nothing movable on it "
        "fits on another worker",
    )
    small = replace(places, node_cores=np.array([8.0, 0.2]))
    assert not moved(small, load)


def test_where_each_worker_has_cpu_of_its_own_heaps_cause_no_move() -> None:
    places, load = world([700.0, 30.0], [0, 0, 0, 0, 1])
    assert "heap" not in greedy(replace(places, node_cores=None), load, LIMITS).reason


@pytest.mark.parametrize("seed", range(40))
def test_on_frozen_loads_no_placement_comes_back(seed: int) -> None:
    random = np.random.default_rng(seed)
    live_mb = random.uniform(20, 790, 4).tolist()
    places, load = world(live_mb, random.integers(0, 4, 12).tolist(), "abc" * 4, 0.6)
    seen = {load.place.tobytes()}
    while (decision := greedy(places, load, LIMITS)).moves:
        before = Reserve.of(places, load, LIMITS)
        load = applied(decision.moves, places, load)
        assert load.place.tobytes() not in seen
        seen.add(load.place.tobytes())
        (heap,) = before.spaces
        over = [
            np.maximum(heap.share_at(place) - 0.85, 0).sum()
            for place in (before.fit.place, load.place)
        ]
        assert over[1] <= over[0] + 1e-9
        if decision.for_room and "heap" in decision.reason:
            assert over[1] < over[0]


def test_a_slot_is_opened_where_no_heap_has_room() -> None:
    places, load = world([700.0, 500.0], [0, 0, 0, 0, 1])
    places = replace(places, spare=Spare("n1:6701", "n1", 8.0))
    decision = greedy_opening(places, load, LIMITS)
    assert [move.target for move in decision.moves] == ["n1:6701"]
    assert decision.reason.startswith("no worker has room, so a slot is opened: n0:6700 fills")
    # One executor that keeps all of it would only take it along, and traffic goes on.
    places, load = world([700.0, 30.0, 30.0], [0, 1, 2, 2])
    places = replace(places, spare=Spare("n1:6701", "n1", 8.0))
    decision = greedy_opening(places, load, LIMITS)
    assert decision.outcome is not Outcome.NO_LOW_WORKER
    assert decision.warnings


def test_what_has_left_a_full_heap_stays_for_a_day_and_no_more_follows_until_it_was_collected() -> (
    None
):
    places, load = world([790.0, 30.0, 30.0], [0, 0, 0, 0, 1, 2])
    policy = Gather(TargetOptions())
    decided = policy.decide(Case(places, load, LIMITS), None)
    ((executor, target),) = [(m.executor, m.target) for m in decided.decision.moves]
    # While it has not left, as in advice, the next decision wants the same.
    again = policy.decide(Case(places, load, LIMITS), decided.memory)
    assert [m.executor for m in again.decision.moves] == [executor]
    assert again.memory is not None
    # The reports are as before: no heap was collected.
    load = applied(decided.decision.moves, places, load)
    load = replace(load, kept=None, time_s=10.0)
    later = policy.decide(Case(places, load, LIMITS), again.memory)
    assert not later.decision.moves or "heap" not in later.decision.reason
    assert later.memory is not None
    unpacked = later.memory.unpacked
    assert unpacked.left_s == {executor: 10.0}
    assert unpacked.settles_s == {"n0:6700": 10.0, target: 10.0}
    # A reading of 790 MB that stays is old, and one that some of what has left is gone from is not.
    kept_mb = (790 - HEAP.bare / MB) / 4
    rows = [(790.0, SHOWS_S), (791 - kept_mb / 2, SHOWS_S), (789 - kept_mb / 2, COLLECTED_S)]
    for live_mb, until_s in rows:
        now_places, _ = world([live_mb, 30.0, 30.0], [0])
        for wait_s, is_full in ((until_s - 1, False), (until_s, True)):
            now = replace(load, time_s=10.0 + wait_s)
            seen = unpacked.seen(now_places, now).settling(now_places, now, LIMITS)
            reserve = Reserve.of(seen, now, LIMITS)
            assert bool(reserve.full(reserve.fit)) is is_full, (live_mb, wait_s)
    # Once it was seen to be gone, what fills the heap again leaves it.
    shown, _ = world([300.0, 30.0, 30.0], [0])
    now = replace(load, time_s=10.0 + COLLECTED_S)
    seen = unpacked.seen(shown, now).settling(places, now, LIMITS)
    assert Reserve.of(seen, now, LIMITS).full(Reserve.of(seen, now, LIMITS).fit)
    for wait_s, stays in ((STAYS_S - 1, True), (STAYS_S, False)):
        held = unpacked.stay(places, replace(load, time_s=10.0 + wait_s), LIMITS)
        assert (not held.is_movable[load.executors.index(executor)]) is stays


def test_a_move_for_room_on_a_cpu_lets_no_heap_settle() -> None:
    places, load = world([100.0, 30.0], [0, 0, 0, 1])
    found = Unpacked(asked=("0-0", "n0:6700")).seen(places, load.moved(0, 1))
    assert not found.settles_s
    assert found.settling(places, load, LIMITS) is places


def test_many_full_heaps_make_one_warning() -> None:
    places, load = world([700.0, 790.0, 780.0], [0, 1, 2])
    decision = greedy_opening(places, load, LIMITS)
    (warning,) = decision.warnings
    assert warning.startswith("n1:6700 fills 0.988 of a heap, above 0.85, and cannot be relieved: ")
    assert warning.endswith("; nor can 2 more that are full")
    reserve = Reserve.of(places, load, LIMITS)
    missing = reserve.what_is_missing(reserve.fit)
    assert missing == "n1:6700 above 0.85 of a heap; 2 more as well"


def test_a_slot_beside_a_worker_brings_a_heap_and_no_cpu() -> None:
    """Else traffic would wait for it for ever."""
    places, load = world([30.0, 30.0, 30.0], [0, 1, 2])
    hot = replace(load, cpu_cores=np.array([7.9, 0.1, 0.1]))
    for node, opens in (("n1", False), ("n3", True)):
        spare = replace(places, spare=Spare(f"{node}:6701", node, 8.0))
        found = greedy(spare, hot, LIMITS)
        assert (found.outcome is Outcome.NO_LOW_WORKER) is opens, found


def test_a_relief_of_a_cpu_fills_no_heap_since_another_is_fuller() -> None:
    live_mb, place = [300.0, 400.0, 765.0], [0, 0, 1, 2, 0]
    places, _ = world(live_mb, place)
    places = replace(places, node_cores=np.array([1.0, 4.0, 4.0]))
    talk = [(0, 2, 200.0), (1, 2, 100.0), (3, 2, 1.0)]
    load = snapshot("abcde", place, [0.5, 0.3, 0.1, 0.1, 0.19], talk)
    load = replace(load, state_bytes=np.array([300e6, 0, 0, 0, 0]))
    load = load.holding({2: "it stays", 3: "it stays"})
    (heap,) = Reserve.of(places, load, LIMITS).spaces
    after = applied(greedy(places, load, LIMITS).moves, places, load).place
    assert not np.array_equal(after, load.place)
    assert heap.share_at(after)[1] <= LIMITS.high_frac


def test_no_heap_is_filled_above_the_limit_since_another_is_fuller() -> None:
    places, load = world([760.0, 30.0], [0, 0, 1])
    (heap,) = Reserve.of(places, load, LIMITS).spaces
    may = heap.may_hold(Reserve.of(places, load, LIMITS).fit)
    assert may.tolist() == pytest.approx([0.85 * MOST_MB * MB] * 2)
    assert not heap.overfilled_at(load.place, LIMITS.high_frac)
    assert heap.overfilled_at(np.array([1, 1, 1]), LIMITS.high_frac)

"""What goes over links in bytes, that none may be filled more, and what binds."""

from dataclasses import replace

import numpy as np
import pytest

from controller.core.cluster import Cluster, LoadSnapshot, Traffic
from controller.core.decision import Outcome
from controller.core.limits import Limits
from controller.core.links import Links, beside_each_other
from controller.core.loops.moves import is_barred
from controller.core.reserve import Reserve
from controller.core.view import View
from controller.policies.greedy import greedy

# Two spouts send large tuples to two bolts, and these many small ones to two others.
COMPONENTS = ("spout", "spout", "split", "split", "count", "count")


def world(place: list[int], rows: list[tuple[int, int, float]]) -> tuple[Cluster, LoadSnapshot]:
    cluster = Cluster.build("ab", [("a:1", "a", 1.0), ("a:2", "a", 1.0), ("b:1", "b", 1.0)])
    cluster = replace(cluster, node_cores=np.array([2.0, 2.0]))
    source, target, tps = zip(*rows, strict=True)
    return cluster, LoadSnapshot(
        topology="t",
        time_s=0.0,
        components=(),
        edges=(),
        executors=tuple(f"{e}-{e}" for e in range(len(place))),
        component_of=COMPONENTS,
        place=np.array(place),
        cpu_cores=np.full(len(place), 0.1),
        queue=np.zeros(len(place)),
        pinned=(None,) * len(place),
        traffic=Traffic.build(np.array(source), np.array(target), np.array(tps)),
    )


ROWS = [(0, 2, 10.0), (1, 3, 10.0), (2, 4, 100.0), (2, 5, 100.0), (3, 4, 100.0), (3, 5, 100.0)]
# Each spout is with its split; half of the small tuples cross.
TODAY = [0, 2, 0, 2, 0, 2]


def test_each_stream_counts_where_it_sends_most() -> None:
    links = Links(*world(TODAY, ROWS))
    assert sorted(links.sent.max(axis=(1, 2)).tolist()) == [0.0, 0.0, 100.0]


@pytest.mark.parametrize(
    ("place", "grows"),
    [
        (TODAY, False),
        ([0, 2, 0, 2, 1, 2], False),  # within a node nothing crosses
        ([0, 2, 0, 0, 0, 0], True),  # no small tuple crosses any more, and large ones do
        ([0, 0, 0, 0, 0, 0], False),  # nothing crosses
        ([0, 2, 0, 2, 2, 0], False),  # as much as before, by others
        ([0, 2, 0, 2, 0, 0], True),  # of the small ones as many cross, but all one way
    ],
)
def test_no_stream_may_send_more(place: list[int], *, grows: bool) -> None:
    links = Links(*world(TODAY, ROWS))
    assert links.grow_at(np.array(place)) is grows


@pytest.mark.parametrize(("large", "small"), [(50.0, 1.0), (np.nan, 1.0), (np.nan, np.nan)])
def test_a_move_is_barred_that_fills_a_link_more(large: float, small: float) -> None:
    links = sized(TODAY, large, small)
    view = View.of(links.cluster, links.snapshot, Limits())
    for executor in range(len(TODAY)):
        for worker in range(len(links.cluster.workers)):
            after = links.snapshot.moved(executor, worker).place
            assert is_barred(view.world, executor, worker) == links.grow_at(after)


def test_of_even_streams_each_has_as_much() -> None:
    links = Links(*world(TODAY, ROWS))
    even = links.even
    assert np.bincount(links.groups.streams, even.tps).tolist() == pytest.approx([210.0, 210.0])
    assert even.total_tps == pytest.approx(420.0)


def test_a_view_looks_at_links_where_nodes_are_filled() -> None:
    cluster, snapshot = world(TODAY, ROWS)
    view = View.of(cluster, snapshot, Limits())
    assert is_barred(view.world, 3, 0)
    assert not is_barred(view.world, 4, 1)
    alone = View.of(cluster.shared_out(), snapshot, Limits())
    assert not is_barred(alone.world, 3, 0)


def test_without_traffic_nothing_grows() -> None:
    cluster, snapshot = world(TODAY, ROWS)
    none = np.zeros(0, np.int64)
    still = replace(snapshot, traffic=Traffic(none, none, np.zeros(0)))
    links = Links(cluster, still)
    assert not links.grow_at(np.zeros(6, np.int64))
    assert links.even.total_tps == 0


def sized(place: list[int], large: float = 50.0, small: float = 1.0) -> Links:
    """Give tuples of spouts and those of splits a size each."""
    cluster, snapshot = world(place, ROWS)
    sizes = np.where(snapshot.traffic.source < 2, large, small)
    return Links(cluster, replace(snapshot, traffic=replace(snapshot.traffic, size_bytes=sizes)))


@pytest.mark.parametrize(
    ("place", "grows"),
    [
        (TODAY, False),
        ([0, 2, 0, 0, 0, 0], True),  # no small tuple crosses any more, and large ones do
        ([0, 2, 0, 2, 0, 0], True),  # as many small ones cross, but all one way
        ([0, 0, 0, 0, 0, 2], True),  # the same, and no others
        ([0, 2, 0, 2, 1, 2], False),
    ],
)
def test_the_fullest_direction_counts_in_bytes(place: list[int], *, grows: bool) -> None:
    assert sized(TODAY).grow_at(np.array(place)) is grows


def test_one_stream_may_send_more_where_another_sends_as_much_less() -> None:
    # Each split sends 100 small tuples to the other node. A large one takes the place of 50.
    place = np.array([0, 2, 2, 2, 2, 2])
    assert sized(TODAY).crossing.tolist() == [[100, 100], [100, 100]]
    assert not sized(TODAY, large=10.0).grow_at(place)
    assert sized(TODAY, large=10.1).grow_at(place)


def test_a_stream_of_unknown_size_may_send_no_more() -> None:
    unknown = sized(TODAY, large=np.nan)
    assert unknown.grow_at(np.array([0, 2, 2, 2, 2, 2]))
    assert not unknown.grow_at(np.array([0, 0, 0, 0, 0, 0]))


def test_a_full_direction_is_no_room_for_input() -> None:
    links = sized(TODAY)
    assert np.isinf(links.growth)
    capacity = np.array([[400.0, np.nan], [125.0, 0.0]])
    tight = Links(replace(links.cluster, link_bytes_s=capacity), links.snapshot)
    assert tight.growth == pytest.approx(1.25)
    assert tight.binding == "a"


@pytest.mark.parametrize(
    ("capacity", "kept"),
    [
        (1000.0, None),  # the CPU is full first, at 6 times the input
        (400.0, 4.0),  # as much as on the link
        (100.0, 1.0),  # the link is full
    ],
)
def test_cpu_may_be_used_as_much_as_a_link_that_is_full_first(
    capacity: float, kept: float | None
) -> None:
    links = sized(TODAY)
    cluster = replace(links.cluster, link_bytes_s=np.full((2, 2), capacity))
    reserve = Reserve.of(cluster, links.snapshot, Limits())
    assert reserve.fit.growth == pytest.approx(20 / 3)
    assert reserve.links_bind is (kept is not None)
    assert reserve.fit.kept == (None if kept is None else pytest.approx(kept))


def test_a_link_that_binds_is_looked_at_in_bytes() -> None:
    links = sized(TODAY)
    # 20 large tuples of 50 bytes and 400 small ones: 1,400 bytes in 420 tuples.
    assert links.size.tolist() == pytest.approx([15.0] * 2 + [0.3] * 4)
    (tuples,) = links.otherwise(in_bytes=True)
    assert tuples.tps.tolist() == links.traffic.tps.tolist()


def test_others_leave_the_rest_of_a_link() -> None:
    one, other = sized(TODAY), sized(TODAY, small=2.0)
    unknown = np.full((2, 2), np.nan)
    most = {"t": np.array([1000.0, np.nan]), "u": np.full(2, np.nan)}
    measured = {"t": np.array([[500.0, 0], [0, 0]]), "u": unknown}
    found = beside_each_other({"t": one, "u": other}, most, measured)
    assert found["u"].link_bytes_s is None
    left = found["t"].link_bytes_s
    assert left is not None
    # Of 500 bytes that were sent 100 are its own. Of what was received the other has 200.
    assert left[:, 0].tolist() == [600.0, 800.0]
    assert np.isnan(left[:, 1]).all()
    crowded = beside_each_other({"t": one}, {"t": np.full(2, 1.0)}, {"t": unknown + 1e6})
    assert crowded["t"].link_bytes_s is not None
    # What was known once is not kept.
    nothing = beside_each_other(
        {"t": Links(crowded["t"], one.snapshot)}, {"t": np.full(2, np.nan)}, {"t": unknown}
    )
    assert nothing["t"].link_bytes_s is None


def test_where_others_fill_a_link_no_other_one_is_filled() -> None:
    # Others leave nothing of what the first node may send.
    left = np.array([[1.0, 400.0], [400.0, 400.0]])
    links = sized([0, 0, 0, 0, 2, 2])
    full = Links(replace(links.cluster, link_bytes_s=left), links.snapshot)
    assert full.crossing.tolist() == [[400, 0], [0, 400]]
    assert full.growth == pytest.approx(1 / 400)
    # The first node would send nothing any more, and the second one more than it may.
    over = np.array([2, 2, 0, 0, 0, 0])
    assert full.sent_at(over)[0].tolist() == [[0, 1000], [1000, 0]]
    assert full.grow_at(over)
    assert full.overfilled_at(over, 0.85)
    # As it is, and with nothing that crosses, no link is fuller.
    for place in (full.snapshot.place, np.zeros(6, np.int64)):
        assert not full.grow_at(place)
        assert not full.overfilled_at(place, 0.85)


def test_a_relief_fills_no_direction_that_another_one_fills_today() -> None:
    # Nine tenths of what the first node may send are used, and nothing of what the second may.
    links = sized([0, 0, 2, 2, 2, 2])
    full = Links(replace(links.cluster, link_bytes_s=np.full((2, 2), 1111.0)), links.snapshot)
    assert full.shares.round(2).tolist() == [[0.9, 0], [0, 0.9]]
    # The other way round the links are as full.
    over = np.array([2, 2, 0, 0, 0, 0])
    assert not full.overfilled_at(over, 0.85)
    assert full.fuller_at(over, 0.85)
    # What is there may stay, and links may be filled up to `load.high`.
    assert not full.fuller_at(full.snapshot.place, 0.85)
    assert not full.fuller_at(np.array([0, 2, 2, 0, 2, 2]), 0.85)


@pytest.mark.parametrize(("small", "fuller"), [(1.0, True), (np.nan, True), (0.01, False)])
def test_a_stream_that_has_crossed_no_link_is_no_room(small: float, fuller: bool) -> None:
    # The bolts' tuples are all within the first node; those of the spouts cross, 50 bytes each.
    links = sized([2, 2, 0, 0, 0, 0], small=small)
    apart = np.array([2, 2, 0, 0, 2, 2])
    for capacity, is_fuller in ((2e3, fuller), (1e9, False)):
        cluster = replace(links.cluster, link_bytes_s=np.full((2, 2), capacity))
        assert Links(cluster, links.snapshot).fuller_at(apart, 0.1) is is_fuller


def many_barred(*, with_another: bool) -> tuple[Cluster, LoadSnapshot]:
    """Lay out ten executors with many small tuples from the other node, and large ones from theirs.

    Another one has small ones alone, and fewer.
    """
    count, on_b = 10, 0
    pairs = [(on_b, 1, 50.0 if with_another else 0.0)]
    for number in range(count):
        talks, to = 2 + number, 2 + count + number
        pairs += [(on_b, talks, 100.0), (talks, to, 10.0)]
    source, target, tps = zip(*pairs, strict=True)
    executors = 2 + 2 * count
    cluster = Cluster.build("ab", [("a:1", "a", 8.0), ("b:1", "b", 8.0)])
    traffic = Traffic.build(np.array(source), np.array(target), np.array(tps))
    snapshot = LoadSnapshot(
        topology="t",
        time_s=0.0,
        components=(),
        edges=(),
        executors=tuple(f"{e}-{e}" for e in range(executors)),
        component_of=("spout",) + ("bolt",) * (executors - 1),
        place=np.array([1] + [0] * (executors - 1)),
        cpu_cores=np.full(executors, 0.1),
        queue=np.zeros(executors),
        pinned=("stays",) + (None,) * (executors - 1),
        traffic=replace(traffic, size_bytes=np.where(traffic.target < 2 + count, 1.0, 1000.0)),
    )
    return replace(cluster, node_cores=np.array([8.0, 8.0])), snapshot


def test_a_move_that_fills_no_link_is_found_behind_any_number_that_do() -> None:
    decision = greedy(*many_barred(with_another=True), Limits())
    assert [move.executor for move in decision.moves] == ["1-1"]


def test_where_every_move_fills_a_link_more_it_is_said() -> None:
    decision = greedy(*many_barred(with_another=False), Limits())
    assert decision.outcome is Outcome.NOTHING_TO_GAIN
    assert decision.reason == (
        "each move that gains more than the threshold fills something too much: the best, "
        "2-2 to b:1 with 90 weighted t/s, fills a link more"
    )

"""What streams send between nodes, and that none may send more."""

from dataclasses import replace

import numpy as np
import pytest

from controller.core.cluster import Cluster, LoadSnapshot, Traffic
from controller.core.limits import Limits
from controller.core.links import Links
from controller.core.view.view import View

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
    links = Links.of(*world(TODAY, ROWS))
    assert sorted(links.fullest_tps.tolist()) == [0.0, 100.0]


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
    links = Links.of(*world(TODAY, ROWS))
    assert links.grow_at(np.array(place)) is grows


def test_of_even_streams_each_has_as_much() -> None:
    links = Links.of(*world(TODAY, ROWS))
    even = links.even
    assert np.bincount(links.streams, even.tps).tolist() == pytest.approx([210.0, 210.0])
    assert even.total_tps == pytest.approx(420.0)


def test_a_view_looks_at_links_where_nodes_are_filled() -> None:
    cluster, snapshot = world(TODAY, ROWS)
    view = View.of(cluster, snapshot, Limits())
    assert view.fills_a_link(3, 0)
    assert not view.fills_a_link(4, 1)
    alone = View.of(cluster.shared_out(), snapshot, Limits())
    assert not alone.fills_a_link(3, 0)


def test_without_traffic_nothing_grows() -> None:
    cluster, snapshot = world(TODAY, ROWS)
    none = np.zeros(0, np.int64)
    still = replace(snapshot, traffic=Traffic(none, none, np.zeros(0)))
    links = Links.of(cluster, still)
    assert not links.grow_at(np.zeros(6, np.int64))
    assert links.even.total_tps == 0

"""Equation 3 of 004 as a meter: the factor by which the input may grow, and what binds."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from controller.cli.status_document import as_document
from controller.cli.status_view import as_tables
from controller.config import Config
from controller.core.capacity import Capacity
from controller.core.cluster import Cluster, Level, LoadSnapshot
from controller.core.controls import Controls
from controller.core.decision import Outcome
from controller.core.distance import node_traffic
from controller.core.figures import Headroom
from controller.core.fit import Fit
from controller.core.headroom import NETWORK, headroom
from controller.core.layout import layout_of
from controller.core.limits import Limits
from controller.core.picture import Picture
from controller.core.resources import CPU, HEAP
from controller.core.topology import TopologyView
from controller.report import TopologyReport
from controller.snapshot import parse
from controller.storm import status
from migration.model import Plan
from tests.messages import publication
from tests.snapshots import cluster as cluster_of
from tests.snapshots import snapshot as snapshot_of

HAND_GRAPH = Path(__file__).parents[3] / "golden" / "decide" / "hand_graph.json"


@pytest.fixture
def world() -> tuple[Cluster, LoadSnapshot]:
    return parse(HAND_GRAPH.read_text())


def test_without_a_link_capacity_the_busiest_worker_binds(
    world: tuple[Cluster, LoadSnapshot],
) -> None:
    found = headroom(*world)
    assert found.factor == pytest.approx(1 / 0.4)
    assert (found.binds, found.where) == (CPU.name, "n0:6700")


def linked(
    world: tuple[Cluster, LoadSnapshot], bytes_s: float, size_bytes: float = 2.0
) -> tuple[Cluster, LoadSnapshot]:
    """Let each link carry this much in one direction, and tuples be of one size."""
    cluster, snapshot = world
    sizes = np.full(len(snapshot.traffic.tps), size_bytes)
    traffic = replace(snapshot.traffic, size_bytes=sizes)
    links = replace(cluster, link_bytes_s=np.full((2, len(cluster.nodes)), bytes_s))
    return links, replace(snapshot, traffic=traffic)


def test_the_busiest_direction_of_a_link_binds_when_it_is_full_sooner(
    world: tuple[Cluster, LoadSnapshot],
) -> None:
    # n0 to n1: 0→1 8, 3→5 4; n1 to n0: 1→3 5; 2→4 7 goes from n0 to n1. So 19 one way, 5 back.
    assert headroom(*linked(world, 76.0)) == Headroom(2.0, NETWORK, "n0")
    # At 2.5 both are full at once, and CPU is named.
    assert headroom(*linked(world, 95.0)).binds == CPU.name


def test_the_fullest_heap_binds_where_it_is_full_first(world: tuple[Cluster, LoadSnapshot]) -> None:
    cluster, snapshot = world
    most = np.array([100.0, 100.0, 100.0, np.nan]) * 1e6
    live = np.array([30.0, 80.0, np.nan, 90.0]) * 1e6
    full = replace(cluster, spaces={HEAP.name: Level(live, most)})
    found = headroom(full, snapshot)
    assert (found.binds, found.where) == (HEAP.name, "n0:6701")
    assert found.factor == pytest.approx(1 / 0.8)
    roomy = replace(cluster, spaces={HEAP.name: Level(0.4 * live, most)})
    assert headroom(roomy, snapshot).binds == CPU.name
    unknown = replace(cluster, spaces={HEAP.name: Level(np.full(4, np.nan), most)})
    assert headroom(unknown, snapshot).binds == CPU.name


def test_without_workers_nothing_binds() -> None:
    none = np.zeros(0)
    empty = replace(cluster_of(()), node_cores=none, spaces={HEAP.name: Level(none, none)})
    assert headroom(empty, snapshot_of([])) == Headroom()


def test_without_sizes_of_tuples_no_link_is_full(world: tuple[Cluster, LoadSnapshot]) -> None:
    assert headroom(*linked(world, 1.0, np.nan)).binds == CPU.name


def test_a_worker_of_twice_the_capacity_counts_by_its_share(
    world: tuple[Cluster, LoadSnapshot],
) -> None:
    cluster, snapshot = world
    strong = replace(cluster, capacity_cores=np.array([4.0, 0.25, 1.0, 1.0]))
    found = headroom(strong, snapshot)
    assert found.factor == pytest.approx(1.25)
    assert found.where == "n0:6701"


def test_nothing_in_use_leaves_nothing_to_say(world: tuple[Cluster, LoadSnapshot]) -> None:
    cluster, snapshot = world
    idle = replace(
        snapshot,
        cpu_cores=np.zeros(6),
        traffic=replace(snapshot.traffic, tps=np.zeros(6)),
    )
    assert headroom(*linked((cluster, idle), 10.0)) == Headroom()


def test_traffic_within_a_node_fills_no_link(world: tuple[Cluster, LoadSnapshot]) -> None:
    cluster, snapshot = world
    together = replace(snapshot, place=np.array([0, 1, 0, 1, 0, 1]))
    assert headroom(*linked((cluster, together), 1e-3)).binds == CPU.name


def test_status_shows_the_factor_and_what_binds(world: tuple[Cluster, LoadSnapshot]) -> None:
    cluster, snapshot = linked(world, 76.0)
    view = TopologyView(publication({}), Plan("", 0, -1, "t"), ())
    layout = replace(layout_of(view, Capacity(), None, {}), cluster=cluster)
    picture = Picture(view, layout, snapshot, Fit.of(cluster, snapshot, Limits()))
    report = TopologyReport(1, "wc-1", 0.0, Outcome.NOTHING_TO_GAIN, "calm", picture=picture)
    told = status.status_of([report], (), Config(), name="c", epoch=1)
    (cycle,) = told.cycles
    assert cycle.headroom == Headroom(2.0, "network", "n0")
    document = as_document([view], (), told, Controls(), left_out={})
    shown = [str(one) for one in as_tables(document)]
    assert [one.partition(";")[0] for one in shown if one.startswith("head-room")] == [
        "head-room: 2 times the input, then network of n0"
    ]


def test_the_links_with_the_most_traffic_come_first(world: tuple[Cluster, LoadSnapshot]) -> None:
    assert node_traffic(*world, 5) == [(19.0, 0, 1, None), (5.0, 1, 0, None)]
    assert node_traffic(*world, 1) == [(19.0, 0, 1, None)]
    cluster, snapshot = world
    level = replace(snapshot.traffic, tps=np.array([8.0, 0, 8, 0, 0, 0]))
    even = replace(snapshot, traffic=level)
    # As much each way: the first node first.
    assert node_traffic(cluster, even, 1) == [(8.0, 0, 1, None)]
    sized = replace(even, traffic=replace(level, size_bytes=np.full(6, 10.0)))
    assert node_traffic(cluster, sized, 1) == [(8.0, 0, 1, 80.0)]

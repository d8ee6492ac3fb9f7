"""The order in which the older schedulers walk components, cycles and gaps included."""

from dataclasses import replace

import pytest
from msgspec import structs

from controller.policies.component_graph import (
    acyclic,
    component_graph,
    consumers,
    executors_of,
    feeders,
    linearised,
)
from tests.unit.controller.policies.placement_worlds import topology

DIAMOND = [("spout", "b"), ("spout", "a"), ("a", "join"), ("b", "join")]


def test_graph_keeps_the_order_of_the_components_whatever_that_of_the_edges() -> None:
    snapshot = topology({"spout": 1, "b": 1, "a": 1, "join": 1}, DIAMOND)
    backwards = replace(snapshot, edges=snapshot.edges[::-1])
    for one in (snapshot, backwards):
        graph = component_graph(one)
        assert list(graph) == ["spout", "b", "a", "join"]
        assert feeders(graph, "join") == ["b", "a"]
        assert consumers(graph, "spout") == ["b", "a"]
        assert linearised(graph) == ["spout", "b", "a", "join"]


def test_system_components_are_left_out_and_come_last_among_the_executors() -> None:
    snapshot = topology(
        {"__acker": 2, "spout": 1, "bolt": 2},
        [("spout", "bolt"), ("spout", "__acker"), ("__acker", "spout")],
    )
    graph = component_graph(snapshot)
    assert list(graph.edges) == [("spout", "bolt")]
    assert executors_of(snapshot) == {"spout": [2], "bolt": [3, 4], "__acker": [0, 1]}
    assert list(executors_of(snapshot)) == ["spout", "bolt", "__acker"]


def test_two_streams_are_one_edge_and_a_component_without_executors_is_a_node() -> None:
    snapshot = topology({"spout": 1, "gone": 0, "bolt": 1}, [("spout", "gone"), ("gone", "bolt")])
    snapshot = replace(
        snapshot, edges=(*snapshot.edges, structs.replace(snapshot.edges[0], stream="s"))
    )
    assert linearised(component_graph(snapshot)) == ["spout", "gone", "bolt"]
    assert component_graph(snapshot).number_of_edges() == 2
    assert executors_of(snapshot)["gone"] == []


@pytest.mark.parametrize(
    ("names", "edges", "order", "dropped"),
    [
        # Listed last, the spout still is where the search starts.
        ("b a spout", "spout>a a>b b>a", "spout a b", {("b", "a")}),
        ("spout a b sink", "spout>a a>b b>a b>sink", "spout a b sink", {("b", "a")}),
        ("a b c", "a>b b>c c>a", "a b c", {("c", "a")}),
        ("a b", "a>a a>b", "a b", {("a", "a")}),
        ("sink a spout", "spout>a a>sink", "spout a sink", set()),
        ("two one", "", "two one", set()),
    ],
)
def test_a_cycle_loses_the_edges_that_lead_back(
    names: str, edges: str, order: str, dropped: set[tuple[str, str]]
) -> None:
    pairs = [(edge.split(">")[0], edge.split(">")[1]) for edge in edges.split()]
    graph = component_graph(topology(dict.fromkeys(names.split(), 1), pairs))
    assert linearised(graph) == order.split()
    assert set(graph.edges) - set(acyclic(graph).edges) == dropped

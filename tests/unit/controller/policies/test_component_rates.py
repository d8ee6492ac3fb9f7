"""What each component takes in: planned, measured, on graphs with several sources and cycles."""

from dataclasses import replace
from pathlib import Path

import networkx as nx  # type: ignore[import-untyped]
import numpy as np
import pytest

from controller.core.cluster import LoadSnapshot, Traffic
from controller.policies.component_graph import input_rates, planned_rates, spouts
from controller.policies.profiles import Profile, Profiles
from controller.snapshot import parse
from migration.model import Component, Edge

SADDLE = Path(__file__).parents[3] / "golden" / "decide" / "saddle.json"


def snapshot() -> LoadSnapshot:
    return parse(SADDLE.read_text())[1]


def graph(*edges: str) -> nx.DiGraph:
    built = nx.DiGraph()
    built.add_edges_from(tuple(edge) for edge in edges)
    return built


def test_outputs_go_to_every_consumer_whole() -> None:
    fork = graph("ab", "ac", "bd", "cd")
    assert input_rates(fork, {"a": 2.0, "b": 0.5}, 10) == {"a": 10, "b": 20, "c": 20, "d": 30}


def test_every_source_gets_the_rate_and_a_loop_counts_once() -> None:
    assert input_rates(graph("ac", "bc"), {}, 5) == {"a": 5, "b": 5, "c": 10}
    loop = graph("ab", "bc", "cb")
    assert input_rates(loop, {}, 5) == {"a": 5, "b": 5, "c": 5}
    assert spouts(loop) == ["a"]
    assert spouts(graph("ab", "ba")) == ["a"]


def test_a_planned_rate_is_shared_by_the_spouts() -> None:
    two = replace(
        snapshot(),
        components=tuple(Component(name, "bolt", 1) for name in ("bolt1", "other", "bolt2")),
        edges=(
            Edge("bolt1", "bolt2", "default", "shuffle"),
            Edge("other", "bolt2", "default", "shuffle"),
        ),
    )
    profiles = Profiles({"bolt1": Profile(selectivity=3.0)}, rate_tps=10.0)
    assert planned_rates(two, profiles) == {"bolt1": 5, "other": 5, "bolt2": 20}


def test_measured_is_what_arrives_and_of_a_source_what_it_sends_once() -> None:
    assert planned_rates(snapshot()) == {"bolt1": 40, "bolt2": 40}
    third = replace(
        snapshot(),
        components=(*snapshot().components, Component("bolt3", "bolt", 1)),
        edges=(*snapshot().edges, Edge("bolt1", "bolt3", "default", "shuffle")),
        component_of=("bolt1", "bolt1", "bolt2", "bolt3"),
    )
    assert planned_rates(third) == {"bolt1": 20, "bolt2": 20, "bolt3": 20}


def test_traffic_within_a_component_and_with_system_components_does_not_count() -> None:
    ends = np.array([[0, 1], [0, 2], [2, 0]])
    acked = replace(
        snapshot(),
        components=(Component("bolt1", "bolt", 2), Component("bolt2", "system", 2)),
        traffic=Traffic.build(ends[:, 0], ends[:, 1], np.array([1.0, 2.0, 4.0])),
    )
    assert planned_rates(acked) == {"bolt1": 0.0}
    no_pairs = Traffic.build(ends[:0, 0], ends[:0, 1], np.zeros(0))
    assert planned_rates(replace(snapshot(), traffic=no_pairs)) == pytest.approx(
        {"bolt1": 0.0, "bolt2": 0.0}
    )

"""Every figure of 003 that arithmetic reaches: cohesion, coupling, pipelines, locality."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from controller.core.cluster import Ints, LoadSnapshot
from controller.core.decision import Outcome
from controller.core.limits import Limits
from controller.policies.even import even_place, lf, lf_place, pipelines
from tests.papers.cohesion import closeness, cohesion, coupling
from tests.snapshots import cluster
from tests.unit.controller.policies.placement_worlds import chain, topology

SIZES = {
    "linear": [1] * 8,
    "ascent": [1, 2, 3, 4, 5, 6, 7, 8],
    "descent": [8, 7, 6, 5, 4, 3, 2, 1],
    "diamond": [2, 4, 6, 8, 8, 6, 4, 2],
    "star": [8, 6, 4, 2, 2, 4, 6, 8],
}
# Section 4.2: pipelines, cohesion even and L/F, gain printed in the paper in per cent.
COHESION = {
    "linear": (1, 0.175, 7.0, "3900"),
    "ascent": (8, 16.3, 28.0, "71.78"),
    "descent": (8, 16.475, 28.175, "71.02"),
    "diamond": (8, 24.35, 32.15, "32.03"),
    "star": (14, 16.4, 26.15, "59.45"),
}
# Coupling by the closest twin, even and L/F: on 8 slots, and with ten times all on 80.
COUPLING = {
    "linear": (0.0, 0.0, 2.0, 2.0),
    "ascent": (0.875, 0.875, 9.0, 9.0),
    "descent": (0.875, 0.875, 9.0, 9.0),
    "diamond": (1.0, 1.0, 10.0, 10.0),
    "star": (1.0, 12.7, 10.0, 127.0),
}


def workload(name: str, times: int = 1) -> LoadSnapshot:
    return chain(*(size * times for size in SIZES[name]))


def both_places(snapshot: LoadSnapshot, times: int) -> tuple[Ints, Ints]:
    eight_nodes = cluster([times] * 8)
    return even_place(eight_nodes, snapshot), lf_place(eight_nodes, snapshot)


@pytest.mark.parametrize("times", [1, 10])
@pytest.mark.parametrize("name", SIZES)
def test_cohesion_is_as_printed(name: str, times: int) -> None:
    snapshot = workload(name, times)
    count, even_value, lf_value, printed = COHESION[name]
    even_cohesion, lf_cohesion = (cohesion(snapshot, p) for p in both_places(snapshot, times))
    assert len(pipelines(snapshot)) == count * times
    assert round(even_cohesion, 9) == round(even_value * times, 9)
    assert round(lf_cohesion, 9) == round(lf_value * times, 9)
    decimals = len(printed.partition(".")[2])
    assert round(100 * (lf_cohesion / even_cohesion - 1), decimals) == float(printed)


@pytest.mark.parametrize("name", SIZES)
def test_coupling_by_the_closest_twin_differs_for_star(name: str) -> None:
    low, high = workload(name), workload(name, 10)
    values = [coupling(low, p) for p in both_places(low, 1)]
    values += [coupling(high, p) for p in both_places(high, 10)]
    assert [round(value, 9) for value in values] == list(COUPLING[name])


@pytest.mark.parametrize("name", SIZES)
def test_coupling_by_the_farthest_twin_is_equal_as_printed(name: str) -> None:
    low = workload(name)
    even_value, lf_value = (coupling(low, p, farthest=True) for p in both_places(low, 1))
    assert even_value == lf_value
    assert round(even_value, 9) == COUPLING[name][0]


def test_star_begun_from_the_last_component_gives_another_figure() -> None:
    snapshot = workload("star")
    even_value = cohesion(snapshot, both_places(snapshot, 1)[0])
    last_first = replace(snapshot, components=snapshot.components[::-1])
    from_last = cohesion(snapshot, lf_place(cluster([1] * 8), last_first))
    assert round(100 * (from_last / even_value - 1), 2) == 71.34


def test_closeness_of_a_process_and_of_two() -> None:
    assert (closeness(3, 3), closeness(3, 4)) == (1.0, 0.025)


def test_figure_4() -> None:
    names = {"sample": 3, "extract": 2, "count": 3}
    snapshot = topology(names, [("sample", "extract"), ("extract", "count")])
    s1, s2, s3, e1, e2, c1, c2, c3 = range(8)
    assert pipelines(snapshot) == [[s1, e1, c1], [s2, e2, c2], [s3], [c3]]
    place = lf_place(cluster([1] * 4), snapshot)
    assert [np.flatnonzero(place == w).tolist() for w in range(4)] == pipelines(snapshot)


def remote(snapshot: LoadSnapshot, place: Ints) -> int:
    """Count upstream executors of two components without a downstream one in their worker."""
    first, second = (c.id for c in snapshot.components)
    at = [
        {int(place[e]) for e, name in enumerate(snapshot.component_of) if name == wanted}
        for wanted in (first, second)
    ]
    ups = [int(place[e]) for e, name in enumerate(snapshot.component_of) if name == first]
    assert at[0] == set(ups)
    return sum(w not in at[1] for w in ups)


@settings(max_examples=60)
@given(st.integers(1, 9), st.integers(1, 9), st.integers(1, 12))
def test_upstreams_that_must_use_the_network(ups: int, downs: int, slots: int) -> None:
    """Table 1 and section 3.3; the formulas hold while no slot has two upstreams."""
    ups = min(ups, slots)
    snapshot, places = chain(ups, downs), cluster([1] * slots)
    even_place_, lf_place_ = even_place(places, snapshot), lf_place(places, snapshot)
    assert remote(snapshot, even_place_) == min(ups, max(slots - downs, 0))
    assert remote(snapshot, lf_place_) == max(ups - downs, 0)
    assert len(set(even_place_.tolist())) == min(ups + downs, slots)
    assert len(set(lf_place_.tolist())) == min(max(ups, downs), slots)


def test_figures_3_and_5() -> None:
    four = cluster([1] * 4)
    simple = topology({"po1": 2, "po2": 2}, [("po1", "po2")])
    assert len(set(even_place(four, simple).tolist())) == 4
    assert len(set(lf_place(four, simple).tolist())) == 2
    partial = chain(2, 3)
    assert remote(partial, even_place(four, partial)) == 1
    assert remote(partial, lf_place(four, partial)) == 0
    # Even keeps 2 of 4 within a worker of a source, but none of these has a sink.
    none = chain(2, 4, 2)
    place = even_place(four, none)
    assert not {int(w) for w in place[:2]} & {int(w) for w in place[6:]}
    place = lf_place(four, none)
    assert place[:2].tolist() == place[2:4].tolist() == place[6:].tolist() == [0, 1]


def test_cycles_branches_gaps_and_ackers() -> None:
    snapshot = topology(
        {"spout": 1, "a": 2, "b": 2, "gone": 0, "__acker": 2},
        [("spout", "a"), ("a", "b"), ("b", "a"), ("a", "a"), ("b", "gone")],
    )
    assert pipelines(snapshot) == [[0, 1, 3], [2, 4], [5], [6]]
    place = lf_place(cluster([1, 1]), snapshot)
    # Two executors of b talk to a, which is with them; the stream to no executor counts nothing.
    assert cohesion(snapshot, place) == 1 + 2 + 2
    assert coupling(snapshot, place) == 4 / 40


def test_a_decision_and_one_without_a_choice() -> None:
    decision = lf(cluster([2, 2]), chain(2, 2), Limits())
    assert decision.outcome is Outcome.WOULD_MOVE
    assert [(move.executor, move.target) for move in decision.moves] == [
        ("2-2", "n1:6700"),
        ("4-4", "n1:6700"),
    ]
    assert lf(cluster([1]), chain(2, 2), Limits()).outcome is Outcome.NOTHING_TO_GAIN

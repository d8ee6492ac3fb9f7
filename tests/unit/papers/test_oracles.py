"""The oracles of placements: known optima, agreement with each other, and what they refuse."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from controller.core.cluster import Cluster, LoadSnapshot
from controller.core.limits import Limits
from controller.snapshot import parse
from tests.papers.bound import between_nodes, word_count_ratio
from tests.papers.problem import PlacementProblem, cheapest

GOLDEN = Path(__file__).parents[2] / "golden" / "decide"
NODES_ONLY = Limits(weight_node=1.0, weight_worker=0.0)


def golden(name: str) -> tuple[Cluster, LoadSnapshot]:
    return parse((GOLDEN / f"{name}.json").read_text())


def at_node_capacity(name: str, cores: float) -> PlacementProblem:
    cluster, snapshot = golden(name)
    problem = PlacementProblem.of(cluster, snapshot, replace(NODES_ONLY, high_frac=1.0))
    return replace(problem, node_cores=np.full(len(cluster.nodes), cores))


@pytest.mark.parametrize(("cores", "cost_tps"), [(0.6, 6.0), (0.8, 6.0), (1.2, 0.0)])
def test_hand_graph(cores: float, cost_tps: float) -> None:
    problem = at_node_capacity("hand_graph", cores)
    best = cheapest(problem)
    assert best is not None
    assert problem.fits(best)
    assert problem.cost_tps(best) == cost_tps
    nodes = between_nodes(problem)
    bound = cheapest(nodes)
    assert bound is not None
    assert nodes.fits(bound)
    assert nodes.cost_tps(bound) == cost_tps


@pytest.mark.parametrize(("cores", "cost_tps"), [(0.8, 0.0), (0.6, 20.0), (0.4, 20.0)])
def test_saddle(cores: float, cost_tps: float) -> None:
    problem = at_node_capacity("saddle", cores)
    best = cheapest(problem)
    assert best is not None
    assert problem.cost_tps(best) == cost_tps


def test_pinned_executors_stay_and_closed_workers_get_nothing() -> None:
    cluster, snapshot = golden("saddle")
    snapshot = replace(snapshot, pinned=("spout", None, None, None))
    closed = replace(cluster, closed=("no hooks", None))
    best = cheapest(PlacementProblem.of(closed, snapshot, Limits()))
    assert best is not None
    # No executor may come to the spout, and without it 20 of 40 t/s meet wherever the third one is.
    assert best.tolist() == [0, 1, 0, 1]


def test_nothing_fits() -> None:
    cluster, snapshot = golden("saddle")
    crowded = replace(snapshot, cpu_cores=np.full(4, 0.5))
    problem = PlacementProblem.of(cluster, crowded, Limits())
    assert cheapest(problem) is None


def test_no_traffic_and_one_worker() -> None:
    cluster, snapshot = golden("saddle")
    silent = replace(snapshot, traffic=replace(snapshot.traffic, tps=np.zeros(4)))
    assert _least_tps(PlacementProblem.of(cluster, silent, Limits())) == 0
    one = Cluster.build(["n0"], [("n0:1", "n0", 1.0)])
    here = replace(snapshot, place=np.zeros(4, dtype=np.int64))
    none = np.zeros(0, dtype=np.int64)
    alone = replace(here, traffic=replace(here.traffic, source=none, target=none, tps=np.zeros(0)))
    assert _least_tps(PlacementProblem.of(one, alone, Limits())) == 0


def _least_tps(problem: PlacementProblem) -> float:
    best = cheapest(problem)
    assert best is not None
    return problem.cost_tps(best)


@pytest.mark.parametrize(
    ("nodes", "workers", "use", "ratio"),
    [
        (2, 4, 0.5, 0.255),
        (2, 4, 0.65, 0.4527),
        (4, 2, 0.3, 0.4132),
        (8, 2, 0.3, 0.6641),
        (16, 2, 0.3, 0.8301),
    ],
)
def test_word_count_bound(nodes: int, workers: int, use: float, ratio: float) -> None:
    node_cores = [0.85 * workers] * nodes
    assert word_count_ratio(node_cores, use * workers * nodes) == pytest.approx(ratio, abs=5e-5)


def test_word_count_bound_fills_large_nodes_first_and_refuses_what_does_not_fit() -> None:
    assert word_count_ratio([1.0, 3.0], 4.0) == pytest.approx(1 - 9 / 16 - 1 / 16)
    assert word_count_ratio([4.0], 1.0) == 0
    with pytest.raises(ValueError, match="5 cores of load do not fit 4"):
        word_count_ratio([1.0, 3.0], 5.0)


def test_word_count_bound_holds_for_the_best_placement() -> None:
    """Two bolts of three, all the same, on two nodes that hold four of the six."""
    one, other = np.repeat(np.arange(3), 3), np.tile(np.arange(3, 6), 3)
    problem = PlacementProblem(
        one=one,
        other=other,
        tps=np.ones(9),
        cpu_cores=np.full(6, 0.2),
        node_of=np.arange(2),
        place_cores=np.full(2, 0.8),
        node_cores=np.full(2, 0.8),
        allowed=np.ones((6, 2), dtype=np.bool_),
        weight_node=1.0,
        weight_place=0.0,
    )
    best = cheapest(problem)
    assert best is not None
    # Two and two next to one and one: 5 of 9 pairs meet, just as many as the bound allows.
    assert problem.cost_tps(best) / 9 == pytest.approx(word_count_ratio([0.8, 0.8], 1.2))

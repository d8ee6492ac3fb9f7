"""The oracles: known optima, agreement with each other, and what they refuse."""

from dataclasses import replace
from itertools import product
from math import inf
from pathlib import Path

import numpy as np
import pytest

from controller.core.classify import Limits
from controller.core.cluster import Cluster, LoadSnapshot, inter_node_tps
from controller.core.decision import Decision, Outcome
from controller.errors import PolicyError
from controller.policies.exhaustive.policy import exhaustive, search
from controller.policies.exhaustive.problem import PlacementProblem
from controller.policies.registry import NAMES, Options, policy
from controller.snapshot import parse
from tests.papers.bound import between_nodes, word_count_ratio
from tests.papers.linear_program import solve

GOLDEN = Path(__file__).parents[3] / "golden" / "decide"
NODES_ONLY = Limits(weight_node=1.0, weight_worker=0.0)


def golden(name: str) -> tuple[Cluster, LoadSnapshot]:
    return parse((GOLDEN / f"{name}.json").read_text())


def at_node_capacity(name: str, cores: float) -> tuple[PlacementProblem, LoadSnapshot]:
    cluster, snapshot = golden(name)
    problem = PlacementProblem.of(cluster, snapshot, replace(NODES_ONLY, high_frac=1.0))
    room = np.full(len(cluster.nodes), cores)
    return replace(problem, node_cores=room), snapshot


def after(cluster: Cluster, snapshot: LoadSnapshot, decision: Decision) -> LoadSnapshot:
    for move in decision.moves:
        executor = snapshot.executors.index(move.executor)
        snapshot = snapshot.moved(executor, cluster.workers.index(move.target))
    return snapshot


@pytest.mark.parametrize(("cores", "cost_tps"), [(0.6, 6.0), (0.8, 6.0), (1.2, 0.0)])
def test_hand_graph(cores: float, cost_tps: float) -> None:
    problem, snapshot = at_node_capacity("hand_graph", cores)
    best = search(problem, snapshot.place)
    assert best is not None
    assert problem.fits(best)
    assert problem.cost_tps(best) == cost_tps
    for version in (problem, between_nodes(problem)):
        solution = solve(version, 30.0)
        assert solution.is_proven
        assert solution.cost_tps == pytest.approx(cost_tps)
        assert version.fits(solution.place)


@pytest.mark.parametrize(("cores", "cost_tps"), [(0.8, 0.0), (0.6, 20.0), (0.4, 20.0)])
def test_saddle(cores: float, cost_tps: float) -> None:
    problem, snapshot = at_node_capacity("saddle", cores)
    best = search(problem, snapshot.place)
    assert best is not None
    assert problem.cost_tps(best) == cost_tps
    assert solve(problem, 30.0).cost_tps == pytest.approx(cost_tps)


def test_the_policy_leaves_the_saddle_and_keeps_what_is_best() -> None:
    cluster, snapshot = golden("saddle")
    decision = exhaustive(cluster, snapshot, Limits())
    end = after(cluster, snapshot, decision)
    assert inter_node_tps(cluster, end) == 0
    assert len(decision.moves) == 2
    assert exhaustive(cluster, end, Limits()).outcome is Outcome.NOTHING_TO_GAIN


def test_the_policy_pays_for_room_with_traffic() -> None:
    cluster, snapshot = golden("ping_pong")
    decision = exhaustive(cluster, snapshot, Limits())
    assert inter_node_tps(cluster, after(cluster, snapshot, decision)) == 10
    assert "0 before, 10 t/s at best" in decision.reason


def test_weights_decide_between_node_and_worker() -> None:
    cluster, snapshot = golden("hand_graph")
    costs = [
        PlacementProblem.of(cluster, snapshot, limits).cost_tps(
            after(cluster, snapshot, exhaustive(cluster, snapshot, limits)).place
        )
        for limits in (NODES_ONLY, Limits())
    ]
    plain = PlacementProblem.of(cluster, snapshot, Limits())
    everywhere = product(range(4), repeat=6)
    assert costs[1] == pytest.approx(
        min(plain.cost_tps(np.array(p)) for p in everywhere if plain.fits(np.array(p)))
    )
    assert costs[0] == 0


def test_pinned_executors_stay_and_closed_workers_get_nothing() -> None:
    cluster, snapshot = golden("saddle")
    snapshot = replace(snapshot, pinned=("spout", None, None, None))
    closed = replace(cluster, closed=("no hooks", None))
    end = after(closed, snapshot, exhaustive(closed, snapshot, Limits()))
    # No executor may come to the spout, and without it 20 of 40 t/s meet wherever the third one is.
    assert end.place.tolist() == [0, 1, 0, 1]


def test_nothing_fits() -> None:
    cluster, snapshot = golden("saddle")
    full = replace(snapshot, cpu_cores=np.array([0.2, 0.9, 0.2, 0.2]))
    decision = exhaustive(cluster, full, Limits())
    assert (decision.outcome, decision.moves) == (Outcome.NO_LOW_WORKER, ())
    assert "1-1 (bolt1) alone needs 0.9 cores, more than 0.85 of any worker" in decision.reason
    crowded = replace(snapshot, cpu_cores=np.full(4, 0.5))
    decision = exhaustive(cluster, crowded, Limits())
    assert decision.outcome is Outcome.NO_LOW_WORKER
    assert "2 cores are in use, 1.7 may be" in decision.reason
    solution = solve(PlacementProblem.of(cluster, crowded, Limits()), 30.0)
    assert (solution.place, solution.lower_tps, solution.is_proven) == (None, inf, True)


def test_too_large_is_refused_with_the_size() -> None:
    _, snapshot = golden("hand_graph")
    many = Cluster.build(["n0"], [(f"n0:{i}", "n0", 1.0) for i in range(12)])
    with pytest.raises(PolicyError, match=r"6 movable executors on 12 workers are 12\^6"):
        exhaustive(many, snapshot, Limits())
    pinned = replace(snapshot, pinned=("spout", *snapshot.pinned[1:]))
    assert exhaustive(many, pinned, Limits()).reason


@pytest.mark.parametrize("name", ["dsm", "rsm", "heterogeneity", "exhaustive"])
def test_policies_are_known_by_name(name: str) -> None:
    cluster, snapshot = golden("hand_graph")
    decision = policy(name, Options())(cluster, snapshot, Limits())
    assert decision.outcome is Outcome.WOULD_MOVE
    assert name in NAMES


def test_no_traffic_and_one_worker() -> None:
    cluster, snapshot = golden("saddle")
    silent = replace(snapshot, traffic=replace(snapshot.traffic, tps=np.zeros(4)))
    assert exhaustive(cluster, silent, Limits()).outcome is Outcome.NOTHING_TO_GAIN
    assert solve(PlacementProblem.of(cluster, silent, Limits()), 30.0).cost_tps == 0
    one = Cluster.build(["n0"], [("n0:1", "n0", 1.0)])
    here = replace(snapshot, place=np.zeros(4, dtype=np.int64))
    assert exhaustive(one, here, Limits()).outcome is Outcome.NOTHING_TO_GAIN
    none = np.zeros(0, dtype=np.int64)
    alone = replace(here, traffic=replace(here.traffic, source=none, target=none, tps=none))
    assert solve(PlacementProblem.of(one, alone, Limits()), 30.0).cost_tps == 0


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
    best = search(problem, np.zeros(6, dtype=np.int64))
    assert best is not None
    # Two and two beside one and one: 5 of 9 pairs meet, just as many as the bound allows.
    assert problem.cost_tps(best) / 9 == pytest.approx(word_count_ratio([0.8, 0.8], 1.2))

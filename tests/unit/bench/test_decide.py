"""The cases are as described, and fresh worlds are measured against the best of them."""

from pathlib import Path

import numpy as np
import pytest

from controller.core.distance import inter_node_tps
from controller.core.fit import Fit
from controller.core.limits import Limits
from controller.policies.gather.problem import Problem
from controller.policies.options import TargetOptions
from tests.bench.decide.cases import CASES, Groups, Hardware, crowd, keyed, planted
from tests.bench.decide.fresh import measured, summary
from tests.bench.decide.report import as_tables, bench
from tests.bench.decide.worlds import TIGHT, Kind, kinds, world
from tests.papers.problem import PlacementProblem, cheapest


@pytest.mark.parametrize("name", CASES)
def test_a_case_is_the_same_for_the_same_seed_and_loads_what_it_should(name: str) -> None:
    cluster, snapshot = CASES[name](3)
    again = CASES[name](3)[1]
    assert np.array_equal(snapshot.place, again.place)
    assert np.array_equal(snapshot.traffic.tps, again.traffic.tps)
    used_frac = snapshot.cpu_cores.sum() / cluster.capacity_cores.sum()
    assert used_frac == pytest.approx(0.5)
    counts = np.bincount(snapshot.place, minlength=len(cluster.workers))
    assert counts.max() - counts.min() <= 1


@pytest.mark.parametrize("kind", [*kinds(None), *kinds(100)], ids=lambda kind: kind.name)
def test_a_fresh_world_is_the_same_for_the_same_seed_and_too_full_nowhere(kind: Kind) -> None:
    cluster, snapshot = world(kind, 2)
    again = world(kind, 2)[1]
    assert np.array_equal(snapshot.place, again.place)
    assert np.array_equal(snapshot.traffic.tps, again.traffic.tps)
    assert not Fit.of(cluster, snapshot, Limits()).is_high.any()
    assert any(snapshot.pinned) == bool(kind.pinned_frac)


def test_even_wordcount_sends_half_of_its_tuples_between_two_nodes() -> None:
    cluster, snapshot = CASES["wordcount-comm 2x4"](1)
    assert len(snapshot.executors) == 38
    ratio = inter_node_tps(cluster, snapshot) / snapshot.traffic.total_tps
    assert ratio == pytest.approx(0.5, abs=0.01)


def test_keyed_blocks_do_not_talk_to_each_other() -> None:
    _, snapshot = keyed(Hardware(2, 4, 0.5), 1)
    spouts, splits = 2, 12
    traffic = snapshot.traffic
    words = traffic.source >= spouts
    block = (traffic.target[words] - spouts - splits) % splits
    assert (traffic.source[words] - spouts == block).all()


def test_planted_pairs_are_mostly_inside_groups() -> None:
    _, snapshot = planted(Hardware(10, 4, 0.6), 1, Groups(400))
    traffic = snapshot.traffic
    inside = traffic.source // 12 == traffic.target // 12
    assert inside.mean() == pytest.approx(0.8, abs=0.05)


def test_the_report_has_every_number_and_can_be_shown(tmp_path: Path) -> None:
    told: list[str] = []
    found = bench(1, 0, (), tmp_path / "worlds", told.append, sizes=(200,))
    assert told == ["speed at 200 executors"]
    (times,) = found["speed"]
    assert times["executors"] == 200
    assert (times["nodes"], times["resources"]) == (20, 6)
    assert times["decision_ms"]["fastest"] > 0
    assert len(list(as_tables(found))) == 1
    assert len(list(as_tables({**found, "worlds": [{"worlds": "all"}]}))) == 2


def test_a_fresh_world_is_measured_against_a_proof_and_counted_once() -> None:
    kind = Kind(8, TIGHT, is_uneven=False, pinned_frac=0.0, is_alike=True)
    row = measured(kind, 1)
    assert row["is_proved"]
    cluster, start = world(kind, 1)
    best = cheapest(PlacementProblem.of(cluster, start, Limits()))
    assert best is not None
    problem = Problem.of(cluster, start, Limits(), TargetOptions())
    assert row["best"] == pytest.approx(problem.cost_tps(best) / start.traffic.total_tps)
    assert row["start"] > row["gather"] >= row["best"]
    assert (row["too_full"], row["rests"]) == (0, True)
    found = list(summary([row, row | {"gather": 2 * row["best"], "otd": row["best"]}]))
    assert [(one["worlds"], one["number"]) for one in found] == [("8 tight", 2), ("all", 2)]
    assert (found[-1]["worst"], found[-1]["above_otd"]) == ("100.0%", 1)


def test_the_speed_case_has_no_worker_to_relieve() -> None:
    cluster, snapshot = crowd(1000)
    assert not Fit.of(cluster, snapshot, Limits()).is_high.any()
    peers = 2 * len(snapshot.traffic.tps) / 1000
    assert peers == pytest.approx(30, rel=0.05)

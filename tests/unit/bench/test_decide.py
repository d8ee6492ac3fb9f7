"""The cases are as described, the plain OTD agrees with ours, and courses are counted right."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from controller.core.classify import Limits, classify
from controller.core.cluster import Cluster, LoadSnapshot, inter_node_tps
from controller.policies.greedy import greedy
from controller.policies.otd import otd
from controller.snapshot import parse
from tests.bench.decide import quality as module
from tests.bench.decide.cases import LITERAL, QUALITY, Groups, Hardware, crowd, keyed, planted
from tests.bench.decide.fresh import measured, summary
from tests.bench.decide.measures import weighted_cost_tps
from tests.bench.decide.plain import plain_otd
from tests.bench.decide.quality import follow, long_search, quality
from tests.bench.decide.report import as_tables
from tests.bench.decide.speed import speed
from tests.bench.decide.worlds import TIGHT, Kind, kinds, world
from tests.papers.problem import PlacementProblem, cheapest

GOLDEN = Path(__file__).parents[2] / "golden" / "decide"


def least_cost_tps(cluster: Cluster, start: LoadSnapshot, rules: Limits) -> float:
    """Cost the best of all placements."""
    best = cheapest(PlacementProblem.of(cluster, start, rules))
    assert best is not None
    return weighted_cost_tps(cluster, replace(start, place=best), rules)


@pytest.mark.parametrize("name", QUALITY)
def test_a_case_is_the_same_for_the_same_seed_and_loads_what_it_should(name: str) -> None:
    cluster, snapshot = QUALITY[name](3)
    again = QUALITY[name](3)[1]
    assert np.array_equal(snapshot.place, again.place)
    assert np.array_equal(snapshot.traffic.tps, again.traffic.tps)
    used_frac = snapshot.cpu_cores.sum() / cluster.capacity_cores.sum()
    assert used_frac in (pytest.approx(0.5), pytest.approx(0.6), pytest.approx(0.7))
    counts = np.bincount(snapshot.place, minlength=len(cluster.workers))
    assert counts.max() - counts.min() <= 1


@pytest.mark.parametrize("kind", [*kinds(None), *kinds(100)], ids=lambda kind: kind.name)
def test_a_fresh_world_is_the_same_for_the_same_seed_and_too_full_nowhere(kind: Kind) -> None:
    cluster, snapshot = world(kind, 2)
    again = world(kind, 2)[1]
    assert np.array_equal(snapshot.place, again.place)
    assert np.array_equal(snapshot.traffic.tps, again.traffic.tps)
    assert not classify(cluster, snapshot, Limits()).high.any()
    assert any(snapshot.pinned) == bool(kind.pinned_frac)


def test_even_wordcount_sends_half_of_its_tuples_between_two_nodes() -> None:
    cluster, snapshot = QUALITY["wordcount-comm 2x4"](1)
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


@pytest.mark.parametrize("seed", range(5))
def test_the_plain_otd_chooses_what_ours_does(seed: int) -> None:
    cluster, snapshot = planted(Hardware(5, 4, 0.55), seed, Groups(100))
    for low in (0.6, 0.3):
        rules = replace(LITERAL, low_frac=low)
        for _ in range(10):
            moves = otd(cluster, snapshot, rules).moves
            ours = [
                (snapshot.executors.index(m.executor), cluster.workers.index(m.target))
                for m in moves
            ]
            assert plain_otd(cluster, snapshot, rules) == (ours[0] if ours else None)
            if ours:
                snapshot = snapshot.moved(*ours[0])


def test_a_course_counts_ping_pongs_and_stops_where_it_cycles() -> None:
    case = parse((GOLDEN / "ping_pong.json").read_text())
    course = follow(otd, case, replace(LITERAL, low_frac=0.7))
    # Out, and back to the start.
    assert (course.moves, course.cycling, course.ping_pongs) == (2, True, 1)
    course = follow(greedy, case, LITERAL)
    assert (course.moves, course.cycling, course.ping_pongs) == (1, False, 0)


def test_cycles_to_a_ratio_are_counted_from_the_start() -> None:
    case = parse((GOLDEN / "hand_graph.json").read_text())
    course = follow(otd, case, replace(LITERAL, high_frac=0.9, low_frac=0.85))
    assert course.ratios == (24 / 32, 11 / 32, 6 / 32)
    assert course.fits == (True, True, True)
    assert [course.cycles_to(r) for r in (0.8, 0.5, 0.2, 0.1)] == [0, 1, 2, None]


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("rules", [LITERAL, Limits(gain_frac=0.0)], ids=["nodes", "weights"])
def test_the_long_search_finds_the_best_of_all_placements(seed: int, rules: Limits) -> None:
    cluster, start = planted(Hardware(2, 2, 0.4), seed, Groups(9, group=4, neighbours=4))
    assert not classify(cluster, start, rules).high.any()
    ratio = least_cost_tps(cluster, start, rules) / start.traffic.total_tps
    assert long_search(cluster, start, rules) == pytest.approx(ratio)


def test_a_worker_that_is_too_full_counts_for_no_best_placement() -> None:
    cluster, start = planted(Hardware(2, 2, 0.4), 1, Groups(9, group=4, neighbours=4))
    rules = Limits(gain_frac=0.0)
    crowded = start
    for e in range(9):
        crowded = crowded.moved(e, 0)
    assert classify(cluster, crowded, rules).high.any()
    assert weighted_cost_tps(cluster, crowded, rules) == 0
    course = follow(greedy, (cluster, crowded), rules)
    assert not course.fits[0]
    assert course.fits[-1]
    least = least_cost_tps(cluster, start, rules) / start.traffic.total_tps
    assert least > 0
    assert long_search(cluster, crowded, rules) == pytest.approx(least)
    assert course.best_ratio >= least - 1e-9


def test_the_report_has_every_number_and_can_be_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    # How good the search is has a test of its own.
    monkeypatch.setattr(module, "LONG_TIMES", 1)
    monkeypatch.setattr(module, "LONG_ROUNDS", 100)
    told: list[str] = []
    case = "wordcount-comm 2x4"
    found = quality(1, told.append, {case: QUALITY[case]}, ["otd", "gather"])
    assert {"otd", "gather"} <= {row["policy"] for row in found}
    assert told == [f"wordcount-comm 2x4, weights {w}, seed 1" for w in ("1 0", "0.8 0.2")]
    ends = {(row["policy"], row["weights"]): row["end_ratio"] for row in found}
    for weights in ("1 0", "0.8 0.2"):
        assert ends["gather", weights] <= ends["otd", weights]
    times = speed(200, repeats=1)
    assert times["executors"] == 200
    assert times["decision_ms"]["fastest"] > 0
    shown = {"speed": [times], "against_plain_python": {}, "quality": found, "worlds": found}
    assert len(list(as_tables(shown))) == 4


def test_a_fresh_world_is_measured_against_a_proof_and_counted_once() -> None:
    kind = Kind(8, TIGHT, is_uneven=False, pinned_frac=0.0, is_alike=True)
    row = measured(kind, 1)
    assert row["is_proved"]
    cluster, start = world(kind, 1)
    ratio = least_cost_tps(cluster, start, Limits()) / start.traffic.total_tps
    assert row["best"] == pytest.approx(ratio)
    assert row["start"] > row["gather"] >= row["best"]
    assert (row["too_full"], row["rests"]) == (0, True)
    found = list(summary([row, row | {"gather": 2 * row["best"], "otd": row["best"]}]))
    assert [(one["worlds"], one["number"]) for one in found] == [("8 tight", 2), ("all", 2)]
    assert (found[-1]["worst"], found[-1]["above_otd"]) == ("100.0%", 1)


def test_the_speed_case_has_no_worker_to_relieve() -> None:
    cluster, snapshot = crowd(1000)
    assert not classify(cluster, snapshot, Limits()).high.any()
    peers = 2 * len(snapshot.traffic.tps) / 1000
    assert peers == pytest.approx(30, rel=0.05)

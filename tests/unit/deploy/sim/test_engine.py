"""Whole runs: the shipped loop decides, and a move costs what its system makes it cost."""

from dataclasses import replace

import numpy as np
import pytest

from controller.core.decision import Outcome
from deploy.sim import ScenarioError
from deploy.sim.engine import SimulationResult, run
from deploy.sim.restart_cost import System
from deploy.sim.scenario import RunSetting, parse

HEAD = """
seconds: 60
step_s: 0.25
warm_s: 5
window_s: 10
workload: {name: wordcount, splits: 4, counts: 8}
cluster: {workers: 2}
feed: {rate_tps: 2000}
"""
MOVES = "redeploy: {first_s: 20, every_s: 100}\n"
LOST_NOTHING = pytest.approx(0, abs=1e-9)


def setting(more: str = "") -> RunSetting:
    return parse(HEAD + more).runs[0]


def silent_s(result: SimulationResult) -> int:
    return int((result.throughput_tps[5:] < 1).sum())


def test_nobody_moves_anything_unless_told() -> None:
    result = run(setting(), 1)
    assert not result.moves
    assert not result.reports
    assert result.throughput_tps[5:] == pytest.approx(np.full(55, 2000), rel=0.01)


def test_the_controller_brings_traffic_together_and_loses_nothing() -> None:
    result = run(setting("controller: {}\n"), 1)
    outcomes = {report.outcome for report in result.reports}
    assert result.reports[0].outcome is Outcome.STALE_METRICS
    assert Outcome.MOVED in outcomes
    assert Outcome.STAND_BACK not in outcomes
    assert result.inter_node_frac[-1] < result.inter_node_frac[10] - 0.1
    assert result.lost == LOST_NOTHING
    assert silent_s(result) == 0


def test_what_the_controller_sees_is_what_is() -> None:
    result = run(
        setting("controller: {asc.threshold: 1, target.gain: 1}\nmeasure: {period_s: 1}\n"), 1
    )
    assert not result.moves
    seen = result.reports[-1]
    assert seen.inter_node_frac == pytest.approx(result.inter_node_frac[-1], abs=1e-3)
    assert seen.picture is not None
    cluster, snapshot = seen.picture.cluster, seen.picture.snapshot
    used = np.bincount(snapshot.place, snapshot.cpu_cores)
    assert used / cluster.capacity_cores == pytest.approx(result.cpu_frac[-1], rel=0.05)
    assert list(snapshot.pinned).count("spout") == 2


def test_a_move_of_ours_takes_about_a_second_and_stops_nobody() -> None:
    result = run(setting(MOVES), 1)
    ((at_s, _),) = result.moves
    assert at_s == 20
    assert silent_s(result) == 0
    assert result.lost == LOST_NOTHING


def test_a_rebalance_is_silent_as_long_as_it_takes() -> None:
    still = run(replace(setting(MOVES + "delays: {rebalance_s: 12}\n"), system=System.STORM), 1)
    assert silent_s(still) == pytest.approx(12, abs=1)
    assert len(still.moves) == 1


def test_storm_star_is_down_for_less_than_storm_and_more_than_we_are() -> None:
    more = MOVES + "feed: {pending: 1500}\n"
    storm, star, ours = (
        silent_s(run(replace(setting(more), system=system), 3))
        for system in (System.STORM, System.STORM_STAR, System.NSTORM)
    )
    assert storm > star > ours == 0


def test_moves_that_keep_it_even_keep_it_even() -> None:
    result = run(setting("redeploy: {executors: 3, first_s: 2, every_s: 9}\n"), 1)
    # Fourteen executors, dealt out to n0:6700, n1:6700, n0:6701, n1:6701.
    count = np.array([4, 3, 4, 3])
    for _, shift in result.moves:
        count[[shift.source, shift.target]] += [-1, 1]
    assert len(result.moves) > 10
    assert count.max() - count.min() <= 2


def test_a_dead_worker_makes_the_controller_wait_and_then_go_on() -> None:
    result = run(setting('controller: {}\nevents: ["at 22: kill n1:6700"]\n'), 1)
    outcomes = [report.outcome for report in result.reports]
    assert Outcome.STALE_METRICS in outcomes[4:8]
    assert result.moves[-1][0] > 32
    assert result.throughput_tps[-5:].mean() == pytest.approx(2000, rel=0.05)


def test_no_traffic_at_all_is_an_outcome() -> None:
    result = run(setting("controller: {}\nfeed: {rate_tps: 0}\n"), 1)
    assert result.reports[-1].outcome is Outcome.NOTHING_TO_GAIN
    assert not result.inter_node_frac.any()


def test_a_cluster_that_would_have_empty_workers_is_refused() -> None:
    with pytest.raises(ScenarioError, match="cluster: 40 workers for 14 executors"):
        run(setting("cluster: {nodes: 20, workers: 2}\n"), 1)

"""Whole runs: the shipped loop decides, and a move costs what its system makes it cost."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from msgspec import structs

from controller.core.decision import Outcome
from controller.core.reserve import Reserve
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
    result = run(replace(setting("controller: {}\n"), seconds=180), 1)
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
    assert snapshot.is_movable.all()  # also spouts and ackers


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
    killed = setting('controller: {}\nevents: ["at 22: kill n1:6700"]\n')
    # The code of its next JVM is compiled for 2 minutes, and 2 more are measured before a gain.
    result = run(replace(killed, seconds=400), 1)
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


SHARED = """
seconds: 240
step_s: 0.5
warm_s: 60
window_s: 20
slots: 4
workload: {name: wordcount, splits: 2, counts: 4}
cluster: {nodes: 2, workers: 5, cores: 2, shared_by: node}
feed: {rate_tps: 2000}
others:
  other: {slots: 4, workload: {name: wordcount, splits: 2, counts: 4}, feed: {rate_tps: 1000}}
"""


def test_two_topologies_are_two_to_the_controller_and_share_the_nodes() -> None:
    (setting,) = parse(SHARED + "controller: {cooldown.executor.secs: 20}\n").runs
    result = run(setting, 1)
    seen = {report.topology for report in result.reports}
    assert seen == {"sim-1", "other-1"}
    moved = {r.topology for r in result.reports if r.outcome is Outcome.MOVED}
    assert moved == seen
    assert result.carried_tps[-5:].mean(axis=0) == pytest.approx([2000, 1000], rel=0.02)
    assert result.throughput_tps[-5:].mean() == pytest.approx(3000, rel=0.02)
    assert result.lost == LOST_NOTHING
    assert Outcome.STAND_BACK not in {report.outcome for report in result.reports}
    pictures = [r.picture for r in result.reports[-2:] if r.picture is not None]
    assert {shift.executor for _, shift in result.moves} <= set(range(16))
    assert any(shift.executor >= 8 for _, shift in result.moves)
    slots = [set(picture.view.publication.slots) for picture in pictures]
    assert len(slots) == 2
    assert not slots[0] & slots[1]


def test_topologies_that_do_not_fit_are_refused() -> None:
    with pytest.raises(ScenarioError, match="slots: other finds 3 of 4 free"):
        run(parse(SHARED.replace("slots: 4\nwork", "slots: 7\nwork")).runs[0], 1)


def keeping(cluster: str, more: str = "") -> SimulationResult:
    """Run two executors that keep 300 MB each, in two workers."""
    parts = "{id: keep, kind: bolt, executors: 2, cost_us: 1, state_mb: 300}"
    spout = "{id: spout, kind: spout, executors: 1, cost_us: 1}"
    links = "[{source: spout, target: keep, grouping: shuffle}]"
    head = f"""
seconds: 60
step_s: 0.5
warm_s: 5
window_s: 5
workload: {{name: graph, parts: [{parts}, {spout}], links: {links}}}
feed: {{rate_tps: 100}}
delays: {{worker_start_s: 10}}
"""
    head += f"cluster: {{workers: 1, heap_fill_s: 30, {cluster}}}\n{more}"
    return run(parse(head).runs[0], 1)


def test_a_worker_whose_heap_is_too_small_dies_each_time_it_is_full() -> None:
    roomy, small = keeping("heap_mb: 800"), keeping("heap_mb: 350")
    assert roomy.jvms_dead == 0
    assert roomy.room.heap == pytest.approx(800 / 364)
    # At once, and after 10 s of starting and 29 of filling.
    assert small.jvms_dead == 2 * 2
    assert small.room.heap == pytest.approx(350 / 364)
    assert silent_s(small) == pytest.approx(5 + 10, abs=1)
    assert small.throughput_tps[12:38] == pytest.approx(np.full(26, 100), rel=0.3)


def test_the_controller_sees_a_heap_fill_again_before_the_worker_dies() -> None:
    result = keeping("heap_mb: 350", "controller: {asc.threshold: 1, target.gain: 1}\n")
    pictures = [report.picture for report in result.reports if report.picture is not None]
    live_mb = [picture.of_workers["heap_live_bytes"].max() / (1 << 20) for picture in pictures]
    # Twice: each report is of 5 s more, and the second JVM began at 10 s, the third at 49 s.
    assert live_mb == pytest.approx([114, 164, 214, 264, 124], abs=15)


FULL_HEAP = Path(__file__).parents[3] / "bench" / "fits" / "cases" / "full_heap.txt"


@pytest.mark.parametrize("relieves", [True, False])
def test_no_worker_dies_of_a_heap_that_is_relieved(
    monkeypatch: pytest.MonkeyPatch, *, relieves: bool
) -> None:
    """What was gathered while it kept little has to leave once it keeps more."""
    if not relieves:
        monkeypatch.setattr(Reserve, "full", lambda *_: [])
    setting = next(one for one in parse(FULL_HEAP.read_text()).runs if one.name == "policy")
    result = run(setting, 1)
    assert (result.jvms_dead == 0) is relieves
    reliefs = [one.reason for one in result.reports if one.moves and "of a heap" in one.reason]
    assert len(reliefs) <= 5


def test_room_is_how_far_the_input_may_grow() -> None:
    more = "cluster: {workers: 1, cores: 1, shared_by: node}\n"
    (setting,) = parse(HEAD.replace("cluster: {workers: 2}\n", more)).runs
    result = run(setting, 1)
    assert result.room.link is None
    assert result.room.cpu is not None
    assert result.room.input == result.room.cpu
    for part, is_carried in ((0.95, True), (1.05, False)):
        feed = structs.replace(setting.feed, rate_tps=2000 * result.room.cpu * part)
        fed = run(replace(setting, feed=feed), 1)
        carried = float(fed.carried_tps[-20:].mean()) / feed.rate_tps
        assert (carried == pytest.approx(1, abs=0.005)) is is_carried

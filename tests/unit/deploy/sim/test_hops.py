"""What hops cost is learnt from moves, in simulated clusters where it is not what it is in labs."""

import pytest

from controller.core.figures import HopFigures
from controller.core.hops import AS_IN_THE_LAB, HOP_COST_S
from deploy.sim.engine import SimulationResult, run
from deploy.sim.scenario import parse

# Three pipelines, dealt out over three nodes.
PARTS = "".join(
    f"""
    - {{id: spout{p}, kind: spout, executors: 1, cost_us: 5}}
    - {{id: a{p}, kind: bolt, executors: 3, cost_us: 12}}
    - {{id: b{p}, kind: bolt, executors: 2, cost_us: 6}}"""
    for p in range(3)
)
LINKS = "".join(
    f"""
    - {{source: spout{p}, target: a{p}, grouping: shuffle}}
    - {{source: a{p}, target: b{p}, grouping: shuffle}}"""
    for p in range(3)
)
HEAD = """
seconds: 900
step_s: 0.5
warm_s: 5
window_s: 60
begin_s: 200
cluster: {{nodes: 3, workers: 1, cores: 1, shared_by: node, worker_us: {}, node_us: {}}}
feed: {{rate_tps: {}, pending: 20000}}
measure: {{noise: {}}}
controller: {{{}}}
workload:
  name: graph
  parts:{}
  links:{}
"""


def simulated(
    times: float, rate_tps: float, noise: float = 0.0, controller: str = ""
) -> SimulationResult:
    costs = (times * cost_s * 1e6 for cost_s in HOP_COST_S[1:])
    head = HEAD.format(*costs, rate_tps, noise, controller, PARTS, LINKS)
    return run(parse(head).runs[0], 1)


def learnt(result: SimulationResult) -> HopFigures:
    picture = result.reports[-1].picture
    assert picture is not None
    return picture.hops


@pytest.mark.parametrize(
    ("times", "least", "most"), [(3.0, 1.7, 3.3), (1.0, 0.7, 1.3), (0.3, 0.0, 0.7)]
)
def test_moves_show_what_a_hop_costs(times: float, least: float, most: float) -> None:
    result = simulated(times, 50_000, noise=0.05)
    assert result.inter_node_frac[-1] == 0
    found = learnt(result)
    assert least < found.times < most
    assert abs(found.times - times) < 3 * found.deviation
    assert found.runs == 1
    # Nothing else was changed, so what was measured is the cost of the hops.
    used = result.cpu_frac.sum(axis=1)
    assert found.measured_change == pytest.approx(used[-1] / used[190] - 1, abs=0.06)


def test_without_moves_the_threads_between_workers_show_what_a_hop_costs() -> None:
    stays = "asc.threshold: 1, target.gain: 1"
    result = simulated(3.0, 50_000, 0.05, stays)
    assert not result.moves
    found = learnt(result)
    assert 2.0 < found.times == found.prior_times < 3.3
    assert found.runs == 0
    # From the first picture on.
    pictures = (report.picture for report in result.reports)
    times = [one.hops.prior_times for one in pictures if one is not None]
    assert times[0] == 1.0
    assert min(times[1:]) > 2.0
    # Never less than in the lab.
    assert learnt(simulated(0.3, 50_000, 0.05, stays)) == AS_IN_THE_LAB
    assert "no run of moves" in str(AS_IN_THE_LAB)

"""Random moves, deaths and drift in a simulated cluster: nothing vanishes, same seed same bytes."""

from dataclasses import replace

import numpy as np
from hypothesis import example, given, settings
from hypothesis import strategies as st
from msgspec import structs

from deploy.sim.engine import SimulationResult, run
from deploy.sim.flow.nodes import Neighbour
from deploy.sim.restart_cost import System
from deploy.sim.scenario import RunSetting, SharedTopology, parse

WORKERS = ("n0:6700", "n0:6701", "n1:6700", "n1:6701")
HEAD = """
seconds: 20
step_s: 0.25
warm_s: 5
window_s: 5
workload: {name: wordcount, splits: 4, counts: 6, ackers: 1, uneven: 0.5, sentence_bytes: 100}
cluster: {workers: 2}
feed: {rate_tps: 3000, pending: 2000, timeout_s: 6}
delays: {rebalance_s: 6, worker_start_s: 3}
"""


@st.composite
def scenarios(draw: st.DrawFn) -> tuple[RunSetting, int]:
    """Draw a run with moves of one system, and what happens during them."""
    events = draw(
        st.lists(
            st.one_of(
                st.builds("at {}: kill {}".format, st.integers(1, 17), st.sampled_from(WORKERS)),
                st.builds("at {}: slow n1 {}".format, st.integers(1, 17), st.floats(0, 1)),
                st.builds("at {}: feed {}".format, st.integers(1, 17), st.integers(0, 20000)),
                st.builds("at {}: keys".format, st.integers(1, 17)),
            ),
            max_size=3,
        )
    )
    link = draw(st.sampled_from([float("inf"), 20000.0, 500.0]))
    moves = draw(st.integers(1, 5))
    system = draw(st.sampled_from(System))
    setting = scenario(events, moves, system, link)
    if draw(st.booleans()):
        setting = shared(setting, draw(st.sampled_from([float("inf"), 1e5, 1e3])))
    return setting, draw(st.integers(0, 99))


def shared(setting: RunSetting, link_bytes_s: float) -> RunSetting:
    """Put another topology on the same nodes, which both share with a neighbour."""
    hardware = structs.replace(
        setting.hardware, workers=4, shared_by="node", link_bytes_s=link_bytes_s
    )
    other = SharedTopology("other", setting.topology, setting.feed, 4)
    neighbour = Neighbour(at_s=5.0, for_s=5.0, node="n0", cores=3.0)
    return replace(setting, hardware=hardware, slots=4, others=(other,), neighbours=(neighbour,))


def scenario(events: list[str], moves: int, system: System, link_tps: float) -> RunSetting:
    (setting,) = parse(
        f"{HEAD}events: {events}\nredeploy: {{executors: {moves}, every_s: 7, first_s: 3}}\n"
    ).runs
    hardware = structs.replace(setting.hardware, link_tps=link_tps)
    return replace(setting, system=system, hardware=hardware)


def every_byte(result: SimulationResult) -> bytes:
    series = (
        result.throughput_tps,
        result.inter_node_frac,
        result.cpu_frac,
        result.pending,
        np.array([result.emitted, result.done, result.queued, result.lost]),
    )
    return b"".join(one.tobytes() for one in series) + repr(result.moves).encode()


@settings(max_examples=15)
@example((scenario(["at 1: slow n1 1e-05"], 1, System.STORM, float("inf")), 0))
@example((scenario(["at 1: slow n1 5.683720318885759e-306"], 1, System.NONE, 20000.0), 0))
@example((scenario(["at 1: feed 0"], 1, System.NONE, float("inf")), 0))
@example((shared(scenario(["at 9: kill n1:6700"], 3, System.NSTORM, float("inf")), 1e4), 0))
@given(scenarios())
def test_what_was_emitted_is_done_queued_or_lost(drawn: tuple[RunSetting, int]) -> None:
    setting, seed = drawn
    result = run(setting, seed)
    whole = result.done + result.queued + result.lost
    assert abs(result.emitted - whole) <= 1e-9 * max(result.emitted, 1.0)
    assert min(result.done, result.queued, result.lost) >= -1e-9
    for series in (result.throughput_tps, result.inter_node_frac, result.cpu_frac, result.pending):
        assert np.isfinite(series).all()
        assert series.min() >= -1e-9
    # A sample is of one second, to the rounding of its steps.
    if setting.hardware.shared_by == "worker":
        assert result.cpu_frac.max() <= 1 + 1e-6
    nodes = result.cpu_frac.reshape(len(result.cpu_frac), 2, -1).mean(axis=2)
    assert nodes.max() <= 1 + 1e-6


@settings(max_examples=5)
@given(scenarios())
def test_the_same_seed_gives_the_same_bytes(drawn: tuple[RunSetting, int]) -> None:
    setting, seed = drawn
    assert every_byte(run(setting, seed)) == every_byte(run(setting, seed))


def test_the_seed_decides_also_what_the_controller_does() -> None:
    (short,) = parse(f"{HEAD}controller: {{}}\nmeasure: {{noise: 0.3}}\n").runs
    setting = replace(short, seconds=160)  # the first gain waits for 2 minutes
    one, same, other = run(setting, 1), run(setting, 1), run(setting, 2)
    assert one.moves
    assert every_byte(one) == every_byte(same)
    assert [report.reason for report in one.reports] == [report.reason for report in same.reports]
    assert every_byte(one) != every_byte(other)

"""What the controller exports to Prometheus of a cycle."""

import numpy as np
import pytest
from msgspec import structs
from structlog.testing import capture_logs

from controller.config import Config, build
from controller.core.decision import Outcome
from controller.core.figures import Effect, Verdict
from controller.core.runs import GOING_BACK, KEPT, TAKEN_BACK, Watch
from controller.core.topology import TopologyView
from controller.cycle import CycleInput, Memory
from controller.ingest.world import WindowWorld
from controller.journal.rows import rows_of
from controller.report import Report
from controller.storm.answers import explain
from controller.storm.move_record import MoveRecord
from controller.storm.status import status_of
from controller.storm.telemetry import Telemetry
from kvstore.pulse import Pulse
from tests.messages import replace
from tests.recorded_world import publication, three_cycles, windows, with_sizes
from tests.watched import cycle

CONFIG = build({"mode": "advise", "link.capacity.mbit": 0.04})
MOVE = MoveRecord(
    "wc-1", "m1", "2-2", "a:1", "b:1", "MOVED", "", {"PREPARE": 0.3, "STOP": 0.02}, 0.4, 0.0
)


@pytest.fixture(scope="module")
def decided() -> tuple[CycleInput, Memory, Report]:
    """Three cycles over a world whose load is known."""
    world, window, memory = WindowWorld(publication(8)), windows(8), Memory()
    for tick in range(3):
        world.advance(window(tick))
        seen = world.seen()
        memory, report = cycle(memory, seen, CONFIG)
    return seen, memory, report


def at_work(config: Config = CONFIG) -> Telemetry:
    pulse = Pulse({})
    pulse.beat()
    return Telemetry(config, pulse)


def told(telemetry: Telemetry) -> dict[tuple[str, ...], float]:
    families = list(telemetry.collect())
    names = [family.name for family in families]
    assert len(names) == len(set(names))
    return {(s.name, *s.labels.values()): s.value for f in families for s in f.samples}


def test_a_cycle_is_told(decided: tuple[CycleInput, Memory, Report]) -> None:
    seen, memory, report = decided
    (one,) = report.topologies
    assert one.picture is not None
    telemetry = at_work()
    telemetry.cycle(seen, memory, report.topologies, 0.02)
    found = told(telemetry)
    assert found["nstorm_decisions_total", "wc-1", one.outcome.value] == 1
    assert sum(v for k, v in found.items() if k[0] == "nstorm_decisions_total") == 1
    assert found["nstorm_leads",] == 1
    assert found["nstorm_paused",] == 0
    assert found["nstorm_cycle_timestamp_seconds",] == one.time_s
    assert found["nstorm_inter_node_ratio", "wc-1"] == one.inter_node_frac
    assert found["nstorm_workers", "wc-1", "true"] == 4
    assert found["nstorm_workers", "wc-1", "false"] == 0
    assert found["nstorm_load_age_seconds", "wc-1"] == 0
    gain_tps = sum(move.asc_tps for move in one.moves)
    assert found["nstorm_predicted_gain_tuples_per_second", "wc-1"] == gain_tps
    assert one.moves
    (left,) = [v for k, v in found.items() if k[0] == "nstorm_headroom_ratio"]
    assert left > 0
    snapshot = one.picture.snapshot
    used = [v for k, v in found.items() if k[0] == "nstorm_worker_cpu_cores"]
    assert sum(used) == pytest.approx(snapshot.cpu_cores.sum())
    by_component = [v for k, v in found.items() if k[0] == "nstorm_component_cpu_cores"]
    assert sum(by_component) == pytest.approx(snapshot.cpu_cores.sum())
    assert ("nstorm_worker_capacity_cores", "wc-1", "host-a", "1") in found
    assert ("nstorm_inter_node_bytes_per_second", "wc-1") not in found, "no size is known"


def test_status_explanation_and_metrics_have_one_load_of_an_executor(
    decided: tuple[CycleInput, Memory, Report],
) -> None:
    seen, memory, report = decided
    (one,) = report.topologies
    assert one.picture is not None
    fit = one.picture.fit
    lags = replace(one.picture, fit=replace(fit, demand=2 * fit.demand))
    one = replace(one, picture=lags)
    (shown,) = status_of([one], (), CONFIG, name="c", epoch=1).cycles
    cores = {row.executor: row.cpu_cores for row in rows_of(shown.executors)}
    answer = explain(one, "", CONFIG)
    assert answer is not None
    explained = rows_of(answer.executors)
    assert cores == {row.executor: row.cpu_cores for row in explained}
    by_worker = dict.fromkeys((row.slot for row in rows_of(shown.workers)), 0.0)
    for row in explained:
        by_worker[row.worker] += cores[row.executor]
    assert by_worker == pytest.approx({row.slot: row.cpu_cores for row in rows_of(shown.workers)})
    telemetry = at_work()
    telemetry.cycle(seen, memory, [one], 0.02)
    full = {k[2:]: v for k, v in told(telemetry).items() if k[0] == "nstorm_worker_load_ratio"}
    assert full == {
        (f"host-{row.slot[0]}", row.slot[2:]): row.load_frac for row in rows_of(shown.workers)
    }
    used = [v for k, v in told(telemetry).items() if k[0] == "nstorm_component_cpu_cores"]
    assert sum(used) == pytest.approx(sum(cores.values()))


def test_series_of_a_topology_that_is_killed_in_mid_move_end_with_it(
    decided: tuple[CycleInput, Memory, Report],
) -> None:
    seen, memory, report = decided
    (one,) = report.topologies
    late = replace(one, topology="late-3-100")
    killed = replace(MOVE, topology="job-2-100", outcome="VOID", reason="its topology is gone")
    telemetry = at_work()
    telemetry.tell({"wc-1", "job"}, [], seen, memory, report.topologies, 0.02)
    telemetry.tell({"wc-1"}, [killed], seen, memory, [one, late], 0.02)
    found = told(telemetry)
    assert found["nstorm_moves_total", "job", "VOID"] == 1
    assert found["nstorm_decisions_total", "late", one.outcome.value] == 1
    telemetry.tell({"wc-1"}, [], seen, memory, report.topologies, 0.02)
    counted = {key[1] for key in told(telemetry) if key[0].endswith("s_total") and len(key) > 2}
    assert counted == {"wc-1"}


def test_what_the_meters_show_is_exported_and_what_is_missing_is_not() -> None:
    found = told(metered_telemetry())
    worker = "wc-1", "host-a", "1"
    assert found["nstorm_worker_heap_live_bytes", *worker] == 700
    assert found["nstorm_worker_gc_frac", *worker] == pytest.approx(0.2)
    assert found["nstorm_node_machine_cpu_cores", "host-a"] == pytest.approx(1.5)
    assert found["nstorm_node_machine_cores", "host-a"] == 2
    names = {key[0] for key in found}
    assert not names & {"nstorm_worker_heap_max_bytes", "nstorm_worker_gc_ms"}
    assert len([key for key in found if key[0] == "nstorm_node_machine_cores"]) == 2


def test_tuples_that_wait_are_exported_by_component(
    decided: tuple[CycleInput, Memory, Report],
) -> None:
    seen, memory, report = decided
    (one,) = report.topologies
    assert one.picture is not None
    snapshot = one.picture.snapshot
    waiting = replace(snapshot, queue=np.arange(8.0))
    one = replace(one, picture=replace(one.picture, snapshot=waiting))
    telemetry = at_work()
    telemetry.cycle(seen, memory, [one], 0.02)
    found = told(telemetry)
    shown = {key[2]: v for key, v in found.items() if key[0] == "nstorm_component_queue_tuples"}
    components = snapshot.component_of
    assert shown == {
        name: sum(e for e, component in enumerate(components) if component == name)
        for name in set(components)
    }


def test_bytes_between_nodes_are_exported_where_all_sizes_are_known() -> None:
    """Two slots of a node after two of the other; executors are laid over them in turn."""
    world, window, memory = WindowWorld(publication(8)), windows(8), Memory()
    for tick in range(3):
        world.advance(window(tick))
        seen = world.seen()
        seen = replace(seen, loads=with_sizes(seen.loads))
        memory, report = cycle(memory, seen, CONFIG)
    (one,) = report.topologies
    assert one.picture is not None
    node, traffic = np.arange(8) % 4 // 2, one.picture.snapshot.traffic
    crosses = node[traffic.source] != node[traffic.target]
    size_bytes = np.where(traffic.source == 0, 100.0, 40.0)
    telemetry = at_work()
    telemetry.cycle(seen, memory, report.topologies, 0.02)
    found = told(telemetry)["nstorm_inter_node_bytes_per_second", "wc-1"]
    assert found == pytest.approx((traffic.tps * size_bytes)[crosses].sum())


def test_what_users_feel_is_exported_where_it_is_known() -> None:
    telemetry = at_work()
    seen, memory, report = three_cycles(CONFIG, spouts=True)
    telemetry.cycle(seen, memory, report.topologies, 0.02)
    found = told(telemetry)
    assert found["nstorm_acked_tuples_per_second", "wc-1"] == pytest.approx(500)
    assert found["nstorm_failed_tuples_per_second", "wc-1"] == pytest.approx(2)
    assert found["nstorm_complete_latency_seconds", "wc-1", "0.5"] == pytest.approx(0.044)
    assert found["nstorm_complete_latency_seconds", "wc-1", "0.99"] == pytest.approx(0.04792)
    unknown = ("nstorm_acked_", "nstorm_failed_", "nstorm_complete_")
    assert not [key for key in told(metered_telemetry()) if key[0].startswith(unknown)]


def metered_telemetry() -> Telemetry:
    telemetry = at_work()
    seen, memory, report = three_cycles(CONFIG)
    telemetry.cycle(seen, memory, report.topologies, 0.02)
    return telemetry


def test_each_series_begins_at_0_and_ends_with_its_topology(
    decided: tuple[CycleInput, Memory, Report],
) -> None:
    seen, memory, report = decided
    telemetry = at_work()
    telemetry.know({"wc-1"})
    telemetry.cycle(seen, memory, report.topologies, 0.02)
    found = told(telemetry)
    assert {k[2] for k in found if k[0] == "nstorm_decisions_total"} == set(Outcome)
    assert found["nstorm_moves_total", "wc-1", "UNDONE"] == 0
    assert found["nstorm_move_phase_seconds_count", "SETTLE"] == 0
    without = replace(seen, topologies=())
    telemetry.know(set())
    telemetry.cycle(without, memory, cycle(memory, without, CONFIG)[1].topologies, 0.02)
    assert not [key for key in told(telemetry) if "wc-1" in key]


def test_a_run_is_counted_once_it_has_ended(decided: tuple[CycleInput, Memory, Report]) -> None:
    seen, memory, report = decided
    telemetry = at_work()
    kept = Effect(Verdict.BETTER, "", begun_s=1.0, is_final=True, end=KEPT)
    stays = Effect(Verdict.WORSE, "", begun_s=3.0, is_final=True, end="kept, for it cannot go back")
    for end in ("", GOING_BACK, TAKEN_BACK, TAKEN_BACK):
        back = Effect(Verdict.WORSE, "", begun_s=2.0, end=end)
        memory = replace(memory, watches={"wc-1": Watch(effects=(kept, back, stays))})
        telemetry.cycle(seen, memory, report.topologies, 0.02)
        found = told(telemetry)
        assert found["nstorm_runs_total", "wc-1", "worse", "taken back"] == (end == TAKEN_BACK)
    counted = {key[2:]: value for key, value in found.items() if key[0] == "nstorm_runs_total"}
    assert (counted["better", "kept"], counted["worse", "kept"]) == (1, 1)
    assert (len(counted), sum(counted.values())) == (2 * len(Verdict), 3)
    telemetry.know(set())
    assert not [key for key in told(telemetry) if key[0] == "nstorm_runs_total"]


def test_what_components_are_sent_is_counted_through_moves() -> None:
    """Storm's own counts fall by what the old copies had counted."""
    auto = build({"mode": "auto", "cooldown.executor.secs": 12, "asc.threshold": 0})
    world, window, memory = WindowWorld(publication(8)), windows(8), Memory()
    telemetry, sent, moves = at_work(auto), np.zeros(8), 0
    for tick in range(30):
        world.advance(window(tick))
        if tick:  # what came before the first look is not known
            np.add.at(sent, window(tick).target, window(tick).tuples)
        seen = world.seen()
        memory, report = cycle(memory, seen, auto)
        telemetry.cycle(seen, memory, report.topologies, 0.02)
        world.write(report)
        moves += len(report.topologies[0].moves)
    assert moves > 1
    components = [placed.component for placed in publication(8).executors]
    found = told(telemetry)
    for name in set(components):
        here = [i for i, component in enumerate(components) if component == name]
        total = found["nstorm_component_tuples_total", "wc-1", name]
        assert total == pytest.approx(sent[here].sum())


def test_who_stands_by_tells_no_topology_and_keeps_what_it_counted(
    decided: tuple[CycleInput, Memory, Report],
) -> None:
    seen, memory, report = decided
    telemetry = at_work()
    telemetry.cycle(seen, memory, report.topologies, 0.02)
    waits = replace(seen, epoch=None, topologies=(), loads=())
    telemetry.cycle(waits, memory, cycle(memory, waits, CONFIG)[1].topologies, 0.02)
    found = told(telemetry)
    assert found["nstorm_leads",] == 0
    assert found["nstorm_decisions_total", "", "NOT_LEADER"] == 1
    assert found["nstorm_decisions_total", "wc-1", report.topologies[0].outcome.value] == 1
    assert ("nstorm_inter_node_ratio", "wc-1") not in found


def test_who_does_not_do_its_work_shows_nothing_that_only_a_leader_knows(
    decided: tuple[CycleInput, Memory, Report],
) -> None:
    seen, memory, report = decided
    pulse = Pulse({})
    telemetry = Telemetry(CONFIG, pulse)
    pulse.beat()
    telemetry.cycle(seen, memory, report.topologies, 0.02)
    led = told(telemetry)
    pulse.beat("ZooKeeper")
    found = told(telemetry)
    assert (found["nstorm_leads",], found["nstorm_epoch",]) == (0, 0)
    stamp = ("nstorm_cycle_timestamp_seconds",)
    assert found[stamp] == led[stamp]
    counted = ("nstorm_decisions", "nstorm_moves", "nstorm_runs")
    assert all(key[0].startswith(counted) for key in found if "wc-1" in key)
    pulse.beat()
    assert told(telemetry) == led


def test_executors_that_run_nowhere_are_told(decided: tuple[CycleInput, Memory, Report]) -> None:
    seen, memory, report = decided
    telemetry = at_work()
    telemetry.cycle(seen, memory, report.topologies, 0.02)
    assert told(telemetry)["nstorm_executors_not_running", "wc-1"] == 0
    (view,) = seen.topologies
    lost = tuple(
        structs.replace(node, workers=tuple(structs.replace(w, executors=()) for w in node.workers))
        for node in view.acks
    )
    gone = replace(seen, topologies=(TopologyView(view.publication, view.plan, lost),))
    telemetry.cycle(gone, memory, report.topologies, 0.02)
    there = sum(one.slot is not None for one in view.publication.executors)
    assert told(telemetry)["nstorm_executors_not_running", "wc-1"] == there


def test_a_topology_that_an_operator_has_stopped_rests(
    decided: tuple[CycleInput, Memory, Report],
) -> None:
    seen, memory, report = decided
    (view,) = seen.topologies
    inactive = structs.replace(view.publication, status="INACTIVE")
    off = tuple(structs.replace(node, off="a fault") for node in view.acks)
    for published, acks, rests in (
        (view.publication, view.acks, 0),
        (inactive, view.acks, 1),
        (view.publication, off, 1),
    ):
        telemetry = at_work()
        now = replace(seen, topologies=(TopologyView(published, view.plan, acks),))
        telemetry.cycle(now, memory, report.topologies, 0.02)
        assert told(telemetry)["nstorm_resting", "wc-1"] == rests


def test_a_move_that_has_ended_is_counted_with_its_phases() -> None:
    telemetry = at_work()
    telemetry.ended(MOVE)
    telemetry.ended(replace(MOVE, outcome="UNDONE", stopped_after_s=None, phase_s={}))
    found = told(telemetry)
    assert found["nstorm_moves_total", "wc-1", "MOVED"] == 1
    assert found["nstorm_moves_total", "wc-1", "UNDONE"] == 1
    assert found["nstorm_move_phase_seconds_count", "PREPARE"] == 1
    assert found["nstorm_move_phase_seconds_sum", "STOP"] == pytest.approx(0.02)
    assert found["nstorm_move_disturbance_seconds_count",] == 1


def test_the_pause_of_a_move_that_holds_its_executor_still_is_told() -> None:
    telemetry = at_work()
    telemetry.ended(MOVE)
    assert told(telemetry)["nstorm_move_pause_seconds_count",] == 0
    spout = {"PREPARE": 0.3, "QUIET": 0.3, "STOP": 0.1, "SETTLE": 9.0}
    telemetry.ended(replace(MOVE, phase_s=spout, stopped_after_s=0.7))
    bolt = {"PREPARE": 0.3, "CARRY": 0.2, "STOP": 0.1, "SETTLE": 9.0}
    telemetry.ended(replace(MOVE, phase_s=bolt, stopped_after_s=0.6))
    found = told(telemetry)
    assert found["nstorm_move_pause_seconds_count",] == 2
    assert found["nstorm_move_pause_seconds_sum",] == pytest.approx(0.4 + 0.2)


def test_what_moves_were_to_gain_and_what_they_gained_is_told_whoever_led(
    decided: tuple[CycleInput, Memory, Report],
) -> None:
    seen, memory, report = decided
    before = {"inter_node_frac": 0.5, "total_tps": 200.0}
    moves = [
        replace(MOVE, asc_tps=20.0, before=before, after={"inter_node_frac": 0.42}),
        replace(MOVE, asc_tps=40.0, before=before),  # not measured yet
        replace(MOVE, asc_tps=90.0, before=before, outcome="UNDONE"),
        replace(MOVE, topology="other-1", asc_tps=90.0, before=before),
    ]
    telemetry = at_work()
    telemetry.cycle(seen, memory, report.topologies, 0.02, moves)
    found = told(telemetry)
    assert found["nstorm_move_gain_ratio", "wc-1", "predicted"] == pytest.approx(0.15)
    assert found["nstorm_move_gain_ratio", "wc-1", "measured"] == pytest.approx(0.08)
    telemetry.cycle(seen, memory, report.topologies, 0.02, ())
    assert not [key for key in told(telemetry) if key[0] == "nstorm_move_gain_ratio"]


def test_a_surprise_is_counted(decided: tuple[CycleInput, Memory, Report]) -> None:
    _, memory, report = decided
    telemetry = at_work()
    failed = replace(report.topologies[0], topology="", outcome=Outcome.STAND_BACK, picture=None)
    telemetry.cycle(None, memory, [failed], 0.02)
    found = told(telemetry)
    assert found["nstorm_decisions_total", "", "STAND_BACK"] == 1
    assert found["nstorm_leads",] == 0


def test_a_fault_of_the_metrics_stays_out_of_the_cycle(
    decided: tuple[CycleInput, Memory, Report],
) -> None:
    seen, memory, report = decided

    class Broken(Telemetry):
        def ended(self, move: MoveRecord) -> None:
            raise ZeroDivisionError

    with capture_logs() as logs:
        Broken(CONFIG, Pulse({})).tell({"wc-1"}, [MOVE], seen, memory, report.topologies, 0.02)
    assert [entry["event"] for entry in logs] == ["metrics_failed"]

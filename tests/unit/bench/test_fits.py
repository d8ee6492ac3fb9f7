"""Random worlds are as they are described, and cases and rows are summed up as they are."""

from dataclasses import replace
from pathlib import Path

import pytest

from controller.config import build
from deploy.sim.engine import placed, run
from deploy.sim.flow.room import room
from deploy.sim.report import simulate_all
from deploy.sim.scenario import parse
from tests.bench.fits.best import best_bears_x
from tests.bench.fits.run import CASES, expectations, rooms, rooms_of_cases, summary, worlds
from tests.bench.fits.worlds import decided_by, random_world


@pytest.mark.parametrize("number", range(1, 25))
def test_a_world_is_loaded_as_far_as_it_is_described(number: int) -> None:
    world = random_world(7, number)
    stands = placed(world.setting, 1)
    found = room(stands, [one.rate_tps for one in stands])
    assert found.input == pytest.approx(1 / world.used_frac)
    assert found.heap is None or found.heap >= 1.4 - 1e-9
    assert (world.used_frac > 1) is (world.shape == "saturated")
    for burst in world.setting.feed.bursts:
        assert burst.times * world.used_frac <= 0.95 + 1e-9
    again = random_world(7, number).setting
    assert (again.feed, again.hardware) == (world.setting.feed, world.setting.hardware)


def test_what_storm_bears_comes_through() -> None:
    (world,) = [w for w in (random_world(7, n) for n in range(1, 9)) if w.shape == "calm"][:1]
    setting = replace(world.setting, seconds=60.0, warm_s=10.0, neighbours=())
    result = run(setting, 1)
    offered, carried = (one[10:].sum() for one in (result.offered_tps, result.carried_tps))
    assert carried == pytest.approx(offered, rel=0.02)


def test_the_best_placement_known_bears_what_it_is_said_to() -> None:
    setting = random_world(1, 11).setting  # Storm's placement is full, and hops are a part of it
    assert best_bears_x(setting, 0) == 1
    assert 1.05 < best_bears_x(setting, 500) < 1.308, "more than all cores without any hop"


def test_a_policy_decides_in_the_same_world() -> None:
    world = random_world(7, 1)
    decided = decided_by(world.setting, build({"policy": "otd"}))
    assert decided.controller is not None
    assert decided.controller.policy == "otd"
    assert (decided.feed, decided.hardware) == (world.setting.feed, world.setting.hardware)


@pytest.mark.parametrize("file", CASES, ids=[file.stem for file in CASES])
def test_a_case_has_storms_placement_and_a_policy(file: Path) -> None:
    scenario = parse(file.read_text())
    still, policy = scenario.runs
    assert scenario.left_alone == still.name == "still"
    assert still.controller is None
    assert policy.controller is not None
    assert replace(policy, name="still", system=still.system, controller=None) == still
    assert scenario.expect


def test_no_worlds_are_no_rows() -> None:
    assert not list(worlds(0, 1, "gather", print))
    assert not list(summary([]))


def test_worlds_are_summed_up() -> None:
    def row(**changed: object) -> dict[str, object]:
        usual = {"shape": "calm", "binds": "cpu", "carried_x": 1.0, "carried_x_worst": 1.0}
        counts = {
            "room_x": 1.0,
            "best_x": None,
            "moves": 3,
            "returns": 0,
            "jvms_dead": 0,
            "cpu_s": 2.0,
        }
        return {**usual, **counts, **changed}

    rows = [row(), row(carried_x=0.97, carried_x_worst=0.5, jvms_dead=4, room_x=0.8)]
    rows += [
        row(shape="saturated", carried_x=1.4),
        row(shape="saturated", binds="thread", best_x=1.1),
    ]
    calm, saturated, bound, everything = summary(rows)
    assert (calm["number"], calm["worst"], calm["below 0.98"], calm["JVMs dead"]) == (2, 0.97, 1, 4)
    assert (calm["worlds with dead JVMs"], calm["worst topology"], calm["least"]) == (1, 0.5, 0.8)
    assert calm["below Storm's"] == 1
    assert saturated["number"] == 2
    assert saturated["room of the best placement known, median"] == 1.1
    assert (bound["worlds"], bound["number"], bound["carried, median"]) == (
        "cpu or link binds",
        1,
        1.4,
    )
    assert everything["number"] == 4


def test_rooms_are_summed_up_by_resource() -> None:
    rows = [
        {"room_cpu_x": 1.1, "room_link_x": None, "room_heap_x": None},
        {"room_cpu_x": 0.9, "room_link_x": 0.0, "room_heap_x": None},
        {"room_cpu_x": 1.0 - 1e-9, "room_link_x": 1.5, "room_heap_x": None},
    ]
    cpu, link = rooms(rows)
    assert list(cpu.values()) == ["CPU", 3, 1.0, 0.9, 1]
    assert list(link.values()) == ["fullest direction of a link", 2, 0.75, 0.0, 1]


def test_a_case_says_what_room_the_policy_left() -> None:
    scenario = parse(CASES[0].read_text())
    runs = tuple(replace(one, seconds=70.0, warm_s=5.0, window_s=5.0) for one in scenario.runs)
    report = simulate_all(replace(scenario, runs=runs))
    (row,) = rooms_of_cases({"one": report})
    assert (row["case"], row["jvms_dead"]) == ("one", 0)
    measures = report.measures
    assert row["room_cpu_x"] == pytest.approx(
        measures["policy.room_cpu"] / measures["still.room_cpu"], abs=1e-3
    )
    assert row["room_link_x"] == pytest.approx(
        measures["policy.room_link"] / measures["still.room_link"], abs=1e-3
    )
    assert row["room_heap_x"] is None
    assert len(list(expectations({"one": report}))) == len(scenario.expect)

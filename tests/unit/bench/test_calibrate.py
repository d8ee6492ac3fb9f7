import pytest

from migration.model import ExecutorId, Slot
from tests.bench.calibrate import PURE, Costs, Window, fit, placements, report
from tests.messages import replace

TRUE = Costs({0: 20.0, 1000: 50.0}, {"worker_us": 2.0, "node_us": 3.0, "byte_us": 0.01})
PLACES = {**dict(zip(PURE, [(0.0, 0.0), (4.0, 0.0), (0.0, 5.0)], strict=True)), "mixed": (3.0, 6.0)}


def window(placement: str, size: int, near: float, far: float) -> Window:
    made = Window(
        placement=placement,
        sentence_bytes=size,
        acked_tps=1000.0,
        near=near,
        far=far,
        socket_bytes=(near + far) * (30.0 + size),
        cpu_us=1.0,
        gc_us=None,
        component_us={"spout": 5.0, "split": 3.0},
        load_average=1.0,
    )
    return replace(made, cpu_us=TRUE.of(made))


def windows() -> list[Window]:
    return [window(name, size, *hops) for size in (0, 1000) for name, hops in PLACES.items()]


def test_the_costs_that_were_put_in_are_found() -> None:
    found = fit(windows())
    assert found.base_us == pytest.approx(TRUE.base_us)
    assert found.added == pytest.approx(TRUE.added)


def test_a_mixed_placement_that_costs_otherwise_shows_as_an_error_of_itself() -> None:
    odd = [
        replace(one, cpu_us=1.25 * one.cpu_us) if one.placement == "mixed" else one
        for one in windows()
    ]
    errors = {row["placement"]: row["error"] for row in report(odd)["placements"]}
    assert errors.pop("mixed") == pytest.approx(-0.2)
    assert list(errors.values()) == pytest.approx([0.0] * len(PURE))


def test_no_cost_is_below_zero() -> None:
    cheaper_apart = [replace(one, cpu_us=100.0 - one.near - one.far) for one in windows()]
    assert min(fit(cheaper_apart).added.values()) >= 0


def test_a_hop_costs_the_simulator_half_at_either_end() -> None:
    said = report(windows())["scenario"]
    # 30 bytes a tuple, a hundredth of a microsecond each.
    assert said == pytest.approx(
        {"spout_us": 5.0, "split_us": 3.0, "worker_us": 1.15, "node_us": 1.65}
    )


def test_placements_use_the_slots_that_storm_uses() -> None:
    slots = [Slot(node, port) for node in "ab" for port in (1, 2)]
    storms = {ExecutorId(i, i): slots[i % 4] for i in range(1, 9)}
    goals = placements(storms)
    assert {name: len(set(goal.values())) for name, goal in goals.items()} == {
        "one worker": 1,
        "two workers of a node": 2,
        "a worker on each node": 2,
        "three workers": 3,
        "Storm's": 4,
    }
    assert all(goal.keys() == storms.keys() for goal in goals.values())
    assert {slot.supervisor for slot in goals["two workers of a node"].values()} == {"a"}

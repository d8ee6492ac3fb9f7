"""What the live controller makes of a drain."""

from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any, cast

import pytest

from controller.config import Config, Mode
from controller.core.controls import Controls
from controller.cycle import Memory, cycle
from controller.storm.live import LiveController
from migration.model import Plan
from tests.unit.controller.test_cycle import AUTO, World


@pytest.mark.parametrize(("drained", "by"), [((), "policy gather"), (("host-b",), "drain")])
def test_the_history_tells_a_drain_from_the_policy(drained: tuple[str, ...], by: str) -> None:
    world = World(drained=drained)
    memory, _ = cycle(Memory(), world.seen(), AUTO)
    world.now += 1
    _, report = cycle(memory, seen := world.seen(), AUTO)
    told: list[Any] = []

    def begin(before: Plan, after: Plan, asked: Mapping[str, Any]) -> bool:
        told.append(asked["asked_by"])
        return True

    live = cast(Any, SimpleNamespace(_config=AUTO, _begin=begin))
    assert list(LiveController._written(live, seen, report)) == ["wc-1"]
    assert told == [by]


def test_the_plan_of_a_paused_topology_leads_nowhere_near_a_drained_host() -> None:
    config = Config(mode=Mode.OBSERVE)
    pinned = dict.fromkeys([1, 3, 4, 5, 6, 7], "stateful")
    world = World(pinned=pinned, controls=Controls())
    memory, _ = cycle(Memory(), world.seen(), config)
    world.now += 1
    memory, report = cycle(memory, world.seen(), config)

    def targets(*drained: str) -> list[str]:
        view = SimpleNamespace(drained=lambda: dict.fromkeys(drained, 0))
        live = cast(
            Any, SimpleNamespace(_view=view, _config=config, _memory=memory, _last=(world.now, ()))
        )
        way = LiveController._plan_of(live, report.topologies[0])
        return [move[2] for step in way["steps"] for move in step["moves"]]

    assert targets() == ["a:1"]
    assert targets("host-a") == []

"""What the live controller makes of a drain."""

from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any, cast

import pytest

from controller.config import Config, Mode
from controller.core.controls import Controls
from controller.core.decision import Move
from controller.cycle import Memory, cycle
from controller.storm.history import LONGEST_REASON
from controller.storm.live import MOST_PROPOSALS, LiveController
from controller.storm.missed import Missed
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


def test_a_cycle_finds_one_new_way_at_most_and_each_topology_has_its_turn() -> None:
    sought: list[str] = []

    def plan_of(report: Any) -> Any:
        sought.append(report.topology)
        return {"steps": [{"moves": [1, 2]}], "inter_node_frac": [0.5, 0.1]}

    live = cast(Any, SimpleNamespace(_ways={}, _plan_of=plan_of))
    for tick in range(4):
        # The best moves of the first jitter; the others keep theirs.
        shown = [
            SimpleNamespace(topology=t, time_s=5.0 * tick, moves=(tick if t == "a" else 0,))
            for t in "abc"
        ]
        live._ways = LiveController._ways_of(live, cast(Any, shown))
        assert len(sought) == tick + 1
    assert sought == ["a", "b", "c", "a"]
    assert {of: way[2]["moves"] for of, way in live._ways.items()} == {"a": 2, "b": 2, "c": 2}
    assert [live._ways[of][0] for of in "abc"] == [(3,), (0,), (0,)]


def test_what_auto_would_have_saved_is_told_with_the_way() -> None:
    live = cast(Any, SimpleNamespace(_missed=Missed(), _config=AUTO))
    traffic = SimpleNamespace(snapshot=SimpleNamespace(traffic=SimpleNamespace(total_tps=1000.0)))
    shown = cast(Any, [SimpleNamespace(topology=of, picture=traffic) for of in "ab"])
    live._ways = {"a": ((), 0.0, {"inter_node_frac": [0.5, 0.1]}), "b": ((), -1.0, {})}
    for time_s in (100.0, 102.0):
        LiveController._miss(live, shown, time_s)
    assert live._missed.tuples == {"a": 800.0, "b": 0.0}, "the way of `b` is not found yet"


def test_proposals_are_few_and_short_and_the_newest_stay() -> None:
    live = cast(Any, SimpleNamespace(_proposals={}))
    for number in range(2 * MOST_PROPOSALS):
        one = SimpleNamespace(
            proposal=f"p-{number}",
            topology="wc-1",
            time_s=float(number),
            moves=(),
            reason="x" * 999,
        )
        LiveController._show(live, cast(Any, (one,)))
    assert len(live._proposals) == MOST_PROPOSALS
    assert [*live._proposals][-1] == f"p-{2 * MOST_PROPOSALS - 1}"
    assert {len(told["reason"]) for told in live._proposals.values()} == {LONGEST_REASON}


def test_what_was_shown_is_compared_with_the_load_of_the_last_cycle() -> None:
    world = World()
    memory, first = cycle(Memory(), world.seen(), AUTO)
    live = cast(Any, SimpleNamespace(_last=(0.0, ()), _config=AUTO))
    moves = (Move("2-2", "b:1", "a:1", 160.0),)
    said = LiveController._misfit(live, "wc-1", moves)
    assert said == "the load of wc-1 is not known now: there was no cycle yet"
    live._last = (0.0, first.topologies)
    assert "has reported only once" in str(LiveController._misfit(live, "wc-1", moves))
    world.now += 1
    live._last = (0.0, cycle(memory, world.seen(), AUTO)[1].topologies)
    assert LiveController._misfit(live, "wc-1", moves) is None


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

"""What lies between two cycles: what was written, proposed, looked ahead and asked."""

from types import SimpleNamespace
from typing import Any, cast

import pytest

from controller.config import Config, Mode
from controller.core.controls import Controls
from controller.core.decision import Move
from controller.cycle import Memory, cycle
from controller.storm.history import LONGEST_REASON
from controller.storm.last import LastCycle, asked_by
from controller.storm.proposals import MOST_PROPOSALS, Proposals
from controller.storm.ways import Ways
from tests.unit.controller.test_cycle import AUTO, World


@pytest.mark.parametrize(("drained", "by"), [((), "policy gather"), (("host-b",), "drain")])
def test_the_history_tells_a_drain_from_the_policy(drained: tuple[str, ...], by: str) -> None:
    world = World(drained=drained)
    memory, _ = cycle(Memory(), world.seen(), AUTO)
    world.now += 1
    (report,) = cycle(memory, world.seen(), AUTO)[1].topologies
    assert asked_by(report, AUTO)["asked_by"] == by


def report_of(topology: str, time_s: float, best: int = 0, total_tps: float = 0.0) -> Any:
    """Make as much of a report as a way looks at."""
    traffic = SimpleNamespace(total_tps=total_tps)
    picture = SimpleNamespace(snapshot=SimpleNamespace(traffic=traffic))
    return SimpleNamespace(
        topology=topology, time_s=time_s, moves=(best + 1,), picture=picture, outcome="WOULD_MOVE"
    )


def test_a_cycle_finds_one_new_way_at_most_and_each_topology_has_its_turn() -> None:
    sought: list[str] = []

    def plan_of(report: Any) -> Any:
        sought.append(report.topology)
        return {"steps": [{"moves": [1, 2]}], "inter_node_frac": [0.5, 0.1]}

    ways = Ways(plan_of, 5.0)
    for tick in range(4):
        # The best moves of the first jitter; the others keep theirs.
        reports = [report_of(t, 5.0 * tick, tick if t == "a" else 0) for t in "abc"]
        ways.update(cast(Any, reports))
        assert len(sought) == tick + 1
    assert sought == ["a", "b", "c", "a"]
    assert {of: way.moves for of, way in ways.shown(reports).items()} == dict.fromkeys("abc", 2)
    others = [report_of("a", 20.0, 9)]
    assert ways.shown(cast(Any, others)) == {}, "it begins with other moves"


def test_what_auto_would_have_saved_is_told_with_the_way() -> None:
    ways = Ways(lambda _: {"steps": [], "inter_node_frac": [0.5, 0.1]}, 5.0)
    for time_s in (100.0, 102.0):
        reports = [report_of(of, time_s, total_tps=1000.0) for of in "ab"]
        ways.update(cast(Any, reports))
    shown = ways.shown(cast(Any, reports))
    assert {of: way.missed_tuples_today for of, way in shown.items()} == {"a": 800.0, "b": 800.0}
    ways.update(cast(Any, [report_of("a", 104.0, total_tps=1000.0), report_of("c", 104.0)]))
    assert ways.missed.tuples["a"] == 1600.0
    assert ways.missed.tuples["c"] == 0.0, "its way is found, and nothing was sent"


def test_proposals_are_few_and_short_and_the_newest_stay() -> None:
    proposals = Proposals()
    for number in range(2 * MOST_PROPOSALS):
        one = SimpleNamespace(
            proposal=f"p-{number}",
            topology="wc-1",
            time_s=float(number),
            moves=(),
            reason="x" * 999,
        )
        proposals.show(cast(Any, (one,)), float(number))
    assert len(proposals.shown) == MOST_PROPOSALS
    assert [*proposals.shown][-1] == f"p-{2 * MOST_PROPOSALS - 1}"
    assert {len(one.reason) for one in proposals.shown.values()} == {LONGEST_REASON}


def test_what_was_shown_is_compared_with_the_load_of_the_last_cycle() -> None:
    world = World()
    memory, first = cycle(Memory(), world.seen(), AUTO)
    moves = (Move("2-2", "b:1", "a:1", 160.0),)
    said = LastCycle(AUTO).misfit("wc-1", moves)
    assert said == "the load of wc-1 is not known now: there was no cycle yet"
    last = LastCycle(AUTO, 0.0, first.topologies)
    assert "has reported only once" in str(last.misfit("wc-1", moves))
    world.now += 1
    last = LastCycle(AUTO, 0.0, cycle(memory, world.seen(), AUTO)[1].topologies)
    assert last.misfit("wc-1", moves) is None


def test_the_plan_of_a_paused_topology_leads_nowhere_near_a_drained_host() -> None:
    config = Config(mode=Mode.OBSERVE)
    pinned = dict.fromkeys([1, 3, 4, 5, 6, 7], "stateful")
    world = World(pinned=pinned, controls=Controls())
    memory, _ = cycle(Memory(), world.seen(), config)
    world.now += 1
    memory, report = cycle(memory, world.seen(), config)
    last = LastCycle(config, world.now, report.topologies, memory)

    def targets(*drained: str) -> list[str]:
        way = last.plan_of(report.topologies[0], drained)
        return [move[2] for step in way["steps"] for move in step["moves"]]

    assert targets() == ["a:1"]
    assert targets("host-a") == []

"""What lies between two cycles: what was written, proposed, looked ahead and asked."""

from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

import pytest
from msgspec import structs

from controller.config import Config, Mode
from controller.core.controls import Controls
from controller.core.decision import Move
from controller.cycle import CycleInput, Memory
from controller.report import Report, TopologyReport
from controller.storm.act import Act
from controller.storm.answer_records import PlanAnswer, PlanStep
from controller.storm.command_record import Command
from controller.storm.history import LONGEST_REASON, History
from controller.storm.last import LastCycle, asked_by
from controller.storm.leader_status import read
from controller.storm.look import Look
from controller.storm.move_record import MoveRecord
from controller.storm.notes import Notes
from controller.storm.proposals import MOST_PROPOSALS, Proposals
from controller.storm.publisher import Publisher
from controller.storm.ways import Ways
from kvstore.errors import NotConnectedError
from kvstore.zookeeper import Stored
from migration import wire
from migration.model import Plan
from tests.unit.controller.test_cycle import AUTO, World
from tests.watched import cycle


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


def way(after: float) -> PlanAnswer:
    """Plan two moves, and a share between nodes after them."""
    moves = (("2-2", "b:1", "a:1"), ("5-5", "b:1", "a:2"))
    return PlanAnswer(steps=(PlanStep(moves=moves),), inter_node_frac=(0.5, after))


def test_a_cycle_finds_one_new_way_at_most_and_each_topology_has_its_turn() -> None:
    sought: list[str] = []

    def plan_of(report: Any) -> Any:
        sought.append(report.topology)
        return way(0.1)

    ways = Ways(plan_of, 5.0)
    for tick in range(4):
        # The best moves of the first jitter; the others keep theirs.
        reports = [report_of(t, 5.0 * tick, tick if t == "a" else 0) for t in "abc"]
        ways.update(cast(Any, reports))
        assert len(sought) == tick + 1
    assert sought == ["a", "b", "c", "a"]
    assert {of: one.moves for of, one in ways.shown(reports).items()} == dict.fromkeys("abc", 2)
    others = [report_of("a", 20.0, 9)]
    assert ways.shown(cast(Any, others)) == {}, "it begins with other moves"


def test_what_auto_would_have_saved_is_told_with_the_way() -> None:
    ways = Ways(lambda _: way(0.1), 5.0)
    for time_s in (100.0, 102.0):
        reports = [report_of(of, time_s, total_tps=1000.0) for of in "ab"]
        ways.update(cast(Any, reports))
    shown = ways.shown(cast(Any, reports))
    assert {of: one.missed_tuples_today for of, one in shown.items()} == {"a": 800.0, "b": 800.0}
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
        found = last.plan_of(report.topologies[0], drained)
        return [move[2] for step in found.steps for move in step.moves]

    assert targets() == ["a:1"]
    assert targets("host-a") == []


class Store:
    """A session with one node, which notes how often it was written."""

    def __init__(self) -> None:
        self.data: bytes | None = None
        self.writes = 0

    def put(self, path: str, data: bytes) -> None:
        self.data, self.writes = data, self.writes + 1

    def read(self, path: str) -> Stored | None:
        return None if self.data is None else Stored(self.data, 0, 0)


def publisher(store: Store, name: str) -> Publisher:
    return Publisher(cast(Any, store), AUTO, name, lambda _: way(0.25))


def advised(tick: int) -> list[TopologyReport]:
    """Report a move that is only advised."""
    world, config = World(), Config(mode=Mode.ADVISE)
    memory, _ = cycle(Memory(), world.seen(), config)
    world.now += 1
    reports = cycle(memory, world.seen(), config)[1].topologies
    return [replace(one, tick=tick, time_s=1.7e9 + tick) for one in reports]


def test_only_who_leads_publishes_and_the_next_leader_counts_on() -> None:
    store = Store()
    first, second = publisher(store, "one"), publisher(store, "two")
    first.publish(advised(1), (), epoch=None, journal_problem=None)
    assert store.writes == 0
    for tick in (1, 2):
        first.publish(advised(tick), (), epoch=1, journal_problem="disk full")
    found = read(cast(Any, store))
    assert (found.controller, found.epoch, found.journal_problem) == ("one", 1, "disk full")
    (one,) = found.cycles
    assert one.way is not None
    assert one.way.moves == 2
    missed = first.missed_tuples["wc-1"]
    assert missed == one.way.missed_tuples_today > 0
    second.led()
    assert second.missed_tuples == {"wc-1": missed}
    second.publish(advised(3), (), epoch=2, journal_problem=None)
    assert second.missed_tuples["wc-1"] == 2 * missed


def test_a_part_that_did_not_fit_is_tried_again_after_a_while(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    store = Store()
    one = publisher(store, "one")
    monkeypatch.setattr(wire, "LARGEST_NODE_BYTES", 0)
    one.publish(advised(1), (), epoch=1, journal_problem=None)
    monkeypatch.undo()
    parts = []
    for tick in (11, 12, 13):
        one.publish(advised(tick), (), epoch=1, journal_problem=None)
        parts.append(len(read(cast(Any, store)).left_out))
    assert parts == [7, 0, 0]


class Begins:
    """Stands for what writes plans; it begins those that it may."""

    def __init__(self, *may: bool | Exception) -> None:
        self._may = list(may)
        self.asked: list[dict[str, Any]] = []

    def begin(self, before: Plan, after: Plan, asked: dict[str, Any]) -> bool:
        assert after.entries
        assert not before.entries
        self.asked.append(asked)
        may = self._may.pop(0)
        if isinstance(may, Exception):
            raise may
        return may


def decided(*topologies: str) -> tuple[CycleInput, Report]:
    """Decide to move 2-2 of each topology."""
    world = World()
    memory, _ = cycle(Memory(), world.seen(), AUTO)
    world.now += 1
    seen = world.seen()
    (one,) = cycle(memory, seen, AUTO)[1].topologies
    (view,) = seen.topologies
    assert one.plan is not None
    views = [
        replace(view, publication=structs.replace(view.publication, topology=name))
        for name in topologies
    ]
    plans = [structs.replace(one.plan, topology=name) for name in topologies]
    reports = [replace(one, topology=p.topology, plan=p) for p in plans]
    return replace(seen, topologies=tuple(views)), Report(tuple(reports))


def test_a_plan_that_another_has_changed_is_not_begun() -> None:
    seen, report = decided("wc-1", "wc-2")
    begins = Begins(False, True)
    act = Act(cast(Any, begins), lambda: LastCycle(AUTO, 0.0, report.topologies))
    act.write(seen, report)
    assert act.unwritten == {"wc-1"}
    assert {topology for topology, _ in act.not_begun(report)} == {"wc-1"}
    assert [one["asked_by"] for one in begins.asked] == ["policy gather"] * 2
    assert begins.asked[0]["before"]["inter_node_frac"] == report.topologies[0].inter_node_frac


def test_what_was_written_before_zookeeper_went_away_is_known() -> None:
    seen, report = decided("wc-1", "wc-2", "wc-3")
    act = Act(cast(Any, Begins(True, NotConnectedError("away"))), lambda: LastCycle(AUTO))
    with pytest.raises(NotConnectedError):
        act.write(seen, report)
    assert act.unwritten == {"wc-2", "wc-3"}
    act.write(None, Report(()))
    assert act.unwritten == set()


def test_a_move_whose_write_had_no_answer_has_begun_if_the_plan_shows_it() -> None:
    seen, report = decided("wc-1", "wc-2")
    act = Act(cast(Any, Begins(NotConnectedError("away"))), lambda: LastCycle(AUTO))
    with pytest.raises(NotConnectedError):
        act.write(seen, report)
    first, second = seen.topologies
    views = [replace(first, plan=report.plans["wc-1"]), second]
    view = SimpleNamespace(
        topologies=lambda: views,
        controls=Controls,
        drained=dict,
        free=lambda views: (),
        loads=tuple,
    )
    nothing = SimpleNamespace(take_ended=tuple, take_answers=tuple, answers=tuple, begun_s=())
    of = cast(Any, nothing)
    look = Look(cast(Any, view), of, History(), of, of, cooldown_s=60.0)
    look.not_begun = act.not_begun(report)
    assert {topology for topology, _ in look.seen(0.0, 1).not_begun} == {"wc-2"}


def test_each_move_and_wish_is_noted_once() -> None:
    commands: list[dict[str, Any]] = []
    moves: list[list[dict[str, Any]]] = []
    recorder = SimpleNamespace(note=commands.append, add_moves=lambda of: moves.append([*of]))
    notes = Notes(cast(Any, recorder))
    wish = Command("wc", "7-7", "a:1", answer=[1])
    for asked in ({"c-1": wish}, {"c-1": wish}, {"c-1": structs.replace(wish, state="MOVED")}):
        notes.commands(asked)
    assert [(one["path"], one["state"], one["answer"]) for one in commands] == [
        ("c-1", wish.state, None),
        ("c-1", "MOVED", None),
    ]
    move = MoveRecord("wc-1", "m1", "7-7", "a:1", "b:1", "MOVED")
    for _ in range(2):
        notes.moves([move])
    assert [[one["id"] for one in batch] for batch in moves] == [["m1"]]

"""What people get a notice of, and how often."""

from dataclasses import dataclass, field
from typing import Any

import pytest

from controller.core.decision import Outcome
from controller.core.figures import GuardRow, GuardState
from controller.core.receivers import NoticeKind
from controller.report import Felt, TopologyReport, surprised
from controller.storm.move_record import MoveRecord
from controller.storm.noticing import LONGEST, Notice, Noticed, noticed
from tests.unit.controller.test_back import ADVISE, AUTO, A, World
from tests.unit.controller.test_guards import AUTO_BY_LAG, Guarded

HOSTS = {"a": "host-a", "b": "host-b"}


@dataclass
class Person:
    """Gets the notices of each cycle."""

    before: Noticed = field(default_factory=Noticed)
    got: list[Notice] = field(default_factory=list)
    cycle_s: float = 5.0

    def look(self, now_s: float, *reports: TopologyReport, ended: Any = ()) -> list[Notice]:
        self.before, found = noticed(
            self.before, reports, ended, HOSTS, now_s, cycle_s=self.cycle_s
        )
        self.got += found
        return list(found)

    def run(self, world: World, seconds: float, config: Any = AUTO) -> None:
        for _ in range(round(seconds / 5)):
            report = world.cycle(config)
            self.look(world.now_s, report)

    def texts(self, kind: NoticeKind) -> list[str]:
        return [one.text for one in self.got if one.kind is kind]


def report(outcome: Outcome = Outcome.NOTHING_TO_GAIN, **changes: Any) -> TopologyReport:
    given = {"topology": "wc-1-1700000000", "reason": "no move gains"} | changes
    return TopologyReport(1, time_s=5.0, outcome=outcome, **given)


def test_a_move_that_has_ended_is_noticed_with_its_hosts() -> None:
    how: dict[str, Any] = {"outcome": "MOVED", "why": "gains 5 t/s", "ended_s": 7.0}
    moved = MoveRecord("wc-1-1700000000", "m1", "7-7", "a:6700", "b:6701", **how)
    undone = MoveRecord(
        "wc-1-1700000000", "m2", "8-8", "a:6700", "b:6701", "UNDONE", "b:6701 did not answer"
    )
    got = Person().look(0.0, report(), ended=[moved, undone])
    assert got[0] == Notice(
        NoticeKind.MOVE, "wc", "7-7 has moved from host-a:6700 to host-b:6701: gains 5 t/s", 7.0
    )
    assert got[1].text == (
        "8-8 from host-a:6700 to host-b:6701 ended as UNDONE: host-b:6701 did not answer"
    )


def test_a_run_that_goes_back_is_noticed_when_it_begins_to_and_when_it_is_back() -> None:
    world, person = World(times={A: 1.8}), Person()
    person.run(world, 200, ADVISE)
    assert person.got == []
    person.run(world, 600)
    back, there = person.texts(NoticeKind.RUN)
    assert back.startswith("run of 1 moves: worse, going back: CPU for each input tuple +")
    assert there.startswith("run of 1 moves: worse, taken back: CPU for each input tuple +")
    person.run(world, 60)
    assert len(person.got) == 2


def test_a_run_that_pays_is_no_news() -> None:
    world, person = World(), Person()
    person.run(world, 200, ADVISE)
    person.run(world, 600)
    effect = world.reports[-1].felt.effect
    assert effect is not None and effect.is_final
    assert person.got == []


def test_a_breached_guard_and_the_pause_for_it_are_noticed_once() -> None:
    world, person = Guarded(), Person()
    person.run(world, 140, ADVISE)
    person.run(world, 20, AUTO_BY_LAG)
    world.lag = 250.0
    person.run(world, 400, AUTO_BY_LAG)
    breached, paused = person.texts(NoticeKind.GUARD)
    assert breached == (
        "guard sum(lag) is 250, above 100 for 20 s, and may be so for 20 s: no new moves begin"
    )
    assert paused.startswith("wc-1 pauses until `nstorm resume --topology wc-1`: guard sum(lag)")
    assert [text[:31] for text in person.texts(NoticeKind.RUN)] == [
        "run of 1 moves: worse, going ba",
        "run of 1 moves: worse, taken ba",
    ]


def guarded(state: GuardState) -> TopologyReport:
    row = GuardRow("ack.p99.ms", 200.0, 30.0, state, value=300.0, above_s=40.0)
    return report(felt=Felt(guards=(row,)))


def test_what_lasts_is_noticed_again_only_after_it_was_away_for_long() -> None:
    person, breached, holds = Person(), guarded(GuardState.BREACHED), guarded(GuardState.HOLDS)
    assert len(person.look(0, breached)) == 1
    for now_s in range(5, 1000, 5):
        assert person.look(now_s, breached if now_s % 200 else holds) == []
    assert person.look(1299, holds) == []
    assert len(person.look(1300, breached)) == 1


@pytest.mark.parametrize("state", [GuardState.ABOVE, GuardState.NOT_READ, GuardState.HOLDS])
def test_a_guard_that_is_not_breached_is_no_news(state: GuardState) -> None:
    assert Person().look(0, guarded(state)) == []


def test_capacity_that_is_missing_for_a_minute_is_noticed_with_what_is_missing() -> None:
    reason = "resources are missing: 0.4 cores, and no worker can take any of it"
    lacking = report(Outcome.NO_LOW_WORKER, reason=reason, warnings=("a:1 is full",))
    person = Person()
    for now_s in range(0, 60, 5):
        assert person.look(now_s, lacking if now_s != 30 else report()) == []
    (notice,) = person.look(60, lacking)
    assert (notice.kind, notice.text) == (NoticeKind.CAPACITY, f"{reason}; host-a:1 is full")
    assert person.look(65, lacking) == []


def test_a_cluster_that_is_full_lacks_capacity() -> None:
    world, person = World(capacity={"a": 25.0, "b": 25.0}), Person()
    person.run(world, 200)
    (text,) = person.texts(NoticeKind.CAPACITY)
    assert text.startswith("resources are missing: ")


def test_a_burst_lacks_no_capacity() -> None:
    lacking = report(Outcome.NO_LOW_WORKER)
    person = Person()
    assert person.look(0, lacking) == person.look(55, lacking) == []
    assert person.look(400, lacking) == [], "the burst before is long over"


@pytest.mark.parametrize(("cycle_s", "notices"), [(300.0, 1), (5.0, 0)])
def test_where_cycles_are_long_what_lasts_is_noticed_as_well(cycle_s: float, notices: int) -> None:
    person = Person(cycle_s=cycle_s)
    lacking = report(Outcome.NO_LOW_WORKER)
    assert person.look(0, lacking) == []
    assert len(person.look(300, lacking)) == notices


def test_a_cycle_that_could_not_look_forgets_nothing() -> None:
    world, person = World(), Person()
    person.run(world, 60, ADVISE)
    person.look(world.now_s, guarded(GuardState.BREACHED))
    before = person.before
    (failed,) = surprised(1, 5.0, ValueError()).topologies
    assert person.look(world.now_s + 5, failed) == []
    assert person.before == before


def test_a_notice_is_one_line_of_what_can_be_shown() -> None:
    move = MoveRecord("w\x1b\n-1-1", "m", "7-7", "a:1", "b:1", "UNDONE", "x\r\ny\ud800\u202e" * 99)
    (one,) = Person().look(0, report(), ended=[move])
    assert one.topology == "w\\x1b -1-1"
    assert "x\\r y?\\u202ex" in one.text
    assert len(one.text) == LONGEST and one.text.isprintable() and one.text.encode()

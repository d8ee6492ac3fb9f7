"""When to stand back, judged from versions alone."""

from dataclasses import dataclass, field
from typing import Any, cast

import pytest

from controller.storm.mirror import Mirror
from controller.storm.nimbus import NimbusWatch
from kvstore.zookeeper import Stored
from migration.model import (
    Base,
    Entry,
    ExecutorId,
    NimbusReport,
    Phase,
    Plan,
    Publication,
    PublishedTopology,
    Slot,
    Way,
)
from migration.wire import EPOCH, NIMBUS, SPEAKS
from tests.messages import replace

WC = "wc-1"
PUBLICATION = Publication(WC, "wc", "ACTIVE", 10, (), (), ())
EMPTY = Plan("uuid", 1, 0, WC)
REPORT = NimbusReport(0, "0.2.0", SPEAKS, "x", (PublishedTopology(WC),))


@dataclass
class World:
    """A mirror of mzxids and a clock."""

    mzxid: dict[str, int] = field(default_factory=dict)
    mtime_ms: dict[str, int] = field(default_factory=dict)
    now: float = 0.0
    report: NimbusReport = REPORT

    def node(self, path: str) -> Stored | None:
        if path not in self.mzxid:
            return None
        return Stored(b"", 0, self.mzxid[path], self.mtime_ms.get(path, 0))

    stat = node

    def message(self, kind: type[NimbusReport], path: str) -> NimbusReport | None:
        return self.report if path in self.mzxid else None

    def children(self, folder: str) -> list[str]:
        found = (path.rpartition("/") for path in self.mzxid)
        return [name for parent, _, name in found if parent == folder]

    def now_s(self) -> float:
        return self.now

    def time_s(self) -> float:
        return self.now

    def publish(self, mzxid: int) -> None:
        self.mzxid[NIMBUS] = mzxid

    def write(self, folder: str, mzxid: int) -> None:
        self.mzxid[f"/{folder}/{WC}"] = mzxid


def asked(watch: NimbusWatch, plan: Plan = EMPTY) -> str | None:
    return watch.stand_back(PUBLICATION, plan, watch.newest())


def watching() -> tuple[World, NimbusWatch]:
    """A watch that has seen a second publication, so it knows that Nimbus lives."""
    world = World()
    world.publish(10)
    world.write("storms", 5)
    world.write("assignments", 6)
    watch = NimbusWatch(cast(Mirror, world), world.now_s)
    first = asked(watch)
    assert first is not None
    assert "waiting for the first report of Nimbus" in first
    world.publish(20)
    assert asked(watch) is None
    return world, watch


@pytest.mark.parametrize(("said_ms", "silent"), [(99_000, False), (101_000, False), (60_000, True)])
def test_a_new_leader_knows_the_age_of_the_last_sign_of_life(said_ms: int, silent: bool) -> None:
    world = World(now=7.0)
    world.publish(10)
    world.mzxid[EPOCH], world.mtime_ms = 11, {NIMBUS: said_ms, EPOCH: 100_000}
    watch = NimbusWatch(cast(Mirror, world), world.now_s)
    watch.led()
    assert asked(watch) == ("no report from Nimbus for 40 s" if silent else None)
    world.now = 37.5
    assert "no report from Nimbus" in str(asked(watch))


def test_silence_of_nimbus() -> None:
    world, watch = watching()
    world.now = 30
    assert asked(watch) is None
    world.now = 31
    assert asked(watch) == "no report from Nimbus for 31 s"
    world.publish(30)
    assert asked(watch) is None


def test_a_change_of_storms_own_until_the_next_publication() -> None:
    for folder, word in (("storms", "topology"), ("assignments", "assignment")):
        world, watch = watching()
        world.write(folder, 21)
        reason = asked(watch)
        assert reason == f"Storm has changed the {word} since the last publication"
        world.publish(22)
        assert asked(watch) is None


def test_a_sign_of_life_that_comes_after_the_publication_was_read_hides_no_change() -> None:
    world, watch = watching()
    sign = watch.newest()
    world.write("assignments", 21)
    world.publish(22)
    reason = watch.stand_back(PUBLICATION, EMPTY, sign)
    assert reason == "Storm has changed the assignment since the last publication"


def test_absorbing_a_move_is_no_surprise_but_a_change_of_the_topology_is() -> None:
    world, watch = watching()
    slot = Slot("a", 6700)
    entry = Entry("m1", ExecutorId(7, 7), slot, slot, Phase.SETTLE, Base(slot, 1))
    settling = Plan("uuid", 1, 1, WC, (entry,))
    world.write("assignments", 21)
    assert asked(watch, settling) is None
    world.write("storms", 22)
    assert asked(watch, settling) is not None


def test_a_killed_topology() -> None:
    world, watch = watching()
    assert watch.knows(WC)
    del world.mzxid[f"/storms/{WC}"]
    assert not watch.knows(WC)
    del world.mzxid[NIMBUS]
    assert asked(watch) is not None


def test_what_nimbus_cannot_publish_and_what_it_says_nothing_of() -> None:
    world, watch = watching()
    world.report = replace(
        REPORT, topologies=(PublishedTopology(WC, None, "it has 300,000 bytes"),)
    )
    reason = asked(watch)
    assert reason == "Nimbus cannot publish the topology: it has 300,000 bytes"
    world.report = replace(REPORT, error="Storm 2.9.0 has unknown code")
    assert asked(watch) == "Nimbus moves nothing: Storm 2.9.0 has unknown code"
    world.report = replace(REPORT, topologies=(PublishedTopology(WC, undoes="it is isolated"),))
    assert asked(watch) == "Storm would undo what is moved: it is isolated"
    world.report = replace(REPORT, topologies=())
    reason = asked(watch)
    assert reason == "Nimbus has not published the topology recently"
    reason = watch.stand_back(PUBLICATION, EMPTY, None)
    assert reason == "the hooks in Nimbus have never reported"


@pytest.mark.parametrize("later", [{"phase": Phase.UNKNOWN}, {"way": Way.UNKNOWN}])
def test_a_plan_of_a_later_version_is_left_alone(later: dict[str, Any]) -> None:
    _, watch = watching()
    asked(watch)
    slot = Slot("a", 6700)
    entry = Entry("m1", ExecutorId(7, 7), slot, slot, Phase.SETTLE, Base(slot, 1))
    reason = asked(watch, Plan("uuid", 1, 1, WC, (replace(entry, **later),)))
    assert reason is not None
    assert "a later version of nstorm has written the plan" in reason

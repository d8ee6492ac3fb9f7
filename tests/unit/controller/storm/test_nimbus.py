"""When to stand back, told from versions alone."""

from dataclasses import dataclass, field
from typing import cast

from controller.storm.message_cache import Mirror
from controller.storm.nimbus import NimbusWatch
from kvstore.zookeeper import Stored
from migration.model import Base, Entry, ExecutorId, Phase, Plan, Publication, Slot
from migration.wire import topology_path

WC = "wc-1"
PUBLICATION = Publication(WC, "wc", "ACTIVE", 0, "0", "s", 10, 1, None, (), (), (), ())
EMPTY = Plan("uuid", 1, 0, WC)


@dataclass
class World:
    """A mirror of mzxids and a clock."""

    mzxid: dict[str, int] = field(default_factory=dict)
    now: float = 0.0

    def node(self, path: str) -> Stored | None:
        return Stored(b"", 0, 0, self.mzxid[path]) if path in self.mzxid else None

    stat = node

    def now_s(self) -> float:
        return self.now

    def time_s(self) -> float:
        return self.now

    def publish(self, mzxid: int) -> None:
        self.mzxid[topology_path(WC)] = mzxid

    def write(self, folder: str, mzxid: int) -> None:
        self.mzxid[f"/{folder}/{WC}"] = mzxid


def watching() -> tuple[World, NimbusWatch]:
    """A watch that has seen a second publication, so it knows that Nimbus lives."""
    world = World()
    world.publish(10)
    world.write("storms", 5)
    world.write("assignments", 6)
    watch = NimbusWatch(cast(Mirror, world), world.now_s)
    first = watch.stand_back(PUBLICATION, EMPTY)
    assert first is not None
    assert "waiting for the first publication" in first
    world.publish(20)
    assert watch.stand_back(PUBLICATION, EMPTY) is None
    return world, watch


def test_silence_of_nimbus() -> None:
    world, watch = watching()
    world.now = 30
    assert watch.stand_back(PUBLICATION, EMPTY) is None
    world.now = 31
    assert watch.stand_back(PUBLICATION, EMPTY) == "Nimbus has published nothing for 31 s"
    world.publish(30)
    assert watch.stand_back(PUBLICATION, EMPTY) is None


def test_a_change_of_storms_own_until_the_next_publication() -> None:
    for folder, word in (("storms", "topology"), ("assignments", "assignment")):
        world, watch = watching()
        world.write(folder, 21)
        reason = watch.stand_back(PUBLICATION, EMPTY)
        assert reason == f"Storm has changed the {word} since the last publication"
        world.publish(22)
        assert watch.stand_back(PUBLICATION, EMPTY) is None


def test_absorbing_a_move_is_no_surprise_but_a_change_of_the_topology_is() -> None:
    world, watch = watching()
    slot = Slot("a", 6700)
    entry = Entry("m1", ExecutorId(7, 7), slot, slot, Phase.SETTLE, Base(slot, 1))
    settling = Plan("uuid", 1, 1, WC, (entry,))
    world.write("assignments", 21)
    assert watch.stand_back(PUBLICATION, settling) is None
    world.write("storms", 22)
    assert watch.stand_back(PUBLICATION, settling) is not None


def test_a_killed_topology() -> None:
    world, watch = watching()
    assert watch.knows(WC)
    del world.mzxid[f"/storms/{WC}"]
    assert not watch.knows(WC)
    del world.mzxid[topology_path(WC)]
    assert watch.stand_back(PUBLICATION, EMPTY) is not None

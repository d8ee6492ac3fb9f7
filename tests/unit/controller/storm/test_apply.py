"""A plan that ZooKeeper has lost, in every phase: the leader writes it again and the move ends."""

import itertools
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest

from controller.core.topology import TopologyView
from controller.storm.apply import Applier
from controller.storm.leader import Leader
from controller.storm.mirror import Mirror
from controller.storm.move_record import MoveRecord
from kvstore.errors import ConflictError, NodeExistsError, NoNodeError, NotConnectedError
from kvstore.zookeeper import ANY_VERSION, Stored
from migration import wire
from migration.model import (
    Entry,
    NimbusReport,
    NodeAcks,
    Phase,
    Plan,
    PlanVersion,
    PublishedTopology,
    Way,
)
from migration.protocol import Step, following
from migration.wire import SPEAKS
from tests.messages import replace
from tests.protocol_world import CLUSTER, TIMING, TOPOLOGY, World

PLAN = wire.plan_path(TOPOLOGY)
MOVED = [Phase.PREPARE, Phase.SWITCH, Phase.DRAIN, Phase.STOP, Phase.SETTLE]


@dataclass
class Store:
    """The part of a session that leaders and appliers use, over a dictionary."""

    interruptions: int = 0
    nodes: dict[str, Stored] = field(default_factory=dict)
    zxid: int = 0
    clock_ms: int = 0

    def read(self, path: str, on_change: Callable[[], None] | None = None) -> Stored | None:
        return self.nodes.get(path)

    exists = read

    def children(self, path: str, on_change: Callable[[], None] | None = None) -> list[str]:
        if path == wire.LEADER:
            return ["leader-0"]
        return sorted(p.removeprefix(f"{path}/") for p in self.nodes if p.startswith(f"{path}/"))

    def put(self, path: str, data: bytes) -> int:
        if path in self.nodes:
            return self.set(path, data)
        self.create(path, data)
        return 0

    def delete(self, path: str) -> bool:
        return self.nodes.pop(path, None) is not None

    def create(self, path: str, data: bytes = b"", **how: bool) -> str:
        if path in self.nodes:
            raise NodeExistsError(path)
        self.zxid += 1
        self.nodes[path] = Stored(data, 0, self.zxid, self.clock_ms)
        return path

    def set(self, path: str, data: bytes, version: int = ANY_VERSION) -> int:
        if path not in self.nodes:
            raise NoNodeError(path)
        held = self.nodes[path]
        if version not in (ANY_VERSION, held.version):
            raise ConflictError(path)
        self.zxid += 1
        self.nodes[path] = Stored(data, held.version + 1, self.zxid, self.clock_ms)
        return held.version + 1

    def put_checked(
        self, path: str, data: bytes, expected: int | None, *fences: tuple[str, int]
    ) -> int:
        if any(self.nodes[fence].version != version for fence, version in fences):
            raise ConflictError(path)
        if expected is None:
            self.create(path, data)
            return 0
        return self.set(path, data, expected)


class Led(World):
    """The world of the protocol, led by an applier that writes to a store."""

    def __init__(self, spouts: int = 0, carried: int = 0, used: int | None = None) -> None:
        super().__init__(executors=4, spouts=spouts, carried=carried, used=used)
        self.store = Store()
        self.lead_anew()
        for worker in self.workers:
            worker.plan = worker.supervisor_plan = Plan(CLUSTER, 0, -1, TOPOLOGY)

    def lead_anew(self) -> None:
        """Let a controller lead that remembers nothing."""
        self.mirror = Mirror(self.store, threading.Event())  # type: ignore[arg-type]
        self.leader = leader = Leader(self.store, "one")  # type: ignore[arg-type]
        leader._candidate.leads = lambda: True  # type: ignore[method-assign]
        leader.refresh()
        self.store.nodes[wire.CLUSTER] = Stored(CLUSTER.encode(), 0, 1)
        self.applier = Applier(
            self.store,  # type: ignore[arg-type]
            mirror=self.mirror,
            leader=leader,
            timing=TIMING,
            now_s=lambda: self.now_s,
            time_s=lambda: self.now_s,
        )

    def view(self) -> TopologyView:
        self.mirror.invalidate_all()
        stored = self.store.nodes.get(PLAN)
        plan = self.mirror.message(Plan, PLAN) or Plan(CLUSTER, 0, -1, TOPOLOGY)
        plan = replace(plan, version=-1 if stored is None else stored.version)
        said = (PublishedTopology(TOPOLOGY, self.read_by_nimbus),)
        nimbus = NimbusReport(0, "0", SPEAKS, "x", said)
        return TopologyView(self.publication, plan, tuple(self.fresh()), nimbus=nimbus)

    def fresh(self) -> list[NodeAcks]:
        """Let each agent name the plan that it holds, if ZooKeeper has not got it."""
        seen = self.seen()
        words = []
        for said, worker in zip(super().fresh(), self.workers, strict=True):
            lost = seen is None or seen.stamp < worker.plan.stamp
            kept = (worker.plan,) if lost and worker.plan.version >= 0 else ()
            words.append(replace(said, held=kept if self.agents_hold else ()))
        return words

    agents_hold = True
    read_by_nimbus: PlanVersion | None = None

    def seen(self) -> Plan | None:
        self.mirror.invalidate_all()
        return self.mirror.plan(TOPOLOGY)

    def turn_led(self) -> None:
        """Take a turn of the leader, and let the others see what it wrote."""
        self.applier.step([self.view()])
        self.stored = self.seen() or Plan(CLUSTER, 0, -1, TOPOLOGY)

    def go_on(self, until: Callable[[], bool], seconds: float = 0.05) -> None:
        for _ in range(200):
            if until():
                return
            self.everybody(seconds)
            self.turn_led()
        raise AssertionError(f"still {self.phases()}")

    def write(self, result: Step) -> None:
        """Leave all writing to the applier."""

    def begin(self, target: int = 1) -> None:
        self.stored = Plan(CLUSTER, 0, -1, TOPOLOGY)
        view = self.view()
        entry = self.move(self.executors[0], self.slots[target])
        assert isinstance(entry, Entry)
        after = following(view.plan, (entry,), self.leader.epoch or 0)
        assert self.applier.begin(view.plan, after, {})
        self.turn_led()


def test_the_agent_of_a_slot_that_is_opened_is_told_and_by_each_leader() -> None:
    world = Led(used=2)
    world.begin(target=2)
    path = f"{wire.OPENS}/s2"
    assert world.phases() == [Phase.OPEN]
    world.turn_led()
    assert world.store.nodes[path].data == TOPOLOGY.encode()
    del world.store.nodes[path]
    world.lead_anew()
    world.turn_led()
    assert world.store.nodes[path].data == TOPOLOGY.encode()
    world.go_on(lambda: world.stored.entries == (), seconds=1.0)
    assert world.applier.history.ended[-1].outcome == "MOVED"
    world.turn_led()
    assert path not in world.store.nodes


def lose(world: Led, how: str) -> None:
    if how == "deleted":
        del world.store.nodes[PLAN]
    elif how == "garbled":
        world.store.set(PLAN, b"garbage{")
    else:
        old = world.store.nodes[PLAN]
        world.store.nodes[PLAN] = replace(old, data=b"", version=0)
        world.store.set(PLAN, wire.encode(Plan(CLUSTER, 0, 1, TOPOLOGY)))


def reads(world: Led) -> set[PlanVersion]:
    return {worker.plan.stamp for worker in world.workers}


@pytest.mark.parametrize("remembers", [True, False], ids=["same leader", "another leader"])
@pytest.mark.parametrize("how", ["deleted", "garbled", "older"])
@pytest.mark.parametrize("phase", MOVED)
def test_a_lost_plan_is_written_anew_and_its_move_ends(
    phase: Phase, how: str, remembers: bool
) -> None:
    world = Led()
    world.begin()
    world.go_on(lambda: world.phases() == [phase])
    world.everybody()
    lose(world, how)
    if not remembers:
        world.lead_anew()
    world.turn_led()
    assert world.phases() == [phase]
    assert world.stored.stamp > max(reads(world))
    world.go_on(lambda: world.stored.entries == (), seconds=1.0)
    world.everybody(1.0)
    assert world.applier.history.ended[-1].outcome == "MOVED"
    assert world.copies(world.executors[0]) == [world.slots[1]]
    assert world.with_kills() == 0
    assert reads(world) == {world.stored.stamp}


@pytest.mark.parametrize("remembers", [True, False], ids=["same leader", "another leader"])
@pytest.mark.parametrize("way", [Way.LIVE, Way.SPOUT, Way.CARRY])
def test_a_move_of_each_way_says_after_what_time_its_source_had_stopped(
    way: Way, remembers: bool
) -> None:
    world = Led(spouts=way is Way.SPOUT, carried=way is Way.CARRY)
    world.begin()
    world.go_on(lambda: world.phases() == [Phase.STOP])
    if not remembers:
        world.lead_anew()
    world.go_on(lambda: world.stored.entries == (), seconds=1.0)
    (move,) = world.applier.history.ended
    assert (move.outcome, move.stopped_after_s is not None) == ("MOVED", remembers)
    if remembers:
        spent = {phase: s for phase, s in move.phase_s.items() if phase != Phase.SETTLE}
        assert move.stopped_after_s == pytest.approx(sum(spent.values()))


@pytest.mark.parametrize("how", ["deleted", "garbled"])
def test_an_empty_plan_is_written_anew_too_so_that_later_moves_are_read(how: str) -> None:
    world = Led()
    world.begin()
    world.go_on(lambda: world.stored.entries == (), seconds=1.0)
    world.everybody(1.0)
    lose(world, how)
    world.lead_anew()
    world.turn_led()
    world.everybody(1.0)
    assert world.stored.entries == ()
    assert reads(world) == {world.stored.stamp}


def test_what_no_node_holds_any_more_is_awaited_and_then_dropped() -> None:
    world = Led()
    world.agents_hold = False
    world.begin()
    world.go_on(lambda: world.phases() == [Phase.DRAIN])
    world.everybody()
    lose(world, "deleted")
    world.lead_anew()
    world.turn_led()
    assert PLAN not in world.store.nodes
    world.everybody(TIMING.ack_fresh_s)
    world.turn_led()
    assert world.stored.entries == ()
    assert world.stored.stamp > max(reads(world))


def test_a_plan_is_written_above_what_nimbus_has_read() -> None:
    """ZooKeeper was restored from an older copy; nothing was moving."""
    world = Led()
    world.agents_hold = False
    world.read_by_nimbus = PlanVersion(9, 4)
    for _ in range(2):
        world.turn_led()
        world.now_s += TIMING.ack_fresh_s
    assert world.stored == Plan(CLUSTER, 10, 0, TOPOLOGY)


def test_a_topology_without_a_plan_needs_none() -> None:
    world = Led()
    world.turn_led()
    assert PLAN not in world.store.nodes


@pytest.mark.parametrize("how", ["deleted", "garbled", "older"])
def test_a_leader_whose_connection_blinked_writes_a_lost_plan_under_its_new_epoch(how: str) -> None:
    world = Led()
    world.begin()
    world.go_on(lambda: world.phases() == [Phase.DRAIN])
    world.everybody()
    lose(world, how)
    world.store.interruptions += 1
    world.leader.refresh()
    epoch = world.leader.epoch
    world.turn_led()
    assert world.leader.epoch == epoch
    assert world.phases() == [Phase.DRAIN]
    assert world.stored.epoch == epoch


@pytest.mark.parametrize("late", [{"phase": Phase.UNKNOWN}, {"way": Way.UNKNOWN}])
@pytest.mark.parametrize("how", ["deleted", "garbled", "older"])
def test_a_lost_plan_of_a_later_version_is_left_as_it_is(how: str, late: dict[str, Any]) -> None:
    world = Led()
    world.begin()
    world.everybody()
    later = tuple(replace(entry, **late) for entry in world.stored.entries)
    for worker in world.workers:
        worker.plan = replace(worker.plan, entries=later)
    lose(world, how)
    world.lead_anew()
    before = world.store.nodes.get(PLAN)
    world.turn_led()
    assert world.store.nodes.get(PLAN) == before


def test_what_is_held_of_a_topology_goes_with_its_plan() -> None:
    world = Led()
    world.begin()
    world.turn_led()
    world.applier.step([])  # its publication cannot be read for a while
    assert TOPOLOGY in world.applier._held
    del world.store.nodes[PLAN]
    world.mirror.forget(PLAN)
    world.applier.step([])
    assert not world.applier._held


def test_an_epoch_that_no_leader_has_had_stops_nothing() -> None:
    """A hand wrote a plan that nothing could follow; a worker, or Nimbus, has read it."""
    world = Led()
    epoch = world.leader.epoch or 0
    world.begin()
    world.go_on(lambda: world.phases() == [Phase.DRAIN])
    world.read_by_nimbus = PlanVersion(10**9, 4)
    forged = Plan(CLUSTER, 2**62, world.store.nodes[PLAN].version + 1, TOPOLOGY)
    world.store.set(PLAN, wire.encode(forged))
    world.turn_led()
    assert (world.phases(), world.stored.epoch) == ([Phase.DRAIN], epoch)
    world.go_on(lambda: world.stored.entries == (), seconds=1.0)
    assert world.applier.history.ended[-1].outcome == "MOVED"
    assert world.leader.epoch == epoch


@pytest.mark.parametrize(
    ("phase", "ended"), [(Phase.PREPARE, "UNDONE"), (Phase.SWITCH, "UNDONE"), (Phase.STOP, "MOVED")]
)
def test_switching_off_ends_what_is_under_way_also_under_a_new_leader(
    phase: Phase, ended: str
) -> None:
    world = Led()
    world.begin()
    world.go_on(lambda: world.phases() == [phase])
    world.store.put(wire.OFF, b"a fault")
    world.lead_anew()
    world.go_on(lambda: world.phases() == [])
    ((move, _),) = world.applier.take_ended()
    assert move.outcome == ended
    if ended == "UNDONE":
        assert move.reason == "nstorm was switched off: a fault"


def test_no_move_begins_once_it_is_off_whatever_its_leader_has_seen() -> None:
    world = Led()
    world.begin()
    world.go_on(lambda: world.phases() == [])
    plan, epoch = world.view().plan, world.leader.epoch or 0
    entry = world.move(world.executors[1], world.slots[2])
    assert isinstance(entry, Entry)
    after = following(plan, (entry,), epoch)
    assert world.mirror.node(wire.OFF) == Stored(b"", 0, world.store.nodes[wire.OFF].mzxid)
    world.store.put(wire.OFF, b"a fault")  # no watch has reported it yet
    assert not world.applier.begin(plan, after, {})
    world.mirror.invalidate_all()
    assert not world.applier.begin(plan, after, {})
    world.store.put(wire.OFF, b"")
    world.mirror.invalidate_all()
    assert world.applier.begin(plan, after, {})


def test_a_node_that_is_off_ends_the_moves_of_its_topologies() -> None:
    world = Led()
    world.begin()
    world.go_on(lambda: world.phases() == [Phase.SWITCH])
    world.workers[2].file = True  # no end of the move
    world.go_on(lambda: world.phases() == [])
    ((move, _),) = world.applier.take_ended()
    assert (move.outcome, move.reason) == (
        "UNDONE",
        "nstorm was switched off: the hooks on s2 are off: a fault",
    )
    assert world.view().observation.switched_off == "the hooks on s2 are off: a fault"


def without_answer(world: Led, number: int) -> None:
    """Let a write of the plan reach ZooKeeper, and the connection break before its answer."""
    usual, count = world.store.put_checked, itertools.count(1)

    def put_checked(path: str, *of: Any) -> int:
        version = usual(path, *of)
        if path == PLAN and next(count) == number:
            world.store.interruptions += 1
            raise NotConnectedError("no answer")
        return version

    world.store.put_checked = put_checked  # type: ignore[assignment,method-assign]


@pytest.mark.parametrize("remembers", [True, False], ids=["same leader", "another leader"])
@pytest.mark.parametrize("number", range(1, 7))
def test_a_write_without_an_answer_leaves_no_move_without_an_end(
    number: int, remembers: bool
) -> None:
    world = Led()
    without_answer(world, number)
    asked = {"asked_by": "policy gather"}
    world.stored = Plan(CLUSTER, 0, -1, TOPOLOGY)
    entry = world.move(world.executors[0], world.slots[1])
    assert isinstance(entry, Entry)
    before = world.view()
    after = following(before.plan, (entry,), world.leader.epoch or 0)
    broken = False
    for turn in range(200):
        try:
            if turn == 0:
                world.applier.begin(before.plan, after, asked)
            world.turn_led()
        except NotConnectedError:
            broken = True
            history = world.applier.history
            if not remembers:
                world.lead_anew()
            world.applier.history.moves = list(history.moves)  # as ZooKeeper has kept it
            world.leader.refresh()
            world.turn_led()
        if broken and world.stored.entries == () and world.applier.history.ended:
            break
        world.everybody(0.05)
    assert broken
    (move,) = world.applier.history.moves
    known = remembers or number > 1  # only who has asked knows it before that
    assert (move.outcome, move.asked_by) == ("MOVED", "policy gather" if known else "unknown")
    assert [record for record, _ in world.applier.take_ended()] == [move]


@pytest.mark.parametrize(("at", "outcome"), [(0, "UNDONE"), (1, "MOVED"), (2, "VOID")])
def test_the_place_shows_how_a_move_without_an_end_ended(at: int, outcome: str) -> None:
    world = Led()
    world.begin()
    world.go_on(lambda: world.stored.entries == (), seconds=1.0)
    placed = world.publication.executors[0]
    one, begun_s = str(placed.executor), world.now_s
    other, third = (str(slot) for slot in world.slots if slot != placed.slot)
    here = str(placed.slot)
    ends = [(here, other), (other, here), (other, third)][at]
    world.applier.history.moves = [MoveRecord(TOPOLOGY, "m1", one, *ends, begun_s=begun_s)]
    world.turn_led()
    assert [move.outcome for move in world.applier.history.moves] == [outcome]


def test_a_move_ends_with_its_topology() -> None:
    world = Led()
    world.begin()
    world.applier.step([])  # its publication cannot be read for a while
    (move,) = world.applier.history.moves
    assert move.outcome == ""
    del world.store.nodes[PLAN]
    world.mirror.invalidate_all()
    world.applier.step([])
    (move,) = world.applier.history.moves
    assert (move.outcome, move.reason) == ("VOID", "its topology is gone")
    assert len(world.applier.take_ended()) == 1


def test_what_an_earlier_leader_left_without_an_end_is_no_news() -> None:
    world = Led()
    begun_s = world.now_s - 10_000
    left = MoveRecord("gone-1-1", "m1", "1-1", "s0:6700", "s1:6700", begun_s=begun_s)
    world.applier.history.moves = [left]
    world.turn_led()
    (move,) = world.applier.history.moves
    assert (move.outcome, move.ended_s) == ("VOID", begun_s)
    assert world.applier.take_ended() == []

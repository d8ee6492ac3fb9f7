"""When a policy opens a free slot, and its reason where slots are free and none is opened."""

from dataclasses import dataclass, field

import pytest

from controller.config import Config, Mode
from controller.core.capacity import Capacity, Spare
from controller.core.decision import Outcome
from controller.core.excluded import Excluded
from controller.core.limits import Limits
from controller.cycle import CycleInput, Memory
from controller.policies.gather.goal import Answer
from controller.report import TopologyReport
from controller.storm.answers import misfit, plan_of
from migration.model import Base, Entry, Phase, Publication, Slot
from tests.messages import executor, replace
from tests.recorded_world import with_workers
from tests.unit.controller.test_cycle import A1, AUTO, B1, B2, World, last, two_topologies
from tests.watched import cycle

C1 = Slot("c", 1)
FREE = frozenset({Slot("a", 3), Slot("b", 3), C1, Slot("c", 2)})
# Both hosts are too full: one has three executors and the other four, of 0.05 of its CPU each.
FULL = replace(AUTO, limits=Limits(high_frac=0.14, low_frac=0.1))
# Of each host one worker, so that nothing is gained within it.
ONE_EACH = {1: A1, 2: B1, 3: A1, 4: A1, 5: B1, 6: B1, 7: B1}
# A host of two executors is not too full, and has no room for a third.
SOME = replace(AUTO, limits=Limits(high_frac=0.12))


def searched(seen: CycleInput) -> CycleInput:
    """Let a search have ended without a find."""
    return replace(seen, answers=tuple((view.id, Answer(None)) for view in seen.topologies))


def remembered(world: World, config: Config = FULL) -> tuple[TopologyReport, Memory]:
    memory, _ = cycle(Memory(), world.seen(), config)
    world.now += 1
    memory, report = cycle(memory, searched(world.seen()), config)
    return report.topologies[0], memory


def decided(world: World, config: Config = FULL) -> TopologyReport:
    return remembered(world, config)[0]


def test_a_slot_is_opened_for_a_worker_that_is_too_full_where_none_has_room() -> None:
    report = decided(World(free=FREE))
    assert report.outcome is Outcome.MOVED
    assert "so a slot is opened: b at 0.2 of its CPU is above 0.14" in report.reason
    assert report.plan is not None
    (entry,) = report.plan.entries
    assert entry.source.supervisor == "b"
    assert entry.target == C1, "the host without a worker of it"
    assert (entry.phase, entry.opens) == (Phase.OPEN, "host-c")
    assert report.predicted_cpu is not None, "else the price of a relief has no measure"


@dataclass
class Counting(World):
    """Storm's scheduler counts memory, of which some nodes have little."""

    memory_mb: dict[str, float] = field(default_factory=dict)

    def publication(self) -> Publication:
        made = super().publication()
        nodes = (replace(one, memory_mb=self.memory_mb.get(one.id, 1e6)) for one in made.nodes)
        components = (replace(one, memory_mb=128.0) for one in made.components)
        return replace(made, nodes=tuple(nodes), components=tuple(components))


def test_a_slot_is_opened_where_the_node_has_the_memory() -> None:
    free = FREE | {Slot("d", 1)}
    for memory_mb, target in (({}, C1), ({"c": 100.0}, Slot("d", 1))):
        moves = decided(Counting(free=free, memory_mb=memory_mb)).moves
        assert [move.target for move in moves] == [str(target)]
    little = decided(Counting(ONE_EACH, free=FREE, memory_mb={"c": 100.0}))
    assert little.moves == ()
    assert "none is on a host that may take a worker more" in little.reason


@pytest.mark.parametrize("cores", [None, 0.5])
def test_a_topology_sees_what_others_declare(cores: float | None) -> None:
    config, memory = replace(AUTO, capacity=Capacity(cores)), Memory()
    world = Counting(ONE_EACH)
    for _ in range(2):
        memory, report = cycle(memory, two_topologies(world), config)
        world.now += 1
    for one in report.topologies:
        assert one.picture is not None
        declared = one.picture.cluster.other_memory_mb
        assert declared is not None
        assert declared.tolist() == [3 * 128.0, 4 * 128.0]
        assert one.picture.fit.memory is not None
        assert one.picture.fit.memory.others_mb.tolist() == declared.tolist()


def with_full_heaps(world: World, config: Config) -> TopologyReport:
    """Decide where each worker in use has 95 of 100 MB filled."""
    memory, meters = Memory(), {"heap_live_bytes": 95e6, "heap_max_bytes": 100e6}
    for _ in range(2):
        seen = world.seen()
        loads = with_workers(seen.loads, lambda one: {"meters": meters} if one.executors else {})
        memory, report = cycle(memory, searched(replace(seen, loads=loads)), config)
        world.now += 1
    (found,) = report.topologies
    return found


def test_a_slot_is_opened_for_a_heap_that_is_too_full_also_beside_a_worker() -> None:
    """One more worker on a host brings it no CPU, but another heap."""
    beside = Slot("b", 3)
    one = with_full_heaps(World(ONE_EACH, free=frozenset({beside})), AUTO)
    assert [move.target for move in one.moves] == [str(beside)], one.reason
    assert "so a slot is opened: b:1 fills 0.95 of a heap, above 0.85" in one.reason


def test_a_full_heap_may_have_a_slot_also_where_a_cpu_is_full() -> None:
    """A host without a worker comes first, for it brings CPU as well."""
    beside = Slot("b", 3)
    for free in ({beside}, {beside, C1}):
        one = with_full_heaps(World(ONE_EACH, free=frozenset(free)), FULL)
        assert one.picture is not None and one.picture.fit.is_high.any()
        spare = one.picture.cluster.spare
        assert isinstance(spare, Spare), spare
        assert spare.worker == str(C1 if C1 in free else beside)


def test_nothing_is_opened_for_traffic_nor_where_a_worker_has_room() -> None:
    roomy = replace(AUTO, limits=Limits(high_frac=0.85))
    assert decided(World(free=FREE), roomy).moves == decided(World(), roomy).moves
    # Only the host of three is too full; that of one has room.
    places = {1: Slot("a", 1), 2: Slot("a", 1), 3: Slot("a", 1), 4: Slot("b", 1)}
    assert [m.target for m in decided(World(places=places, free=FREE), SOME).moves] == ["b:1"]


@pytest.mark.parametrize(
    ("world", "config", "why"),
    [
        (
            World(ONE_EACH, free=FREE, speaks=1),
            FULL,
            "Nimbus or a controller speaks version 1 of the",
        ),
        (
            World(ONE_EACH, free=FREE - {C1, Slot("c", 2)}),
            FULL,
            "none is on a host that may take a worker more",
        ),
        (
            World(ONE_EACH, free=FREE, drained=("host-c",)),
            FULL,
            "none is on a host that may take a worker more",
        ),
        (
            World(ONE_EACH, free=FREE),
            replace(FULL, excluded=Excluded(hosts=frozenset({"host-c"}))),
            "none is on a host that may take a worker more",
        ),
        (
            World(ONE_EACH, free=FREE),
            replace(FULL, capacity=Capacity(0.5)),
            "c:1, with 0.07 cores, would relieve none",
        ),
    ],
)
def test_free_slots_that_may_not_be_opened_are_named_with_the_reason(
    world: World, config: Config, why: str
) -> None:
    report = decided(replace(world), config)
    assert report.outcome is Outcome.NO_LOW_WORKER
    assert f"no slot is opened: {why}" in report.reason


def test_a_slot_waits_for_searches_and_moves() -> None:
    asks = last(World(ONE_EACH, free=FREE), FULL)
    assert asks.outcome is Outcome.NO_LOW_WORKER
    assert "no slot is opened: a search has not ended" in asks.reason
    opening = Entry("m1", executor(7), B1, C1, Phase.OPEN, Base(B1, 50), opens="host-c")
    two = replace(FULL, max_moves=2)
    report = decided(World(ONE_EACH, free=FREE - {C1}, entries=(opening,)), two)
    assert report.outcome in (Outcome.NO_LOW_WORKER, Outcome.NO_WORKER_IN_SLOT)


def after_a_rest(world: World, config: Config, *moved: int) -> TopologyReport:
    """Decide after moves that have ended."""
    memory, _ = cycle(Memory(), world.seen(), config)
    world.now += 1
    rests = tuple(("wc-1", executor(n), world.now) for n in moved)
    return cycle(memory, replace(searched(world.seen()), rests=rests), config)[1].topologies[0]


def test_a_move_holds_up_no_slot_but_where_its_worker_is_too_full_or_new() -> None:
    world = World(places={1: A1, 2: A1, 3: A1, 4: B2, 5: B2}, free=FREE)
    assert [move.target for move in after_a_rest(world, SOME, 5).moves] == ["c:1"]
    assert "an executor of a:1 moved recently" in after_a_rest(world, SOME, 3).reason
    assert "all executors of b:2 moved recently" in after_a_rest(world, SOME, 4, 5).reason


def test_a_plan_that_was_not_written_holds_up_no_slot() -> None:
    world = World(free=FREE)
    report, memory = remembered(world)
    assert report.outcome is Outcome.MOVED
    world.now += 1
    lost = tuple(("wc-1", executor(int(m.executor.partition("-")[0]))) for m in report.moves)
    again = cycle(memory, replace(searched(world.seen()), not_begun=lost), FULL)[1].topologies[0]
    assert again.moves == report.moves


def test_what_passes_hides_nothing_that_lasts() -> None:
    places = {1: A1, 2: A1, 3: A1, 4: Slot("b", 1)}
    wants = after_a_rest(World(places=places, free=FREE), SOME).moves
    assert [move.target for move in wants] == ["b:1"]
    shut = replace(SOME, excluded=Excluded(hosts=frozenset({"host-b"})), max_moves_host_hour=1)
    world = World(places=places, free=FREE, begun=((1.7e9, "b", "b"),))
    assert [move.target for move in after_a_rest(world, shut).moves] == ["c:1"]


def test_a_slot_is_not_opened_for_what_has_room_once_a_cap_is_over() -> None:
    config = replace(SOME, max_moves_host_hour=1)
    places = {1: Slot("a", 1), 2: Slot("a", 1), 3: Slot("a", 1), 4: Slot("b", 1)}
    waits = decided(World(places=places, free=FREE, begun=((1.7e9, "b", "b"),)), config)
    assert waits.outcome is Outcome.CAPPED
    assert "moves from or to it have begun within an hour, 1 may, but a at 0.15" in waits.reason
    full = {**places, 5: Slot("b", 1)}
    opens = decided(World(places=full, free=FREE, begun=((1.7e9, "b", "b"),)), config)
    assert [move.target for move in opens.moves] == ["c:1"], "b:1 has no room anyway"


def test_of_two_topologies_that_want_one_slot_one_gets_it() -> None:
    def both(config: Config, world: World) -> list[TopologyReport]:
        memory, _ = cycle(Memory(), two_topologies(world), config)
        world.now += 1
        seen = replace(searched(two_topologies(world)), free=FREE)
        return sorted(cycle(memory, seen, config)[1].topologies, key=lambda one: one.topology)

    first, second = both(replace(FULL, max_moves=2), World(ONE_EACH, free=FREE))
    assert {first.outcome, second.outcome} == {Outcome.MOVED, Outcome.NO_LOW_WORKER}
    (waits,) = (one for one in (first, second) if not one.moves)
    assert "no slot is opened: c:1 is on a host where " in waits.reason
    assert all(
        one.moves for one in both(replace(FULL, mode=Mode.ADVISE), World(ONE_EACH, free=FREE))
    )


def test_what_another_topology_uses_of_a_host_is_no_room() -> None:
    in_use = {"a": 2, "b": 2, "c": 1}

    def decided_beside(count: int) -> TopologyReport:
        """Put executors of another topology onto host c."""
        world = World({1: A1, 2: A1, 3: A1}, free=frozenset({Slot("c", 2)}), in_use=in_use)
        beside = World(dict.fromkeys(range(1, count + 1), C1), in_use=in_use)
        memory = Memory()
        for _ in range(2):
            seen, other = world.seen(), two_topologies(beside)
            both = (seen.topologies[0], other.topologies[1])
            loads = tuple(
                replace(
                    here,
                    workers=(*here.workers, *(w for w in there.workers if w.topology == "xx-2")),
                )
                for here, there in zip(seen.loads, other.loads, strict=True)
            )
            seen = replace(searched(seen), topologies=both, loads=loads)
            memory, report = cycle(memory, seen, FULL)
            world.now = beside.now = world.now + 1
        return next(one for one in report.topologies if one.topology == "wc-1")

    assert [move.target for move in decided_beside(1).moves] == ["c:2"]
    assert "c:2, with 0.08 cores, would relieve none" in decided_beside(2).reason


def test_a_slot_that_waits_for_approval_is_looked_at_when_it_is_approved_and_planned() -> None:
    config = replace(FULL, mode=Mode.APPROVE)
    report, memory = remembered(World(free=FREE), config)
    assert report.outcome is Outcome.AWAITING_APPROVAL
    made = report.picture
    assert made is not None
    assert misfit(made, report.moves, FULL) is None
    assert "c would use 5% of its CPU" in str(
        misfit(made, report.moves, replace(FULL, limits=Limits(high_frac=0.04, low_frac=0.01)))
    )
    found = plan_of(report, made, memory, config, 101.0)
    (move,) = found.steps[0].moves
    assert move[-1] == "c:1"

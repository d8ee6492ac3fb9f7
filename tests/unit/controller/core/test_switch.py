"""What `nstorm doctor` rehearses, and what `nstorm off` waits for."""

from msgspec import structs

from controller.core.stock import stock_workers
from controller.core.switch import left, would
from controller.core.topology import TopologyView
from migration.model import NimbusReport, Phase, Way
from migration.wire import SPEAKS
from tests.protocol_world import World

NIMBUS = NimbusReport(0, "0.2.0", SPEAKS, "x")


def view_of(world: World, nimbus: NimbusReport | None = NIMBUS) -> TopologyView:
    return TopologyView(world.publish(), world.stored, tuple(world.fresh()), nimbus=nimbus)


def test_each_move_is_named_with_what_would_become_of_it() -> None:
    world = World(executors=4)
    assert list(would(view_of(world))) == []
    world.move(world.executors[0], world.slots[1])
    for phase, end in (
        (Phase.PREPARE, "would go back"),
        (Phase.SWITCH, "would go back"),
        (Phase.STOP, "would go on to its end"),
    ):
        world.until(phase)
        assert list(would(view_of(world))) == [f"move m1 of wc, 1-1 in {phase}, {end}"]
    entries = tuple(structs.replace(e, phase=Phase.UNDO) for e in world.stored.entries)
    world.stored = structs.replace(world.stored, entries=entries)
    assert [line.endswith("goes back already") for line in would(view_of(world))] == [True]
    world.status = "INACTIVE"
    assert "wc is INACTIVE: these moves end once it is active again" in would(view_of(world))


def test_a_spout_that_is_being_closed_would_go_back() -> None:
    world = World(executors=4, spouts=1)
    world.move(world.executors[0], world.slots[1])
    world.until(Phase.QUIET)
    assert world.stored.entries[0].way is Way.SPOUT
    assert list(would(view_of(world))) == ["move m1 of wc, 1-1 in QUIET, would go back"]


def test_who_would_not_hear_of_it_is_named() -> None:
    world = World()
    world.workers[1].silent = True
    assert list(would(view_of(world, nimbus=None))) == [
        "the worker at s1:6700 (no recent report from the agent for s1:6700) would not hear of it",
        "Nimbus (its hooks have never reported) would not hear of it",
    ]


def test_nothing_is_left_once_all_are_inert() -> None:
    world = World()
    world.move(world.executors[0], world.slots[1])
    world.off = True
    assert set(left(view_of(world))) == {
        "move m1 of wc is in PREPARE",
        *(f"the worker at {slot} is not inert yet" for slot in world.slots),
        "Nimbus has not answered",
    }
    world.settle()
    off = structs.replace(NIMBUS, error="the hooks are off: a fault")
    assert list(left(view_of(world, off))) == []
    assert stock_workers(view_of(world, off)) == ()


def test_a_worker_that_started_while_it_was_off_has_no_hooks() -> None:
    world = World()
    world.off = True
    world.settle()
    world.workers[1].restart()
    world.settle()
    assert [one.slot for one in stock_workers(view_of(world))] == [world.slots[1]]

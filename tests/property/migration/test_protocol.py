"""No interleaving of leaders, workers, Nimbus and faults loses an executor or sticks."""

from __future__ import annotations

from dataclasses import replace

import hypothesis.strategies as st
import pytest
from hypothesis import settings
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from controller.core.decision import Veto
from migration.model import Entry, ExecutorId, Phase, Way
from migration.protocol import MoveOutcome
from migration.table import PAGE, rows
from tests.protocol_world import AGENT_TURNS, TIMING, TURNS, World

SLOTS = st.integers(0, 2)
EXECUTORS = st.integers(0, 5)
LAGS = ["absorb", *(f"{turn} {slot}" for turn in TURNS for slot in range(3))]


class Turns(RuleBasedStateMachine):
    """Moves, while everybody takes turns but for some who lag behind, and leaders change."""

    def __init__(self) -> None:
        super().__init__()
        self.world = World(executors=6, spouts=1, carried=2, keepers=1, renewed=1)

    @initialize(executor=EXECUTORS, by=st.integers(1, 2))
    def begin(self, executor: int, by: int) -> None:
        self.world.move(self.world.executors[executor], self.world.slots[(executor + by) % 3])

    @rule(executor=EXECUTORS, slot=SLOTS)
    def move(self, executor: int, slot: int) -> None:
        self.world.move(self.world.executors[executor], self.world.slots[slot])

    @rule(
        lagging=st.frozensets(st.sampled_from(LAGS), max_size=3),
        times=st.integers(1, 8),
        seconds=st.sampled_from([0.05, 0.3, 3.0, 12.0]),
    )
    def go_on(self, lagging: frozenset[str], times: int, seconds: float) -> None:
        for _ in range(times):
            self.world.everybody(seconds, lagging)
            self.world.lead()

    @rule(lagging=st.sampled_from(LAGS), times=st.integers(4, 12))
    def go_on_without_one(self, lagging: str, times: int) -> None:
        self.go_on(frozenset({lagging}), times, 1.0)

    @rule(slot=SLOTS, times=st.integers(4, 12), seconds=st.sampled_from([1.0, 3.0, 12.0]))
    def go_on_without_an_agent(self, slot: int, times: int, seconds: float) -> None:
        for _ in range(times):
            self.go_on(frozenset(f"{turn} {slot}" for turn in AGENT_TURNS), 1, seconds)

    @rule(turns=st.lists(st.sampled_from(LAGS), max_size=12))
    def take(self, turns: list[str]) -> None:
        for turn in turns:
            self.world.everybody(0.0, frozenset(LAGS) - {turn})

    @rule(row=st.integers(0, 3))
    def cancel(self, row: int) -> None:
        progress = list(self.world.held_plan.progress)
        if progress:
            row %= len(progress)
            progress[row] = replace(progress[row], cancelled=True)
            self.world.held_plan = replace(self.world.held_plan, progress=tuple(progress))

    @rule(executor=EXECUTORS, slot=SLOTS)
    def stall(self, executor: int, slot: int) -> None:
        self.world.workers[slot].stalled ^= {self.world.executors[executor]}

    @rule(executor=EXECUTORS, slot=SLOTS)
    def shut(self, executor: int, slot: int) -> None:
        self.world.workers[slot].unopenable ^= {self.world.executors[executor]}

    @rule()
    def take_over(self) -> None:
        self.world.take_over()
        self.world.lead()

    def teardown(self) -> None:
        self.world.settle()
        assert self.world.stored.entries == ()
        for executor in self.world.executors:
            slot = self.world.storm[executor][0]
            assert self.world.copies(executor) == [slot]
            routes = {worker.owner(executor) for worker in self.world.workers if not worker.closed}
            assert routes == {slot}


class Moves(Turns):
    """Without faults nothing is ever lost, not for a moment."""

    @invariant()
    def nobody_is_killed(self) -> None:
        assert self.world.with_kills() == 0

    @invariant()
    def every_executor_runs_and_nowhere_else_than_at_an_end(self) -> None:
        entries = {entry.executor: entry for entry in self.world.stored.entries}
        for executor in self.world.executors:
            copies = self.world.copies(executor)
            entry = entries.get(executor)
            closes = executor in self.world.spouts | self.world.renewed
            ends = (
                {self.world.storm[executor][0]} if entry is None else {entry.source, entry.target}
            )
            assert copies or (closes and entry is not None)
            assert set(copies) <= ends
            # One copy, as long as the new one is not asked for.
            assert len(copies) <= (1 if entry is None else 2)

    @invariant()
    def nothing_is_open_twice(self) -> None:
        for executor in self.world.spouts | self.world.renewed:
            assert sum(executor in worker.opened for worker in self.world.workers) <= 1

    @invariant()
    def a_tuple_finds_a_copy_from_everywhere(self) -> None:
        # What nobody has opened waits for the next copy.
        closing = self.world.spouts | self.world.renewed
        # A worker without executors that is in no assignment and no plan has nothing to send. It
        # ends once its node has read so, and keeps its old routes until then.
        kept = {slot for slot, _ in self.world.storm.values()} | self.world.stored.opened_slots()
        there = [w for w in self.world.workers if not w.closed and (w.running or w.slot in kept)]
        for executor in set(self.world.executors) - closing:
            for worker in there:
                hops = [worker.owner(executor)]
                while executor not in self.world.worker(hops[-1]).running:
                    hops.append(self.world.worker(hops[-1]).owner(executor))
                    assert len(hops) <= len(self.world.slots), hops
                    assert not self.world.worker(hops[-2]).closed, hops

    @invariant()
    def two_copies_never_count_at_once(self) -> None:
        for executor in self.world.carried:
            assert self.world.working(executor) <= 1

    @invariant()
    def no_copy_ends_while_it_keeps_tuples(self) -> None:
        assert sum(worker.lost for worker in self.world.workers) == 0

    def teardown(self) -> None:
        super().teardown()
        self.nobody_is_killed()
        for executor in self.world.carried:
            kept = self.world.worker(self.world.storm[executor][0]).counts[executor]
            assert kept == self.world.counted(executor)


class Opening(Moves):
    """Neither where all executors begin in one worker, so that slots are opened and close."""

    def __init__(self) -> None:
        super().__init__()
        self.world = World(executors=6, spouts=1, carried=2, renewed=1, used=1)


class Switching(Moves):
    """Neither when the hooks are switched off and on, in the cluster or on a node."""

    @rule(off=st.booleans())
    def switch(self, off: bool) -> None:
        self.world.off = off

    @rule(slot=SLOTS, off=st.booleans())
    def switch_node(self, slot: int, off: bool) -> None:
        worker = self.world.workers[slot]
        worker.learn(self.world.stored)
        worker.apply(self.world.stored)
        worker.file = off

    def teardown(self) -> None:
        super().teardown()
        world = self.world
        world.rounds(2, 1.0)
        assert all(worker.inert for worker in world.workers if worker.off and not worker.closed)
        stays = world.stored
        self.world.off = True
        self.world.rounds(2, 1.0)
        assert world.stored == stays
        world.off = False
        for worker in world.workers:
            worker.file = False
        super().teardown()
        assert not any(worker.inert for worker in world.workers)


class SwitchingWhileOpening(Switching):
    """The same where slots are opened."""

    def __init__(self) -> None:
        super().__init__()
        self.world = World(executors=6, spouts=1, carried=2, renewed=1, used=1)


class Faults(Turns):
    """JVMs die, agents fall silent, users rebalance; afterwards each executor runs once."""

    def __init__(self) -> None:
        super().__init__()
        self.voided: set[str] = set()
        self.rebalanced: set[ExecutorId] = set()

    @rule(status=st.sampled_from(["ACTIVE", "ACTIVE", "INACTIVE"]))
    def change_status(self, status: str) -> None:
        self.world.status = status

    @rule(slot=SLOTS)
    def restart(self, slot: int) -> None:
        if not self.world.workers[slot].closed:
            self.world.workers[slot].restart()

    @rule(slot=SLOTS)
    def die(self, slot: int) -> None:
        self.world.workers[slot].die()

    @rule(slot=SLOTS, silent=st.booleans())
    def silence(self, slot: int, silent: bool) -> None:
        self.world.workers[slot].silent = silent

    @rule(executor=EXECUTORS, slot=SLOTS)
    def rebalance(self, executor: int, slot: int) -> None:
        self.rebalanced.add(self.world.executors[executor])
        self.world.rebalance(self.world.executors[executor], self.world.slots[slot])

    @invariant()
    def two_copies_count_at_once_only_where_storm_has_made_one(self) -> None:
        for executor in self.world.carried - self.rebalanced:
            assert self.world.working(executor) <= 1

    @invariant()
    def a_void_entry_stays_void(self) -> None:
        for entry in self.world.stored.entries:
            if entry.void is not None:
                self.voided.add(entry.id)
            assert (entry.void is not None) == (entry.id in self.voided)


class FaultsWhileSwitching(Faults):
    """The same while the hooks are switched off and on; JVMs may start without them."""

    @rule(off=st.booleans())
    def switch(self, off: bool) -> None:
        self.world.off = off

    @rule(slot=SLOTS, off=st.booleans())
    def switch_node(self, slot: int, off: bool) -> None:
        self.world.workers[slot].file = off


class FaultsWhileOpening(Faults):
    """The same where slots are opened."""

    def __init__(self) -> None:
        super().__init__()
        self.world = World(executors=6, spouts=1, carried=2, renewed=1, used=1)


SwitchingWhileOpening.TestCase.settings = settings(
    max_examples=75, stateful_step_count=15, deadline=None
)
Switching.TestCase.settings = settings(max_examples=150, stateful_step_count=15, deadline=None)
FaultsWhileSwitching.TestCase.settings = SwitchingWhileOpening.TestCase.settings
Moves.TestCase.settings = settings(max_examples=150, stateful_step_count=15, deadline=None)
Opening.TestCase.settings = settings(max_examples=75, stateful_step_count=15, deadline=None)
FaultsWhileOpening.TestCase.settings = Opening.TestCase.settings
Faults.TestCase.settings = settings(max_examples=150, stateful_step_count=15, deadline=None)
TestMoves = Moves.TestCase
TestOpening = Opening.TestCase
TestFaultsWhileOpening = FaultsWhileOpening.TestCase
TestFaults = Faults.TestCase
TestSwitching = Switching.TestCase
TestSwitchingWhileOpening = SwitchingWhileOpening.TestCase
TestFaultsWhileSwitching = FaultsWhileSwitching.TestCase


def test_a_worker_whose_only_other_executor_has_not_arrived_is_not_emptied() -> None:
    """Kept from a search: the last executor left while another one was on its way there."""
    for times in (6, 7):
        state = Moves()
        state.begin(executor=0, by=1)
        state.move(executor=1, slot=0)
        state.move(executor=3, slot=1)
        state.go_on_without_one(lagging="work 0", times=times)
        state.nobody_is_killed()
        state.every_executor_runs_and_nowhere_else_than_at_an_end()
        state.teardown()


@pytest.mark.parametrize(
    ("phase", "way"),
    [
        (Phase.PREPARE, Way.LIVE),
        (Phase.QUIET, Way.SPOUT),
        (Phase.SWITCH, Way.LIVE),
        (Phase.DRAIN, Way.LIVE),
        (Phase.PREPARE, Way.CARRY),
        (Phase.DRAIN, Way.DRAIN),
        (Phase.CARRY, Way.CARRY),
        (Phase.QUIET, Way.RENEW),
    ],
)
def test_a_cancelled_move_goes_back_from_each_phase_that_can(phase: Phase, way: Way) -> None:
    world = World(
        executors=4,
        spouts=way is Way.SPOUT,
        carried=way is Way.CARRY,
        keepers=way is Way.DRAIN,
        renewed=way is Way.RENEW,
    )
    moved = world.executors[0]
    world.move(moved, world.slots[1])
    world.until(phase, 0.05, frozenset({"work 0"}))
    world.cancel()
    world.lead()
    assert world.ends() is MoveOutcome.UNDONE
    assert world.finished[-1].reason == "an operator cancelled the move"
    assert world.copies(moved) == [world.slots[0]]
    assert world.with_kills() == 0
    assert world.worker(world.slots[0]).counts[moved] == world.counted(moved)


def world_of(way: Way, *, opens: bool) -> World:
    """Return a world whose first executor moves by a way, to a slot that may have to be opened."""
    world = World(
        executors=4,
        spouts=way is Way.SPOUT,
        carried=way is Way.CARRY,
        keepers=way is Way.DRAIN,
        renewed=way is Way.RENEW,
        used=2 if opens else None,
    )
    world.move(world.executors[0], world.slots[2])
    return world


@pytest.mark.parametrize("opens", [False, True], ids=["open slot", "opens a slot"])
@pytest.mark.parametrize("way", [way for way in Way if way is not Way.UNKNOWN])
def test_switching_off_in_each_phase_ends_the_move_and_then_everybody_is_inert(
    way: Way, opens: bool
) -> None:
    seen: set[Phase] = set()
    outcomes: set[MoveOutcome] = set()
    for rounds in range(60):
        world = world_of(way, opens=opens)
        moved, source = world.executors[0], world.slots[0]
        world.rounds(rounds, 0.3)
        if not world.stored.entries:
            break
        seen.update(world.phases())
        world.off = True
        outcomes.add(world.ends())
        assert world.copies(moved) == [world.storm[moved][0]]
        assert (world.storm[moved][0] == source) is (world.finished[-1].outcome == "UNDONE")
        world.rounds(3, 1.0)
        assert all(worker.inert or worker.closed for worker in world.workers)
        assert isinstance(world.move(moved, world.slots[1]), Veto)
        world.off = False
        world.rounds(3, 1.0)
        assert isinstance(world.move(moved, world.slots[1]), Entry)
        assert world.ends() is MoveOutcome.MOVED
        assert (world.with_kills(), sum(worker.lost for worker in world.workers)) == (0, 0)
        for executor in world.carried:
            assert world.worker(world.slots[1]).counts[executor] == world.counted(executor)
    assert seen == {
        Phase(phase)
        for phase, *_, ways, _ in rows(PAGE, "Phases")
        if ways == "all" or str(way) in ways.split(", ") or (opens and ways == "opening")
    } - {Phase.RECALL, Phase.UNDO}
    assert outcomes == {MoveOutcome.UNDONE, MoveOutcome.MOVED}


def test_a_source_that_is_off_and_never_saw_the_move_takes_no_part_in_it() -> None:
    """Its node was switched off by hand just before the move began."""
    world = World(executors=4)
    moved = world.executors[0]
    world.workers[0].file = True
    world.move(moved, world.slots[1])
    for _ in range(5):
        world.everybody(0.05, frozenset({"speak 0"}))
        world.lead()
        assert world.workers[0].running >= {moved}
    assert world.ends() is MoveOutcome.UNDONE
    assert world.copies(moved) == [world.slots[0]]
    assert world.with_kills() == 0


def test_a_state_is_not_recalled_from_a_copy_that_has_begun() -> None:
    world = World(executors=4, carried=1)
    moved = world.executors[0]
    world.move(moved, world.slots[1])
    world.until(Phase.CARRY)
    world.everybody(0.05, frozenset({"speak 1"}))
    assert not world.worker(world.slots[1]).holds_still(moved)
    world.cancel()
    world.lead()
    assert world.phases() == [Phase.RECALL]
    assert world.ends() is MoveOutcome.MOVED
    assert world.worker(world.slots[1]).counts[moved] == world.counted(moved)


def test_a_recall_waits_for_an_end_that_is_silent() -> None:
    world = World(executors=4, carried=1)
    world.move(world.executors[0], world.slots[1])
    world.until(Phase.CARRY, 0.05)
    world.cancel()
    for _ in range(5):
        world.lead()
        assert world.phases() == [Phase.RECALL]
        world.everybody(0.05, frozenset(f"{turn} 1" for turn in AGENT_TURNS))


def test_a_dead_target_is_given_up_once_its_node_has_read_the_recall() -> None:
    """A worker that starts there later must not find CARRY, and begin with what is sent again."""
    world = World(executors=4, carried=1)
    world.move(world.executors[0], world.slots[1])
    world.until(Phase.CARRY, 0.05, frozenset({"work 0"}))
    world.workers[1].die()
    world.cancel()
    for _ in range(5):
        world.lead()
        assert world.phases() == [Phase.RECALL]
        world.everybody(0.05, frozenset({"learn 1", "keep 1"}))
    world.everybody(0.05, frozenset({"keep 1"}))
    world.lead()
    assert world.phases() == [Phase.UNDO]


def test_a_cancelled_move_whose_end_is_silent_waits_and_one_past_stop_goes_on() -> None:
    for phase, outcome in ((Phase.SWITCH, MoveOutcome.UNDONE), (Phase.STOP, MoveOutcome.MOVED)):
        world = World(executors=4)
        world.move(world.executors[0], world.slots[1])
        world.until(phase, 0.05)
        world.cancel()
        for _ in range(5):
            world.everybody(0.05, frozenset(f"{turn} 0" for turn in AGENT_TURNS))
            world.lead()
            assert world.phases() == [phase]
        world.settle()
        assert world.finished[-1].outcome is outcome


def test_a_worker_that_is_left_ends_when_nobody_sends_to_it_any_more() -> None:
    state = Moves()
    for executor in (0, 3):
        state.begin(executor, by=1)
    for _ in range(60):
        state.go_on_without_one(lagging="refresh 2", times=1)
        state.a_tuple_finds_a_copy_from_everywhere()
    assert state.world.workers[0].closed
    state.teardown()


def opening() -> World:
    """Return a world in which a slot is to be opened, and its supervisor has not read of it."""
    world = World(executors=4, spouts=1, used=2)
    assert isinstance(world.move(world.executors[0], world.slots[2]), Entry)
    assert world.phases() == [Phase.OPEN]
    return world


def test_a_slot_is_opened_while_the_source_works_and_storm_knows_nothing() -> None:
    world = opening()
    moved, source, target = world.executors[0], world.slots[0], world.slots[2]
    seen = [Phase.OPEN]
    for _ in range(60):
        world.everybody()
        world.lead()
        seen += world.phases()
        if {*seen} <= {Phase.OPEN, Phase.PREPARE, Phase.QUIET}:
            assert world.storm[moved][0] == source
            assert {worker.owner(moved) for worker in world.workers} == {source}
    assert list(dict.fromkeys(seen)) == [
        Phase.OPEN,
        Phase.PREPARE,
        Phase.QUIET,
        Phase.STOP,
        Phase.SETTLE,
    ]
    assert world.copies(moved) == [target]
    assert world.finished[-1].outcome is MoveOutcome.MOVED
    assert world.with_kills() == 0


def test_a_slot_that_never_opens_is_given_up() -> None:
    world = opening()
    world.rounds(70, 1.0, frozenset({"keep 2"}))
    assert world.finished[-1].outcome is MoveOutcome.UNDONE
    assert world.finished[-1].reason == "no worker with the hooks came up in the slot in time"
    assert world.workers[2].closed
    assert world.copies(world.executors[0]) == [world.slots[0]]


@pytest.mark.parametrize("phase", [Phase.OPEN, Phase.PREPARE, Phase.SWITCH])
def test_an_opened_worker_ends_after_an_undo_and_not_before_all_routes_are_back(
    phase: Phase,
) -> None:
    world = World(executors=4, used=2)
    moved = world.executors[0]
    world.move(moved, world.slots[2])
    world.until(phase)
    world.cancel()
    while world.stored.entries:
        assert phase is Phase.OPEN or not world.workers[2].closed
        world.everybody(1.0, frozenset({"speak 1"} if world.now_s < 5 else ()))
        world.lead()
    undo_s = next(e.phase_s for e in world.events if e.entry.phase is Phase.UNDO)
    assert undo_s >= TIMING.close_quiet_s or phase is Phase.OPEN
    world.settle()
    assert world.workers[2].closed
    assert world.copies(moved) == [world.slots[0]]
    assert world.with_kills() == 0


def test_a_host_that_is_gone_does_not_hold_up_the_move_that_opens_its_slot() -> None:
    world = World(executors=4, used=2)
    world.move(world.executors[0], world.slots[2])
    world.until(Phase.SWITCH)
    host = world.workers[2]
    host.die()
    host.silent = True
    world.rounds(20, 1.0)
    assert world.phases() == [Phase.SWITCH]
    world.slots.pop()
    world.rounds(20, 1.0)
    assert world.finished[-1].outcome is MoveOutcome.UNDONE
    assert world.copies(world.executors[0]) == [world.slots[0]]


def switching() -> World:
    """Return a world in which both ends have applied SWITCH and not answered yet."""
    world = World(executors=4)
    world.move(world.executors[0], world.slots[1])
    world.until(Phase.SWITCH)
    for worker in world.workers:
        worker.apply(world.stored)
        worker.work()
    return world


@pytest.mark.parametrize("frozen", [0, 1], ids=["source", "target"])
def test_a_switch_whose_end_falls_silent_waits_for_it(frozen: int) -> None:
    world = switching()
    moved = world.executors[0]
    lagging = frozenset(f"{turn} {frozen}" for turn in AGENT_TURNS)
    for _ in range(60):
        world.everybody(1.0, lagging)
        world.lead()
        assert world.phases() == [Phase.SWITCH]
        owners = {worker.owner(moved) for worker in world.workers}
        assert owners == {world.slots[1]}
        assert moved in world.workers[1].running
    assert world.ends() is MoveOutcome.MOVED
    assert world.with_kills() == 0


def quiet(way: Way = Way.SPOUT) -> World:
    """Return a world in which an executor is in QUIET and its source has not finished yet."""
    world = World(executors=4, spouts=way is Way.SPOUT, renewed=way is Way.RENEW)
    world.move(world.executors[0], world.slots[1])
    world.until(Phase.QUIET)
    return world


def goes_back(world: World) -> None:
    """Let the leader see what has happened to the executor, and everybody go back."""
    world.lead()
    assert world.phases() == [Phase.UNDO]
    assert world.ends() is MoveOutcome.UNDONE
    assert world.copies(world.executors[0]) == [world.slots[0]]


@pytest.mark.parametrize("dead", [0, 1], ids=["source", "target"])
@pytest.mark.parametrize("closed", [False, True], ids=["open", "closed"])
@pytest.mark.parametrize("way", [Way.SPOUT, Way.RENEW])
def test_a_quiet_copy_goes_back_when_an_end_dies(dead: int, closed: bool, way: Way) -> None:
    world = quiet(way)
    if closed:
        world.everybody(0.05, frozenset({"speak 0"}))
    world.workers[dead].die()
    world.everybody()
    goes_back(world)
    assert [world.executors[0] in worker.opened for worker in world.workers] == [True, False, False]


def test_what_is_open_is_closed_once_it_keeps_nothing_and_before_it_is_opened_elsewhere() -> None:
    world = quiet(Way.RENEW)
    moved, source, target = world.executors[0], world.workers[0], world.workers[1]
    assert moved in source.keeping & source.opened
    world.settle()
    events = [(event.entry.phase, event.next) for event in world.events]
    assert events == [
        ("PREPARE", "QUIET"),
        ("QUIET", "STOP"),
        ("STOP", "SETTLE"),
        ("SETTLE", "(leave)"),
    ]
    assert source.lost == 0
    assert [moved in worker.opened for worker in world.workers] == [False, True, False]
    assert moved in target.keeping


def test_what_keeps_tuples_for_too_long_goes_back() -> None:
    world = quiet(Way.RENEW)
    world.workers[0].stalled.add(world.executors[0])
    world.everybody()
    goes_back(world)
    assert world.finished[-1].reason.startswith("the source's copy cannot be closed")


def test_a_spout_whose_tuples_do_not_finish_goes_back() -> None:
    world = quiet()
    seen = world.rounds(50, 1.0, frozenset({"work 0"}))
    assert Phase.STOP not in seen
    assert world.ends() is MoveOutcome.UNDONE
    assert world.finished[-1].reason == "what was pending did not finish in time"


def test_a_spout_that_says_that_its_tuples_do_not_finish_goes_back_at_once() -> None:
    world = quiet()
    world.worker(world.slots[0]).stalled.add(world.executors[0])
    world.everybody()
    goes_back(world)


@pytest.mark.parametrize("way", [Way.SPOUT, Way.RENEW])
@pytest.mark.parametrize("last", [False, True], ids=["one of two", "the worker's last"])
def test_what_cannot_be_opened_at_its_target_works_again_at_its_source(
    way: Way, last: bool
) -> None:
    world = World(3, 3 if last else 4, spouts=way is Way.SPOUT, renewed=way is Way.RENEW)
    moved, source, target = world.executors[0], world.workers[0], world.workers[1]
    target.unopenable.add(moved)
    world.move(moved, target.slot)
    for _ in range(20):
        world.everybody(1.0)
        world.lead()
        # Storm may not have it there: Nimbus would leave it with who cannot open it.
        assert world.storm[moved][0] == source.slot
    assert world.finished[-1].outcome is MoveOutcome.UNDONE
    assert world.finished[-1].reason.startswith("the target's copy cannot be ")
    assert world.finished[-1].reason.endswith(f": the worker at {target.slot}")
    assert world.copies(moved) == [source.slot]
    assert moved in source.opened - target.opened
    assert world.with_kills() == 0


@pytest.mark.parametrize("way", [Way.SPOUT, Way.RENEW])
def test_what_opens_at_its_target_has_moved_once_it_is_open(way: Way) -> None:
    world = World(executors=4, spouts=way is Way.SPOUT, renewed=way is Way.RENEW)
    moved, target = world.executors[0], world.workers[1]
    world.move(moved, target.slot)
    world.until(Phase.STOP)
    world.rounds(30, 1.0, frozenset({"work 1"}))
    assert world.phases() == [Phase.STOP]
    assert world.storm[moved][0] == world.slots[0]
    assert world.ends() is MoveOutcome.MOVED
    assert moved in target.opened


def test_a_target_that_dies_while_it_opens_is_awaited_until_its_next_jvm_has_opened() -> None:
    """K3: the move was over seconds before the spout was open again."""
    world = World(executors=4, spouts=1)
    moved, target = world.executors[0], world.workers[1]
    world.move(moved, target.slot)
    world.until(Phase.STOP)
    target.die()
    world.rounds(60, 1.0)
    assert world.phases() == [Phase.SETTLE]
    assert world.ends() is MoveOutcome.MOVED
    assert moved in target.opened


def test_tuples_that_are_never_acked_send_the_move_back() -> None:
    world = World(executors=4, keepers=1)
    world.move(world.executors[0], world.slots[1])
    world.until(Phase.DRAIN)
    seen = []
    while Phase.UNDO not in seen:
        world.workers[0].keeping.add(world.executors[0])
        world.everybody(1.0)
        world.lead()
        seen += world.phases()
    assert set(seen) == {Phase.DRAIN, Phase.UNDO}
    assert 38 <= len(seen) <= 42
    assert world.ends() is MoveOutcome.UNDONE
    assert world.finished[-1].reason == "the source's bolt did not ack in time what it keeps"
    assert world.copies(world.executors[0]) == [world.slots[0]]


def test_a_spout_is_quiet_only_once_storm_may_absorb_its_move() -> None:
    world = World(executors=4, spouts=1)
    world.move(world.executors[0], world.slots[1])
    world.rounds(5, 1.0, frozenset({"learn 0"}))
    assert world.phases() == [Phase.PREPARE]
    assert world.ends() is MoveOutcome.MOVED


def test_a_drain_is_undone_when_the_target_dies_while_the_source_lives() -> None:
    world = switching()
    world.until(Phase.DRAIN, 0.05, frozenset({"work 0"}))
    world.workers[1].die()
    world.everybody()
    goes_back(world)


def test_storm_absorbs_nothing_that_a_supervisor_has_not_read() -> None:
    world = World(executors=4)
    moved = world.executors[0]
    world.move(moved, world.slots[1])
    world.rounds(20, 1.0, frozenset({"learn 0"}))
    assert world.phases() == [Phase.DRAIN]
    assert world.storm[moved][0] == world.slots[0]
    assert world.ends() is MoveOutcome.MOVED
    assert world.with_kills() == 0


def test_a_state_waits_for_one_round_of_the_plan() -> None:
    world = World(executors=4, carried=1)
    world.move(world.executors[0], world.slots[1])
    world.settle()
    assert [event.next for event in world.events] == ["CARRY", "STOP", "SETTLE", "(leave)"]
    assert world.finished[-1].outcome is MoveOutcome.MOVED


def test_a_new_leader_at_every_step_brings_the_move_to_its_end() -> None:
    world = World()
    executor, target = world.executors[3], world.slots[1]
    world.move(executor, target)
    seen: list[Phase] = []
    for _ in range(30):
        world.take_over()
        seen += world.phases()
        world.everybody()
        world.lead()
    assert world.storm[executor][0] == target
    assert world.copies(executor) == [target]
    assert world.stored.entries == ()
    assert list(dict.fromkeys(seen)) == [
        Phase.PREPARE,
        Phase.SWITCH,
        Phase.DRAIN,
        Phase.STOP,
        Phase.SETTLE,
    ]
    assert world.with_kills() == 0

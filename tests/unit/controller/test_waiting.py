"""A move for gain waits until its effect can be judged, and nothing else does."""

import pytest

from controller.config import Config, Mode
from controller.core.blocks import Block
from controller.core.capacity import Capacity
from controller.core.controls import Controls
from controller.core.decision import Outcome
from controller.core.effect import LEAST_BEFORE, LOOKS
from controller.core.figures import Verdict
from controller.core.limits import Limits
from controller.core.runs import LONGEST_WAIT_S, RUN_S, TAKEN_BACK, WARM_S, Run, Watch
from controller.cycle import CycleInput, Memory
from controller.journal.record import decode, encode
from controller.report import TopologyReport
from controller.storm.answers import explain
from migration.model import NodeLoad, Slot, WorkerLoad
from tests.messages import replace
from tests.unit.controller.test_back import ADVISE, AUTO, CYCLE_S, World, moved

A, B = Slot("a", 1), Slot("b", 1)


def begun_s(world: World) -> float | None:
    """Give the seconds until the first move begins; None where none has."""
    outcomes = [report.outcome for report in world.reports]
    return CYCLE_S * outcomes.index(Outcome.MOVED) if Outcome.MOVED in outcomes else None


def waiting(world: World) -> list[TopologyReport]:
    return [report for report in world.reports if report.outcome is Outcome.WATCHING]


def test_where_auto_is_the_first_mode_the_first_gain_waits_and_is_judged() -> None:
    world = World(times={A: 1.8})
    world.run(600)
    first, *_ = waiting(world)
    assert not first.moves and first.plan is None
    assert first.reason.startswith("a move for gain waits for some 120 s more: its effect is ")
    assert "and 0 s are measured, but " in first.reason and "2-2" in first.reason
    assert "for some 10 s more" in waiting(world)[-1].reason
    assert 120 <= (begun_s(world) or 0) <= 140
    assert moved(world) == [("2-2", "a:1"), ("2-2", "b:1")], "what does not pay goes back"
    effect = world.reports[-1].felt.effect
    assert effect is not None and effect.end == TAKEN_BACK


def test_a_topology_that_was_watched_by_another_mode_waits_no_more() -> None:
    world = World()
    world.run(140, ADVISE)
    assert world.cycle().outcome is Outcome.MOVED


@pytest.mark.parametrize("mode", [Mode.ADVISE, Mode.APPROVE, Mode.OBSERVE])
def test_what_is_shown_or_proposed_does_not_wait(mode: Mode) -> None:
    world = World()
    world.run(60, Config(mode=mode))
    assert not waiting(world)
    outcomes = {Mode.ADVISE: Outcome.WOULD_MOVE, Mode.APPROVE: Outcome.AWAITING_APPROVAL}
    assert world.reports[-1].outcome is outcomes.get(mode, Outcome.PAUSED)


def test_a_relief_waits_for_nothing() -> None:
    # Of node b a fifth is used.
    world = World()
    world.run(30, replace(AUTO, limits=Limits(high_frac=0.15, low_frac=0.1)))
    assert moved(world)[0][0] in {"2-2", "3-3"} and (begun_s(world) or 0) < 30
    assert not waiting(world)


class Sized(World):
    """A world whose tuples of 100 bytes take 0.8 Mbit/s of the link, and heaps that are known."""

    heap_frac: float = 0.1  # of b

    def _load(self, slot: Slot) -> WorkerLoad:
        made, sent = super()._load(slot), self.sent[slot, 1, 2]
        frac = self.heap_frac if slot == B else 0.1
        heap = {"heap_live_bytes": round(frac * 1e9), "heap_max_bytes": 10**9}
        meters = made.meters if isinstance(made.meters, dict) else {}
        return replace(
            made, sizes=(("spout", "bolt", sent, 100 * sent),), meters={**meters, **heap}
        )


@pytest.mark.parametrize(
    ("link_mbit", "heap_frac", "waits"), [(10.0, 0.1, True), (0.9, 0.1, False), (10.0, 0.9, False)]
)
def test_what_leaves_a_full_link_or_heap_waits_for_nothing(
    link_mbit: float, heap_frac: float, waits: bool
) -> None:
    world = Sized()
    world.heap_frac = heap_frac
    world.run(60, replace(AUTO, capacity=Capacity(link_mbit=link_mbit)))
    assert bool(waiting(world)) is waits
    assert bool(moved(world)) is not waits


class Restarted(World):
    """A world with a JVM that is another one from some moment on, and a queue that may grow."""

    jvm: str = "1-1"
    queue: int = 0

    def _load(self, slot: Slot) -> WorkerLoad:
        made = replace(super()._load(slot), incarnation=self.jvm if slot == B else "1-1")
        return replace(made, executors=tuple(replace(e, queue=self.queue) for e in made.executors))


@pytest.mark.parametrize("grows", [False, True])
def test_a_cold_cpu_is_relieved_only_where_a_queue_grows(grows: bool) -> None:
    world = Restarted()
    world.run(30)
    hot = replace(AUTO, limits=Limits(high_frac=0.15, low_frac=0.1))
    world.jvm = "2-1"
    for _ in range(22):
        world.queue += 500 * grows
        world.cycle(hot)
    assert bool(moved(world)) is grows
    assert any("more code is compiled" in report.reason for report in world.reports) is not grows
    world.run(30, hot)
    assert moved(world)


class Left(World):
    """A world in which a worker leaves rows out, or is restarted once a minute."""

    restarts: bool = False

    def seen(self) -> CycleInput:
        seen = super().seen()
        return seen if self.restarts else replace(seen, loads=tuple(map(_cut, seen.loads)))

    def _load(self, slot: Slot) -> WorkerLoad:
        made = super()._load(slot)
        jvm = f"{self.now_s // 60:.0f}-1" if self.restarts and slot == B else "1-1"
        return replace(made, incarnation=jvm)


def _cut(load: NodeLoad) -> NodeLoad:
    return replace(load, left_out=1)


@pytest.mark.parametrize(
    ("restarts", "why"),
    [
        (False, "a worker left rows of traffic out of its report"),
        (True, "a worker has just started, and its code is compiled"),
    ],
)
def test_where_nothing_can_be_measured_the_wait_ends(restarts: bool, why: str) -> None:
    world = Left()
    world.restarts = restarts
    world.run(LONGEST_WAIT_S + 100)
    assert LONGEST_WAIT_S <= (begun_s(world) or 0) <= LONGEST_WAIT_S + 30
    assert why in waiting(world)[-1].reason
    effect = world.reports[-1].felt.effect
    assert effect is not None and effect.verdict is Verdict.UNKNOWN
    soon = "a worker was restarted during the moves, or soon after them"
    assert (soon if restarts else f"of 120 s at least: {why}") in effect.sentence


def test_a_wait_that_has_ended_is_no_excuse_for_the_next_one() -> None:
    world = World()
    world.run(60)
    assert world.memory.watches["wc-1"].waits_since_s is not None
    held = Controls(modes={"wc": "advise"})
    seen = world.seen
    world.seen = lambda: replace(seen(), controls=held)  # type: ignore[method-assign]
    world.run(150)
    watch = world.memory.watches["wc-1"]
    assert len(watch.blocks) > LEAST_BEFORE
    assert watch.waits_since_s is None


def test_a_new_leader_waits_anew_and_a_journal_remembers_since_when() -> None:
    world = World()
    world.run(100)
    again = decode(Memory, encode(world.memory))
    assert again.watches["wc-1"].waits_since_s == world.memory.watches["wc-1"].waits_since_s
    world.memory = Memory()
    world.run(100)
    assert moved(world) == []
    world.run(60)
    assert moved(world) == [("2-2", "a:1")]


@pytest.mark.parametrize(
    ("cycle_s", "wait_s"), [(2.0, 120), (5.0, 120), (7.0, 168), (20.0, 240), (28.0, None)]
)
def test_a_wait_is_as_long_as_blocks_take(cycle_s: float, wait_s: int | None) -> None:
    veto = Watch().waits(1000.0, cycle_s)
    assert (wait_s is None) == (veto is None)
    assert (
        veto is None
        or f"for some {wait_s} s more: its effect is judged by {wait_s} s" in veto.reason
    )


def test_a_run_that_has_settled_gets_no_more_moves_until_it_is_judged() -> None:
    run = Run(("m1",), 0.0, (), 1000.0, ended_s=0.0, calm_s=1010.0)
    block = Block(0.0, 1.0, 100.0)
    watch = Watch(run=run)
    assert watch.waits(1120.0, 5.0) is None, "moves that follow each other are one run"
    veto = watch.waits(1150.0, 5.0)
    assert veto is not None and veto.outcome is Outcome.WATCHING
    assert "for some 70 s more: the effect of the moves before it is measured" in veto.reason
    judged = replace(watch, blocks=(block,) * LOOKS[0])
    assert judged.going_on(1150.0) is None, "the next move is of another run"
    assert watch.going_on(1150.0) is run
    # Blocks of 20 s: the 18th has come by then.
    assert watch.going_on(1010.0 + WARM_S + 18 * 20.0 + 19.0) is run
    assert watch.going_on(1010.0 + RUN_S + 1) is None
    assert replace(watch, run=replace(run, ended_s=None)).going_on(9000.0) is not None
    veto = watch.waits(1150.0, 20.0)
    assert veto is not None and "for some 250 s more: " in veto.reason


def test_explain_has_the_reason_and_what_to_do() -> None:
    world = World()
    world.run(30)
    answer = explain(world.reports[-1], "", AUTO)
    assert answer is not None and answer.outcome == "WATCHING"
    assert answer.reason.startswith("a move for gain waits for some ")
    assert answer.what_to_do.startswith("Nothing.")

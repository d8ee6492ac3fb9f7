"""Moves that begin soon after each other are one run, which is judged by what comes after it."""

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
import pytest

from controller.core.blocks import Block, LoadSeen, part_between
from controller.core.capacity import Capacity
from controller.core.cold import COLD_S
from controller.core.effect import LEAST_BEFORE, LOOKS, MOST_BLOCKS
from controller.core.figures import Effect, Verdict
from controller.core.latency import Timed, observe_timed
from controller.core.layout import Layout, MadeOf
from controller.core.metrics import Rates, by_topology, observe
from controller.core.runs import (
    FINAL_S,
    KEPT,
    LONGEST_WAIT_S,
    STANDS_S,
    WARM_S,
    Run,
    Watch,
    watch_each,
)
from controller.core.tasks import component_targets
from controller.core.topology import TopologyView
from controller.journal.record import decode, encode
from migration.model import (
    Base,
    Entry,
    ExecutorId,
    Meters,
    Node,
    NodeLoad,
    Phase,
    Plan,
    Publication,
    Slot,
)
from tests.messages import executor, publication, replace, worker_load

A, B = Slot("a", 1), Slot("b", 1)
JUDGED_S = 240.0  # the first look has been by then
NODES = [Node("a", "host-a", 400.0, (1,), 1), Node("b", "host-b", 400.0, (1,), 1)]
PUBLICATION = publication({1: A, 2: A, 3: B}, NODES, spouts={1})


@dataclass
class World:
    """A spout on a:1 that sends 1,000 tuples/s, looked at each 5 s."""

    now_s: float = 0.0
    other_cores: float = 1.0
    acks: bool = True
    jvm: str = "1-1"
    bolt_jvm: str = "1-2"
    ended: bool = False  # the other worker has
    away: bool = False  # the worker of the spout reports nothing
    tuple_bytes: int = 50
    full_links: frozenset[str] = frozenset()
    publication: Publication = PUBLICATION
    used_ns: float = 0.0
    sent: int = 0
    sampled_bytes: int = 0
    moving: frozenset[str] = frozenset()
    phase: Phase = Phase.PREPARE
    void: str | None = None
    rests: tuple[tuple[str, ExecutorId, float], ...] = ()
    rates: Rates = field(default_factory=Rates)
    timed: Mapping[Slot, Timed] = field(default_factory=dict)
    layouts: Mapping[str, Layout] = field(default_factory=dict)
    watch: Watch = field(default_factory=Watch)

    def cycle(self) -> Watch:
        self.now_s += 5.0
        noise = np.random.default_rng(int(self.now_s)).uniform(0.97, 1.03)
        self.used_ns += 5e9 * self.other_cores * noise
        self.sent += 5000
        self.sampled_bytes += 50 * self.tuple_bytes
        before = LoadSeen(self.watch.looked_s, self.rates, self.timed)
        loads = self.loads()
        self.rates = observe(
            self.rates,
            by_topology(loads)["wc-1"],
            component_targets(self.publication),
            now_s=self.now_s,
            ewma=0.3,
        )
        self.timed = observe_timed(self.timed, [load.workers[0] for load in loads])
        entries = tuple(
            Entry(name, executor(2), A, B, self.phase, Base(A, 50), self.void)
            for name in sorted(self.moving)
        )
        view = TopologyView(self.publication, Plan("uuid", 1, 1, "wc-1", entries[:1]), ())
        self.watch = watch_each(
            {"wc-1": self.watch},
            [view],
            {"wc-1": before},
            {"wc-1": LoadSeen(self.now_s, self.rates, self.timed)},
            self.rests,
            layouts=self.layouts,
            refused={},
            full_links=self.full_links,
            time_s=1.7e9 + self.now_s,
        )["wc-1"]
        self.rests = ()
        self.layouts = {"wc-1": Layout.of(MadeOf(self.publication, view.plan, {}, Capacity(), {}))}
        return self.watch

    def loads(self) -> list[NodeLoad]:
        meters: Meters = {"acked_tuples": self.sent, "failed_tuples": 0} if self.acks else {}
        samples = self.sent // 100
        told = {
            "incarnation": self.jvm,
            "process_cpu_ns": round(self.used_ns),
            "sizes": (("spout", "bolt", samples, self.sampled_bytes),),
        }
        spout = replace(worker_load(A, [1, 2], self.now_s, {(1, 3): 1000.0}), **told)
        if self.acks:
            spout = replace(spout, meters=meters, latency=((22, self.sent // 20),))
        bolt = replace(worker_load(B, [3], self.now_s, {}), incarnation=self.bolt_jvm)
        if self.away:
            return [NodeLoad("b", 0, (bolt,))]
        if self.ended:
            return [NodeLoad("a", 0, (spout,))]
        return [NodeLoad("a", 0, (spout,)), NodeLoad("b", 0, (bolt,))]

    def run(self, seconds: float) -> Watch:
        for _ in range(round(seconds / 5)):
            self.cycle()
        return self.watch

    def move(self, name: str, seconds: float = 20) -> Watch:
        self.moving = frozenset({name})
        self.run(seconds)
        self.moving = frozenset()
        return self.cycle()


def last(watch: Watch) -> Effect:
    return watch.effects[-1]


def test_blocks_are_of_10_s_and_have_what_came_within() -> None:
    world = World()
    (first, *_) = world.run(40).blocks
    assert len(world.watch.blocks) == 3, "the first look knows no block"
    assert abs(first.cores - 1.1) < 0.2, "of both workers"
    assert (round(first.input_tps), round(first.acked_tps or 0)) == (1000, 1000)
    assert (first.failed_tps, round(first.latency_p99_ms or 0)) == (0, 48)
    assert first.crossing_bytes_per_s == 50_000, "to the other node"
    assert len(world.run(400).blocks) == MOST_BLOCKS


def test_a_run_that_saves_cpu_is_better_and_final_after_5_minutes() -> None:
    world = World()
    assert world.run(400).effects == ()
    world.moving = frozenset({"m1"})
    assert last(world.run(20)).sentence == "moves are under way"
    world.moving, world.other_cores = frozenset(), 0.8
    assert last(world.run(120)).sentence.startswith("measured for ")
    assert last(world.run(110)).verdict is Verdict.BETTER, "after 3 minutes"
    assert not last(world.watch).is_final
    found = last(world.run(160))
    assert found.is_final and found.moves == ("m1",)
    assert found.verdict is Verdict.BETTER
    assert found.sentence.startswith("CPU for each input tuple −18")
    assert (found.begun_s, found.ended_s) == (1.7e9 + 405, 1.7e9 + 425)
    assert last(world.run(200)) == found, "nothing is measured any more"
    assert world.watch.run is None


@pytest.mark.parametrize(("full", "worse"), [("b", True), ("c", False)])
def test_more_bytes_are_worse_where_a_link_of_the_topology_is_too_full(
    full: str, worse: bool
) -> None:
    world = World()
    world.run(400)
    world.tuple_bytes, world.full_links = 500, frozenset({full})
    world.move("m1")
    found = last(world.run(400))
    assert found.changes["crossing_bytes_per_input"].sign == 1
    assert found.verdict is (Verdict.WORSE if worse else Verdict.SAME)


def test_moves_that_begin_soon_are_of_the_same_run() -> None:
    world = World()
    world.run(400)
    world.move("m1")
    world.run(100)
    world.move("m2")
    assert last(world.watch).moves == ("m1", "m2")
    assert len(world.watch.effects) == 1
    assert world.watch.blocks == (), "what came between is neither before nor after"
    assert world.watch.run is not None and len(world.watch.run.before) == MOST_BLOCKS


def test_moves_that_begin_later_are_another_run_and_end_the_first() -> None:
    world = World()
    world.run(400)
    world.move("m1")
    world.run(JUDGED_S)
    world.move("m2")
    first, second = world.watch.effects
    assert first.is_final and first.moves == ("m1",) and first.end == KEPT
    assert second.moves == ("m2",)
    assert world.watch.run is not None
    assert 15 <= len(world.watch.run.before) < MOST_BLOCKS


def test_a_further_move_of_a_run_waits_for_no_blocks_and_one_after_a_restart_does() -> None:
    world = World()
    world.cycle()
    assert world.watch.waits(world.now_s, 5.0) is not None
    world.move("m1")
    world.run(60)
    assert len(world.watch.blocks) < LEAST_BEFORE
    assert world.watch.waits(world.now_s, 5.0) is None
    world.jvm = "2-2"
    waits = world.cycle().waits(world.now_s, 5.0)
    assert waits is not None and waits.reason.endswith("; a worker came, went or was restarted")


def why_waiting(world: World) -> str:
    veto = world.watch.waits(world.now_s, 5.0)
    return veto.reason if veto else ""


def test_a_move_waits_for_the_second_look_where_the_first_has_seen_nothing() -> None:
    world = World()
    world.run(400)
    world.move("m1")
    world.run(JUDGED_S)
    assert last(world.watch).verdict is Verdict.SAME
    assert "the effect of the moves before it is measured" in why_waiting(world)
    world.run(WARM_S + 10 * MOST_BLOCKS - JUDGED_S)
    assert last(world.watch).is_final and not why_waiting(world)
    assert len(world.watch.before(world.now_s)) == MOST_BLOCKS, "the next is judged by more"


def test_a_move_waits_for_no_second_look_after_a_gain_or_where_no_block_comes() -> None:
    world = World()
    world.run(400)
    world.move("m1")
    world.other_cores = 0.8
    world.run(JUDGED_S)
    assert last(world.watch).verdict is Verdict.BETTER and not why_waiting(world)
    world.run(400)
    world.move("m2")
    world.run(JUDGED_S)
    assert last(world.watch).verdict is Verdict.SAME and why_waiting(world)
    later = world.watch.waits(world.now_s + LONGEST_WAIT_S, 5.0)
    assert later is not None and "120 s before it" in later.reason, "as where blocks never come"


def test_a_wait_for_the_second_look_names_no_more_time_than_there_is() -> None:
    """In 15 s for each, 30 blocks come only after the wait has ended."""
    run = Run(("m1",), 0.0, (), 1000.0, ended_s=0.0, calm_s=1000.0)
    blocks = tuple(Block(1045.0 + 15 * i, 1.0, 100.0, lasts_s=15.0) for i in range(LOOKS[0]))
    watch = Watch(run=run, blocks=blocks, effects=(Effect(Verdict.SAME, ""),))
    waits = watch.waits(1300.0, 15.0)
    assert waits is not None and "for some 60 s more" in waits.reason


def test_a_run_of_which_no_block_comes_is_final_after_a_while() -> None:
    world = World()
    world.run(400)
    world.move("m1")
    for _ in range(round(FINAL_S / 5) - 10):
        world.watch = replace(world.watch, part=None, blocks=())
        world.cycle()
    assert world.watch.run is not None
    world.watch = replace(world.watch, part=None, blocks=())
    assert world.run(60).run is None
    assert last(world.watch).is_final and last(world.watch).end == KEPT


@pytest.mark.parametrize(
    ("phase", "void"), [(Phase.SETTLE, None), (Phase.UNDO, None), (Phase.PREPARE, "it moved")]
)
def test_a_run_is_judged_though_its_last_move_stands_where_it_changes_nothing(
    phase: Phase, void: str | None
) -> None:
    """A supervisor that is away may never answer: a bad run was never taken back."""
    world = World()
    world.run(400)
    world.moving = frozenset({"m1"})
    world.run(300)
    assert last(world.watch).sentence == "moves are under way", "it may still change something"
    world.phase, world.void, world.other_cores = phase, void, 0.8
    assert last(world.run(STANDS_S)).sentence == "moves are under way", "most end within that"
    assert last(world.run(JUDGED_S)).verdict is Verdict.BETTER
    judged = world.watch
    world.moving, world.rests = frozenset(), (("wc-1", executor(2), world.now_s),)
    assert world.cycle().effects == judged.effects, "its end begins nothing"
    assert world.watch.run is not None and world.watch.run.moves == ("m1",)


def test_a_move_that_came_and_went_between_two_looks_counts() -> None:
    world = World()
    world.run(400)
    world.rests = (("wc-1", executor(2), 400.0),)
    assert last(world.cycle()).sentence == "moves are under way"
    assert last(world.run(400)).is_final


def test_another_jvm_or_rows_left_out_give_no_block() -> None:
    world = World()
    assert len(world.run(100).blocks) == 9
    world.jvm = "2-2"
    restarted = world.cycle()
    assert (restarted.part, restarted.blocks) == (None, ()), "those of before are of another JVM"
    assert world.run(COLD_S).blocks == (), "its code is compiled"
    assert len(world.run(30).blocks) == 3
    looked = LoadSeen(0.0, world.rates, world.timed)
    cut = replace(world.rates, cut=np.ones(2, bool))
    why = part_between(looked, LoadSeen(5.0, cut, world.timed), np.array([1]))
    assert why == "a worker left rows of traffic out of its report"


def test_what_a_topology_does_while_its_code_is_compiled_is_no_block() -> None:
    world = World()
    # Storm has launched its workers 40 s before the first look.
    launched_s = round(1.7e9 + world.now_s - 40)
    world.publication = replace(
        PUBLICATION,
        executors=tuple(replace(e, start_secs=launched_s) for e in PUBLICATION.executors),
    )
    assert world.run(COLD_S).blocks == ()
    waits = world.watch.waits(world.now_s, 5.0)
    assert waits is not None and "for some 125 s more" in waits.reason
    assert waits.reason.endswith("; a worker has just started, and its code is compiled")
    assert len(world.run(40).blocks) == 3


def test_a_restart_by_no_move_ends_what_is_measured() -> None:
    world = World()
    world.run(400)
    world.move("m1")
    measured = last(world.run(150))
    assert not measured.is_final
    world.jvm, world.other_cores = "2-2", 9.0
    found = world.cycle()
    assert last(found) == replace(measured, is_final=True, end=KEPT)
    assert (found.run, found.blocks) == (None, ())
    assert last(world.run(400)) == last(found)


@pytest.mark.parametrize("away_s", [0, 5, 40])
@pytest.mark.parametrize("rest_s", [None, 15])
def test_a_restart_during_a_move_or_soon_after_it_ends_what_is_measured(
    rest_s: int | None, away_s: int
) -> None:
    """The code of the new JVM would count as the effect of the move; guards see the run still."""
    world = World()
    world.run(400)
    if rest_s is None:
        world.moving = frozenset({"m1"})
        world.run(10)
    else:
        world.move("m1")
        world.run(rest_s)
    world.away = True
    world.run(away_s)
    world.jvm, world.used_ns, world.other_cores, world.away = "2-9", 0.0, 9.0, False
    found = last(world.cycle())
    assert world.watch.run is not None and not found.is_final
    why = "a worker was restarted during the moves, or soon after them"
    assert (found.verdict, found.sentence) == (Verdict.UNKNOWN, why)
    world.moving = frozenset()
    assert world.run(COLD_S).blocks == (), "the next run is compared with no cold code"
    world.other_cores = 1.0
    found = last(world.run(400))
    assert (found.verdict, found.sentence) == (Verdict.UNKNOWN, why)
    assert found.is_final and found.end == KEPT


def test_a_worker_that_leaves_late_and_comes_back_as_another_jvm_ends_what_is_measured() -> None:
    world = World()
    world.run(400)
    world.move("m1")
    measured = last(world.run(150))
    world.away = True
    world.run(40)
    world.jvm, world.used_ns, world.other_cores, world.away = "2-9", 0.0, 9.0, False
    assert last(world.run(100)) == replace(measured, is_final=True, end=KEPT)


def test_a_worker_that_is_opened_again_was_not_restarted() -> None:
    world = World()
    world.run(400)
    world.move("m1")
    without = tuple(replace(e, slot=A) for e in PUBLICATION.executors)
    world.publication, world.ended = replace(PUBLICATION, executors=without), True
    world.run(400)
    world.move("m2")
    world.publication, world.ended, world.bolt_jvm = PUBLICATION, False, "3-3"
    world.cycle()
    assert world.watch.run is not None and not world.watch.run.is_restarted


def test_a_move_that_takes_long_is_judged_before_the_next_gain() -> None:
    world = World()
    world.run(400)
    world.move("m1", seconds=90)
    world.run(170)
    assert "the effect of the moves before it is measured" in why_waiting(world)
    assert last(world.run(40)).verdict is Verdict.SAME


def test_a_worker_that_ends_with_its_last_executor_belongs_to_the_move() -> None:
    world = World()
    world.run(400)
    world.move("m1")
    world.ended = True
    assert world.run(20).run is not None
    assert last(world.run(400)).verdict is Verdict.BETTER, "of its CPU nothing is used any more"


def test_a_leader_that_comes_within_a_run_knows_no_before() -> None:
    world = World()
    world.move("m1")
    found = last(world.run(400))
    assert found.verdict is Verdict.UNKNOWN
    assert "before the moves, of 120 s at least" in found.sentence


def test_without_acks_nothing_is_known() -> None:
    world = World(acks=False)
    world.run(400)
    world.move("m1")
    world.other_cores = 0.5
    found = last(world.run(400))
    assert found.verdict is Verdict.UNKNOWN
    assert found.sentence.startswith("no acks of the spouts are known")


def test_what_is_remembered_survives_the_journal() -> None:
    world = World()
    world.run(400)
    world.move("m1")
    world.run(75)
    again = replace(world, watch=decode(Watch, encode(world.watch)))
    assert again.run(300).effects == world.run(300).effects
    assert last(again.watch).verdict is Verdict.SAME

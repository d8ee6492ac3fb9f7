"""A run of moves that was for the worse goes back, and its executors stay under like load."""

from collections import Counter
from dataclasses import dataclass, field
from typing import Any, TypeVar

import numpy as np
import pytest
from msgspec import UNSET, structs

from controller.config import Config, Mode
from controller.core.case import TopologyCase
from controller.core.choose import choose_each
from controller.core.decision import Outcome
from controller.core.figures import Verdict
from controller.core.guards import Guard
from controller.core.runs import GOING_BACK, TAKEN_BACK, OwnMove, Refused
from controller.core.topology import TopologyView
from controller.cycle import CycleInput, Memory, cycle
from controller.journal.record import decode, encode
from controller.report import TopologyReport
from controller.storm.history import History
from migration.model import (
    Base,
    Entry,
    ExecutorId,
    ExecutorLoad,
    Meters,
    Node,
    NodeAcks,
    NodeLoad,
    Phase,
    Plan,
    Publication,
    Slot,
    WorkerLoad,
    traffic_of,
)
from tests.messages import executor, node_acks, publication, replace, worker_ack

A, B, C = Slot("a", 1), Slot("b", 1), Slot("c", 1)
CYCLE_S = 5.0
ADVISE, AUTO = Config(mode=Mode.ADVISE), Config(mode=Mode.AUTO)


@dataclass
class World:
    """A spout that feeds a bolt, which costs more than elsewhere on some workers."""

    places: dict[int, Slot] = field(default_factory=lambda: {1: A, 2: B, 3: B})
    slots: tuple[Slot, ...] = (A, B)
    us: dict[int, float] = field(default_factory=lambda: {1: 50, 2: 100, 3: 300})  # by task
    times: dict[Slot, float] = field(default_factory=dict)  # what a tuple costs there, as a factor
    capacity: dict[str, float] = field(default_factory=lambda: {"a": 200.0, "b": 200.0})  # per cent
    input_tps: float = 1000.0
    noise: float = 0.01
    acks: bool = True
    now_s: float = 100.0
    plan: Plan = field(default_factory=lambda: Plan("uuid", 2, 6, "wc-1"))
    cpu_ns: Counter[int] = field(default_factory=Counter)
    sent: Counter[tuple[Slot, int, int]] = field(default_factory=Counter)
    acked: int = 0
    random: np.random.Generator = field(default_factory=lambda: np.random.default_rng(5))
    memory: Memory = field(default_factory=Memory)
    refused: tuple[tuple[str, Refused], ...] = ()
    reports: list[TopologyReport] = field(default_factory=list)

    def cycle(self, config: Config = AUTO) -> TopologyReport:
        self.now_s += CYCLE_S
        for entry in self.plan.entries:  # a move takes less than a cycle
            self.places[entry.executor.start] = entry.target
        self.plan = replace(self.plan, entries=())
        self._work()
        self.memory, report = cycle(self.memory, self.seen(), config)
        self.plan = report.plans.get("wc-1", self.plan)
        self.reports.append(report.topologies[0])
        return self.reports[-1]

    def run(self, seconds: float, config: Config = AUTO) -> TopologyReport:
        for _ in range(round(seconds / CYCLE_S)):
            self.cycle(config)
        return self.reports[-1]

    def _work(self) -> None:
        tuples = round(self.input_tps * CYCLE_S * self.random.normal(1, self.noise))
        self.acked += tuples
        self.sent[self.places[1], 1, 2] += tuples
        for task, us in self.us.items():
            used_ns = us * 1e3 * tuples * self.times.get(self.places[task], 1.0)
            self.cpu_ns[task] += round(used_ns * self.random.normal(1, self.noise))

    def seen(self) -> CycleInput:
        view = TopologyView(self._publication(), self.plan, tuple(self._acks()))
        loads = tuple(NodeLoad(slot.supervisor, 0, (self._load(slot),)) for slot in self.slots)
        return CycleInput(
            self.now_s, 1.7e9 + self.now_s, 3, topologies=(view,), loads=loads, refused=self.refused
        )

    def _publication(self) -> Publication:
        nodes = [Node(name, f"host-{name}", of, (1,), 1) for name, of in self.capacity.items()]
        return publication(self.places, nodes, spouts=[1])

    def _here(self, slot: Slot) -> list[int]:
        return [task for task, at in self.places.items() if at == slot]

    def _acks(self) -> list[NodeAcks]:
        return [
            node_acks(slot.supervisor, [worker_ack(slot, self._here(slot))], "uuid")
            for slot in self.slots
        ]

    def _load(self, slot: Slot) -> WorkerLoad:
        rows = ((a, b, n) for (at, a, b), n in self.sent.items() if at == slot)
        meters: Meters = {"acked_tuples": self.acked, "failed_tuples": 0}
        felt = {"meters": meters, "latency": ((22, self.acked // 20),)}
        made = WorkerLoad(
            topology="wc-1",
            slot=slot,
            incarnation="1-1",
            time_ms=round(self.now_s * 1000),
            process_cpu_ns=self.process_ns(slot),
            executors=tuple(
                ExecutorLoad(executor(t), "bolt", self.cpu_ns[t], 0, None) for t in self._here(slot)
            ),
            traffic=traffic_of(rows),
        )
        return replace(made, **felt) if self.acks and slot == A else made

    process: Counter[Slot] = field(default_factory=Counter)
    counted: Counter[int] = field(default_factory=Counter)

    def process_ns(self, slot: Slot) -> int:
        for task in self._here(slot):
            self.process[slot] += self.cpu_ns[task] - self.counted[task]
            self.counted[task] = self.cpu_ns[task]
        return self.process[slot]


def moved(world: World) -> list[tuple[str, str]]:
    return [
        (move.executor, move.target)
        for report in world.reports
        if report.outcome is Outcome.MOVED
        for move in report.moves
    ]


def test_a_move_that_costs_cpu_is_taken_back_once() -> None:
    """The model expects less CPU where the tuples stay in a worker; this worker needs more."""
    world = World(times={A: 1.8})
    world.run(200, ADVISE)
    world.run(300)
    assert moved(world) == [("2-2", "a:1"), ("2-2", "b:1")]
    assert world.places == {1: A, 2: B, 3: B}
    effect = world.run(20).felt.effect
    assert effect is not None and effect.verdict is Verdict.WORSE
    assert effect.end == TAKEN_BACK and effect.is_final
    assert effect.predicted_cpu is not None and effect.predicted_cpu < 1
    assert "CPU for each input tuple +" in str(effect) and "predicted was CPU −" in str(effect)
    report = world.run(1500)
    assert len(moved(world)) == 2, "it is not chosen again, and the way back is not judged"
    assert report.outcome is Outcome.EXCLUDED
    assert report.reason.startswith("2-2 was taken back and stays while the input is between 8")


def test_an_executor_that_storm_has_replaced_does_not_hold_up_the_others() -> None:
    """As after `storm rebalance -e`; the exception ended the cycles of all topologies."""
    world = World(times={A: 1.8})
    world.run(200, ADVISE)
    while not moved(world):
        world.cycle()
    world.cycle()
    watch = world.memory.watches["wc-1"]
    assert watch.run is not None
    gone = OwnMove("m0", executor(9), B, A)
    run = structs.replace(watch.run, made=(gone, *watch.run.made))
    world.memory = replace(world.memory, watches={"wc-1": replace(watch, run=run)})
    world.run(300)
    assert moved(world) == [("2-2", "a:1"), ("2-2", "b:1")]


def test_a_move_that_pays_is_kept() -> None:
    world = World(times={B: 1.8})
    world.run(200, ADVISE)
    effect = world.run(600).felt.effect
    assert moved(world) == [("2-2", "a:1")]
    assert effect is not None and effect.end == "kept" and effect.verdict is Verdict.BETTER


@pytest.mark.parametrize("acks", [True, False])
def test_what_is_not_certain_stays(acks: bool) -> None:
    world = World(acks=acks, times={A: 1.8} if not acks else {})
    world.run(200, ADVISE)
    effect = world.run(600).felt.effect
    assert moved(world) == [("2-2", "a:1")]
    assert effect is not None and effect.end == "kept"
    assert (effect.verdict is Verdict.UNKNOWN) is not acks


def test_under_another_load_it_may_be_chosen_again() -> None:
    world = World(times={A: 1.8})
    world.run(200, ADVISE)
    world.run(320)
    assert world.places[2] == B
    world.input_tps, world.times = 2000.0, {}
    world.run(400)
    assert world.places[2] == A
    assert moved(world)[2:] == [("2-2", "a:1")]


def test_a_new_leader_and_a_journal_remember_it() -> None:
    world = World(times={A: 1.8})
    world.run(200, ADVISE)
    world.run(320)
    again = decode(Memory, encode(world.memory))
    assert again.watches["wc-1"].refused == world.memory.watches["wc-1"].refused
    history = History()
    for report in world.reports:
        for entry in report.plan.entries if report.outcome is Outcome.MOVED and report.plan else ():
            history.begin("wc-1", entry, report.time_s, {})
            history.end(history.of("wc-1", entry), outcome="MOVED", ended_s=report.time_s + 1)
        history.judge({"wc-1": report.felt.effects})
    ((topology, refused),) = history.refused()
    assert (topology, refused.executors) == ("wc-1", ("2-2",))
    assert "worse, taken back" in history.moves[0].effect and not history.moves[1].effect
    world.memory, world.refused = Memory(), history.refused()
    assert world.run(300).outcome is Outcome.EXCLUDED
    assert world.places[2] == B


def test_what_does_not_fit_back_stays_with_the_reason() -> None:
    world = World(times={A: 1.8})
    world.run(200, ADVISE)
    world.run(205)
    assert world.places[2] == A
    world.capacity["b"] = 45.0
    world.run(200)
    ends = [effect.end for effect in world.reports[-1].felt.effects]
    assert ends[0].startswith("kept, for it cannot go back: with all of it back, b would use ")
    assert world.places[2] == A


def test_while_a_way_back_waits_no_policy_moves_anything() -> None:
    world = World(times={A: 1.8})
    world.run(200, ADVISE)
    while world.reports[-1].felt.effect is None or world.reports[-1].felt.effect.end != GOING_BACK:
        world.cycle()
    report = world.reports[-1]
    assert report.goes_back and report.outcome is Outcome.MOVED
    assert report.reason.startswith("a run of moves goes back, CPU for each input tuple +")
    watch = world.memory.watches["wc-1"]
    veto = watch.waits(world.now_s, CYCLE_S)
    assert veto is not None and veto.reason == "the last of a run of moves is going back"
    assert not world.cycle().goes_back


@dataclass
class Dying(World):
    """A worker ends, and tuples fail."""

    jvm: str = "1-1"
    failed: int = 0

    def _load(self, slot: Slot) -> WorkerLoad:
        meters: Meters = {"acked_tuples": self.acked, "failed_tuples": self.failed}
        made = super()._load(slot)
        return replace(made, meters=meters, incarnation=self.jvm) if slot == A else made


@pytest.mark.parametrize("dies_again_after_s", [None, 50, 100])
def test_a_guard_takes_back_a_run_that_ended_a_worker(dies_again_after_s: int | None) -> None:
    """Also where the worker ends again and again, before and after what is warm."""
    world = Dying()
    guard = Guard(signal="failed.tps", limit=10.0, secs=30)
    guarded = Config(mode=Mode.AUTO, guards=(guard,))
    world.run(320, ADVISE)
    while not moved(world):
        world.cycle(guarded)
    world.run(10, guarded)
    world.jvm = "1-2"
    if dies_again_after_s is not None:
        world.run(dies_again_after_s, guarded)
        world.jvm = "1-3"
    for _ in range(20):
        world.failed += 2000
        world.cycle(guarded)
    assert moved(world) == [("2-2", "a:1"), ("2-2", "b:1")]
    felt = world.reports[-1].felt
    assert felt.pause.startswith("guard failed.tps is 400, above 10 for 30 s")
    assert felt.effect is not None and felt.effect.end == TAKEN_BACK


@dataclass
class Lasting(World):
    """An entry stays in the plan, as of an agent that is silent."""

    lasting: tuple[Entry, ...] = ()

    def seen(self) -> CycleInput:
        self.plan = replace(self.plan, entries=self.lasting or self.plan.entries)
        return super().seen()


L = TypeVar("L", bound=Lasting)


def on_three_nodes(kind: type[L]) -> L:
    """Let a run go back to b, and a fourth executor, that does next to nothing, be on c."""
    return kind(
        places={1: A, 2: B, 3: B, 4: C},
        slots=(A, B, C),
        us={1: 50, 2: 100, 3: 300, 4: 1},
        times={A: 1.8},
        capacity=dict.fromkeys("abc", 200.0),
    )


@pytest.mark.parametrize(("phase", "mover"), [(Phase.SETTLE, 2), (Phase.UNDO, 4)])
def test_a_hot_worker_is_relieved_while_the_last_of_a_run_goes_back(
    phase: Phase, mover: int
) -> None:
    """Also the move of an operator may wait without an end."""
    world = on_three_nodes(Lasting)
    world.run(200, ADVISE)
    while not world.memory.watches["wc-1"].is_returning:
        world.cycle()
    (entry,) = world.plan.entries
    if mover == 4:
        world.places[2] = B
        entry = replace(entry, id="m9", executor=executor(4), source=C, target=A)
    world.lasting = (replace(entry, phase=phase),)
    world.capacity["b"] = 38.0
    report = world.cycle()
    assert [(move.executor, move.target) for move in report.moves] == [("3-3", "c:1")]
    world.run(10)
    assert not world.memory.watches["wc-1"].is_returning


@dataclass
class Talking(Lasting):
    """The spout feeds a second bolt too, from some moment on."""

    feeds: bool = False

    def _work(self) -> None:
        super()._work()
        if self.feeds:
            self.sent[self.places[1], 1, 4] += 5000


@pytest.mark.parametrize("mode", [Mode.ADVISE, Mode.APPROVE])
def test_no_gain_is_proposed_while_the_last_of_a_run_goes_back(mode: Mode) -> None:
    """Once approved it was of no run: nobody looked whether it helped."""
    world = on_three_nodes(Talking)
    config = Config(mode=mode, max_moves=2)
    world.run(200, ADVISE)
    while not world.memory.watches["wc-1"].is_returning:
        world.cycle()
    (entry,) = world.plan.entries
    world.feeds, world.lasting = True, (replace(entry, phase=Phase.STOP),)
    report = world.run(30, config)
    assert world.memory.watches["wc-1"].is_returning
    assert report.outcome is Outcome.MOVE_IN_FLIGHT and not report.moves
    assert report.reason.startswith("the last of a run of moves is going back, but a gain of ")


@pytest.mark.parametrize("is_of_run", [False, True])
def test_a_move_that_stands_in_the_plan_holds_no_way_back_up(is_of_run: bool) -> None:
    """As of a supervisor that is away for hours; a move of the run goes back once it is there."""
    world = on_three_nodes(Lasting)
    world.lasting = (Entry("m0", executor(4), A, C, Phase.SETTLE, Base(A, 50)),)
    world.run(300, ADVISE)
    while not moved(world):
        world.cycle()
    watch = world.memory.watches["wc-1"]
    if is_of_run and watch.begun is not None:
        made = (*watch.begun.made, OwnMove("m0", executor(4), A, C))
        begun = structs.replace(watch.begun, made=made)
        world.memory = replace(world.memory, watches={"wc-1": replace(watch, begun=begun)})
    world.run(400)
    assert moved(world) == [("2-2", "a:1"), ("2-2", "b:1")]
    world.lasting = ()
    world.run(20)
    assert ("4-4", "a:1") in moved(world) or not is_of_run
    effect = world.reports[-1].felt.effects[-1]
    assert effect.end == TAKEN_BACK and effect.moves == ("m0", "m7")[1 - is_of_run :]


@dataclass
class Slow(World):
    """The move back waits, or is undone."""

    way: str = "waits"
    status: str = "ACTIVE"
    waiting: tuple[Entry, ...] = ()
    rests: tuple[tuple[str, ExecutorId, float], ...] = ()

    def cycle(self, config: Config = AUTO) -> TopologyReport:
        back = tuple(entry for entry in self.plan.entries if entry.target == B)
        self.waiting = back if self.way == "waits" else ()
        self.rests = ()
        if self.way == "is undone":
            self.rests = tuple(("wc-1", entry.executor, self.now_s) for entry in back)
        if self.way != "goes":
            others = tuple(entry for entry in self.plan.entries if entry not in back)
            self.plan = replace(self.plan, entries=others)
        return super().cycle(config)

    def seen(self) -> CycleInput:
        self.plan = replace(self.plan, entries=self.waiting)
        return replace(super().seen(), rests=self.rests)

    def _publication(self) -> Publication:
        return replace(super()._publication(), status=self.status)


def going_back(world: World) -> None:
    world.run(200, ADVISE)
    while not world.memory.watches["wc-1"].is_returning:
        world.cycle()


@pytest.mark.parametrize("waits_s", [0, 15])
def test_a_move_back_that_is_undone_is_not_tried_again(waits_s: int) -> None:
    """An operator may have cancelled it. It was taken back by name, and held where it was bad."""
    world = Slow(times={A: 1.8})
    going_back(world)
    world.run(waits_s)
    world.way = "is undone"
    world.run(10)
    effect = world.reports[-1].felt.effects[0]
    assert effect.end == "kept, for it cannot go back: each move back was undone"
    assert effect.sentence.startswith("2-2 is left at a:1, for its move back was undone; CPU for")
    assert effect.like_tps is None and not world.memory.watches["wc-1"].refused
    assert len(moved(world)) == 2


def test_a_way_back_is_not_over_while_its_topology_is_deactivated() -> None:
    world = Slow(times={A: 1.8})
    going_back(world)
    world.run(10)
    world.status = "INACTIVE"
    world.run(60)
    assert world.reports[-1].felt.effects[0].end == GOING_BACK
    world.way, world.status = "goes", "ACTIVE"
    world.run(10)
    assert world.reports[-1].felt.effects[0].end == TAKEN_BACK
    assert len(moved(world)) == 2 and world.places[2] == B


def test_what_others_move_while_a_run_goes_back_is_named() -> None:
    third = Slot("c", 1)
    world = World(slots=(A, B, third), times={A: 1.8})
    world.capacity["c"] = 200.0
    world.run(200, ADVISE)
    while not world.memory.watches["wc-1"].is_returning:
        world.cycle()
    world.plan = replace(world.plan, entries=())
    world.places[2] = third
    effect = world.run(20).felt.effects[0]
    assert effect.end == TAKEN_BACK
    assert effect.sentence.startswith("2-2 is left at c:1; CPU for each input tuple")


def test_advice_to_go_back_takes_no_move_from_others(monkeypatch: pytest.MonkeyPatch) -> None:
    """As after `nstorm mode wc advise`; the others waited for ever."""
    world, left = World(times={A: 1.8}), list[int]()

    def noted(*given: Any, **named: Any) -> list[TopologyCase]:
        left.append(given[4].free_moves)
        return choose_each(*given, **named)

    monkeypatch.setattr("controller.cycle.choose_each", noted)
    world.run(200, ADVISE)
    while not world.memory.watches["wc-1"].is_returning:
        world.cycle()
    assert left[-1] == 0
    world.plan = replace(world.plan, entries=())
    report = world.cycle(ADVISE)
    assert report.goes_back and report.outcome is Outcome.WOULD_MOVE
    assert left[-1] == 1


@dataclass
class Collapsing(World):
    """A spout that waits for acks: with the bolt next to it most tuples fail, and it emits less."""

    failed: int = 0

    def _work(self) -> None:
        collapsed, acked = self.places[2] == A, self.acked
        self.input_tps = 300.0 if collapsed else 1000.0
        super()._work()
        if collapsed:
            more = self.acked - acked
            self.acked, self.failed = acked + more // 5, self.failed + more - more // 5

    def _load(self, slot: Slot) -> WorkerLoad:
        meters: Meters = {"acked_tuples": self.acked, "failed_tuples": self.failed}
        made = super()._load(slot)
        return replace(made, meters=meters) if slot == A else made


def test_a_run_that_has_changed_the_input_itself_is_not_made_again() -> None:
    """The input is back with the executor, so it was made again each six minutes."""
    world = Collapsing()
    world.run(320, ADVISE)
    world.run(1500)
    assert moved(world) == [("2-2", "a:1"), ("2-2", "b:1")]
    refused = world.memory.watches["wc-1"].refused[-1]
    assert refused.like_tps[0] < 300 and refused.like_tps[1] > 1000


@dataclass
class Waiting(World):
    """Each spout reports how many of its tuples have not ended, by its task."""

    pending: dict[int, int] = field(default_factory=lambda: {1: 10})

    def _load(self, slot: Slot) -> WorkerLoad:
        counts = tuple(self.pending.get(task, -1) for task in self._here(slot))
        return replace(super()._load(slot), executor_meters={"pending_tuples": counts})


@dataclass
class Standing(Waiting):
    """With the bolt next to its spout no tuple is acked; or the input ends as it moves there."""

    may_send: int = 0  # more tuples until all are pending that may be
    ends: bool = False
    keeps: int = 0  # how many stay pending once the input has ended, as in a window

    def _work(self) -> None:
        acked = self.acked
        if self.places[2] == B:
            self.input_tps = 1000.0
        elif self.ends:
            self.input_tps, self.pending = 0.0, {1: self.keeps}
        else:
            self.input_tps = min(1000.0, self.may_send / CYCLE_S)
        super()._work()
        if self.places[2] == A and not self.ends:
            sent = self.acked - acked
            self.may_send, self.acked = max(self.may_send - sent, 0), acked
            self.pending = {1: self.pending[1] + sent}


@pytest.mark.parametrize(
    ("world", "goes_back"),
    [
        (Standing(may_send=500), True),
        (Standing(may_send=50_000), True),
        (Standing(ends=True), False),
        (Standing(ends=True, pending={1: 2000}, keeps=2000), False),
        (Standing(pending={1: 2000}), False),  # it may be a window
    ],
)
def test_a_run_after_which_nothing_is_acked_goes_back(world: Standing, goes_back: bool) -> None:
    """No tuple fails: the message timeout is longer than what is looked at."""
    world.run(320, ADVISE)
    world.run(500)
    assert moved(world) == [("2-2", "a:1"), ("2-2", "b:1")][: 1 + goes_back]
    sentence = world.reports[-1].felt.effects[0].sentence
    assert sentence.startswith("the spouts wait for ") is goes_back


@dataclass
class TwoSpouts(Waiting):
    """The input of the first spout ends once its bolt has moved; the second one goes on."""

    places: dict[int, Slot] = field(default_factory=lambda: {1: A, 2: B, 3: B, 8: A, 9: A})
    pending: dict[int, int] = field(default_factory=lambda: {1: 10, 9: 2})
    sends_tps: float = 500.0  # the second spout
    acks_tps: float = 0.0

    def _publication(self) -> Publication:
        nodes = [Node(name, f"host-{name}", of, (1,), 1) for name, of in self.capacity.items()]
        return publication(self.places, nodes, spouts=[1, 9])

    def _work(self) -> None:
        if self.places[2] == A:
            self.input_tps, self.pending = 0.0, self.pending | {1: 0}
        more = round(self.sends_tps * CYCLE_S)
        self.sent[A, 9, 8] += more
        self.cpu_ns[9] += more * 10_000
        self.cpu_ns[8] += more * 20_000
        super()._work()
        self.acked += round(self.acks_tps * CYCLE_S)


@pytest.mark.parametrize(("sends_tps", "acks_tps"), [(500.0, 0.0), (520.0, 13.0)])
def test_a_spout_of_several_whose_input_ends_takes_no_run_back(
    sends_tps: float, acks_tps: float
) -> None:
    """The other one sends without acks, or each tuple to 40 tasks."""
    world = TwoSpouts(sends_tps=sends_tps, acks_tps=acks_tps)
    world.run(320, ADVISE)
    world.run(600)
    assert moved(world) == [("2-2", "a:1")]
    effect = world.reports[-1].felt.effects[0]
    assert effect.verdict is Verdict.UNKNOWN and effect.end == "kept"


@dataclass
class Heaped(World):
    """Tuples cost more on the worker that has room in its heap; `b` becomes full."""

    places: dict[int, Slot] = field(default_factory=lambda: {1: A, 2: B, 3: B, 4: C})
    slots: tuple[Slot, ...] = (A, B, C)
    us: dict[int, float] = field(default_factory=lambda: {1: 50, 2: 100, 3: 100, 4: 10})
    times: dict[Slot, float] = field(default_factory=lambda: {A: 1.5, C: 1.5})
    capacity: dict[str, float] = field(default_factory=lambda: dict.fromkeys("abc", 200.0))
    kept: dict[int, float] = field(default_factory=lambda: {1: 5e6, 2: 30e6, 3: 30e6, 4: 5e6})

    def _load(self, slot: Slot) -> WorkerLoad:
        made = super()._load(slot)
        live = round(15e6 + sum(self.kept[task] for task in self._here(slot)))
        meters: Meters = {"heap_live_bytes": live, "heap_max_bytes": 100_000_000}
        felt = {} if made.meters is UNSET else made.meters
        return replace(made, meters={**felt, **meters})


def test_what_left_a_full_heap_does_not_go_back_for_its_cpu() -> None:
    world = Heaped()
    world.run(1500)
    world.kept[2] = world.kept[3] = 40e6
    world.reports.clear()
    world.run(500)
    assert [executor for executor, _ in moved(world)] == ["3-3"]
    effect = world.reports[-1].felt.effects[-1]
    assert effect.verdict is Verdict.WORSE and effect.end == "kept, for it relieves a heap"
    assert effect.sentence.startswith("CPU for each input tuple +")


def test_nothing_goes_back_that_would_fill_a_heap_again() -> None:
    world = Heaped(
        places={1: A, 2: B, 3: B},
        slots=(A, B),
        us={1: 50, 2: 100, 3: 300},
        times={A: 1.8},
        capacity={"a": 200.0, "b": 200.0},
    )
    world.run(200, ADVISE)
    world.run(205)
    assert world.places[2] == A
    world.kept |= {2: 40e6, 3: 60e6}
    world.run(200)
    effect = world.reports[-1].felt.effects[0]
    assert (
        effect.end == "kept, for it cannot go back: with all of it back, a heap would be above 0.85"
    )
    assert world.places[2] == A


@dataclass
class Linked(World):
    """Each node sends 0.9 MB in a second, of what its link carries."""

    link_bytes_s: float = 1e6

    def seen(self) -> CycleInput:
        seen, time_ms = super().seen(), round(self.now_s * 1000)
        meters: Meters = {"net_sent_bytes": 900 * time_ms, "link_bytes_per_s": self.link_bytes_s}
        loads = tuple(replace(one, time_ms=time_ms, meters=meters) for one in seen.loads)
        return replace(seen, loads=loads)


@pytest.mark.parametrize(("link_bytes_s", "fills"), [(1e6, True), (2e6, False)])
def test_what_is_measured_has_whether_a_link_is_too_full(link_bytes_s: float, fills: bool) -> None:
    world = Linked(link_bytes_s=link_bytes_s)
    world.run(60, ADVISE)
    blocks = world.memory.watches["wc-1"].blocks
    assert blocks and all(block.fills_link is fills for block in blocks)

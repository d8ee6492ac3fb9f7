"""One cycle over values: every outcome, its reason, and the plan to write."""

import ast
from collections import Counter
from dataclasses import dataclass, field
from dataclasses import replace as changed
from pathlib import Path

import pytest
from msgspec import UNSET

from controller import cycle as cycle_module
from controller.config import Config, Mode
from controller.core.capacity import Capacity
from controller.core.controls import Controls, Pause, Rejected
from controller.core.decision import Move, Outcome
from controller.core.excluded import Excluded
from controller.core.limits import Limits
from controller.core.topology import TopologyView
from controller.core.veto import young
from controller.cycle import CycleInput, Memory
from controller.journal.cycle_record import cycle_record
from controller.journal.rows import rows_of
from controller.policies.gather.goal import Answer
from controller.report import Report, TopologyReport
from controller.storm.answers import explain
from migration.model import (
    Base,
    Entry,
    ExecutorWay,
    Node,
    NodeAcks,
    NodeLoad,
    Phase,
    PinnedExecutor,
    Plan,
    Publication,
    Slot,
    Way,
    WorkerAck,
    WorkerLoad,
)
from tests.messages import executor, node_acks, publication, replace, worker_ack, worker_load
from tests.watched import cycle

A1, A2, B1, B2 = Slot("a", 1), Slot("a", 2), Slot("b", 1), Slot("b", 2)
# 1 is a spout. 2 talks to 3 and 4 most, so it belongs on node a.
PLACES = {1: A1, 2: B1, 3: A1, 4: A2, 5: B1, 6: B2, 7: B2}
RATES_TPS = {(1, 2): 10, (2, 3): 100, (2, 4): 50, (5, 6): 20, (6, 7): 5}


@dataclass
class World:
    """One topology that a cycle sees; a second passes between two cycles."""

    places: dict[int, Slot] = field(default_factory=lambda: dict(PLACES))
    epoch: int | None = 3
    status: str = "ACTIVE"
    pause: str | None = None
    controls: Controls = field(default_factory=Controls)
    begun: tuple[tuple[float, str, str], ...] = ()
    own_mode: str | None = None
    stand_back: str | None = None
    hookless: frozenset[Slot] = frozenset()
    deaf: frozenset[Slot] = frozenset()
    jvms: dict[Slot, str] = field(default_factory=dict)
    not_running: frozenset[int] = frozenset()
    pinned: dict[int, str] = field(default_factory=dict)
    ways: dict[int, Way] = field(default_factory=dict)
    silent: bool = False
    surprise: bool = False
    entries: tuple[Entry, ...] = ()
    now: float = 100.0
    drained: tuple[str, ...] = ()
    free: frozenset[Slot] = frozenset()
    in_use: dict[str, int] = field(default_factory=lambda: {"a": 2, "b": 2})
    speaks: int = 2
    started_secs: int | None = None  # Unix; of all executors, or long ago
    written: list[Plan] = field(default_factory=list)

    def seen(self) -> CycleInput:
        view = TopologyView(self.publication(), self.plan(), self.acks(), self.stand_back)
        if self.surprise:
            view = replace(view, plan=None)
        loads = tuple(self.loads())
        controls = Controls(pauses={"wc": Pause(self.pause)}) if self.pause else self.controls
        time_s = 1.7e9 + self.now
        seen = CycleInput(self.now, time_s, self.epoch, controls, (view,), loads, begun=self.begun)
        return replace(seen, drained=self.drained, free=self.free)

    def write(self, report: Report) -> None:
        """Write the plans of a report, and see each as the next one's."""
        self.written += [one.plan for one in report.topologies if one.outcome is Outcome.MOVED]  # type: ignore[misc]

    def plan(self) -> Plan:
        if self.written:
            return self.written[-1]
        return Plan("uuid", 2, 6, "wc-1", self.entries)

    def publication(self) -> Publication:
        names = sorted({*self.in_use, *(slot.supervisor for slot in self.free)})
        nodes = [Node(n, f"host-{n}", 200.0, (1, 2, 3), self.in_use.get(n, 0)) for n in names]
        started = None if self.started_secs is None else dict.fromkeys(PLACES, self.started_secs)
        says = {"status": self.status, "speaks": self.speaks}
        made = publication(self.places, nodes, spouts=[1], start_secs=started, **says)
        return replace(made, mode=self.own_mode)

    def acks(self) -> tuple[NodeAcks, ...]:
        slots = sorted(set(self.places.values()) - self.hookless)
        return tuple(
            node_acks(node, [self.ack(s) for s in slots if s.supervisor == node], "uuid")
            for node in self.in_use
        )

    def ack(self, slot: Slot) -> WorkerAck:
        pinned = tuple(PinnedExecutor(executor(t), r) for t, r in self.pinned.items())
        error = "plan store: damaged" if slot in self.deaf else None
        runs = [task for task in self.here(slot) if task not in self.not_running]
        jvm = self.jvms.get(slot, "1-1")
        ways = tuple(ExecutorWay(executor(t), self.ways[t]) for t in runs if t in self.ways)
        return worker_ack(slot, runs, pinned=pinned, ways=ways, error=error, incarnation=jvm)

    def here(self, slot: Slot) -> list[int]:
        return [task for task, at in self.places.items() if at == slot]

    def loads(self) -> list[NodeLoad]:
        since_s = 100.0 if self.silent else self.now
        return [
            NodeLoad(node, 0, tuple(self.load(Slot(node, port), since_s) for port in (1, 2)))
            for node in self.in_use
        ]

    def load(self, slot: Slot, at_s: float) -> WorkerLoad:
        here = self.here(slot)
        return worker_load(slot, here, at_s, {e: r for e, r in RATES_TPS.items() if e[0] in here})


AUTO = Config(mode=Mode.AUTO)


class Controller:
    """Folds the cycle over a world."""

    def __init__(self, world: World, config: Config = AUTO) -> None:
        self.world, self.config, self.memory = world, config, Memory()

    def cycle(self) -> TopologyReport:
        self.memory, report = cycle(self.memory, self.world.seen(), self.config)
        self.world.write(report)
        self.world.now += 1
        return report.topologies[0]


def run(world: World, config: Config = AUTO, cycles: int = 2) -> list[TopologyReport]:
    """Run cycles a second apart; the first only takes the totals in."""
    controller = Controller(world, config)
    return [controller.cycle() for _ in range(cycles)]


def last(world: World, config: Config = AUTO, cycles: int = 2) -> TopologyReport:
    return run(world, config, cycles)[-1]


def entry_of(task: int, target: Slot, phase: Phase, void: str | None = None) -> Entry:
    source = PLACES[task]
    return Entry("m1", executor(task), source, target, phase, Base(source, 50), void)


def test_the_best_move_is_made() -> None:
    world = World()
    first, second = run(world)
    assert first.outcome is Outcome.STALE_METRICS
    assert "has reported only once" in first.reason
    assert second.outcome is Outcome.MOVED
    (move,) = second.moves
    # 2 gains 150 + 10 on node a; of its workers, a:1 has more of its traffic.
    assert (move.executor, move.source, move.target, move.asc_tps) == ("2-2", "b:1", "a:1", 160)
    (entry,) = world.written[0].entries
    assert entry == Entry("m7", executor(2), B1, A1, Phase.PREPARE, Base(B1, 50), ordered=True)
    assert (world.written[0].epoch, world.written[0].version) == (3, 7)
    assert second.plan == world.written[0]


@pytest.mark.parametrize(("ago_s", "named"), [(None, True), (121, True), (60, False)])
def test_a_host_is_slow_only_where_code_is_compiled(ago_s: int | None, *, named: bool) -> None:
    started = None if ago_s is None else 1_700_000_101 - ago_s
    controller = Controller(World(started_secs=started), Config(mode=Mode.ADVISE))
    controller.cycle()
    warnings = controller.cycle().warnings
    slow = "b takes 6.3 times the CPU of the other hosts for the same tuples, by 4 executors"
    assert warnings == ((slow,) if named else ())


def test_a_worker_that_starts_again_and_again_is_no_target_and_keeps_what_it_has() -> None:
    controller = Controller(World(), Config(mode=Mode.ADVISE))
    for jvm in range(1, 5):
        controller.world.jvms[A1] = f"{jvm}-{jvm}"
        report = controller.cycle()
        again = [text for text in report.warnings if "again" in text]
        assert (again != []) == (jvm == 4)
    why = "Storm has started a:1 again 3 times within 30 min"
    assert again == [why]
    assert "a:1" not in [end for move in report.moves for end in (move.source, move.target)]
    answer = explain(report, "", controller.config)
    assert answer is not None
    assert [one.worker for one in rows_of(answer.workers) if one.closed == why] == ["a:1"]
    assert {one.worker for one in rows_of(answer.executors) if one.stays == why} == {"a:1"}
    # Without that the best move is to this worker.
    assert last(World(), controller.config, cycles=4).moves[0].target == "a:1"


def test_advise_says_the_plan_that_auto_writes() -> None:
    advised, auto = last(World(), Config(mode=Mode.ADVISE)), last(World())
    assert advised.outcome is Outcome.WOULD_MOVE
    assert (advised.plan, advised.moves, advised.reason) == (auto.plan, auto.moves, auto.reason)
    world = World()
    last(world, Config(mode=Mode.ADVISE), cycles=5)
    assert world.written == []


@pytest.mark.parametrize(
    ("world", "config", "outcome", "words"),
    [
        (World(epoch=None), AUTO, Outcome.NOT_LEADER, "another controller leads"),
        (World(pause="maintenance"), AUTO, Outcome.PAUSED, "maintenance"),
        (World(), Config(mode=Mode.OBSERVE), Outcome.PAUSED, "observe"),
        (World(stand_back="Nimbus is away"), AUTO, Outcome.STAND_BACK, "Nimbus is away"),
        (World(status="REBALANCING"), AUTO, Outcome.STAND_BACK, "REBALANCING"),
        (World(surprise=True), AUTO, Outcome.STAND_BACK, "unexpected error: AttributeError"),
        (
            World(hookless=frozenset({A1, A2, B1, B2})),
            AUTO,
            Outcome.STALE_METRICS,
            "no worker has reported",
        ),
        (
            World(),
            replace(AUTO, excluded=Excluded(topologies=frozenset({"wc"}))),
            Outcome.EXCLUDED,
            "topology wc",
        ),
        (
            World(),
            replace(AUTO, excluded=Excluded(components=frozenset({"bolt"}))),
            Outcome.EXCLUDED,
            "component bolt",
        ),
        (
            World(),
            replace(AUTO, excluded=Excluded(hosts=frozenset({"host-a", "b"}))),
            Outcome.EXCLUDED,
            "node b",
        ),
        (
            World(),
            replace(AUTO, limits=Limits(gain_tps=1000.0)),
            Outcome.BELOW_THRESHOLD,
            "1,000",
        ),
        (
            World({1: A1, 2: B1, 3: A1, 4: A1, 5: B1, 6: B1, 7: B1}),
            replace(AUTO, limits=Limits(high_frac=0.05)),
            Outcome.NO_LOW_WORKER,
            "resources are missing",
        ),
        (
            World(entries=(entry_of(6, B1, Phase.DRAIN),)),
            AUTO,
            Outcome.MOVE_IN_FLIGHT,
            "6-6 of wc-1 to b:1 in DRAIN",
        ),
        (
            World(pinned=dict.fromkeys(range(2, 8), "windowed")),
            AUTO,
            Outcome.NOTHING_TO_GAIN,
            "no executor may move, all 7 are pinned: spout, windowed",
        ),
    ],
)
def test_nothing_is_moved_and_the_reason_is_said(
    world: World, config: Config, outcome: Outcome, words: str
) -> None:
    report = last(world, config)
    assert report.outcome is outcome
    assert words in report.reason
    assert world.written == []
    assert not report.moves


def test_stale_load_stops_decisions() -> None:
    world = World()
    assert run(world)[-1].outcome is Outcome.MOVED
    world = World()
    controller = Controller(world, Config())
    for _ in range(2):
        controller.cycle()
    frozen = world.loads()
    world.loads = lambda: frozen  # type: ignore[method-assign]
    controller.cycle()
    world.now += 15
    report = controller.cycle()
    assert report.outcome is Outcome.STALE_METRICS
    assert "16 s ago" in report.reason


def test_a_settling_move_blocks_only_its_own_executor() -> None:
    world = World(entries=(entry_of(2, A1, Phase.SETTLE),))
    report = last(world)
    # 2 counts as being on node a already; of the others, 5 gains most by joining 6.
    assert report.outcome is Outcome.MOVED
    assert report.moves[0].executor != "2-2"


def test_two_moves_a_cycle_are_of_two_executors_and_one_plan() -> None:
    world = World()
    report = last(world, replace(AUTO, max_moves=2))
    assert report.outcome is Outcome.MOVED
    assert len({move.executor for move in report.moves}) == 2
    (plan,) = world.written
    assert report.plan == plan
    assert plan.version == 7
    assert [entry.id for entry in plan.entries] == ["m7", "m7.2"]


def test_a_decision_is_news_by_its_moves_and_words_and_not_by_its_figures() -> None:
    move = Move("2-2", "b:1", "a:1", 160.0)
    reason = "a gain of 1,234.5 weighted t/s is above the threshold 12"
    one = TopologyReport(7, "wc-1", 100.0, Outcome.WOULD_MOVE, reason, (move,))
    assert one.news == changed(one, tick=8, time_s=105.0, reason=reason.replace("234", "9")).news
    assert one.news != changed(one, moves=(changed(move, target="a:2"),)).news
    assert one.news != changed(one, outcome=Outcome.MOVED).news
    assert one.news != changed(one, reason="it settles").news
    hot = changed(one, reason="node-1 at 0.9 of its CPU is above 0.8")
    assert hot.news == changed(hot, reason="node-1 at 0.91 of its CPU is above 0.8").news
    gains = changed(one, reason="a gain of 24.9 is above 22.42: 4-4 from host:6700")
    assert (
        gains.news == changed(gains, reason="a gain of 31 is above 22.4: 4-4 from host:6700").news
    )
    assert gains.news != changed(gains, reason=gains.reason.replace("6700", "6701")).news
    assert hot.news != changed(hot, reason="node-2 at 0.9 of its CPU is above 0.8").news
    gain = "a gain of {} weighted t/s is above the threshold {}: 3-3 (count, {} cores) from {}"
    gains = changed(one, reason=gain.format("41.7", "8.357", "0.129", "10.0.0.1:6700 to b:1"))
    again = gain.format("1,236.88", "16.8", "0.1", "10.0.0.1:6700 to b:1")
    assert gains.news == changed(gains, reason=again).news
    for other in ("10.0.0.2:6700 to b:1", "10.0.0.1:6701 to b:1", "10.0.0.1:6700 to b:2"):
        assert gains.news != changed(gains, reason=gain.format(1, 2, 3, other)).news
    loss = changed(one, reason="the best by -18.52 weighted t/s")
    assert loss.news == changed(loss, reason="the best by -7 weighted t/s").news
    by_ip = changed(one, reason="10.0.0.1 at 0.9 of its CPU")
    assert by_ip.news != changed(by_ip, reason="10.0.0.2 at 0.9 of its CPU").news
    hottest = changed(one, warnings=("a at 0.92 of its CPU", "b at 0.91 of its CPU"))
    assert (
        hottest.news == changed(one, warnings=("b at 0.93 of its CPU", "a at 0.9 of its CPU")).news
    )
    assert changed(one, reason="2-2 rests").news != changed(one, reason="3-3 rests").news
    assert one.news != changed(one, warnings=("a:1 has started again",)).news


def test_cooldown_is_the_outcome_when_only_resting_executors_would_gain() -> None:
    world = World(pinned=dict.fromkeys([3, 4, 5, 6, 7], "stateful"))
    controller = Controller(world)
    outcomes = []
    for _ in range(4):
        report = controller.cycle()
        outcomes.append(report.outcome)
        world.written.clear()
    assert outcomes[1:] == [Outcome.MOVED, Outcome.COOLDOWN, Outcome.COOLDOWN]
    assert "2-2 has moved and rests for 103 s more" in report.reason
    world.now += 105
    assert controller.cycle().outcome is Outcome.MOVED


def test_an_executor_that_could_not_move_rests_for_longer_and_says_why() -> None:
    world = World(pinned=dict.fromkeys([3, 4, 5, 6, 7], "stateful"))
    memory = cycle(Memory(), world.seen(), AUTO)[0]
    world.now += AUTO.cycle_s
    later = replace(world.seen(), rests=(("wc-1", executor(2), world.now + 1000.0),))
    (report,) = cycle(memory, later, AUTO)[1].topologies
    assert report.outcome is Outcome.COOLDOWN
    assert "2-2 could not move several times, so its rest has doubled" in report.reason
    assert "for 1105 s more" in report.reason


def test_what_storm_has_started_lately_stays_until_its_age() -> None:
    world = World()  # all was started at second 50
    world_s = 1.7e9 + world.now
    config = replace(AUTO, min_age_s=world_s - 50 + 3)
    reports = run(world, config, cycles=3)
    assert reports[1].outcome is Outcome.COOLDOWN
    assert "Storm started 2-2 a moment ago, it may move in 2 s" in reports[1].reason
    assert last(World(), replace(AUTO, min_age_s=world_s - 50)).outcome is Outcome.MOVED


def test_what_starts_in_the_future_by_a_clock_that_was_ahead_does_not_wait_for_it() -> None:
    day_s = 86_400
    at = publication({1: Slot("a", 1)}, start_secs={1: round(1.7e9) + day_s})
    config = replace(AUTO, min_age_s=600.0)
    assert young(at, config, 1.7e9) == {}
    assert young(at, config, 1.7e9 + day_s) == {"1-1": 600.0}


def test_an_excluded_host_is_left_alone_and_the_others_go_on() -> None:
    report = last(World(), replace(AUTO, excluded=Excluded(hosts=frozenset({"host-a"}))))
    assert report.outcome is Outcome.MOVED
    assert (report.moves[0].source, report.moves[0].target) == ("b:1", "b:2")


class OldWorld(World):
    """A world whose workers have the jar of before."""

    def ack(self, slot: Slot) -> WorkerAck:
        return replace(super().ack(slot), speaks=1)


def test_the_last_executor_of_a_worker_stays_where_the_worker_may_not_end() -> None:
    # 2 is alone on b:1 and everything else is pinned.
    places, pinned = {**PLACES, 5: B2}, dict.fromkeys([3, 4, 5, 6, 7], "stateful")
    report = last(World(places=places, pinned=pinned))
    assert report.outcome is Outcome.MOVED
    assert report.moves[0].executor == "2-2"
    report = last(OldWorld(places=places, pinned=pinned))
    assert report.outcome is Outcome.LAST_IN_WORKER
    assert "2-2 is the last executor of b:1: the worker at a:1 speaks version 1" in report.reason


def test_a_worker_that_is_not_heard_of_is_waited_for_then_it_has_no_hooks() -> None:
    world = World(hookless=frozenset({A1}))
    early = last(world)
    assert early.outcome is Outcome.STALE_METRICS
    assert "a:1 has not reported that it has the hooks" in early.reason
    # Then it takes nothing...
    report = last(world, cycles=31)
    assert report.outcome is Outcome.MOVED
    assert (report.moves[0].executor, report.moves[0].target) == ("2-2", "a:2")
    # ... and gives nothing.
    world = World(hookless=frozenset({B1}), pinned={6: "x", 7: "x", 3: "x", 4: "x"})
    report = last(world, cycles=31)
    assert report.outcome is not Outcome.STALE_METRICS
    assert not report.moves


def test_a_worker_that_cannot_follow_plans_gives_and_takes_nothing() -> None:
    # 2 would go to a:1, and then to a:2.
    report = last(World(deaf=frozenset({A1})))
    assert (report.moves[0].executor, report.moves[0].target) == ("2-2", "a:2")
    report = last(World(deaf=frozenset({A1, A2})))
    assert "2-2" not in [move.executor for move in report.moves]
    # It cannot leave either.
    report = last(World(deaf=frozenset({B1}), pinned=dict.fromkeys([3, 4, 6, 7], "x")))
    assert report.outcome is Outcome.STAND_BACK
    assert "the worker at b:1 cannot follow plans: plan store: damaged" in report.reason


def test_measures_come_with_every_report_that_got_so_far() -> None:
    report = last(World(pause="wait"))
    assert report.picture is not None
    assert report.picture.snapshot.traffic.total_tps == 185
    assert report.picture.snapshot.pinned[0] == "spout"
    assert report.picture.cluster.capacity_cores.tolist() == [1.0] * 4


def two_topologies(world: World) -> CycleInput:
    """See the same topology twice, under two ids."""
    seen = world.seen()
    (view,) = seen.topologies
    other = replace(
        view,
        publication=replace(view.publication, topology="xx-2"),
        plan=replace(view.plan, topology="xx-2"),
        acks=tuple(renamed(ack) for ack in view.acks),
    )
    loads = tuple(
        replace(load, workers=(*load.workers, *(replace(w, topology="xx-2") for w in load.workers)))
        for load in seen.loads
    )
    return replace(seen, topologies=(view, other), loads=loads)


def renamed(acks: NodeAcks) -> NodeAcks:
    return replace(acks, workers=tuple(replace(w, topology="xx-2") for w in acks.workers))


def decide_together(
    config: Config, entries: tuple[Entry, ...] = (), cycles: int = 2
) -> list[TopologyReport]:
    """Decide about both topologies some times; no plan is written."""
    world, memory = World(entries=entries), Memory()
    for _ in range(cycles):
        memory, report = cycle(replace(memory, moved_s={}), two_topologies(world), config)
        world.now += 1
    return sorted(report.topologies, key=lambda one: one.topology)


def test_the_cap_of_moves_is_of_the_whole_cluster() -> None:
    # The second cycle begins with the first topology, the third with the other one.
    first, second = decide_together(AUTO)
    assert (first.outcome, second.outcome) == (Outcome.MOVED, Outcome.MOVE_IN_FLIGHT)
    assert "other topologies" in second.reason
    first, second = decide_together(AUTO, cycles=3)
    assert (first.outcome, second.outcome) == (Outcome.MOVE_IN_FLIGHT, Outcome.MOVED)
    both = decide_together(replace(AUTO, max_moves=2))
    assert [len(report.moves) for report in both] == [2, 0]
    # One that moves already counts, in the other topology too, and is named.
    for report in decide_together(AUTO, entries=(entry_of(6, B1, Phase.DRAIN),)):
        assert report.outcome is Outcome.MOVE_IN_FLIGHT
        assert "6-6 of wc-1 to b:1 in DRAIN" in report.reason
    # One that is undone may wait for an agent without an end: it takes no place.
    first, second = decide_together(AUTO, entries=(entry_of(6, B1, Phase.UNDO),))
    assert {first.outcome, second.outcome} == {Outcome.MOVED, Outcome.MOVE_IN_FLIGHT}


def test_advice_takes_no_move_from_another_topology() -> None:
    for report in decide_together(Config()):
        assert report.outcome is Outcome.WOULD_MOVE


def test_a_topology_that_is_not_active_holds_up_no_other() -> None:
    world, memory = World(entries=(entry_of(6, B1, Phase.PREPARE),)), Memory()
    for _ in range(2):
        first, other = two_topologies(world).topologies
        resting = replace(first, publication=replace(first.publication, status="INACTIVE"))
        other = replace(other, plan=replace(other.plan, entries=()))
        seen = replace(two_topologies(world), topologies=(resting, other))
        memory, report = cycle(memory, seen, AUTO)
        world.now += 1
    assert [one.outcome for one in report.topologies] == [Outcome.STAND_BACK, Outcome.MOVED]


def test_what_an_earlier_leader_moved_rests_and_begins_no_run() -> None:
    world = World()
    memory, _ = cycle(Memory(), world.seen(), AUTO)
    world.now += 1
    moved = ("wc-1", executor(2), world.now - 10.0)
    memory, report = cycle(memory, changed(world.seen(), earlier=(moved,)), AUTO)
    assert memory.moved_s["wc-1", executor(2)] == world.now - 10.0
    assert report.topologies[0].felt.effects == ()
    assert memory.watches["wc-1"].run is None or memory.watches["wc-1"].run.is_own


def test_a_surprise_forgets_no_rest() -> None:
    rests = (("wc-1", executor(2), 99.0),)
    memory, report = cycle(Memory(), replace(World(surprise=True).seen(), rests=rests), AUTO)
    assert report.error is not None
    assert memory.moved_s == {("wc-1", executor(2)): 99.0}


def test_a_move_that_could_not_begin_does_not_rest() -> None:
    world = World(pinned=dict.fromkeys([3, 4, 5, 6, 7], "stateful"))
    controller = Controller(world)
    controller.cycle()
    assert controller.cycle().outcome is Outcome.MOVED
    world.written.clear()
    seen = replace(world.seen(), not_begun=(("wc-1", executor(2)),))
    _, report = cycle(controller.memory, seen, AUTO)
    assert report.topologies[0].outcome is Outcome.MOVED


def test_no_other_executor_keeps_a_worker_alive_for_an_excluded_one() -> None:
    # 2 is alone on b:1; 7 could take its place, but 2 never leaves.
    places = {**PLACES, 5: B2}
    world = World(places=places, pinned=dict.fromkeys([3, 4, 5, 6], "stateful"))
    seen = world.seen()
    (view,) = seen.topologies
    placed = tuple(
        replace(one, component="alone") if one.executor == executor(2) else one
        for one in view.publication.executors
    )
    view = replace(view, publication=replace(view.publication, executors=placed))
    memory, _ = cycle(Memory(), replace(seen, topologies=(view,)), AUTO)
    world.now += 1
    config = replace(AUTO, excluded=Excluded(components=frozenset({"alone"})))
    later = replace(world.seen(), topologies=(view,))
    _, report = cycle(memory, later, config)
    assert report.topologies[0].outcome is Outcome.EXCLUDED


def test_a_supervisor_that_storm_has_lost_stops_its_topology_alone() -> None:
    world, memory = World(), Memory()
    for _ in range(2):
        first, other = two_topologies(world).topologies
        nodes = tuple(node for node in first.publication.nodes if node.id != "b")
        lost = replace(first, publication=replace(first.publication, nodes=nodes))
        seen = replace(two_topologies(world), topologies=(lost, other))
        memory, report = cycle(memory, seen, AUTO)
        world.now += 1
    first_report, other_report = report.topologies
    assert first_report.outcome is Outcome.STAND_BACK
    assert "Storm has no supervisor for b:1, b:2" in first_report.reason
    assert other_report.outcome is Outcome.MOVED


def test_a_move_to_a_node_that_has_gone_is_no_surprise() -> None:
    world = World(entries=(entry_of(6, Slot("gone", 1), Phase.SETTLE),))
    seen = two_topologies(world)
    _, report = cycle(Memory(), seen, AUTO)
    assert report.error is None
    assert {one.outcome for one in report.topologies} == {Outcome.STAND_BACK}
    for one in report.topologies:
        assert one.reason == "Storm has no supervisor for gone:1"


def test_the_same_values_give_the_same_report() -> None:
    world, config = World(), replace(AUTO, max_moves=2)
    memory, _ = cycle(Memory(), world.seen(), config)
    world.now += 1
    seen = world.seen()
    first, second = cycle(memory, seen, config), cycle(memory, seen, config)
    assert first[1].topologies[0].plan == second[1].topologies[0].plan
    assert first[1].topologies[0].moves == second[1].topologies[0].moves
    assert first[0].moved_s == second[0].moved_s


def test_an_answer_waits_until_the_policy_asks_for_it() -> None:
    config = AUTO
    world, memory = World(), Memory()
    memory, report = cycle(memory, world.seen(), config)
    assert report.questions == ()  # nothing is measured yet
    answer = ("wc-1", Answer(None))
    memory, _ = cycle(memory, replace(world.seen(), answers=(answer,)), config)
    assert memory.of_policy["wc-1"].answer == Answer(None)
    world.now += 1
    memory, report = cycle(memory, world.seen(), config)
    assert (memory.of_policy["wc-1"].answer, report.questions) == (None, ())


def test_the_mode_approve_shows_the_plan_of_auto_and_waits_under_one_name() -> None:
    world, auto = World(), last(World())
    controller = Controller(world, Config(mode=Mode.APPROVE))
    controller.cycle()
    shown, again = controller.cycle(), controller.cycle()
    assert shown.outcome is Outcome.AWAITING_APPROVAL
    assert (shown.plan, shown.moves, shown.reason) == (auto.plan, auto.moves, auto.reason)
    assert shown.proposal == again.proposal
    assert shown.proposal.startswith("p-")
    assert world.written == []
    assert auto.proposal == ""


@pytest.mark.parametrize(
    ("modes", "outcome"),
    [
        ({"wc": "auto"}, Outcome.MOVED),
        ({"": "auto"}, Outcome.MOVED),
        ({"": "auto", "wc": "approve"}, Outcome.AWAITING_APPROVAL),
        ({"": "auto", "wc": "observe"}, Outcome.PAUSED),
        ({"other": "auto"}, Outcome.WOULD_MOVE),
    ],
)
def test_what_operators_set_wins_over_the_setting(modes: dict[str, str], outcome: Outcome) -> None:
    controls = Controls(modes=modes)  # type: ignore[arg-type]
    assert last(World(controls=controls), Config(mode=Mode.ADVISE)).outcome is outcome


@pytest.mark.parametrize(
    ("modes", "outcome"),
    [
        ({}, Outcome.MOVED),
        ({"wc": "advise"}, Outcome.WOULD_MOVE),
        ({"": "observe"}, Outcome.PAUSED),
    ],
)
def test_a_topology_brings_its_mode_and_operators_come_before_it(
    modes: dict[str, str], outcome: Outcome
) -> None:
    world = World(own_mode="auto", controls=Controls(modes=modes))  # type: ignore[arg-type]
    assert last(world, Config(mode=Mode.ADVISE, mode_max=Mode.AUTO)).outcome is outcome


@pytest.mark.parametrize("most", [None, Mode.ADVISE])
def test_a_submitter_cannot_let_a_topology_go_further_than_the_administrator(
    most: Mode | None,
) -> None:
    config = Config(mode=Mode.ADVISE, mode_max=most)
    assert last(World(own_mode="auto"), config).outcome is Outcome.WOULD_MOVE
    assert last(World(own_mode="observe"), AUTO).outcome is Outcome.PAUSED


def test_a_mode_that_is_none_only_measures_and_says_so() -> None:
    report = last(World(own_mode="atuo"))
    assert (report.outcome, report.reason) == (
        Outcome.PAUSED,
        "topology.nstorm.mode must be one of observe, advise, approve, auto, is 'atuo': "
        "only measuring",
    )


def test_what_an_operator_rejected_stays_and_the_next_best_is_proposed() -> None:
    shown = last(World(), Config(mode=Mode.APPROVE))
    rejected = {shown.proposal: Rejected("wc-1", ("2-2",), 1.8e9)}
    report = last(World(controls=Controls(rejected=rejected)), Config(mode=Mode.APPROVE))
    assert report.outcome is Outcome.AWAITING_APPROVAL
    assert [move.executor for move in report.moves] != ["2-2"]
    assert report.proposal != shown.proposal
    alone = World(pinned=dict.fromkeys([3, 4, 5, 6, 7], "x"), controls=Controls(rejected=rejected))
    report = last(alone, Config(mode=Mode.APPROVE))
    assert report.outcome is Outcome.EXCLUDED
    assert shown.proposal in report.reason


def test_an_hour_has_no_more_moves_than_it_may() -> None:
    begun = ((1.7e9, "a", "b"), (1.7e9, "b", "a"))
    report = last(World(begun=begun), replace(AUTO, max_moves_hour=2))
    assert report.outcome is Outcome.CAPPED
    assert report.reason == "2 moves have begun within an hour, 2 may"
    assert last(World(begun=begun), replace(AUTO, max_moves_hour=3)).outcome is Outcome.MOVED


def test_a_host_that_had_its_moves_gives_and_takes_nothing() -> None:
    config = replace(AUTO, max_moves_host_hour=1)
    report = last(World(begun=((1.7e9, "a", "a"),)), config)
    # Nothing goes to node a, so 5 joins 6 within node b.
    assert (report.outcome, report.moves[0].source) == (Outcome.MOVED, "b:1")
    assert report.moves[0].target == "b:2"
    report = last(World(begun=((1.7e9, "a", "b"),)), config)
    assert report.outcome is Outcome.CAPPED
    assert "moves from or to it have begun within an hour, 1 may" in report.reason


def test_outside_its_windows_nothing_begins() -> None:
    # The world's seconds are those of 2023-11-14 22:15 UTC.
    report = last(World(), replace(AUTO, windows=("* 2-4 * * * UTC",)))
    assert report.outcome is Outcome.PAUSED
    assert report.reason == "outside the change windows, the next opens 2023-11-15 02:00 UTC"
    assert last(World(), replace(AUTO, windows=("* 22 * * * UTC",))).outcome is Outcome.MOVED


def test_a_drained_host_is_left_by_all_that_may_move_whatever_the_mode() -> None:
    for mode, pause in (
        (Mode.AUTO, "release"),
        (Mode.OBSERVE, None),
        (Mode.ADVISE, None),
        (Mode.APPROVE, None),
    ):
        world = World(drained=("host-b",), pause=pause, pinned={6: "stateful"})
        controller = Controller(world, Config(mode=mode, capacity=Capacity(4.0)))
        controller.cycle()
        moved = []
        for _ in range(6):
            report = controller.cycle()
            for entry in world.written[-1].entries if report.outcome is Outcome.MOVED else ():
                world.places[entry.executor.start] = entry.target
                moved.append((entry.executor.start, entry.target))
                world.written.append(replace(world.written[-1], entries=()))
        # Those with most CPU first, each to where most is left; then nothing of it can move.
        assert sorted(task for task, _ in moved) == [2, 5, 7]
        assert {slot for _, slot in moved} <= {A1, A2}
        assert "host host-b drained" not in report.reason


def test_a_drain_does_not_begin_the_same_undone_move_for_ever() -> None:
    world = World(drained=("host-b",), pinned={6: "stateful"})
    controller = Controller(world, Config(mode=Mode.AUTO, capacity=Capacity(4.0)))
    controller.cycle()
    begun = []
    for _ in range(4):
        report = controller.cycle()
        for entry in world.written[-1].entries if report.outcome is Outcome.MOVED else ():
            begun.append(entry.executor.start)
            world.written.append(replace(world.written[-1], entries=()))
    assert sorted(begun) == [2, 5, 7]


def test_a_drain_does_not_wait_for_what_no_plan_may_take_away() -> None:
    first = last(World(drained=("host-b",))).moves[0].executor
    absent = frozenset({int(first.partition("-")[0])})
    report = last(World(drained=("host-b",), not_running=absent))
    assert report.outcome is Outcome.MOVED
    assert first not in {move.executor for move in report.moves}


def test_a_drain_passes_over_a_worker_that_cannot_follow_plans() -> None:
    assert last(World(drained=("host-b",))).moves[0].source == str(B1)
    report = last(World(drained=("host-b",), deaf=frozenset({B1})), replace(AUTO, max_moves=9))
    assert report.outcome is Outcome.MOVED
    assert {move.source for move in report.moves} == {str(B2)}


def test_a_drain_that_waits_hides_no_reason_why_executors_stay() -> None:
    report = last(World(drained=("host-b",), deaf=frozenset({B1, B2})))
    assert report.outcome is Outcome.STAND_BACK
    assert "the worker at b:1 cannot follow plans" in report.reason
    report = last(World(drained=("host-b",), not_running=frozenset({2, 5, 6, 7})))
    assert report.outcome is Outcome.MOVE_IN_FLIGHT
    assert "the worker at b:1 does not run executor 2-2" in report.reason
    # Where somebody has excluded a host, that is the reason that lasts.
    excluded = replace(AUTO, excluded=Excluded(hosts=frozenset({"host-b"})))
    report = last(World(deaf=frozenset({B1, B2})), excluded)
    assert (report.outcome, "node b is excluded" in report.reason) == (Outcome.EXCLUDED, True)


def test_a_drain_leaves_the_last_executor_to_a_worker_that_may_not_end() -> None:
    world = World(drained=("host-b",), speaks=1)
    report = last(world, replace(AUTO, max_moves=9))
    (plan,) = world.written
    left = Counter(entry.source for entry in plan.entries)
    assert len(plan.entries) == len(report.moves)
    assert left == {slot: len(world.here(slot)) - 1 for slot in (B1, B2)}


def test_a_drain_brings_nothing_to_an_excluded_host_or_to_a_worker_that_cannot_follow() -> None:
    excluded = replace(AUTO, excluded=Excluded(hosts=frozenset({"host-a"})))
    assert not last(World(drained=("host-b",)), excluded).moves
    moved = last(World(drained=("host-b",), deaf=frozenset({A1}))).moves
    assert {move.target for move in moved} == {str(A2)}


def test_only_a_freeze_holds_a_drain() -> None:
    hour = ((1.7e9, "a", "b"),)
    most = replace(AUTO, max_moves_hour=1, max_moves_host_hour=1, windows=("* 2-4 * * * UTC",))
    report = last(World(drained=("host-b",), begun=hour), most)
    assert (report.outcome, report.drains) == (Outcome.MOVED, True)
    frozen = Controls(freeze=Pause("year's end"))
    report = last(World(drained=("host-b",), controls=frozen))
    assert (report.outcome, report.reason) == (Outcome.PAUSED, "frozen: year's end")
    assert not last(World()).drains


def test_a_drain_opens_a_free_slot_only_where_no_worker_has_room() -> None:
    free = frozenset({Slot("a", 3), Slot("c", 1), Slot("c", 2), Slot("b", 3)})
    roomy = last(World(drained=("host-b",), free=free))
    assert {move.target for move in roomy.moves} <= {str(A1), str(A2)}
    config = replace(AUTO, limits=Limits(high_frac=0.15, low_frac=0.1))
    report = last(World(drained=("host-b",), free=free), config)
    assert report.outcome is Outcome.MOVED
    assert {move.target for move in report.moves} == {"c:1"}
    assert report.plan is not None
    assert {(e.phase, e.opens) for e in report.plan.entries} == {(Phase.OPEN, "host-c")}
    shut = replace(config, excluded=Excluded(hosts=frozenset({"host-c"})))
    assert last(World(drained=("host-b",), free=free), shut).outcome is Outcome.NO_LOW_WORKER
    of_before = last(World(drained=("host-b",), free=free, speaks=1), config)
    assert of_before.outcome is Outcome.NO_LOW_WORKER, "a slot is opened only where all know of it"


def test_drained_hosts_are_no_target() -> None:
    pinned = dict.fromkeys([1, 3, 4, 5, 6, 7], "stateful")
    assert last(World(pinned=pinned)).moves[0].target == "a:1"
    report = last(World(drained=("host-a",), pinned=pinned))
    assert report.outcome is Outcome.EXCLUDED
    assert "node a is drained" in report.reason


def test_a_drain_without_room_names_the_numbers() -> None:
    config = replace(AUTO, limits=Limits(high_frac=0.15, low_frac=0.1))
    report = last(World(drained=("host-b",)), config)
    assert report.outcome is Outcome.NO_LOW_WORKER
    assert "cores, and no worker or free slot elsewhere has more than" in report.reason


def test_a_run_of_moves_is_judged_by_what_comes_after_it() -> None:
    world = World()
    controller = Controller(world, Config(mode=Mode.OBSERVE))
    for _ in range(150):
        report = controller.cycle()
    assert report.felt.effects == ()
    assert cycle_record(report).effect is UNSET
    world.entries = (entry_of(2, A1, Phase.PREPARE),)
    moving = controller.cycle().felt.effect
    assert moving is not None and moving.sentence == "moves are under way"
    world.entries = ()
    for _ in range(220):
        report = controller.cycle()
    effect = report.felt.effect
    assert effect is not None and effect.moves == ("m1",)
    assert effect.sentence.startswith("no acks of the spouts are known; CPU for each input tuple ")
    assert cycle_record(report).effect == effect


def test_a_cycle_carries_at_most_five_things_from_step_to_step() -> None:
    (steps,) = [
        node
        for node in ast.parse(Path(cycle_module.__file__).read_text()).body
        if isinstance(node, ast.FunctionDef) and node.name == "_cycle"
    ]
    carried = {
        name.id
        for step in steps.body
        if isinstance(step, ast.Assign)
        for target in step.targets
        for name in ast.walk(target)
        if isinstance(name, ast.Name)
    }
    assert carried == {"memory", "felt", "cases", "holds", "budget"}

"""What waits without an end, or is not seen, keeps no worker from being relieved, nor fills one."""

from collections import Counter
from dataclasses import dataclass, field

import pytest

from controller.config import Config, Mode
from controller.core.controls import NOTHING_SET, Controls, Pause
from controller.core.decision import Outcome
from controller.core.figures import Verdict
from controller.core.guards import Guard
from controller.core.topology import TopologyView
from controller.cycle import CycleInput
from migration.model import (
    ExecutorLoad,
    Meters,
    Node,
    NodeAcks,
    NodeLoad,
    Plan,
    Publication,
    Slot,
    WorkerLoad,
    traffic_of,
)
from tests.messages import executor, node_acks, publication, replace, worker_ack
from tests.unit.controller.test_back import ADVISE, AUTO, CYCLE_S, World, moved

A, B, C, D = (Slot(name, 1) for name in "abcd")
B2 = Slot("b", 2)
OBSERVE = Config(mode=Mode.OBSERVE)


@dataclass
class Wide(World):
    """A world of more nodes, with clocks that may be set, and executors of any cost."""

    places: dict[int, Slot] = field(default_factory=lambda: {1: A, 2: B, 3: B, 4: C})
    capacity: dict[str, float] = field(default_factory=lambda: dict.fromkeys("abc", 200.0))
    slots: tuple[Slot, ...] = (A, B, C)
    us: dict[int, float] = field(default_factory=lambda: {1: 50, 2: 100, 3: 300, 4: 10})
    clock_s: dict[Slot, float] = field(default_factory=dict)
    bare: set[Slot] = field(default_factory=set)  # their JVMs have no hooks
    drained: tuple[str, ...] = ()
    controls: Controls = NOTHING_SET

    def seen(self) -> CycleInput:
        seen = super().seen()
        there = zip(self.slots, seen.loads, strict=True)
        loads = tuple(
            replace(load, time_ms=self._time_ms(slot))
            for slot, load in there
            if slot not in self.bare
        )
        return replace(seen, loads=loads, controls=self.controls, drained=self.drained)

    def _time_ms(self, slot: Slot) -> int:
        return round(1000 * (self.now_s + self.clock_s.get(slot, 0.0)))

    def _acks(self) -> list[NodeAcks]:
        return [
            replace(acks, workers=() if slot in self.bare else acks.workers)
            for slot, acks in zip(self.slots, super()._acks(), strict=True)
        ]

    def _load(self, slot: Slot) -> WorkerLoad:
        return replace(super()._load(slot), time_ms=self._time_ms(slot))


def first_move_s(world: Wide, since_s: float) -> float | None:
    """Give after how many seconds the first move began; None where none has."""
    ends = [one.time_s - 1.7e9 for one in world.reports if one.outcome is Outcome.MOVED]
    return next((at_s - since_s for at_s in ends if at_s > since_s), None)


@pytest.mark.parametrize("mode", [Mode.ADVISE, Mode.APPROVE])
def test_where_no_move_begins_a_stuck_drain_is_what_is_shown(mode: Mode) -> None:
    world = Wide(
        places={1: A, 2: B, 3: B, 4: C, 5: D},
        capacity={"a": 100.0, "b": 40.0, "c": 60.0, "d": 200.0},
        slots=(A, B, C, D),
        us={1: 50, 2: 100, 3: 290, 4: 10, 5: 1500},
        drained=("host-d",),
    )
    report = world.run(60, Config(mode=mode))
    assert (report.outcome, report.drains) == (Outcome.NO_LOW_WORKER, True)


@pytest.mark.parametrize("drained", [(), ("host-d",)])
def test_a_drain_for_which_there_is_no_room_lets_a_hot_worker_be_relieved(
    drained: tuple[str, ...],
) -> None:
    world = Wide(
        places={1: A, 2: B, 3: B, 4: C, 5: D},
        capacity={"a": 100.0, "b": 200.0, "c": 60.0, "d": 200.0},
        slots=(A, B, C, D),
        us={1: 50, 2: 100, 3: 290, 4: 10, 5: 1500},
    )
    world.run(400, OBSERVE)
    world.drained, world.capacity["b"] = drained, 40.0
    report = world.run(60)
    assert (moved(world) or [("", "")])[0][0] in {"2-2", "3-3"}
    if drained:
        assert report.outcome is Outcome.NO_LOW_WORKER and report.drains


def test_a_way_back_that_cannot_begin_lets_a_hot_worker_be_relieved() -> None:
    world = Wide(times={A: 1.8})
    world.run(200, ADVISE)
    for _ in range(400):
        effect = world.cycle().felt.effect
        if effect is not None and effect.verdict is Verdict.WORSE:
            break
    world.plan = replace(world.plan, entries=())  # the way back has not begun
    before = len(moved(world))
    world.bare = {B}
    report = world.run(60)
    assert report.outcome is Outcome.NO_WORKER_IN_SLOT and report.goes_back
    world.capacity["a"] = 28.0
    world.run(700)  # until its load counts beyond the noise of the run
    assert moved(world)[before:][:1] == [("2-2", "c:1")], world.reports[-1].reason


@pytest.mark.parametrize("set_back_s", [0.0, 1800.0])
def test_a_clock_that_is_set_back_holds_up_no_relief(set_back_s: float) -> None:
    world = Wide()
    world.run(400, OBSERVE)
    world.clock_s = {B: -set_back_s}
    world.run(60, OBSERVE)
    world.capacity["b"] = 40.0
    since_s = world.now_s
    world.run(60)
    assert (first_move_s(world, since_s) or 1e9) <= 30


@dataclass
class Neighboured(Wide):
    """A world in which another topology uses 1.6 of the 2 cores of b, and may be silent on d."""

    places: dict[int, Slot] = field(default_factory=lambda: {1: B, 2: C, 3: C, 4: A})
    capacity: dict[str, float] = field(default_factory=lambda: dict.fromkeys("abcd", 200.0))
    us: dict[int, float] = field(default_factory=lambda: {1: 50, 2: 500, 3: 600, 4: 900})
    is_silent: bool = False
    other_ns: int = 0
    spoken_s: float = 0.0
    busy_ns: Counter[str] = field(default_factory=Counter)
    counted_ns: Counter[str] = field(default_factory=Counter)

    def _publication(self) -> Publication:
        nodes = [
            Node(name, f"host-{name}", of, (1, 2), 2 if name == "b" else 1)
            for name, of in self.capacity.items()
        ]
        return publication(self.places, nodes, spouts=[1])

    def seen(self) -> CycleInput:
        seen = super().seen()
        (view,) = seen.topologies
        self.other_ns += int(1.6e9 * CYCLE_S)
        self.spoken_s = self.spoken_s if self.is_silent else self.now_s
        nodes = view.publication.nodes
        other = publication({11: B2, 12: D}, nodes, topology="hog-1", name="hog")
        hogs = [replace(worker_ack(at, [t]), topology="hog-1") for at, t in ((B2, 11), (D, 12))]
        acks = tuple(
            replace(
                one, workers=(*one.workers, *(h for h in hogs if h.slot.supervisor == one.node))
            )
            for one in (*view.acks, node_acks("d", [], "uuid"))
        )
        loads = [*map(self._of_machine, seen.loads)]
        loads.append(NodeLoad("d", 0, (self._hog(D, 12, self.spoken_s),)))
        views = (
            TopologyView(view.publication, view.plan, acks),
            TopologyView(other, Plan("uuid", 2, 6, "hog-1"), acks),
        )
        return replace(seen, topologies=views, loads=tuple(loads))

    def _of_machine(self, load: NodeLoad) -> NodeLoad:
        """Add what the whole machine uses, which is 2 cores at most."""
        own_ns = sum(one.process_cpu_ns for one in load.workers)
        hogs = (self._hog(B2, 11, self.now_s),) * (load.node == "b")
        own_ns += self.other_ns * bool(hogs)
        more_ns = own_ns - self.counted_ns[load.node]
        self.counted_ns[load.node] = own_ns
        self.busy_ns[load.node] += min(more_ns, int(2e9 * CYCLE_S))
        meters: Meters = {"machine_cpu_ns": self.busy_ns[load.node], "machine_cores": 2.0}
        return replace(
            load, time_ms=self._time_ms(A), workers=(*load.workers, *hogs), meters=meters
        )

    def _hog(self, slot: Slot, task: int, at_s: float) -> WorkerLoad:
        used_ns = self.other_ns if slot == B2 else round(1000 * at_s)
        executors = (ExecutorLoad(executor(task), "bolt", used_ns, 0, None),)
        return WorkerLoad(
            "hog-1", slot, "7-7", round(1000 * at_s), used_ns, executors, traffic_of(())
        )


@pytest.mark.parametrize("is_silent", [False, True])
def test_a_neighbour_with_a_silent_worker_is_still_seen_where_it_works(is_silent: bool) -> None:
    world = Neighboured()
    world.run(400, OBSERVE)
    world.is_silent = is_silent
    world.run(200)
    assert ("2-2", "b:1") not in moved(world) and ("3-3", "b:1") not in moved(world)


SLOW = Guard(limit=50.0, secs=30.0, signal="ack.p99.ms")


def test_a_guard_asks_for_a_pause_of_its_own_under_one_that_ends_by_itself() -> None:
    class Slowing(Wide):
        slow_from: int | None = None

        def _load(self, slot: Slot) -> WorkerLoad:
            made = super()._load(slot)
            if self.slow_from is None or not made.latency:
                return made
            return replace(
                made, latency=((22, self.slow_from), (40, self.acked // 20 - self.slow_from))
            )

    guarded = replace(AUTO, guards=(SLOW,))
    world = Slowing(times={B: 1.8})
    world.run(200, ADVISE)
    while world.cycle(guarded).outcome is not Outcome.MOVED:
        assert world.now_s < 1000
    world.run(10, guarded)
    world.slow_from = world.acked // 20
    world.run(10, guarded)
    world.controls = Controls(pauses={"": Pause("looking", 1.7e9 + world.now_s + 100)})
    asked = [report.felt.pause for report in (world.cycle(guarded) for _ in range(80))]
    assert any("ack.p99.ms" in text for text in asked), world.reports[-1].reason
    world.controls = Controls(pauses={"wc": Pause(next(filter(None, asked)))})
    world.run(10, guarded)
    assert not world.reports[-1].felt.pause, "the pause is there"

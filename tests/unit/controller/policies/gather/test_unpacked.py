"""What had to leave where it was gathered stays for a day, and is not held on a full worker."""

from dataclasses import replace

import numpy as np
import pytest

from controller.core.cluster import Cluster, LoadSnapshot, Traffic
from controller.core.decision import Decision, Move, Outcome, Veto
from controller.core.limits import Limits
from controller.core.moved import applied
from controller.core.policy import Case, Stateless
from controller.journal.record import decode, encode
from controller.policies.gather.goal import Target
from controller.policies.gather.policy import Gather, InVain, Remembered
from controller.policies.gather.target import TargetMemory
from controller.policies.gather.unpacked import STAYS_S, Unpacked
from controller.policies.options import TargetOptions
from controller.policies.otd import otd

LIMITS = Limits(high_frac=0.8)
CLUSTER = replace(
    Cluster.build("ab", [("a:1", "a", 1.0), ("b:1", "b", 1.0)]), node_cores=np.array([1.0, 1.0])
)


def snapshot(place: list[int], demand: list[float], time_s: float = 0.0) -> LoadSnapshot:
    """Let the first executor talk to each other one."""
    count = len(place)
    others = np.arange(1, count)
    return LoadSnapshot(
        topology="t",
        time_s=time_s,
        components=(),
        edges=(),
        executors=tuple(f"{e}-{e}" for e in range(count)),
        component_of=("c",) * count,
        place=np.array(place),
        cpu_cores=np.array(demand),
        queue=np.zeros(count),
        pinned=(None,) * count,
        traffic=Traffic.build(np.zeros(count - 1, np.int64), others, np.full(count - 1, 1000.0)),
        cpu_var=np.zeros(count),
    )


def moves(*rows: tuple[str, str, str]) -> Decision:
    return Decision(Outcome.WOULD_MOVE, "", tuple(Move(*row, 0.0) for row in rows))


def test_what_was_gathered_and_then_relieved_stays_for_a_day() -> None:
    calm, full = snapshot([0, 1, 1], [0.2, 0.2, 0.2]), snapshot([0, 0, 1], [0.5, 0.4, 0.2], 60.0)
    found = Unpacked().after(moves(("1-1", "b:1", "a:1")), CLUSTER, calm, LIMITS)
    assert found.gathered == {"1-1": "a:1"}
    found = found.after(moves(("1-1", "a:1", "b:1")), CLUSTER, full, LIMITS)
    assert found == Unpacked({}, {"1-1": 60.0})
    later = snapshot([0, 1, 1], [0.1, 0.1, 0.1], 60.0 + STAYS_S - 1)
    assert found.stay(CLUSTER, later, LIMITS).is_movable.tolist() == [True, False, True]
    over = snapshot([0, 1, 1], [0.1, 0.1, 0.1], 60.0 + STAYS_S)
    assert found.stay(CLUSTER, over, LIMITS).is_movable.all()
    # A full worker may be relieved of it again.
    hot = snapshot([0, 1, 1], [0.1, 0.6, 0.3], 120.0)
    assert found.stay(CLUSTER, hot, LIMITS).is_movable.all()


def test_what_storm_has_put_there_may_be_gathered_later() -> None:
    full = snapshot([0, 0, 1], [0.5, 0.4, 0.2])
    found = Unpacked().after(moves(("1-1", "a:1", "b:1")), CLUSTER, full, LIMITS)
    assert found == Unpacked()


def test_what_would_have_been_gathered_is_not_taken_for_gathered() -> None:
    calm, full = snapshot([0, 1, 1], [0.2, 0.2, 0.2]), snapshot([0, 1, 1], [0.1, 0.5, 0.4], 60.0)
    found = Unpacked().after(moves(("1-1", "b:1", "a:1")), CLUSTER, calm, LIMITS)
    found = found.after(moves(("1-1", "b:1", "a:1")), CLUSTER, full, LIMITS)
    assert not found.left_s


def test_what_left_for_room_stays_until_its_worker_is_too_full() -> None:
    uneven = snapshot([0, 0, 1], [0.3, 0.35, 0.1], 60.0)
    left = replace(moves(("1-1", "a:1", "b:1")), for_room=True)
    asked = Unpacked({"1-1": "a:1"}).after(left, CLUSTER, uneven, LIMITS)
    assert asked.seen(CLUSTER, uneven) == asked == Unpacked({"1-1": "a:1"}, {}, ("1-1", "a:1"))
    even = snapshot([0, 1, 1], [0.3, 0.3, 0.1], 120.0)
    found = asked.seen(CLUSTER, even)
    assert found == Unpacked({}, {"1-1": 120.0})
    assert found.stay(CLUSTER, even, LIMITS).is_movable.tolist() == [True, False, True]
    full = snapshot([0, 1, 1], [0.2, 0.5, 0.35], 120.0)
    assert found.stay(CLUSTER, full, LIMITS).is_movable.all()


@pytest.mark.parametrize("cold_s", [0.0, 60.0])
def test_a_relief_that_does_not_begin_is_not_noted_and_drops_no_target(cold_s: float) -> None:
    three = [("a:1", "a", 1.0), ("b:1", "b", 1.0), ("c:1", "c", 1.0)]
    cluster = replace(Cluster.build("abc", three), node_cores=np.ones(3))
    full = snapshot([0, 0, 1, 2], [0.5, 0.4, 0.2, 0.1], 60.0)
    apart = Traffic.build(np.array([2]), np.array([3]), np.array([1000.0]))
    waits = Veto(Outcome.WATCHING, "a test")
    way = Target(("2-2",), ("c:1",), 1000.0)
    before = Remembered(last=TargetMemory(way), unpacked=Unpacked({"0-0": "a:1", "1-1": "a:1"}))
    case = Case(cluster, replace(full, traffic=apart), LIMITS, waits, cold_s)
    after = Gather(TargetOptions()).decide(case, before).memory
    assert after is not None and after.last is not None
    assert len(after.unpacked.left_s) == (0 if cold_s else 1)
    assert after.last.target == (way if cold_s else None)


def test_advice_that_nobody_follows_stays_the_same() -> None:
    cluster, gather = replace(CLUSTER, link_bytes_s=np.full((2, 2), 1e9)), Gather(TargetOptions())
    memory: Remembered | None = None
    advised = set()
    for cycle in range(5):
        seen = snapshot([0, 0, 0, 1], [0.25, 0.2, 0.2, 0.1], 60.0 * cycle)
        seen = replace(seen, traffic=replace(seen.traffic, size_bytes=np.full(3, 100.0)))
        decided = gather.decide(Case(cluster, seen, LIMITS), memory)
        memory = decided.memory
        assert decided.decision.for_room
        advised.add(decided.decision.moves)
    assert len(advised) == 1


def test_two_loads_in_turn_move_nothing_back_and_forth() -> None:
    cluster = replace(CLUSTER, link_bytes_s=np.full((2, 2), 1e9))
    gather, memory, place = Gather(TargetOptions()), None, [0, 0, 0, 1]
    count = 0
    for half_hour in range(48):
        demand = [0.15, 0.05, 0.2, 0.45] if half_hour % 2 else [0.25, 0.2, 0.2, 0.1]
        for cycle in range(4):
            seen = snapshot(place, demand, 1800.0 * half_hour + 60.0 * cycle)
            seen = replace(seen, traffic=replace(seen.traffic, size_bytes=np.full(3, 100.0)))
            decided = gather.decide(Case(cluster, seen, LIMITS), memory)
            memory = decided.memory
            if decided.question is not None:
                memory = gather.heard(memory, decided.question.answer())
            place = applied(decided.decision.moves, cluster, seen).place.tolist()
            count += len(decided.decision.moves)
    assert count <= 8  # without what stays for a day it is one in each half hour


def test_the_decision_says_what_stays_and_until_then_nothing_is_gathered() -> None:
    gather = Gather(TargetOptions())
    own = replace(CLUSTER, node_cores=None)  # else together they would leave less room
    asked = snapshot([0, 1], [0.1, 0.1], 3600.0)
    assert gather.decide(Case(own, asked, LIMITS), Remembered()).decision.moves
    held = Remembered(unpacked=Unpacked({}, {"0-0": 0.0, "1-1": 0.0}))
    found = gather.decide(Case(own, asked, LIMITS), held)
    assert not found.decision.moves
    assert found.decision.reason.endswith(
        "0-0, 1-1 stay for a day: they had to leave a worker that had too little room"
    )
    later = snapshot([0, 1], [0.1, 0.1], STAYS_S)
    assert gather.decide(Case(own, later, LIMITS), held).decision.moves


def test_a_restart_keeps_nothing_else() -> None:
    gather = Gather(TargetOptions())
    memory = Remembered(in_vain=InVain(7, 1.0), unpacked=Unpacked({"2-2": "a:1"}, {"1-1": 60.0}))
    kept = gather.lasting(memory)
    assert kept == Remembered(unpacked=memory.unpacked)
    assert decode(Remembered, encode(kept)) == kept
    assert Stateless(otd).lasting(None) is None

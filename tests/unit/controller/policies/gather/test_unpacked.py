"""What had to leave where it was gathered stays for a day, and is not held on a full worker."""

from dataclasses import replace

import numpy as np

from controller.core.cluster import Cluster, LoadSnapshot, Traffic
from controller.core.decision import Decision, Move, Outcome
from controller.core.limits import Limits
from controller.core.policy import Case, Stateless
from controller.journal.record import decode, encode
from controller.policies.gather.policy import Gather, InVain, Remembered
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


def test_a_relief_that_does_not_begin_is_not_noted() -> None:
    full = snapshot([0, 0, 1], [0.5, 0.4, 0.2], 60.0)
    before = Unpacked({"1-1": "a:1"})
    relief = moves(("1-1", "a:1", "b:1"))
    assert before.after(relief, CLUSTER, full, LIMITS, waits=True, holds_reliefs=True) == before
    assert before.after(relief, CLUSTER, full, LIMITS, waits=True).left_s == {"1-1": 60.0}


def test_the_decision_says_what_stays_and_until_then_nothing_is_gathered() -> None:
    gather = Gather(TargetOptions())
    own = replace(CLUSTER, node_cores=None)  # else together they would leave less room
    asked = snapshot([0, 1], [0.1, 0.1], 3600.0)
    assert gather.decide(Case(own, asked, LIMITS), Remembered()).decision.moves
    held = Remembered(unpacked=Unpacked({}, {"0-0": 0.0, "1-1": 0.0}))
    found = gather.decide(Case(own, asked, LIMITS), held)
    assert not found.decision.moves
    assert found.decision.reason.endswith(
        "0-0, 1-1 stay for a day: gathered before, they had to leave a worker that was too full"
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

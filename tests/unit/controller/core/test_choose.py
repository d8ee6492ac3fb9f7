"""An exchange begins whole or not at all; topologies see where the others go."""

from collections.abc import Collection
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

import numpy as np

from controller.core.case import Budget, TopologyCase
from controller.core.choose import choose_each, decide
from controller.core.cluster import Cluster, LoadSnapshot
from controller.core.decision import Decision, Move, Outcome, Veto, Vetoes
from controller.core.fit import Fit
from controller.core.limits import Limits
from controller.core.picture import Picture
from controller.core.policy import Case, Decided, Stateless
from controller.policies.greedy import greedy
from tests.snapshots import cluster
from tests.unit.controller.policies.placement_worlds import topology

CLUSTER = cluster((1, 1))
A, B = CLUSTER.workers
SNAPSHOT = topology({"c": 4}).moved(1, 1).moved(3, 1)
RING = Decision(
    Outcome.WOULD_MOVE,
    "an exchange",
    (Move("1-1", A, B, 1.0), Move("2-2", B, A, 1.0)),
    is_exchange=True,
)


def ring(_cluster: Cluster, snapshot: LoadSnapshot, _limits: Limits) -> Decision:
    """Want the exchange while all of it may move."""
    wanted = [snapshot.executors.index(move.executor) for move in RING.moves]
    return RING if snapshot.is_movable[wanted].all() else Decision(Outcome.NOTHING_TO_GAIN, "none")


def test_a_ring_is_chosen_whole_whatever_the_cap() -> None:
    for most in (1, 2, 3):
        case = Case(CLUSTER, SNAPSHOT, Limits(max_moves=most))
        chosen = decide(Stateless(ring), case, Vetoes())
        assert chosen.decision.cut_to(most) == RING


def test_no_part_of_a_ring_begins_where_one_of_it_may_not() -> None:
    vetoes = Vetoes({"2-2": Veto(Outcome.EXCLUDED, "excluded")})
    case = Case(CLUSTER, SNAPSHOT, Limits(max_moves=2))
    chosen = decide(Stateless(ring), case, vetoes).decision
    assert chosen.moves == ()
    assert chosen.outcome is Outcome.EXCLUDED


def test_a_ring_longer_than_the_cap_waits_until_nothing_is_under_way() -> None:
    cases = [
        TopologyCase(cast(Any, SimpleNamespace(id=name)), _picture(), vetoes=Vetoes())
        for name in ("one", "two")
    ]

    def outcomes(free_moves: int, *, may_exceed: bool) -> list[tuple[Outcome, int]]:
        found = choose_each(
            Stateless(ring),
            cases,
            {},
            Limits(),
            Budget(free_moves, may_exceed),
            first=0,
            begins={"one", "two"},
            cycle_s=5.0,
            search_left_s={},
        )
        return [(one.decision.outcome, len(one.decision.moves)) for one in found]

    begins, waits = (Outcome.WOULD_MOVE, 2), (Outcome.MOVE_IN_FLIGHT, 0)
    assert outcomes(1, may_exceed=True) == [begins, waits]
    assert outcomes(1, may_exceed=False) == [waits, waits]
    assert outcomes(3, may_exceed=False) == [begins, waits]
    assert outcomes(4, may_exceed=False) == [begins, begins]


def test_two_topologies_do_not_both_take_room_that_there_is_once() -> None:
    """Both are on a node that is too full, and the other node has room for one executor more."""
    shared = replace(
        cluster((1, 1)),
        node_cores=np.array([1.0, 1.0]),
        other_cores=np.array([0.7, 0.5]),
    )
    load = topology({"c": 2})
    snapshot = load.at(0.0, np.array([0, 0]), np.array([0.2, 0.2]), load.traffic)

    def moves(
        begins: Collection[str], back: Decision | None = None, drain: Decision | None = None
    ) -> list[int]:
        cases = [
            TopologyCase(
                cast(Any, SimpleNamespace(id=name)),
                _picture(shared, snapshot),
                vetoes=Vetoes(),
            )
            for name in ("one", "two")
        ]
        cases[0] = replace(cases[0], back=back, drain=drain)
        chosen = choose_each(
            Stateless(greedy),
            cases,
            {},
            Limits(high_frac=0.85, max_moves=1),
            Budget(9, may_exceed=True),
            first=0,
            begins=begins,
            cycle_s=5.0,
            search_left_s={},
        )
        return [len(case.decision.moves) for case in chosen]

    assert moves({"one", "two"}) == [1, 0]
    # Advice takes nothing from another.
    assert moves(()) == [1, 1]
    source, target = shared.workers
    goes = Decision(Outcome.WOULD_MOVE, "", (Move(snapshot.executors[0], source, target, 0.0),))
    assert moves({"one", "two"}, back=goes) == moves({"two"}, drain=goes) == [1, 0]
    assert moves({"two"}, back=goes) == [1, 1]


def _picture(places: Cluster = CLUSTER, load: LoadSnapshot = SNAPSHOT) -> Picture:
    layout = type("Laid", (), {"cluster": places})()
    return Picture(None, layout, load, Fit.of(places, load, Limits()))  # type: ignore[arg-type]


def test_while_code_is_compiled_a_cpu_is_relieved_only_where_work_piles_up() -> None:
    waits = Veto(Outcome.WATCHING, "it is measured")
    cold = Case(CLUSTER, SNAPSHOT, Limits(max_moves=2), waits, cold_s=60.0)

    def held(case: Case, **changes: Any) -> str:
        decision = replace(RING, **changes)
        return decide(Stateless(lambda *_: decision), case, Vetoes()).decision.reason

    assert held(cold) == "it is measured, but an exchange"
    why = "no queue grows, and for 60 s more code is compiled, which takes CPU"
    assert held(cold, relieves=True) == f"{why}, but an exchange"
    assert held(replace(cold, cold_s=0.0), relieves=True) == "an exchange"
    assert held(replace(cold, waits=None), relieves=True) == "an exchange"
    late = replace(SNAPSHOT, wanted_times=np.array([1.0, 2.0, 1.0, 1.0]))
    assert held(replace(cold, snapshot=late), relieves=True) == "an exchange"
    assert held(replace(cold, snapshot=late)) == "it is measured, but an exchange"


def test_a_decision_without_a_move_names_the_search_that_may_change_it() -> None:
    class Asking(Stateless):
        def decide(self, case: Case, memory: None) -> Decided[None]:
            return replace(super().decide(case, memory), awaits="a search has not ended")

    case = Case(CLUSTER, SNAPSHOT, Limits(max_moves=2))
    assert decide(Asking(ring), case, Vetoes()).decision == RING
    vetoes = Vetoes({"2-2": Veto(Outcome.EXCLUDED, "excluded")})
    chosen = decide(Asking(ring), case, vetoes).decision
    assert chosen.reason == "excluded, but an exchange; but a search has not ended"


def test_an_executor_that_would_move_if_it_did_not_rest_is_named() -> None:
    def first(_cluster: Cluster, snapshot: LoadSnapshot, _limits: Limits) -> Decision:
        free = [e for e, name in enumerate(snapshot.executors) if snapshot.is_movable[e]]
        moves = tuple(Move(snapshot.executors[e], A, B, 1.0) for e in free[:1])
        return Decision(Outcome.WOULD_MOVE, "a gain", moves) if moves else none

    none = Decision(Outcome.NOTHING_TO_GAIN, "none")
    case = Case(CLUSTER, SNAPSHOT, Limits())
    one, *_ = SNAPSHOT.executors
    rests = Vetoes({one: Veto(Outcome.COOLDOWN, "moved a moment ago")})
    chosen = decide(Stateless(first), case, rests).decision
    assert chosen.reason == f"a gain; {one} rests, else it might go to {B}"
    assert one not in [move.executor for move in chosen.moves]
    excluded = Vetoes({one: Veto(Outcome.EXCLUDED, "excluded")})
    assert decide(Stateless(first), case, excluded).decision.reason == "a gain"
    plain = replace(case, limits=Limits(explain=False))
    assert decide(Stateless(first), plain, rests).decision.reason == "a gain"

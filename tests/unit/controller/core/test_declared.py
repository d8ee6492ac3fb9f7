"""Declared memory limits placements where Storm's scheduler counts it."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from msgspec import structs

from controller.core.capacity import Capacity
from controller.core.case import TopologyCase
from controller.core.cluster import Cluster, LoadSnapshot
from controller.core.decision import Decision, Move, Outcome
from controller.core.declared import Declared
from controller.core.fit import Fit
from controller.core.layout import Layout, MadeOf
from controller.core.limits import Limits
from controller.core.loops import moves as loops
from controller.core.plan import next_plan, plan_each
from controller.core.policy import Decided
from controller.core.topology import TopologyView
from controller.core.view import View
from controller.policies.gather.problem import Problem
from controller.policies.gather.route import Route, next_steps
from controller.policies.gather.search import renamed, search
from controller.policies.greedy import greedy
from controller.policies.options import TargetOptions
from migration.model import Base, Component, Entry, ExecutorId, Node, Phase, Plan, Slot
from tests.messages import node_acks, publication, worker_ack
from tests.snapshots import cluster, snapshot

A, B, C = Slot("a", 1), Slot("b", 1), Slot("c", 1)
PLACES = {1: A, 2: A, 3: B, 4: B}
OPTIONS = TargetOptions()


def view(
    *entries: Entry,
    topology: str = "wc-1",
    memory_mb: float = 128.0,
    has_mb: float = 512.0,
    places: dict[int, Slot] = PLACES,
) -> TopologyView:
    """Publish executors that declare as much each, on nodes that have as much each."""
    nodes = [Node(n, f"host-{n}", 200.0, (1,), 1, memory_mb=has_mb) for n in "abc"]
    components = (Component("bolt", "bolt", len(places), memory_mb),)
    published = publication(places, nodes, topology=topology, components=components)
    acks = tuple(
        node_acks(
            slot.supervisor,
            [worker_ack(slot, [t for t, at in places.items() if at == slot], topology=topology)],
            "c",
        )
        for slot in sorted({*places.values()})
    )
    return TopologyView(published, Plan("c", 1, 1, topology, entries), acks)


def move(task: int, source: Slot, target: Slot, phase: Phase = Phase.PREPARE) -> Entry:
    return Entry(f"m{task}", ExecutorId(task, task), source, target, phase, Base(source, 50))


def test_what_all_topologies_declare_counts() -> None:
    both = [view(), view(topology="wc-2", memory_mb=64.0)]
    declared = Declared.of(both)
    assert declared.has_mb == {"a": 512.0, "b": 512.0, "c": 512.0}
    assert declared.held_mb == {"a": 384.0, "b": 384.0}


def test_a_move_under_way_counts_at_both_ends_until_it_can_no_longer_go_back() -> None:
    def held_mb(entry: Entry) -> dict[str, float]:
        return dict(Declared.of([view(entry)]).held_mb)

    assert held_mb(move(1, A, B)) == {"a": 256.0, "b": 384.0}
    assert held_mb(move(1, A, B, Phase.STOP)) == {"a": 256.0, "b": 384.0}
    nothing = {"a": 256.0, "b": 256.0}
    assert held_mb(move(1, A, B, Phase.UNDO)) == nothing
    assert held_mb(structs.replace(move(1, A, B), void="it died")) == nothing
    # Storm has it at the target.
    assert held_mb(replace_base(move(3, A, B, Phase.SETTLE))) == nothing
    assert held_mb(move(9, A, B)) == nothing


def replace_base(entry: Entry) -> Entry:
    return structs.replace(entry, base=Base(A, 1))


def test_nothing_is_limited_where_no_scheduler_counts_memory() -> None:
    stock = view()
    nodes = tuple(
        Node(one.id, one.host, one.cpu_capacity, one.slots, one.slots_in_use)
        for one in stock.publication.nodes
    )
    unlimited = replace(stock, publication=structs.replace(stock.publication, nodes=nodes))
    declared = Declared.of([unlimited])
    assert declared == Declared() == Declared.of([])
    assert declared.why_not(unlimited, [move(1, A, B)]) is None


def begun(decision: Decision, declared: Declared, of: TopologyView) -> tuple[int, Decision]:
    plan, found = next_plan(of, decision, 1, declared=declared)
    return (0 if plan is None else len(plan.entries)), found


def wish(*moves: tuple[str, Slot, Slot], is_exchange: bool = False) -> Decision:
    made = tuple(Move(e, str(one), str(other), 0.0) for e, one, other in moves)
    return Decision(Outcome.WOULD_MOVE, "", made, is_exchange=is_exchange)


def test_a_move_that_overfills_a_node_is_refused_with_the_numbers() -> None:
    shown = view(has_mb=300.0)
    count, found = begun(wish(("1-1", A, B)), Declared.of([shown]), shown)
    assert count == 0
    assert found.reason == (
        "host host-b has 300 MB of memory for Storm's scheduler, 256 MB are declared there, and "
        "1-1 brings 128 MB"
    )
    roomy = view(has_mb=384.0)
    assert begun(wish(("1-1", A, B)), Declared.of([roomy]), roomy)[0] == 1
    # Of several the first fits.
    two = wish(("1-1", A, B), ("2-2", A, B))
    count, found = begun(two, Declared.of([roomy]), roomy)
    assert (count, [one.executor for one in found.moves]) == (1, ["1-1"])


def test_what_changes_places_needs_no_room() -> None:
    full = view(has_mb=200.0)
    change = ("1-1", A, B), ("3-3", B, A)
    assert begun(wish(*change, is_exchange=True), Declared.of([full]), full)[0] == 2
    more = (*change, ("2-2", A, B))
    count, found = begun(wish(*more, is_exchange=True), Declared.of([full]), full)
    assert count == 0
    assert found.reason.endswith("256 MB are declared there, and the moves bring 128 MB")


def test_what_one_topology_brings_is_no_room_for_the_next() -> None:
    first, second = view(has_mb=800.0), view(has_mb=800.0, topology="wc-2", memory_mb=256.0)
    declared = Declared.of([first, second])
    assert begun(wish(("1-1", A, B)), declared, second)[0] == 0
    less = view(has_mb=800.0, topology="wc-2", memory_mb=100.0)
    declared = Declared.of([first, less])
    assert declared.held_mb["b"] == 456.0
    assert begun(wish(("1-1", A, B)), declared, less)[0] == 1
    two, one = wish(("1-1", A, B), ("2-2", A, B)), wish(("1-1", A, B))
    cases = [
        TopologyCase(of, decided=Decided(wanted, None))
        for of, wanted in ((first, two), (less, one))
    ]
    after, refused = plan_each(cases, 1, ())
    assert after.plan is not None
    assert len(after.plan.entries) == 2
    assert refused.plan is None
    assert refused.decision.reason.startswith("host host-b has 800 MB")
    assert "712 MB are declared there" in refused.decision.reason


def test_a_layout_has_what_others_declare() -> None:
    one, other = view(move(1, A, B)), view(topology="wc-2", memory_mb=64.0)
    made_of = MadeOf(one.publication, one.plan, {}, Capacity(), {})
    layout = Layout.of(made_of).beside(Declared.of([one, other]))
    assert layout.memory_mb is not None
    assert layout.memory_mb.tolist() == [128.0] * 4
    assert layout.cluster.memory_mb is not None
    assert layout.cluster.memory_mb.tolist() == [512.0] * 3
    # 1-1 counts at its target, and where it may go back to.
    assert layout.cluster.other_memory_mb is not None
    assert layout.cluster.other_memory_mb.tolist() == [128.0 + 128.0, 128.0, 0.0]


def world(
    has_mb: Sequence[float],
    place: Sequence[int] = (0, 0, 1, 1),
    others_mb: Sequence[float] | None = None,
    each_mb: float | Sequence[float] = 128.0,
) -> tuple[Cluster, LoadSnapshot]:
    """Let two pairs of executors talk across nodes that have CPU for all of them."""
    places = replace(
        cluster((2,) + (1,) * (len(has_mb) - 1)),
        node_cores=np.full(len(has_mb), 8.0),
        memory_mb=np.array(has_mb),
        other_memory_mb=None if others_mb is None else np.array(others_mb),
    )
    workers = [0 if node == 0 else node + 1 for node in place]
    load = snapshot(["c"] * 4, workers, 0.1, [(0, 2, 100.0), (1, 3, 100.0)])
    return places, replace(load, memory_mb=np.full(4, each_mb))


@pytest.mark.parametrize("is_shared", [True, False])
def test_an_executor_fits_where_its_node_has_the_memory(is_shared: bool) -> None:
    places, load = world([1000.0, 300.0])
    if not is_shared:
        places = replace(places, node_cores=None)
    fit = Fit.of(places, load)
    assert fit.why_not(2, 0) is None
    assert fit.why_not(0, 2) == (
        "it does not fit: node n1 has 300 MB of memory for Storm's scheduler, 256 MB are declared "
        "there, and it brings 128 MB"
    )
    assert not loops.may_move(View.of(places, load, Limits()).world, 0, 2)
    assert fit.fits(np.array([0, 0, 2]), np.array([1, 2, 0])).tolist() == [True, False, True]
    after = fit.moved(0, 2)
    assert after.overfilled(fit) == ("node n1 would hold 384 MB of declared memory, and has 300 MB")
    assert fit.overfilled(after) is None
    together = np.array([0, 2]), np.array([2, 0])
    assert fit.fits_together(*together, fit.limit).all()
    assert not fit.fits_together(np.array([0]), np.array([2]), fit.limit)[2]


def test_a_node_that_holds_too_much_may_lose_some_and_get_none() -> None:
    places, load = world([200.0, 300.0], others_mb=[0.0, 128.0])
    fit = Fit.of(places, load)
    assert fit.why_not(0, 1) is None, "within its node"
    assert fit.why_not(2, 0) is not None
    assert "384 MB are declared there" in str(fit.why_not(0, 2))
    assert not fit.overfills_memory(load.place)
    # What declares nothing may come.
    free = replace(load, memory_mb=np.array([128.0, 128.0, 0.0, 256.0]))
    assert Fit.of(places, free).why_not(2, 0) is None


def test_a_decision_for_traffic_leaves_a_full_node_alone() -> None:
    for has_mb, moves in (([800.0, 800.0], 1), ([300.0, 800.0], 1), ([300.0, 300.0], 0)):
        places, load = world(has_mb)
        decision = greedy(replace(places, node_cores=None), load, Limits(max_moves=1))
        assert len(decision.moves) == moves
        if has_mb[0] < has_mb[1]:
            assert decision.moves[0].target == "n1:6700"
        if not moves:
            assert decision.reason == (
                "each move that gains more than the threshold fills something too much: the best, "
                "0-0 to n1:6700 with 100 weighted t/s, fills declared memory too much"
            )


def test_two_that_belong_together_go_where_both_have_the_memory() -> None:
    """Neither gains alone: each would leave as much behind."""
    talk = [(0, 1, 100.0), (0, 2, 90.0), (1, 3, 90.0), (2, 0, 9.0)]

    def decided(has_mb: float) -> Decision:
        places, load = world([600.0, has_mb])
        load = replace(
            snapshot(["c"] * 4, [0, 0, 2, 2], 0.1, talk, pinned=[None, None, "s", "s"]),
            memory_mb=load.memory_mb,
        )
        places = replace(places, node_cores=None)
        return greedy(places, load, Limits(gain_frac=0.0, max_moves=1, weight_worker=0.0))

    assert [move.target for move in decided(512.0).moves] == ["n1:6700"]
    assert decided(384.0).moves == ()


def test_a_search_finds_what_nodes_hold() -> None:
    """All together would be too much; a pair on each node is not."""
    problem = Problem.of(*world([300.0, 300.0]), Limits(), OPTIONS)
    found = search(problem, 1.0)
    assert found is not None
    assert problem.cost_tps(found) == 0
    assert np.bincount(problem.node_of[found], minlength=2).tolist() == [2, 2]
    all_on_one = np.zeros(4, np.int64)
    assert problem.reserve.refuses(all_on_one)
    assert not problem.reserve.refuses(found)
    places, load = world([300.0, 300.0])
    apart = Problem.of(replace(places, node_cores=None), load, Limits(), OPTIONS)
    assert apart.reserve.refuses(all_on_one)


def test_annealing_counts_memory() -> None:
    """Where all talk to all, the cheapest of all placements has them on one node."""
    places = replace(cluster((1, 1, 1)), memory_mb=np.array([512.0, 384.0, 384.0]))
    talk = [(e, other, 10.0) for e in range(6) for other in range(e)]
    load = snapshot(["c"] * 6, [0, 1, 2] * 2, 0.01, talk)
    problem = Problem.of(places, replace(load, memory_mb=np.full(6, 128.0)), Limits(), OPTIONS)
    found = search(problem, 1.0)
    assert found is not None
    assert np.bincount(found, minlength=3).tolist() == [4, 2, 0]


def test_nodes_do_not_exchange_what_one_of_them_cannot_hold() -> None:
    for has_mb, saves_moves in ((600.0, True), (300.0, False)):
        places = replace(cluster((1, 1)), memory_mb=np.array([600.0, has_mb]))
        load = snapshot(["c"] * 4, [1, 1, 0, 0], 0.01, [(0, 1, 9.0), (1, 2, 9.0), (2, 3, 1.0)])
        problem = Problem.of(places, replace(load, memory_mb=np.full(4, 128.0)), Limits(), OPTIONS)
        found = renamed(problem, np.array([0, 0, 0, 1]))
        assert found.tolist() == ([1, 1, 1, 0] if saves_moves else [0, 0, 0, 1])


def test_on_full_nodes_executors_of_one_size_change_places() -> None:
    problem = Problem.of(*world([256.0, 256.0]), Limits(), OPTIONS)
    way = Route(np.array([0, 3]), np.array([2, 0]))
    assert next_steps(problem, problem.fit, way) == ((0, 2), (3, 0))
    # One of 256 MB needs both of 128.
    sizes = world([256.0, 256.0], place=(0, 0, 0, 1), each_mb=[64.0, 128.0, 64.0, 256.0])
    problem = Problem.of(*sizes, Limits(), OPTIONS)
    way = Route(np.array([3, 0, 1, 2]), np.array([0, 2, 2, 2]))
    steps = next_steps(problem, problem.fit, way)
    assert sorted(steps) == [(0, 2), (1, 2), (2, 2), (3, 0)]
    assert next_steps(problem, problem.fit, way.only(way.executors != 1)) == ()
    # Not all that wait fit, but two of them.
    problem = Problem.of(*world([256.0, 256.0]), Limits(), OPTIONS)
    way = Route(np.array([0, 1, 2]), np.array([2, 2, 0]))
    assert next_steps(problem, problem.fit, way) == ((0, 2), (2, 0))

"""What must hold for every cluster, load and placement: 001, 000 and the oracles."""

from dataclasses import replace
from functools import partial

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.strategies import DrawFn, composite

from controller.core.cluster import Cluster, Ints, LoadSnapshot
from controller.core.decision import Decision, Outcome
from controller.core.limits import Limits
from controller.policies.greedy import greedy
from controller.policies.heterogeneity import heterogeneity
from controller.policies.model_driven.mapping import Allocation, Lacking, Need
from controller.policies.model_driven.mapping import rsm as map_rsm
from controller.policies.model_driven.mapping import sam as map_sam
from controller.policies.model_driven.policies import dsm, rsm, sam
from controller.policies.otd import otd
from controller.policies.profiles import Performance, Profile, Profiles
from migration.model import Component
from tests.papers.acquisition import empty_slots, threads_of
from tests.papers.bound import between_nodes
from tests.papers.problem import PlacementProblem, cheapest
from tests.snapshots import snapshot

World = tuple[Cluster, LoadSnapshot]
KINDS = ("spout", "bolt", "bolt", "system")


@composite
def worlds(draw: DrawFn, most: int = 6) -> World:
    """Draw a tiny cluster and a graph of up to four components, one of them a system component."""
    node_of = sorted(draw(st.lists(st.integers(0, 2), min_size=1, max_size=4)))
    workers = [(f"n{n}:{6700 + i}", f"n{n}", 1.0) for i, n in enumerate(node_of)]
    cluster = Cluster.build([f"n{n}" for n in range(3)], workers)
    closed = draw(st.lists(st.sampled_from([None, None, None, "no hooks"]), min_size=4, max_size=4))
    cluster = replace(cluster, closed=tuple(closed[: len(workers)]))
    component_of = draw(st.lists(st.sampled_from("abcd"), min_size=1, max_size=most))
    count = len(component_of)
    index, name = st.integers(0, count - 1), st.sampled_from("abcd")
    rows = draw(st.lists(st.tuples(index, index, st.integers(0, 9)), max_size=12))
    at = st.integers(0, len(workers) - 1)
    cores = st.sampled_from([0.0, 0.1, 0.25, 0.4, 0.7, 1.1])
    pinned = st.sampled_from([None, None, None, "x"])
    return cluster, snapshot(
        component_of,
        draw(st.lists(at, min_size=count, max_size=count)),
        draw(st.lists(cores, min_size=count, max_size=count)),
        rows,
        of=[Component(c, kind, 1) for c, kind in zip("abcd", KINDS, strict=True)],
        edges=draw(st.lists(st.tuples(name, name), max_size=5, unique=True)),
        pinned=draw(st.lists(pinned, min_size=count, max_size=count)),
    )


rates = st.sampled_from([None, None, 0.0, 7.0])


@composite
def profiles(draw: DrawFn) -> Profiles:
    """Draw one table a component, and a rate to plan for."""
    share = st.sampled_from([0.1, 0.3, 0.5, 0.9])
    table = st.tuples(st.sampled_from([1.0, 4.0]), st.sampled_from([5.0, 9.0]), share, share)
    tables = {
        name: Profile(performance=(Performance(1, r1, cpu / 2, m / 2), Performance(3, r3, cpu, m)))
        for name, (r1, r3, cpu, m) in zip(
            "abcd", draw(st.lists(table, min_size=4, max_size=4)), strict=True
        )
    }
    return Profiles(tables, rate_tps=draw(rates))


def after(world: World, decision: Decision) -> LoadSnapshot:
    """Make the moves, checking that each may be made and begins where the executor is."""
    cluster, snapshot = world
    assert (decision.outcome is Outcome.WOULD_MOVE) == bool(decision.moves)
    assert "nan" not in decision.reason
    moved = [move.executor for move in decision.moves]
    assert len(moved) == len(set(moved))
    for move in decision.moves:
        e, w = snapshot.executors.index(move.executor), cluster.workers.index(move.target)
        assert cluster.workers[snapshot.place[e]] == move.source != move.target
        assert snapshot.is_movable[e]
        assert cluster.is_open[w]
        snapshot = snapshot.moved(e, w)
    return snapshot


@settings(max_examples=60)
@given(worlds(), profiles())
def test_every_executor_is_placed_once(world: World, known: Profiles) -> None:
    cluster, snapshot = world
    rate_alone = Profiles(rate_tps=known.rate_tps)
    after(world, dsm(cluster, snapshot, Limits()))
    after(world, rsm(cluster, snapshot, Limits()))
    after(world, heterogeneity(cluster, snapshot, Limits(), rate_alone))
    after(world, rsm(cluster, snapshot, Limits(), known))
    after(world, sam(cluster, snapshot, Limits(), known))


@settings(max_examples=60)
@given(worlds())
def test_placed_executors_fit_their_nodes_and_roomy_clusters_are_never_refused(
    world: World,
) -> None:
    cluster, snapshot = world
    # Nothing pinned and all open: what is on a node then is what the policy has put there.
    cluster = replace(cluster, closed=(None,) * len(cluster.workers))
    snapshot = replace(snapshot, pinned=(None,) * len(snapshot.executors))
    node_cores = np.bincount(cluster.node_of, minlength=3)
    of = np.array(snapshot.component_of)
    mean = np.array([snapshot.cpu_cores[of == name].mean() for name in of])
    # R-Storm looks at every executor, 000 at components.
    for policy, cpu_cores in ((rsm, snapshot.cpu_cores), (heterogeneity, mean)):
        decision = policy(cluster, snapshot, Limits())
        if decision.outcome is Outcome.NO_LOW_WORKER:
            assert cpu_cores.sum() > node_cores[node_cores > 0].min()
            continue
        place = after((cluster, snapshot), decision).place
        used = np.bincount(cluster.node_of[place], weights=cpu_cores, minlength=3)
        assert (used <= node_cores + 1e-6).all()


SHARE = st.sampled_from([0.05, 0.2, 0.5, 0.8, 1.0])
MACHINES = st.lists(st.sampled_from([1, 2, 4]), min_size=1, max_size=4)


@settings(max_examples=100)
@given(
    st.lists(
        st.builds(Allocation, st.integers(0, 2), st.just(5), st.integers(0, 4), SHARE, SHARE),
        max_size=4,
    ),
    MACHINES,
)
def test_sam_gives_bundles_their_own_slots_and_overfills_none(
    allocations: list[Allocation], machines: list[int]
) -> None:
    tasks = {f"t{i}": task for i, task in enumerate(allocations)}
    slots = empty_slots(machines)
    placed = map_sam(tasks, slots)
    if isinstance(placed, Lacking):
        # A slot for every bundle and every rest would have been enough.
        assert sum(t.bundles + (t.rest_threads > 0) for t in allocations) > len(slots.machine)
        return
    bundles: list[int] = []
    cpu, memory = np.zeros((2, len(slots.machine)))
    for name, task in tasks.items():
        where = placed[name]
        assert len(where) == threads_of(task)
        full = where[: task.bundles * 5]
        bundles += full[::5]
        assert full == [slot for slot in full[::5] for _ in range(5)]
        rest = set(where[task.bundles * 5 :])
        assert len(rest) == (task.rest_threads > 0)
        cpu[list(rest)] += task.rest_cpu_frac
        memory[list(rest)] += task.rest_memory_frac
    assert len(bundles) == len(set(bundles))
    assert not cpu[bundles].any()
    assert max(cpu.max(), memory.max()) <= 1 + 1e-6


@settings(max_examples=100)
@given(st.lists(st.lists(st.builds(Need, SHARE, SHARE), max_size=4), max_size=4), MACHINES)
def test_rsm_overfills_no_machine_and_no_slots_memory(
    threads: list[list[Need]], machines: list[int]
) -> None:
    tasks = {f"t{i}": needs for i, needs in enumerate(threads)}
    slots = empty_slots(machines)
    placed = map_rsm(tasks, slots)
    if isinstance(placed, Lacking):
        assert sum(map(len, threads)) > len(slots.machine)
        return
    cpu, memory = np.zeros(len(machines)), np.zeros(len(slots.machine))
    for name, needs in tasks.items():
        for need, slot in zip(needs, placed[name], strict=True):
            cpu[slots.machine[slot]] += need.cpu_frac
            memory[slot] += need.memory_frac
    assert (cpu <= np.array(machines) + 1e-6).all()
    assert (memory <= 1 + 1e-6).all()


@settings(max_examples=80)
@given(
    worlds(),
    st.sampled_from([(1.0, 0.0), (0.8, 0.2), (0.0, 1.0)]),
    st.sampled_from([0.6, 1.0]),
    rates,
)
def test_no_policy_beats_the_best_of_all_placements(
    world: World, weights: tuple[float, float], high: float, rate_tps: float | None
) -> None:
    cluster, snapshot = world
    limits = Limits(weight_node=weights[0], weight_worker=weights[1], high_frac=high)
    problem = PlacementProblem.of(cluster, snapshot, limits)
    best = cheapest(problem)
    assert best is None or problem.fits(best)
    best_tps = float("inf") if best is None else problem.cost_tps(best)
    for policy in (otd, greedy):
        walked = snapshot
        for _ in range(6):
            decision = policy(cluster, walked, limits)
            walked = after((cluster, walked), decision)
            if problem.fits(walked.place):
                assert problem.cost_tps(walked.place) >= best_tps - 1e-6
    planned = partial(heterogeneity, profiles=Profiles(rate_tps=rate_tps))
    for placing in (dsm, rsm, planned):
        place = after(world, placing(cluster, snapshot, limits)).place
        assert not problem.fits(place) or problem.cost_tps(place) >= best_tps - 1e-6


@settings(max_examples=25)
@given(worlds(most=5), st.sampled_from([(1.0, 0.0), (0.8, 0.2)]))
def test_no_placement_costs_less_between_nodes_than_the_bound(
    world: World, weights: tuple[float, float]
) -> None:
    cluster, snapshot = world
    problem = PlacementProblem.of(
        cluster, snapshot, Limits(weight_node=weights[0], weight_worker=weights[1])
    )
    best = cheapest(problem)
    if best is not None:
        nodes = between_nodes(problem)
        bound = cheapest(nodes)
        assert bound is not None
        assert nodes.cost_tps(bound) <= between_nodes_tps(problem, best) + 1e-6


def between_nodes_tps(problem: PlacementProblem, place: Ints) -> float:
    """Count the traffic between nodes."""
    return replace(problem, weight_node=1.0, weight_place=0.0).cost_tps(place)

"""No decision lets a node hold more declared memory than it has, or than it holds anyway."""

from dataclasses import replace

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.strategies import DrawFn, composite

from controller.core.cluster import Ints
from controller.core.fit import Fit
from controller.core.limits import Limits
from controller.core.moved import applied
from controller.policies.gather.anneal import anneal
from controller.policies.gather.problem import Problem
from controller.policies.gather.search import search
from controller.policies.greedy import greedy
from controller.policies.options import TargetOptions
from deploy.sim.remembering import gather
from tests.property.controller.policies.gather.test_policy import worlds as uneven_worlds
from tests.property.controller.policies.test_single_move import World, limits, worlds


@composite
def declaring(draw: DrawFn) -> World:
    """Draw worlds in which memory is counted, on nodes that may have too little already."""
    cluster, snapshot = draw(worlds() | uneven_worlds())
    mb = st.sampled_from([0.0, 64.0, 128.0, 128.0, 300.3])
    memory_mb = np.array([draw(mb) for _ in snapshot.executors])
    has_mb = np.array([draw(st.sampled_from([128.0, 512.0, 1024.0])) for _ in cluster.nodes])
    others_mb = np.array([draw(st.sampled_from([0.0, 0.0, 384.0])) for _ in cluster.nodes])
    if draw(st.booleans()):
        cluster = replace(cluster, node_cores=np.full(len(cluster.nodes), 4.0))
    cluster = replace(cluster, memory_mb=has_mb, other_memory_mb=others_mb)
    return cluster, replace(snapshot, memory_mb=memory_mb)


def holds_no_more(world: World, place: Ints) -> bool:
    """By the definition, in plain loops."""
    cluster, snapshot = world
    assert snapshot.memory_mb is not None
    assert cluster.memory_mb is not None
    assert cluster.other_memory_mb is not None
    for n in range(len(cluster.nodes)):
        before, after = (
            cluster.other_memory_mb[n]
            + sum(
                mb for mb, w in zip(snapshot.memory_mb, of, strict=True) if cluster.node_of[w] == n
            )
            for of in (snapshot.place, place)
        )
        if after > max(cluster.memory_mb[n], before) + 1e-3:
            return False
    return True


@settings(max_examples=200)
@given(declaring(), limits(), st.integers(1, 3))
def test_no_move_overfills_a_node(world: World, rules: Limits, most: int) -> None:
    for policy in (greedy, gather(TargetOptions())):
        cluster, snapshot = world
        for _ in range(9):
            decision = policy(cluster, snapshot, replace(rules, max_moves=most))
            after = snapshot
            for move in decision.moves:
                after = applied((move,), cluster, after)
                if not decision.is_exchange:
                    assert holds_no_more((cluster, snapshot), after.place)
            assert holds_no_more((cluster, snapshot), after.place)
            snapshot = after
            if not decision.moves:
                break


@settings(max_examples=200)
@given(declaring(), st.data())
def test_a_move_fits_exactly_where_no_node_holds_too_much(
    world: World, data: st.DataObject
) -> None:
    cluster, snapshot = world
    fit = Fit.of(cluster, replace(snapshot, cpu_cores=np.zeros(len(snapshot.executors))))
    e = data.draw(st.integers(0, len(snapshot.executors) - 1))
    w = data.draw(st.integers(0, len(cluster.workers) - 1))
    place = snapshot.moved(e, w).place
    fits = holds_no_more(world, place)
    anywhere = np.full(len(cluster.workers), np.inf)
    assert fit.overfills_memory(place) is not fits
    assert fit.has_room(e, w, anywhere) is fits
    assert (fit.why_no_memory(e, w) is None) is fits


@settings(max_examples=100, deadline=None)
@given(declaring(), limits(), st.integers(0, 9))
def test_a_search_ends_where_no_node_holds_too_much(world: World, rules: Limits, seed: int) -> None:
    cluster, snapshot = world
    problem = Problem.of(cluster, snapshot, rules, TargetOptions())
    found = search(problem, 0.0)
    if found is not None:
        assert holds_no_more(world, found)
    # What annealing counts as memory is as exact as cores.
    met = anneal(problem, problem.start, 20, 3.0, seed)
    if problem.excess_at(problem.start) == 0 == problem.excess_at(met):
        assert holds_no_more(world, met)

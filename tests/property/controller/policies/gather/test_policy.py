"""What must hold of `gather` for every cluster, load and placement."""

from dataclasses import replace

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.strategies import DrawFn, composite

from controller.core.cluster import Cluster
from controller.core.decision import Decision, Outcome
from controller.core.fit import NOISE_FRAC, TOLERANCE_CORES, Fit
from controller.core.limits import Limits
from controller.core.policy import Rule
from controller.policies.gather.anneal import anneal
from controller.policies.gather.evaluate import find
from controller.policies.gather.problem import Problem
from controller.policies.greedy import greedy
from controller.policies.options import TargetOptions
from deploy.sim.remembering import gather
from tests.property.controller.policies.test_single_move import World, small_snapshots


@composite
def worlds(draw: DrawFn) -> World:
    """Draw a small cluster: ties, executors that are too big, pinned ones, closed workers."""
    node_of = sorted(draw(st.lists(st.integers(0, 2), min_size=1, max_size=6)))
    sizes = st.sampled_from([0.5, 1.0, 1.0, 2.0])
    rows = [(f"n{n}:{6700 + i}", f"n{n}", draw(sizes)) for i, n in enumerate(node_of)]
    cluster = Cluster.build([f"n{n}" for n in range(3)], rows)
    shut = st.sampled_from([None, None, None, "no hooks"])
    cluster = replace(cluster, closed=tuple(draw(shut) for _ in rows))
    return cluster, draw(small_snapshots(len(rows)))


limits = st.builds(
    Limits,
    high_frac=st.sampled_from([0.3, 0.6, 0.85, 1.0]),
    gain_frac=st.sampled_from([0.0, 0.01]),
    weight_node=st.sampled_from([1.0, 0.8, 0.0]),
    weight_worker=st.sampled_from([0.0, 0.2]),
    max_moves=st.sampled_from([1, 1, 2, 3]),
)
options = st.builds(
    TargetOptions,
    gain_frac=st.sampled_from([0.0, 0.02, 0.1]),
    move_price_frac=st.sampled_from([0.0, 0.04]),
    fill_frac=st.sampled_from([1.0, 0.9]),
)


def after(world: World, decision: Decision) -> World:
    cluster, snapshot = world
    for move in decision.moves:
        e, w = snapshot.executors.index(move.executor), cluster.workers.index(move.target)
        assert cluster.workers[snapshot.place[e]] == move.source
        snapshot = snapshot.moved(e, w)
    return cluster, snapshot


def end(policy: Rule, world: World, rules: Limits) -> World:
    while (decision := policy(*world, rules)).moves:
        world = after(world, decision)
    return world


@settings(max_examples=100)
@given(worlds(), limits, options)
def test_a_move_is_allowed_and_overfills_nobody(
    world: World, rules: Limits, choice: TargetOptions
) -> None:
    policy = gather(choice)
    peak = Fit.of(*world).used
    while True:
        cluster, snapshot = world
        decision = policy(cluster, snapshot, rules)
        assert (decision.outcome is Outcome.WOULD_MOVE) == bool(decision.moves)
        assert decision.is_exchange or len(decision.moves) <= rules.max_moves
        assert decision.reason
        assert "nan" not in decision.reason
        if not decision.moves:
            return
        world = after(world, decision)
        load, before = (Fit.of(cluster, one).used for one in (world[1], snapshot))
        peak, most = np.maximum(peak, load), peak * (1 + NOISE_FRAC)
        for move in decision.moves:
            e, w = snapshot.executors.index(move.executor), cluster.workers.index(move.target)
            assert snapshot.pinned[e] is None
            assert cluster.closed[w] is None
            # A worker that is too full may stay so, and a way may make it fuller by the noise
            # of its load.
            high = rules.high_frac * cluster.capacity_cores[w]
            if decision.is_exchange and before[w] > high + TOLERANCE_CORES:
                assert load[w] <= most[w] + TOLERANCE_CORES
            else:
                assert load[w] <= max(high, before[w]) + TOLERANCE_CORES


@settings(max_examples=100)
@given(worlds(), limits)
def test_target_ends_no_worse_than_single_moves(world: World, rules: Limits) -> None:
    """By the weighted cost, where `greedy` leaves no worker high."""
    rules = replace(rules, max_moves=1)
    problem = Problem.of(*world, rules, TargetOptions())
    ours = end(gather(), world, rules)[1].place
    theirs = end(greedy, world, rules)[1].place
    assert problem.excess_at(ours) <= problem.excess_at(theirs) + 1e-6
    if problem.excess_at(theirs) == 0:
        assert problem.cost_tps(ours) <= problem.cost_tps(theirs) + 1e-6


@settings(max_examples=100)
@given(worlds(), limits, options)
def test_what_is_found_gains_enough_and_is_found_again(
    world: World, rules: Limits, choice: TargetOptions
) -> None:
    cluster, snapshot = world
    answer = find(cluster, snapshot, rules, choice)
    assert answer == find(cluster, snapshot, rules, choice)
    found = answer.target
    if found is None:
        return
    problem = Problem.of(cluster, snapshot, rules, choice)
    place = snapshot.place.copy()
    for executor, goal in zip(found.executors, found.goals, strict=True):
        place[snapshot.executors.index(executor)] = cluster.workers.index(goal)
    today = problem.cost_tps(snapshot.place)
    gain = today - problem.cost_tps(place)
    paid = gain - choice.move_price_frac * today * len(found.executors) / len(place)
    assert paid > choice.gain_frac * today - 1e-6
    assert problem.excess_at(place) <= problem.excess_at(snapshot.place) + 1e-6


@settings(max_examples=300)
@given(worlds(), limits, options, st.sampled_from([0.3, 3.0]), st.integers(0, 3))
def test_annealing_keeps_every_rule_and_costs_no_more(
    world: World, rules: Limits, choice: TargetOptions, hot: float, seed: int
) -> None:
    problem = Problem.of(*world, rules, choice)
    found = anneal(problem, problem.start, 200, hot, seed)
    assert (found == anneal(problem, problem.start, 200, hot, seed)).all()
    elsewhere = found != problem.start
    assert problem.free[elsewhere].all()
    assert problem.is_open[found[elsewhere]].all()
    too_much, before = (
        np.maximum(problem.fit.placed(place).used - problem.fill, 0).sum()
        for place in (found, problem.start)
    )
    assert too_much <= before + 1e-6
    paid = problem.cost_tps(found) + problem.price_tps * problem.moves(found)
    assert too_much < before - TOLERANCE_CORES or paid <= problem.cost_tps(problem.start) + 1e-6

"""Nodes whose workers share their CPU: what a move brings, and how much room is left after it."""

from dataclasses import replace

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from controller.core.cluster import Cluster
from controller.core.fit import Fit, predicted
from controller.core.hops import HOP_COST_S, LEAST_OWN
from controller.core.limits import Limits
from controller.core.moved import applied
from controller.policies.gather.anneal import anneal
from controller.policies.gather.problem import Problem
from controller.policies.greedy import greedy
from controller.policies.options import TargetOptions
from tests.property.controller.policies.gather.test_policy import worlds as uneven_worlds
from tests.property.controller.policies.test_single_move import World, limits, worlds

# Tuples/s in the worlds are few; so that hops weigh, each is this number.
MANY = 20_000.0


@st.composite
def shared(draw: st.DrawFn) -> World:
    """Let the nodes of a world share their CPU, of which others use a part."""
    cluster, snapshot = draw(worlds() | uneven_worlds())
    cores = draw(st.lists(st.floats(1.0, 8.0), min_size=len(cluster.nodes), max_size=8))
    node_cores = np.resize(np.array(cores), len(cluster.nodes))
    others = node_cores * draw(st.sampled_from([0.0, 0.1, 0.4]))
    traffic = replace(snapshot.traffic, tps=snapshot.traffic.tps * MANY)
    shares = replace(cluster, node_cores=node_cores, other_cores=others)
    return shares, replace(snapshot, traffic=traffic)


def used_by_node(cluster: Cluster, fit: Fit) -> np.ndarray:
    return np.bincount(cluster.node_of[fit.place], fit.demand, len(cluster.nodes))


@settings(max_examples=200)
@given(shared(), st.data())
def test_what_a_move_brings_is_what_the_nodes_use_more_after_it(
    world: World, data: st.DataObject
) -> None:
    cluster, snapshot = world
    fit = Fit.of(cluster, snapshot)
    e = data.draw(st.integers(0, len(snapshot.executors) - 1))
    w = data.draw(st.integers(0, len(cluster.workers) - 1))
    home = int(fit.place[e])
    if w == home:
        return
    came, went = (float(one[0]) for one in fit.more(np.array([e]), np.array([w])))
    after = fit.moved(e, w)
    more = used_by_node(cluster, after) - used_by_node(cluster, fit)
    here, there = int(cluster.node_of[home]), int(cluster.node_of[w])
    assert more[there] == np.float64(came) or abs(more[there] - came) < 1e-9
    assert abs(more[here] - went) < 1e-9
    assert (
        np.delete(more, [here, there]).any() == np.False_
        or here == there
        or (abs(np.delete(more, [here, there])).max() < 1e-9)
    )
    assert np.allclose(after.used - fit.used, (more)[cluster.node_of], atol=1e-9)
    back = after.moved(e, home)
    assert np.allclose(back.used, fit.used, atol=1e-9)


@settings(max_examples=100)
@given(shared(), st.data())
def test_hops_leave_each_executor_a_part_of_what_it_uses(world: World, data: st.DataObject) -> None:
    cluster, snapshot = world
    cluster = replace(cluster, hop_times=data.draw(st.sampled_from([0.5, 1.0, 4.0, 20.0])))
    workers = st.integers(0, len(cluster.workers) - 1)
    place = np.array(data.draw(st.lists(workers, min_size=len(snapshot.place), max_size=99)))
    fit = Fit.of(cluster, snapshot)
    after = fit.placed(place[: len(snapshot.place)])
    least = LEAST_OWN * _far(fit) / max(cluster.hop_times, 1.0)
    assert (after.demand >= least - 1e-9).all()
    # Seen again from there, hops count as much.
    again = Fit.of(cluster, predicted(cluster, snapshot, after.place))
    assert np.allclose(again.hop_rates.scale, fit.hop_rates.scale)
    assert np.allclose(again.placed(fit.place).demand, fit.demand, atol=1e-9)


def _far(fit: Fit) -> np.ndarray:
    assert fit.traffic is not None
    rates = fit.hop_rates
    ends = fit.traffic.source, fit.traffic.target
    tps = np.where(ends[0] == ends[1], 0.0, rates.tps)
    count = len(fit.place)
    return HOP_COST_S[2] * rates.scale * sum(np.bincount(end, tps, count) for end in ends)


@settings(max_examples=100)
@given(shared())
def test_the_search_adds_up_what_the_nodes_use(world: World) -> None:
    cluster, snapshot = world
    problem = Problem.of(cluster, snapshot, Limits(), TargetOptions())
    place = anneal(problem, problem.start, 30, 3.0, 1)
    found = problem.fit.placed(place)
    if not problem.fit.above(problem.fill).any():
        assert not found.above(problem.fill + 1e-6).any()


@settings(max_examples=100)
@given(shared(), limits())
def test_a_move_for_traffic_leaves_as_much_room_for_input(world: World, rules: Limits) -> None:
    cluster, snapshot = world
    fit = Fit.of(cluster, snapshot, rules)
    decision = greedy(cluster, snapshot, replace(rules, max_moves=1))
    if fit.is_high.any() or not decision.moves:
        return
    after = applied(decision.moves, cluster, snapshot)
    assert fit.placed(after.place).growth >= fit.growth * 0.98

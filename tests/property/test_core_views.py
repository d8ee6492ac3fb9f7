"""What is carried from decision to decision, and several moves of one decision."""

from dataclasses import replace

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from controller.core.affinity import by_node, by_worker
from controller.core.classify import Limits
from controller.core.cluster import Traffic, worker_cpu_cores
from controller.core.decide import Choice, choose_safe, otd, safe
from controller.core.moves import View, best_gathering, gathering
from controller.core.view.pairs import _LATELY, sorted_by
from tests.property.test_core_policies import World, limits, worlds
from tests.property.test_core_target import worlds as uneven_worlds


@settings(max_examples=300, deadline=None)
@given(worlds() | uneven_worlds(), limits(), st.data())
def test_after_any_moves_a_carried_view_decides_like_a_new_one(
    world: World, rules: Limits, data: st.DataObject
) -> None:
    cluster, snapshot = world
    view = View.of(cluster, snapshot, rules)
    for _ in range(4):
        found = choose_safe(view)  # a look lowers the bounds, so look every time
        fresh = View.of(cluster, view.snapshot, rules)
        assert found == choose_safe(fresh)
        assert np.array_equal(view.ties.node_tps, fresh.ties.node_tps)
        assert np.array_equal(view.ties.worker_tps, fresh.ties.worker_tps)
        assert np.array_equal(view.most, fresh.most)
        assert np.array_equal(view.roomiest, fresh.roomiest)
        everything = gathering(fresh, np.flatnonzero(fresh.movable))
        assert (everything.score <= view.bound[everything.executors] + 1e-9).all()
        e = data.draw(st.integers(0, len(snapshot.executors) - 1))
        w = data.draw(st.integers(0, len(cluster.workers) - 1))
        if isinstance(found, Choice) and data.draw(st.booleans()):
            e, w = found.executor, found.worker
        view = view.moved(e, w)


@settings(max_examples=200, deadline=None)
@given(worlds() | uneven_worlds(), limits(), st.data())
def test_what_is_kept_of_the_cycle_before_changes_no_answer(
    world: World, rules: Limits, data: st.DataObject
) -> None:
    cluster, snapshot = world
    for _ in range(3):
        choose_safe(View.of(cluster, snapshot, rules))
        traffic = snapshot.traffic
        times = data.draw(st.lists(st.sampled_from([0.5, 1.0, 3.0]), min_size=1, max_size=5))
        tps = traffic.tps * np.resize(times, len(traffic.tps))
        keep = np.arange(len(tps)) >= data.draw(st.integers(0, 1))
        others = Traffic(traffic.source[keep], traffic.target[keep], tps[keep])
        e = data.draw(st.integers(0, len(snapshot.executors) - 1))
        w = data.draw(st.integers(0, len(cluster.workers) - 1))
        snapshot = replace(snapshot, traffic=others).moved(e, w)
        kept = View.of(cluster, snapshot, rules)
        _LATELY.clear()
        fresh = View.of(cluster, replace(snapshot, traffic=replace(others)), rules)
        assert np.array_equal(kept.neighbours.pairs.into, fresh.neighbours.pairs.into)
        assert np.array_equal(kept.neighbours.tps, fresh.neighbours.tps)
        assert np.array_equal(kept.ties.node_tps, fresh.ties.node_tps)
        assert np.array_equal(kept.ties.worker_tps, fresh.ties.worker_tps)
        assert np.array_equal(kept.ties.strongest_tps, fresh.ties.strongest_tps)
        assert choose_safe(kept) == choose_safe(fresh)


@settings(max_examples=200, deadline=None)
@given(worlds(), limits())
def test_no_candidate_scores_above_its_bound_and_the_short_way_finds_the_best(
    world: World, rules: Limits
) -> None:
    view = View.of(*world, rules)
    everything = gathering(view, np.flatnonzero(view.movable))
    assert (everything.score <= view.bound[everything.executors] + 1e-9).all()
    best = float(everything.score.max(initial=-np.inf))
    for above in (0.0, -np.inf):  # the second look has the bounds that the first one lowered
        short, _ = best_gathering(view, above, slack=1e-9)
        wanted = everything.only((everything.score >= best - 1e-9) & (best > above))
        pairs = set(zip(wanted.executors.tolist(), wanted.workers.tolist(), strict=True))
        assert pairs == set(zip(short.executors.tolist(), short.workers.tolist(), strict=True))


@settings(max_examples=200, deadline=None)
@given(worlds(), limits())
def test_scores_are_those_of_the_two_affinities(world: World, rules: Limits) -> None:
    cluster, snapshot = world
    view = View.of(cluster, snapshot, rules)
    found = gathering(view, np.flatnonzero(view.movable))
    asc = by_node(cluster, snapshot).gain(found.executors, cluster.node_of[found.workers])
    worker_asc = by_worker(cluster, snapshot).gain(found.executors, found.workers)
    assert np.array_equal(found.asc_tps, asc)
    assert np.allclose(found.score, rules.weight_node * asc + rules.weight_worker * worker_asc)
    again = view.score(found.executors, found.workers)
    assert np.array_equal(found.asc_tps, again.asc_tps)
    assert np.allclose(found.score, again.score)
    everybody = np.arange(len(snapshot.executors))
    for worker in range(len(cluster.workers)):
        wanted = view.score(everybody, np.full_like(everybody, worker))
        to = view.score_to(everybody, worker)
        assert np.array_equal(to.executors, wanted.executors)
        assert np.array_equal(to.workers, wanted.workers)
        assert np.allclose(to.asc_tps, wanted.asc_tps)
        assert np.allclose(to.score, wanted.score)


@settings(max_examples=200, deadline=None)
@given(worlds(), limits(), st.integers(2, 4))
def test_several_moves_share_no_executor_and_no_pair_of_nodes(
    world: World, rules: Limits, most: int
) -> None:
    cluster, snapshot = world
    for policy in (otd, safe):
        one = policy(cluster, snapshot, rules)
        several = policy(cluster, snapshot, replace(rules, max_moves=most))
        assert len(several.moves) <= most
        assert several.moves[:1] == one.moves
        assert several.outcome is one.outcome
        assert len({move.executor for move in several.moves}) == len(several.moves)
        node = {name: int(n) for name, n in zip(cluster.workers, cluster.node_of, strict=True)}
        pairs = {frozenset((node[m.source], node[m.target])) for m in several.moves}
        assert len(pairs) == len(several.moves)


@settings(max_examples=100, deadline=None)
@given(worlds(), limits())
def test_several_moves_of_safe_fill_no_worker_above_the_limit(world: World, rules: Limits) -> None:
    cluster, snapshot = world
    high = rules.high_frac * cluster.capacity_cores + 1e-9
    before = worker_cpu_cores(cluster, snapshot)
    for move in safe(cluster, snapshot, replace(rules, max_moves=4)).moves:
        worker = cluster.workers.index(move.target)
        snapshot = snapshot.moved(snapshot.executors.index(move.executor), worker)
    after = worker_cpu_cores(cluster, snapshot)
    assert (after <= np.maximum(high, before + 1e-9)).all()


@given(st.lists(st.integers(0, 2**62)), st.lists(st.integers(0, 9)))
def test_codes_of_any_size_are_sorted_and_equal_ones_stay_in_order(
    wide: list[int], narrow: list[int]
) -> None:
    for codes in (np.array(wide, dtype=np.int64), np.array(narrow, dtype=np.int64)):
        assert sorted_by(codes).tolist() == np.argsort(codes, kind="stable").tolist()

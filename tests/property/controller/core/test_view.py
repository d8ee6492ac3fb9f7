"""A view after moves, and several moves of one decision."""

from dataclasses import replace

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from controller.core.cluster import Ints, Traffic
from controller.core.fit import Fit
from controller.core.limits import Limits
from controller.core.loops import moves as loops
from controller.core.pairs import _LATELY
from controller.core.view import Moves, View, _filled
from controller.policies.greedy import best_gathering, choose_greedy, greedy, opening_pairs
from controller.policies.otd import otd
from controller.policies.single_move import Choice
from tests.affinity import by_node, by_worker
from tests.property.controller.policies.gather.test_policy import worlds as uneven_worlds
from tests.property.controller.policies.test_single_move import World, limits, worlds


def gathering(view: View, executors: Ints) -> Moves:
    return Moves(*loops.gather(view.world, executors))


@settings(max_examples=300)
@given(worlds() | uneven_worlds(), limits(), st.data())
def test_after_any_moves_a_moved_view_decides_like_a_new_one(
    world: World, rules: Limits, data: st.DataObject
) -> None:
    cluster, snapshot = world
    view = View.of(cluster, snapshot, rules)
    for _ in range(4):
        found = choose_greedy(view)  # a look lowers the bounds, so look every time
        assert found == choose_greedy(View.of(cluster, view.snapshot, rules))
        assert_bounded(view)
        e = data.draw(st.integers(0, len(snapshot.executors) - 1))
        w = data.draw(st.integers(0, len(cluster.workers) - 1))
        if isinstance(found, Choice) and data.draw(st.booleans()):
            e, w = found.executor, found.worker
        view = view.moved(e, w)


@settings(max_examples=200)
@given(worlds() | uneven_worlds(), limits(), st.data())
def test_what_must_not_move_together_with_a_move_is_left_out_of_a_moved_view(
    world: World, rules: Limits, data: st.DataObject
) -> None:
    cluster, snapshot = world
    view = View.of(cluster, snapshot, rules)
    for _ in range(2):
        e = data.draw(st.integers(0, len(snapshot.executors) - 1))
        w = data.draw(st.integers(0, len(cluster.workers) - 1))
        view = view.without(e, w).moved(e, w)
        assert_bounded(view)
        fresh = replace(view)  # which takes over nothing that was found out
        assert choose_greedy(view) == choose_greedy(fresh)


def assert_bounded(view: View) -> None:
    moves = gathering(view, np.flatnonzero(view.movable))
    for bound in (view.bounds[0], np.maximum(*view.bounds[1:])):
        assert (moves.score <= bound[moves.executors]).all()
        assert not np.isfinite(bound[~view.movable]).any()
    node, to = cluster_nodes(view, moves)
    for bound, is_of in ((view.bounds[1], node == to), (view.bounds[2], node != to)):
        assert (moves.score <= bound[moves.executors])[is_of].all()
    for bound, again in zip(view.bounds[1:], replace(view).bounds[1:], strict=True):
        assert np.allclose(bound, again)


def cluster_nodes(view: View, moves: Moves) -> tuple[Ints, Ints]:
    node_of = view.cluster.node_of
    return node_of[view.snapshot.place[moves.executors]], node_of[moves.workers]


@settings(max_examples=200)
@given(worlds() | uneven_worlds(), limits(), st.data())
def test_what_is_kept_of_the_cycle_before_changes_no_answer(
    world: World, rules: Limits, data: st.DataObject
) -> None:
    cluster, snapshot = world
    for _ in range(3):
        choose_greedy(View.of(cluster, snapshot, rules))
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
        for name in ("begin", "peer", "row"):
            assert np.array_equal(getattr(kept.pairs, name), getattr(fresh.pairs, name))
        assert choose_greedy(kept) == choose_greedy(fresh)


@settings(max_examples=200)
@given(worlds(), limits())
def test_the_best_are_the_best_of_all_moves_that_gain(world: World, rules: Limits) -> None:
    cluster, snapshot = world
    view = View.of(cluster, snapshot, rules)
    movable = np.flatnonzero(view.movable)
    candidates = gathering(view, movable)
    all_moves = view.score(movable, np.arange(len(cluster.workers)))
    fits = view.fit.fits(all_moves.executors, all_moves.workers, _filled(view.fit))
    anywhere = all_moves.only(fits)
    best = float(candidates.score.max(initial=-np.inf))
    if anywhere.score.max(initial=0.0) > 1e-9:
        assert best == anywhere.score.max()
    assert_bounded(view)
    for above in (0.0, -np.inf):  # the second look has the bounds that the first one lowered
        short = best_gathering(view, above, slack=1e-9)
        wanted = candidates.only((candidates.score >= best - 1e-9) & (best > above))
        assert as_set(short) == as_set(wanted)


def as_set(moves: Moves) -> set[tuple[int, int]]:
    return set(zip(moves.executors.tolist(), moves.workers.tolist(), strict=True))


@settings(max_examples=200)
@given(worlds() | uneven_worlds(), limits())
def test_scores_are_those_of_the_two_affinities(world: World, rules: Limits) -> None:
    cluster, snapshot = world
    view = View.of(cluster, snapshot, rules)
    everybody, everywhere = np.arange(len(snapshot.executors)), np.arange(len(cluster.workers))
    found = view.score(everybody, everywhere)
    away = {(int(e), int(w)) for e in everybody for w in everywhere if snapshot.place[e] != w}
    assert as_set(found) == away
    for moves in (found, gathering(view, everybody)):
        node = cluster.node_of[moves.workers]
        asc = by_node(cluster, snapshot).gain(moves.executors, node)
        worker_asc = by_worker(cluster, snapshot).gain(moves.executors, moves.workers)
        assert np.array_equal(moves.asc_tps, asc)
        score = rules.weight_node * asc + rules.weight_worker * worker_asc
        assert np.array_equal(moves.score, score)


@settings(max_examples=200)
@given(worlds() | uneven_worlds(), limits())
def test_a_pair_that_opens_the_way_gains_what_it_says(world: World, rules: Limits) -> None:
    cluster, snapshot = world
    view = View.of(cluster, snapshot, rules)
    threshold = view.threshold_tps
    pairs, _ = opening_pairs(view, threshold)
    for e, w, both in zip(pairs.executors, pairs.workers, pairs.score, strict=True):
        first = view.score(np.array([e]), np.array([w])).score[0]
        after = view.moved(int(e), int(w))
        source, target = snapshot.traffic.source, snapshot.traffic.target
        talks = np.concatenate([target[source == e], source[target == e]])
        seconds = after.score(talks, np.array([w])).score
        # Two that send to each other count once only, which makes the pair look poorer.
        assert both <= first + seconds.max() + 1e-6
        assert both > 2 * threshold


@settings(max_examples=200)
@given(worlds(), limits(), st.integers(2, 4))
def test_several_moves_share_no_executor_and_no_pair_of_nodes(
    world: World, rules: Limits, most: int
) -> None:
    cluster, snapshot = world
    for policy in (otd, greedy):
        one = policy(cluster, snapshot, rules)
        several = policy(cluster, snapshot, replace(rules, max_moves=most))
        assert len(several.moves) <= most
        assert several.moves[:1] == one.moves
        assert several.outcome is one.outcome
        assert len({move.executor for move in several.moves}) == len(several.moves)
        node = {name: int(n) for name, n in zip(cluster.workers, cluster.node_of, strict=True)}
        pairs = {frozenset((node[m.source], node[m.target])) for m in several.moves}
        assert len(pairs) == len(several.moves)


@settings(max_examples=100)
@given(worlds(), limits())
def test_several_moves_fill_no_worker_above_the_limit(world: World, rules: Limits) -> None:
    cluster, snapshot = world
    high = rules.high_frac * cluster.capacity_cores + 1e-9
    before = Fit.of(cluster, snapshot).used
    for move in greedy(cluster, snapshot, replace(rules, max_moves=4)).moves:
        worker = cluster.workers.index(move.target)
        snapshot = snapshot.moved(snapshot.executors.index(move.executor), worker)
    after = Fit.of(cluster, snapshot).used
    assert (after <= np.maximum(high, before + 1e-9)).all()

"""Seed 002: the limit of executors, the offline scheduler by hand, the online one's hand graph."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from controller.core.cluster import Cluster, Ints, LoadSnapshot
from controller.core.decision import Outcome
from controller.core.distance import inter_node_tps
from controller.core.limits import Limits
from controller.policies.aniello import (
    aniello_offline,
    aniello_online,
    executor_limit,
    limit_formula,
    load_hz,
    offline_groups,
    offline_place,
    online_place,
    share_out,
)
from controller.policies.options import Aniello
from controller.policies.profiles import NONE, Profiles
from controller.snapshot import parse
from tests.snapshots import cluster
from tests.unit.controller.policies.placement_worlds import chain, speeds, topology

GOLDEN = Path(__file__).parents[3] / "golden" / "decide"


def hand_graph() -> tuple[Cluster, LoadSnapshot]:
    return parse((GOLDEN / "hand_graph.json").read_text())


def placed(
    cluster: Cluster, snapshot: LoadSnapshot, options: Aniello, profiles: Profiles = NONE
) -> Ints:
    place = online_place(cluster, snapshot, Limits(), options, profiles)
    assert not isinstance(place, str), place
    return place


def sets(group: Ints) -> list[set[int]]:
    return [set(np.flatnonzero(group == g).tolist()) for g in range(int(group.max()) + 1)]


@pytest.mark.parametrize(("alpha", "formula", "limit"), [(0, 5, 5), (0.5, 17.5, 18), (1, 30, 30)])
def test_limit_of_37_executors_on_8_workers(alpha: float, formula: float, limit: int) -> None:
    assert limit_formula(alpha, 37, 8) == formula
    assert executor_limit(alpha, 37, 8) == limit


def test_the_limit_counts_the_workers_that_are_used_and_forgives_rounding() -> None:
    assert executor_limit(1.0, 3, 8) == executor_limit(0.0, 3, 8) == 1
    assert limit_formula(0.3, 36, 6) == 6 + 0.3 * 25
    assert executor_limit(0.1, 34, 2) == 17 + 2  # 0.1 × 16 = 1.6 goes up
    assert executor_limit(0.56, 78, 26) == 3 + 28  # 0.56 × 50 is a little over 28 in binary
    assert executor_limit(0.5, 0, 4) == 0


# Three components of two executors each; M is 2 on three slots.
@pytest.mark.parametrize(
    ("alpha", "beta", "groups"),
    [
        (0.0, 0.0, [2, 1, 0, 1, 0, 2]),
        (0.0, 0.5, [0, 1, 2, 0, 2, 1]),
        (0.0, 1.0, [0, 1, 0, 1, 2, 2]),
        # All may be together, and from beta on nothing forces the last slot to be used.
        (1.0, 1.0, [0, 1, 0, 1, 0, 1]),
        (1.0, 0.7, [0, 1, 0, 1, 2, 0]),
    ],
)
def test_offline_by_hand(alpha: float, beta: float, groups: list[int]) -> None:
    options = Aniello(alpha=alpha, beta=beta)
    assert offline_groups(chain(2, 2, 2), 3, options).tolist() == groups


def test_offline_slots_go_to_the_nodes_round_robin() -> None:
    options = Aniello(beta=1.0)
    assert offline_place(cluster([2, 2]), chain(1, 1), options).tolist() == [0, 2]


def test_offline_takes_cycles_gaps_and_ackers() -> None:
    snapshot = topology(
        {"__acker": 1, "b": 1, "a": 1, "gone": 0, "spout": 2},
        [("spout", "a"), ("a", "b"), ("b", "a"), ("b", "gone"), ("a", "a")],
    )
    # Spouts to 0 and 1; a to a spout; b to a, which fills slot 0 (M is 3); the acker to the rest.
    assert offline_groups(snapshot, 2, Aniello()).tolist() == [1, 0, 0, 0, 1]


@pytest.mark.parametrize(
    ("alpha", "workers"),
    [
        (0.0, [{0, 1}, {2, 4}, {5}, {3}]),
        (0.5, [{0, 1}, {2, 4}, {3}, {5}]),
        (1.0, [{0, 1}, {2, 4}, {3}, {5}]),
    ],
)
def test_online_on_the_hand_graph(alpha: float, workers: list[set[int]]) -> None:
    places, snapshot = hand_graph()
    options = Aniello(alpha=alpha)
    group = share_out(snapshot.cpu_cores, snapshot.traffic, 4, options)
    assert not isinstance(group, int)
    assert sets(group) == workers

    place = placed(places, snapshot, options)
    after = replace(snapshot, place=place)
    traffic = snapshot.traffic
    assert sorted(map(sorted, sets(place))) == sorted(map(sorted, workers))
    assert traffic.tps[place[traffic.source] != place[traffic.target]].sum() == 17
    assert inter_node_tps(places, after) == 6
    nodes = places.node_of[place]
    assert {frozenset(s) for s in sets(nodes)} == {frozenset({0, 1, 3}), frozenset({2, 4, 5})}


def test_online_takes_a_partner_from_where_it_was_put_before() -> None:
    # 0-1 first, then 1-2 finds the worker full (M = 2) and tries all ways over the two. 1 stays
    # where its heavier traffic is, unless the third brings more than both.
    stays = topology({"c": 4}, (), [(0, 1, 9), (1, 2, 8), (2, 3, 7)])
    group = share_out(stays.cpu_cores, stays.traffic, 2, Aniello())
    assert np.asarray(group).tolist() == [0, 0, 1, 1]
    leaves = topology({"c": 4}, (), [(0, 1, 9), (1, 2, 8), (2, 1, 8), (2, 3, 1)])
    group = share_out(leaves.cpu_cores, leaves.traffic, 2, Aniello())
    assert np.asarray(group).tolist() == [0, 1, 1, 0]


def test_loads_are_in_cycles_where_all_speeds_are_known() -> None:
    snapshot = replace(topology({"c": 2}, (), (), [0.1, 0.1]), place=np.array([0, 1]))
    load, speed = load_hz(cluster([1, 1]), snapshot, speeds(1e9, 2e9))
    assert load == pytest.approx([1e8, 2e8])
    assert load / speed == pytest.approx([0.1, 0.1])
    assert load[0] / speed[1] == pytest.approx(0.05)  # 10 % of 1 GHz are 5 % of 2 GHz
    load, speed = load_hz(cluster([1, 1]), snapshot, speeds(1e9, 0.0))
    assert (load.tolist(), speed.tolist()) == ([0.1, 0.1], [1.0, 1.0])
    load, _ = load_hz(cluster([1, 1, 0]), snapshot, speeds(1e9, 2e9))  # n2 has no worker
    assert load == pytest.approx([1e8, 2e8])


def test_a_heavy_executor_goes_where_the_clock_is_fast_enough() -> None:
    snapshot = replace(topology({"c": 1}, (), (), [0.8]), place=np.array([1]))
    assert placed(cluster([1, 1]), snapshot, Aniello(), speeds(1e9, 2e9)).tolist() == [1]
    assert placed(cluster([1, 1]), snapshot, Aniello()).tolist() == [0]


def test_node_capacity_binds_the_worker_does_not() -> None:
    # 1.5 cores are more than any worker has and fit a node of two, up to 0.85 × 2.
    heavy = topology({"c": 2}, (), [(0, 1, 5)], [1.5, 0.4])
    nodes = cluster([2, 2]).node_of[placed(cluster([2, 2]), heavy, Aniello())]
    assert nodes.tolist() == [0, 1]
    decision = aniello_online(cluster([2, 2]), heavy, Limits(high_frac=0.7), Aniello())
    assert decision.outcome is Outcome.NO_LOW_WORKER
    assert "1-1 with 1.5 cores fits no node" in decision.reason
    assert not decision.moves


def test_gamma_limits_a_worker_by_the_mean() -> None:
    # The mean of two workers is 0.5 cores: together 0 and 1 are above 1.2 times that.
    loaded = topology({"c": 4}, (), [(0, 1, 5)], [0.4, 0.3, 0.2, 0.1])
    free = share_out(loaded.cpu_cores, loaded.traffic, 2, Aniello(alpha=1.0))
    bound = share_out(loaded.cpu_cores, loaded.traffic, 2, Aniello(alpha=1.0, gamma=1.2))
    assert np.asarray(free).tolist() == [0, 0, 1, 1]
    assert np.asarray(bound).tolist() == [0, 1, 1, 0]
    heavy = topology({"c": 2}, (), (), [0.9, 0.1])
    decision = aniello_online(cluster([2]), heavy, Limits(), Aniello(gamma=1.0))
    assert decision.outcome is Outcome.NO_LOW_WORKER
    assert "1-1 with 0.9 cores fits no worker below gamma" in decision.reason


def test_executors_that_talk_share_a_node_though_another_is_free() -> None:
    pair = topology({"c": 2}, (), [(0, 1, 5)])
    places = cluster([2, 2])
    assert places.node_of[placed(places, pair, Aniello())].tolist() == [0, 0]


def test_no_traffic_is_spread_by_load_and_every_worker_is_used() -> None:
    silent = topology({"c": 5}, (), (), [0.5, 0.2, 0.2, 0.2, 0.1])
    group = share_out(silent.cpu_cores, silent.traffic, 2, Aniello())
    assert np.asarray(group).tolist() == [0, 1, 1, 1, 0]
    idle = topology({"c": 5}, (), (), [0.0] * 5)
    assert len(set(placed(cluster([2, 2]), idle, Aniello(alpha=1.0)).tolist())) == 4


def test_odd_places_and_topologies_are_outcomes() -> None:
    for policy in (aniello_offline, aniello_online):
        alone = policy(cluster([1]), chain(2, 1), Limits(), Aniello())
        assert alone.outcome is Outcome.NOTHING_TO_GAIN
        unprofiled = policy(cluster([1]), topology({"gone": 0}), Limits(), Aniello())
        assert unprofiled.outcome is Outcome.NOTHING_TO_GAIN
        nowhere = policy(cluster([]), topology({"gone": 0}), Limits(), Aniello())
        assert nowhere.outcome is Outcome.NOTHING_TO_GAIN


def test_zero_capacity_is_missing_resources() -> None:
    for known in (NONE, speeds(1e9, 1e9)):
        nothing = cluster([1, 1], 0.0)
        decision = aniello_online(nothing, chain(2, 1), Limits(), Aniello(), known)
        assert decision.outcome is Outcome.NO_LOW_WORKER


def test_traffic_of_an_executor_with_itself_does_not_count() -> None:
    places, snapshot = hand_graph()
    document = json.loads((GOLDEN / "hand_graph.json").read_text())
    document["traffic"].append(["3-3", "3-3", 1000.0])
    _, with_own = parse(json.dumps(document))
    assert placed(places, with_own, Aniello()).tolist() == (
        placed(places, snapshot, Aniello()).tolist()
    )

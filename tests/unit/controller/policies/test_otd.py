"""`otd` chooses what the pseudo-code of 004 does, algorithms 1 and 2."""

import pytest

from controller.core.cluster import Cluster, LoadSnapshot
from controller.core.limits import Limits
from controller.policies.otd import otd
from tests.bench.decide.cases import Groups, Hardware, planted

Move = tuple[int, int]


def plain_otd(cluster: Cluster, snapshot: LoadSnapshot, limits: Limits) -> Move | None:
    """Choose a move as the paper's pseudo-code reads, with lists, dicts and loops."""
    place, node_of = snapshot.place.tolist(), cluster.node_of.tolist()
    capacity = cluster.capacity_cores.tolist()
    load = [0.0] * len(node_of)
    for e, cores in enumerate(snapshot.cpu_cores.tolist()):
        load[place[e]] += cores / capacity[place[e]]
    lowest: dict[int, int] = {}
    for w, share in enumerate(load):
        n = node_of[w]
        if share <= limits.low_frac and (n not in lowest or share < load[lowest[n]]):
            lowest[n] = w
    hot = [w for w, share in enumerate(load) if share > limits.high_frac]
    hottest = max(hot, key=lambda w: load[w]) if hot else None
    best, gain = None, limits.threshold_tps(snapshot.traffic.total_tps, len(place))
    if hottest is not None:
        gain = float("-inf")
    talk = _traffic_with_nodes(snapshot, [node_of[w] for w in place])
    for e, at in enumerate(place):
        if hottest is not None and at != hottest:
            continue
        here = talk[e].get(node_of[at], 0.0)
        for n, w in lowest.items():
            asc = talk[e].get(n, 0.0) - here
            if asc > gain and w != at:
                best, gain = (e, w), asc
    return best


def _traffic_with_nodes(snapshot: LoadSnapshot, node: list[int]) -> list[dict[int, float]]:
    talk: list[dict[int, float]] = [{} for _ in node]
    traffic = snapshot.traffic
    rows = zip(traffic.source.tolist(), traffic.target.tolist(), traffic.tps.tolist(), strict=True)
    for a, b, tps in rows:
        if a != b:
            talk[a][node[b]] = talk[a].get(node[b], 0.0) + tps
            talk[b][node[a]] = talk[b].get(node[a], 0.0) + tps
    return talk


@pytest.mark.parametrize("seed", range(5))
def test_otd_chooses_what_the_pseudo_code_does(seed: int) -> None:
    cluster, snapshot = planted(Hardware(5, 4, 0.55), seed, Groups(100))
    for low in (0.6, 0.3):
        # Every gain counts, and traffic inside a node is free.
        rules = Limits(gain_frac=0.0, weight_node=1.0, weight_worker=0.0, low_frac=low)
        for _ in range(10):
            moves = otd(cluster, snapshot, rules).moves
            ours = [
                (snapshot.executors.index(m.executor), cluster.workers.index(m.target))
                for m in moves
            ]
            assert plain_otd(cluster, snapshot, rules) == (ours[0] if ours else None)
            if ours:
                snapshot = snapshot.moved(*ours[0])

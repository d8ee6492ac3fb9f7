"""A way has hardly more moves than the shortest to a placement that is as good."""

from itertools import product

import numpy as np
import pytest

from controller.core.cluster import Cluster, LoadSnapshot
from controller.core.distance import inter_node_tps
from controller.core.limits import Limits
from controller.core.moved import applied
from deploy.sim.remembering import gather
from tests.snapshots import cluster, snapshot

EACH_CORES = 0.16  # up to `load.high`, five fit on a node of one core
MOST_TIMES = 1.1


def spread(seed: int) -> tuple[Cluster, LoadSnapshot]:
    """Place executors that send to two others each at random on two or three nodes."""
    chance = np.random.default_rng(seed)
    nodes, executors = ((2, 8), (3, 6))[seed % 2]
    place = [*range(nodes), *chance.integers(0, nodes, executors - nodes).tolist()]
    talk = [
        (one, other, float(chance.integers(1, 100)))
        for one in range(executors)
        for other in chance.choice(executors, 2, replace=False).tolist()
        if one != other
    ]
    names = ["c"] * executors
    return cluster([1] * nodes), snapshot(names, place, [EACH_CORES] * executors, talk)


def shortest(start: LoadSnapshot, nodes: int, cut_tps: float, high_frac: float) -> int:
    """Count the moves to the nearest placement where no more crosses and no node is too full."""
    places = np.array(list(product(range(nodes), repeat=len(start.place))))
    traffic = start.traffic
    crosses = places[:, traffic.source] != places[:, traffic.target]
    loads = (places[:, :, None] == np.arange(nodes)).sum(axis=1) * EACH_CORES
    good = (crosses @ traffic.tps <= cut_tps + 1e-9) & (loads.max(axis=1) <= high_frac)
    return int((places != start.place)[good].sum(axis=1).min())


@pytest.mark.parametrize("seed", range(40))
def test_a_way_is_hardly_longer_than_the_shortest_that_ends_as_well(seed: int) -> None:
    where, start = spread(seed)
    policy, limits, now, moves = gather(), Limits(), start, 0
    while made := (decision := policy(where, now, limits)).moves:
        moves += len(made)
        now = applied(decision.moves, where, now)
    assert moves > 0
    nearest = shortest(start, len(where.nodes), inter_node_tps(where, now), limits.high_frac)
    assert moves <= MOST_TIMES * nearest

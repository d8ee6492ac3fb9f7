"""Looks for the cheapest placement: from several starts, first nodes, then the workers of each;
then by annealing.

Cost is the weighted traffic between places plus the price of every move from today's placement.
"""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
from scipy.optimize import linear_sum_assignment  # type: ignore[import-untyped]

from controller.core.classify import TOLERANCE_CORES
from controller.core.cluster import Floats, Ints
from controller.policies.partition.anneal import anneal
from controller.policies.partition.metis import partition
from controller.policies.partition.problem import Problem
from controller.policies.partition.refine import TIE, Level, refine

# Seeds of the partitioner, for few executors and for many, where one costs long.
FEW_EXECUTORS, PARTITIONS = 2000, (4, 1)
# A node that is full to the last core may leave no way to share its load among its workers.
NODE_FILL = (1.0, 0.97, 0.94, 0.9)

# Annealing begins from scratch where there are few executors, for then no partition is better. It
# also mends the best that was found. It has ROUNDS_OF_ALL rounds divided by the executors, times
# the effort; fewer where executors are few, and never less than ROUNDS_LEAST.
ANNEALINGS, MENDS = 3, 1
HOT, WARM = 3.0, 0.5
ROUNDS_OF_ALL, ROUNDS_LEAST, ROUNDS_PER_EXECUTOR = 40_000, 100, 10


def search(problem: Problem, least_gain_tps: float, others: tuple[Ints, ...] = ()) -> Ints | None:
    """Find a placement that costs less than today's by more than `least_gain_tps`, its moves paid.

    Gives the best found: least excess above `high`, then least cost with the moves; None if nothing
    gains enough or everything that does is fuller than today. `others` are placements to start
    from, and to be no worse than.
    """
    today = problem.today_tps
    known = min([problem.cost_tps(place) for place in others], default=today)
    best, least = None, (problem.excess_cores(problem.start), today - least_gain_tps)

    def look_at(place: Ints) -> None:
        nonlocal best, least
        cost = problem.cost_tps(place)
        paid = cost + problem.price_tps * problem.moves(place)
        key = round(problem.excess_cores(place), 9), paid
        worth = paid < today - least_gain_tps and cost <= known + TIE * problem.total_tps
        if worth and key <= least:
            best, least = place, key

    for place in _candidates(problem, others):
        look_at(place)
    for seed in range(MENDS):
        begin = problem.start if best is None else best
        look_at(anneal(problem, begin, _rounds(problem), WARM, seed))
    return best


def _candidates(problem: Problem, others: tuple[Ints, ...]) -> Iterator[Ints]:
    workers = _workers_level(problem)
    for place in (problem.start, *others):
        yield place
        yield refine(workers, place)
    tried: set[bytes] = set()
    for nodes in _node_starts(problem, others):
        for fill in NODE_FILL:
            refined = refine(_nodes_level(problem, fill), nodes)
            if refined.tobytes() in tried:
                break
            tried.add(refined.tobytes())
            place = refine(workers, _share_out(problem, refined))
            yield place
            if problem.excess_cores(place) <= problem.excess_cores(problem.start):
                break
    if len(problem.start) <= FEW_EXECUTORS:
        for seed in range(ANNEALINGS):
            yield anneal(problem, problem.start, _rounds(problem), HOT, seed)


def _node_starts(problem: Problem, others: tuple[Ints, ...]) -> Iterator[Ints]:
    """Give today's nodes, then partitions of equal and of packed shares, under today's names."""
    for place in (problem.start, *others):
        yield problem.node_of[place]
    room = _node_room(problem)
    has_open = np.bincount(problem.node_of[problem.is_open], minlength=problem.nodes) > 0
    usable = np.flatnonzero(has_open & (room > TOLERANCE_CORES))[: len(problem.start)]
    for shares in _shares(problem, room[usable]):
        for seed in range(PARTITIONS[len(problem.start) > FEW_EXECUTORS]):
            parts = partition(problem.graph, problem.cores, shares, seed)
            yield _named(problem, parts, usable, room)


def _rounds(problem: Problem) -> int:
    executors = len(problem.start)
    most = min(ROUNDS_OF_ALL // executors, ROUNDS_PER_EXECUTOR * executors)
    return max(problem.effort * most, ROUNDS_LEAST)


def _shares(problem: Problem, room: Floats) -> Iterator[Floats]:
    """Divide the load in proportion to the room, and by filling one node after another."""
    if not room.size:
        return
    yield room
    left = float(problem.cores.sum()) - np.concatenate([[0.0], np.cumsum(-np.sort(-room))[:-1]])
    packed = np.minimum(-np.sort(-room), left)
    if packed[-1] < room.min() - TOLERANCE_CORES:
        yield packed[packed > TOLERANCE_CORES]


def _named(problem: Problem, parts: Ints, usable: Ints, room: Floats) -> Ints:
    """Give parts to nodes so that few executors move and little is cut to those that may not.

    The assignment of H. W. Kuhn, "The Hungarian method", Naval Res. Logist. Quart. 2 (1955).
    """
    at = problem.node_of[problem.start]
    count = int(parts.max()) + 1
    fixed = np.where(problem.free, 0.0, 1.0)
    loyal = np.zeros((count, problem.nodes))
    np.add.at(loyal, (parts, at), problem.price_tps)
    owner = np.repeat(np.arange(len(parts)), np.diff(problem.graph.first))
    pull = problem.graph.tps * fixed[problem.graph.peers] * problem.free[owner]
    np.add.at(loyal, (parts[owner], at[problem.graph.peers]), pull)
    size = np.bincount(parts, weights=problem.cores, minlength=count)
    # Too small a node is the last choice: what is too much has to leave again.
    too_much = np.maximum(size[:, None] - room[usable], 0.0)
    scale = (problem.total_tps + 1.0) / max(float(problem.cores.sum()), TOLERANCE_CORES)
    rows, columns = linear_sum_assignment(loyal[:, usable] - scale * too_much, maximize=True)
    name = np.zeros(count, dtype=np.int64)
    name[rows] = usable[columns]
    return np.where(problem.free, name[parts], at)


def _node_room(problem: Problem) -> Floats:
    """Room of open workers, and of closed ones what is on them."""
    load = problem.load_cores(problem.start)
    room = np.where(problem.is_open, problem.room_cores, np.minimum(load, problem.room_cores))
    return np.bincount(problem.node_of, weights=room, minlength=problem.nodes).astype(np.float64)


def _workers_level(problem: Problem) -> Level:
    return Level(
        graph=problem.graph,
        cores=problem.cores,
        free=problem.free,
        home=problem.start,
        group_of=problem.node_of,
        is_open=problem.is_open,
        room_cores=problem.room_cores,
        weight_group=problem.weight_node,
        weight_place=problem.weight_worker,
        price_tps=problem.price_tps,
    )


def _nodes_level(problem: Problem, fill: float) -> Level:
    every = np.arange(problem.nodes)
    return replace(
        _workers_level(problem),
        home=problem.node_of[problem.start],
        group_of=every,
        is_open=np.isin(every, problem.node_of[problem.is_open]),
        room_cores=fill * _node_room(problem),
        # Between nodes is between workers too.
        weight_group=problem.weight_node + problem.weight_worker,
        weight_place=0.0,
    )


def _share_out(problem: Problem, nodes: Ints) -> Ints:
    """Give the executors of each node to its workers: old ones stay, big newcomers go first."""
    place = problem.start.copy()
    stays = ~problem.free | (nodes == problem.node_of[place])
    load = np.bincount(
        place[stays], weights=problem.cores[stays], minlength=len(problem.node_of)
    ).astype(np.float64)
    workers = [
        np.flatnonzero((problem.node_of == n) & problem.is_open) for n in range(problem.nodes)
    ]
    affinity = np.zeros(len(problem.node_of))
    for e in np.flatnonzero(~stays)[np.argsort(-problem.cores[~stays], kind="stable")]:
        among = workers[nodes[e]]
        row = problem.graph.row(int(e))
        here = stays[problem.graph.peers[row]]
        np.add.at(affinity, place[problem.graph.peers[row][here]], problem.graph.tps[row][here])
        left = problem.room_cores[among] - load[among] - problem.cores[e]
        fits = left >= -TOLERANCE_CORES
        # The worker it talks to most, of equals the roomiest; if it fits nowhere, the roomiest.
        liking = np.where(fits, problem.weight_worker * affinity[among], -1.0)
        w = int(among[np.lexsort((-left, -liking))[0]])
        affinity[:] = 0.0
        place[e], stays[e] = w, True
        load[w] += problem.cores[e]
    return place

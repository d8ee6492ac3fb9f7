"""Looks for a cheaper placement by chance: simulated annealing with moves and exchanges.

S. Kirkpatrick, C. D. Gelatt, M. P. Vecchi, "Optimization by simulated annealing", Science 220
(1983). It finds what no single move and no partition leads to.
"""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from controller.core.classify import TOLERANCE_CORES
from controller.core.cluster import Floats, Ints
from controller.core.compiled import compiled
from controller.core.target.problem import Problem

# How often a place is drawn at random instead of where somebody is that it talks to.
STRAY = 0.1
# In the mean traffic of a pair: the temperature at the end.
COLD = 0.01


class _Board(NamedTuple):
    """What the compiled loop looks at; as in `Problem` and `Graph`, `movable` as indices."""

    first: Ints
    peers: Ints
    tps: Floats
    start: Ints
    cores: Floats
    movable: Ints
    is_open: NDArray[np.bool_]
    node_of: Ints
    weight_node: float
    weight_worker: float
    price_tps: float


def anneal(problem: Problem, place: Ints, steps: int, hot: float, seed: int) -> Ints:
    """Look for a placement that costs less, its moves from today's included.

    Parameters
    ----------
    problem : Problem
        Load, room and traffic.
    place : Ints, shape (E,)
        Where to begin.
    steps : int
        How often a move is tried, for each executor.
    hot : float
        The temperature at the beginning, in the mean traffic of a pair: 3 forgets where it began,
        1 and less mends what is not yet good.
    seed : int
        Of the dice.

    Returns
    -------
    Ints, shape (E,)
        The best placement met. No worker is fuller than `room_cores`, or than it was at the
        beginning. O(steps · pairs with traffic), and for each try that finds its worker full up to
        O(E) more, to find whom to exchange with.
    """
    graph = problem.graph
    movable = np.flatnonzero(problem.free & (np.diff(graph.first) > 0))
    if not movable.size or len(problem.node_of) < 2:
        return place
    load = problem.load_cores(place)
    left = np.maximum(problem.room_cores, load) - load + TOLERANCE_CORES
    board = _Board(
        graph.first,
        graph.peers,
        graph.tps,
        problem.start,
        problem.cores,
        movable,
        problem.is_open.copy(),
        problem.node_of,
        float(problem.weight_node),
        float(problem.weight_worker),
        float(problem.price_tps),
    )
    mean_tps = float(graph.tps.mean())
    return _anneal(board, place.copy(), left, steps, (hot * mean_tps, COLD * mean_tps, seed))


@compiled
def _gain(board: _Board, place: Ints, e: int, to: int) -> float:
    """Compute by how much less a placement costs after a move."""
    at = place[e]
    here, there = board.node_of[at], board.node_of[to]
    gain = board.price_tps * (int(to == board.start[e]) - int(at == board.start[e]))
    for k in range(board.first[e], board.first[e + 1]):
        w = place[board.peers[k]]
        node = int(board.node_of[w] == there) - int(board.node_of[w] == here)
        worker = int(w == to) - int(w == at)
        gain += board.tps[k] * (board.weight_node * node + board.weight_worker * worker)
    return gain


@compiled
def _somebody_on(board: _Board, place: Ints, worker: int, but: int) -> int:
    """Draw who may leave a worker; -1 if nobody is met."""
    begin = np.random.randint(len(board.movable))
    for i in range(len(board.movable)):
        e = board.movable[(begin + i) % len(board.movable)]
        if place[e] == worker and e != but:
            return int(e)
    return -1


@compiled
def _anneal(
    board: _Board, place: Ints, left: Floats, steps: int, heat: tuple[float, float, int]
) -> Ints:
    hot, cold, seed = heat
    np.random.seed(seed)
    tries = steps * len(board.movable)
    gained = best_gained = 0.0
    best = place.copy()
    for i in range(tries):
        e = board.movable[np.random.randint(len(board.movable))]
        peer = board.peers[np.random.randint(board.first[e], board.first[e + 1])]
        at, to = place[e], place[peer]
        if np.random.random() < STRAY:
            to = np.random.randint(len(board.node_of))
        if to == at or not board.is_open[to]:
            continue
        gain, other = _gain(board, place, e, to), -1
        if board.cores[e] > left[to]:
            other = _somebody_on(board, place, to, peer)
            if other < 0 or not board.is_open[at]:
                continue
            more = board.cores[e] - board.cores[other]
            if more > left[to] or -more > left[at]:
                continue
            place[e] = to
            gain += _gain(board, place, other, at)
            place[e] = at
        if gain < 0 and np.random.random() >= math.exp(gain / (hot * (cold / hot) ** (i / tries))):
            continue
        place[e] = to
        left[at] += board.cores[e]
        left[to] -= board.cores[e]
        if other >= 0:
            place[other] = at
            left[to] += board.cores[other]
            left[at] -= board.cores[other]
        gained += gain
        if gained > best_gained + 1e-9:
            best_gained = gained
            best[:] = place
    return best

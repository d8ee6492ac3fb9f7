"""A long search for a good placement, as a yardstick: what might be reached if time were no matter.

Simulated annealing (Kirkpatrick, Gelatt and Vecchi, Science 220, 1983) with moves and exchanges. It
knows neither prices of moves nor an order in which they could be made, so it may be out of reach.
"""

import math

import numpy as np

from controller.core.classify import TOLERANCE_CORES, Limits
from controller.core.cluster import Cluster, Floats, Ints, LoadSnapshot
from controller.core.compiled import compiled
from controller.core.target.problem import Graph

# The temperature, in the mean traffic of a pair, from hot to cold.
HOT, COLD = 3.0, 0.01
STEPS_PER_EXECUTOR = 20_000
# How often a place is drawn at random instead of beside somebody it talks to.
STRAY = 0.1


def anneal(cluster: Cluster, start: LoadSnapshot, rules: Limits, seed: int) -> LoadSnapshot:
    """Look long for a placement of least weighted traffic.

    Parameters
    ----------
    cluster : Cluster
        Places, all of them open.
    start : LoadSnapshot
        Where to begin; all of it movable.
    rules : Limits
        Weights, and the upper threshold that no worker crosses unless it was above it before.
    seed : int
        Of the dice.

    Returns
    -------
    LoadSnapshot
        The best placement met.
    """
    graph = Graph.of(start.traffic, len(start.executors))
    load = np.bincount(start.place, start.cpu_cores, len(cluster.workers))
    room = np.maximum(rules.high_frac * cluster.capacity_cores, load) + TOLERANCE_CORES
    mean_tps = float(graph.tps.mean()) if graph.tps.size else 0.0
    place = _anneal(
        (graph.first, graph.peers, graph.tps),
        (cluster.node_of, room, start.cpu_cores),
        start.place.copy(),
        (rules.weight_node, rules.weight_worker, HOT * mean_tps, COLD * mean_tps),
        (STEPS_PER_EXECUTOR * len(start.place), seed),
    )
    return start.at(start.time_s, place, start.cpu_cores, start.traffic)


@compiled
def _gain(
    graph: tuple[Ints, Ints, Floats],
    node_of: Ints,
    place: Ints,
    weights: tuple[float, float, float, float],
    move: tuple[int, int],
) -> float:
    """Compute by how much less a placement costs after a move."""
    first, peers, tps = graph
    e, to = move
    gain = 0.0
    for k in range(first[e], first[e + 1]):
        w = place[peers[k]]
        node = int(node_of[w] == node_of[to]) - int(node_of[w] == node_of[place[e]])
        worker = int(w == to) - int(w == place[e])
        gain += tps[k] * (weights[0] * node + weights[1] * worker)
    return gain


@compiled
def _anneal(
    graph: tuple[Ints, Ints, Floats],
    places: tuple[Ints, Floats, Floats],
    place: Ints,
    weights: tuple[float, float, float, float],
    dice: tuple[int, int],
) -> Ints:
    first, peers, _ = graph
    node_of, room, cores = places
    _, _, hot, cold = weights
    steps, seed = dice
    np.random.seed(seed)
    left = room.copy()
    for e in range(len(place)):
        left[place[e]] -= cores[e]
    gained = best_gain = 0.0
    best = place.copy()
    for step in range(steps):
        temperature = hot * (cold / hot) ** (step / steps)
        e = np.random.randint(len(place))
        if first[e] == first[e + 1]:
            continue
        peer = peers[np.random.randint(first[e], first[e + 1])]
        to = place[peer]
        if np.random.random() < STRAY:
            to = np.random.randint(len(node_of))
        at = place[e]
        if to == at:
            continue
        gain = _gain(graph, node_of, place, weights, (e, to))
        other = -1
        if cores[e] > left[to]:
            other = np.random.randint(len(place))  # somebody to change places with
            for _ in range(len(place)):
                if place[other] == to and other != peer:
                    break
                other = (other + 1) % len(place)
            more = cores[e] - cores[other]
            if place[other] != to or more > left[to] or -more > left[at]:
                continue
            place[e] = to
            gain += _gain(graph, node_of, place, weights, (other, at))
            place[e] = at
        if gain < 0 and np.random.random() >= math.exp(gain / temperature):
            continue
        place[e] = to
        left[at] += cores[e]
        left[to] -= cores[e]
        if other >= 0:
            place[other] = at
            left[to] += cores[other]
            left[at] -= cores[other]
        gained += gain
        if gained > best_gain + 1e-9:
            best_gain = gained
            best[:] = place
    return best

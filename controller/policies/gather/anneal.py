"""Looks for a cheaper placement by chance: simulated annealing that moves and exchanges groups.

S. Kirkpatrick, C. D. Gelatt, M. P. Vecchi, "Optimization by simulated annealing", Science 220
(1983). Two things make it find what no single move and no partition leads to. Executors that talk
move together, for alone each of them would lose. And on the way workers may be too full, at a price
that follows how often some are: M. Gendreau, A. Hertz, G. Laporte, "A tabu search heuristic for the
vehicle routing problem", Manage. Sci. 40 (1994). Only placements count in which no worker is.
"""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from controller.core.cluster import Floats, Ints
from controller.core.compiled import compiled
from controller.core.distance import TrafficWeights, weigh, weighed
from controller.core.fit import TOLERANCE_CORES, Fit
from controller.core.room import shift
from controller.policies.gather.problem import Problem

# Shares of the trips. Some go to any worker at random, instead of to the worker of a peer. Some are
# of a group, instead of one executor, and some bring others back in exchange.
STRAY, TOGETHER, BACK = 0.1, 0.6, 0.5
MOST_IN_GROUP = 24
# In the mean traffic of a pair: the temperature at the end.
COLD = 0.01
# Tries for each executor in a round.
TRIES = 10
# The price of a core too much, at first: this times the traffic of all executors per core they use.
# After a round it rises by a step if workers were too full in more of its tries than OFTEN. It
# falls by one if in fewer than SELDOM. It stays within these times the first one. Where executors
# are alike, full workers are above by so little that only a high price empties the last.
EXCESS_PRICE, PRICE_STEP, PRICE_LEAST, PRICE_MOST = 0.3, 1.05, 0.05, 10_000.0
OFTEN, SELDOM = 0.8, 0.5
# The same loads in another order add up to a sum that differs by less.
ROUNDING_CORES = 1e-12


class _Board(NamedTuple):
    """The input of the compiled loop; as in `Problem` and `Graph`, some also as indices."""

    first: Ints
    peers: Ints
    pull: Floats  # (K,), as one of `Problem.pulls`
    hop_tps: Floats  # (K,), at both ends together, as in `HopRates`
    loudest_pull: Floats
    start: Ints
    far: Floats  # (E,), what an executor uses if all its peers are on other nodes
    held: Floats  # (S, E), what it keeps in each kind of space, as cores
    is_movable: NDArray[np.bool_]
    movable: Ints
    is_open: NDArray[np.bool_]
    open: Ints
    node_of: Ints
    unit_of: Ints
    weights: TrafficWeights
    hop: TrafficWeights
    price_tps: float
    within: bool  # whether executors stay on their nodes


class _Left(NamedTuple):
    """What is left, in cores; negative where something is too full."""

    cpu: Floats  # (U,)
    space: Floats  # (S, W)


class _Course(NamedTuple):
    """How it cools: temperatures in weighted t/s, and the first price of a core too much."""

    rounds: int
    hot: float
    cold: float
    excess_price: float
    seed: int


class _Trip(NamedTuple):
    """Executors tried elsewhere together, from where to where; only the first entries count."""

    who: Ints
    origin: Ints
    goal: Ints


def anneal(  # noqa: PLR0917
    problem: Problem,
    place: Ints,
    rounds: int,
    hot: float,
    seed: int,
    pull: Floats | None = None,
    within: bool = False,
) -> Ints:
    """Look for a placement that costs less, its moves from today's included; gives the best one
    met.

    Of all met it has the least load above `fill`, and of those the least cost. In each of
    `rounds` ten trips are tried for each executor. `hot` is the temperature at the beginning, in
    the mean traffic of a pair. At 3 the search forgets where it began, at 1 and less it mends what
    is not yet good. A trip costs O(pairs with traffic of those that move), and O(E) more where
    others come back, to find them. `pull` and `within` are one of `Problem.pulls`.
    """
    graph = problem.graph
    talks = np.diff(graph.first) > 0
    is_movable = problem.free & talks
    movable = np.flatnonzero(is_movable)
    if not movable.size or not problem.is_open.any() or len(problem.node_of) < 2:
        return place
    fit = problem.fit.placed(place)
    held, space_left = _spaces_as_cores(problem, place)
    left = _Left(fit.by_unit(fit.largest(problem.fill)), space_left)
    loudest = np.zeros(len(place))
    pull = graph.tps if pull is None else pull
    loudest[talks] = np.maximum.reduceat(pull, graph.first[:-1][talks])
    hop_tps, far = _hops(problem, fit)
    board = _Board(
        graph.first,
        graph.peers,
        pull,
        hop_tps,
        loudest,
        problem.start,
        far,
        held,
        is_movable,
        movable,
        problem.is_open.copy(),
        np.flatnonzero(problem.is_open),
        problem.node_of,
        np.ascontiguousarray(problem.fit.cluster.unit_of),
        problem.distance.weights,
        fit.hop,
        float(problem.price_tps),
        within,
    )
    mean_tps = float(pull.mean())
    per_core = float(pull.sum()) / 2 / max(float(problem.fit.demand.sum()), TOLERANCE_CORES)
    course = _Course(rounds, hot * mean_tps, COLD * mean_tps, EXCESS_PRICE * per_core, seed)
    return _anneal(board, place.copy(), left, course)


def _spaces_as_cores(problem: Problem, place: Ints) -> tuple[Floats, Floats]:
    """Give what executors keep, (S, E), and what is left, (S, W), so that all together are as much.

    An executor of mean size is then as much too much in a full space as on a full CPU.
    """
    uses, total = problem.reserve.spaces, float(problem.fit.demand.sum())
    held, left = np.zeros((len(uses), len(place))), np.zeros((len(uses), len(problem.node_of)))
    for s, one in enumerate(uses):
        kept = float(one.held.sum())
        cores = total / kept if kept else 0.0
        held[s] = one.held * cores
        left[s] = one.left(problem.reserve.fit, place) * cores if cores else np.inf
    return held, left


def _hops(problem: Problem, fit: Fit) -> tuple[Floats, Floats]:
    """Give what rows of the graph send at both ends, and what executors use far from all peers."""
    graph, node_of, rates = problem.graph, problem.node_of, fit.hop_rates
    if fit.traffic is None:
        return np.zeros(len(graph.owner)), fit.demand
    ends = fit.place[graph.owner], fit.place[graph.peers]
    near = (node_of[ends[0]] == node_of[ends[1]], ends[0] == ends[1])
    saved = graph.hop_tps * weighed(fit.hop, *(marks.astype(np.float64) for marks in near))
    own = rates.scale * np.bincount(graph.owner, saved, len(fit.demand))
    ends_scale = rates.scale[graph.owner] + rates.scale[graph.peers]
    return graph.hop_tps * ends_scale, fit.demand + own


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
        gain += board.pull[k] * weigh(board.weights, node, worker)
    return gain


@compiled
def _gather(board: _Board, place: Ints, trip: _Trip, begin: int, goal: int) -> int:
    """Take along peers of the executor at `begin` on its worker, then theirs; gives the new end."""
    end, most = begin + 1, begin + 1
    if np.random.random() < TOGETHER:
        most += np.random.randint(MOST_IN_GROUP)
    at = place[trip.who[begin]]
    # A peer comes along from this share of the loudest pair's traffic on: usually from a small one.
    loud = np.random.random() ** 2
    i = begin
    while i < end < most:
        e = trip.who[i]
        for k in range(board.first[e], board.first[e + 1]):
            peer = board.peers[k]
            if end == most or board.pull[k] < loud * board.loudest_pull[e]:
                continue
            if place[peer] == at and board.is_movable[peer] and peer not in trip.who[begin:end]:
                trip.who[end] = peer
                end += 1
        i += 1
    trip.goal[begin:end] = goal
    return end


@compiled
def _another_on(board: _Board, place: Ints, worker: int, but: int) -> int:
    """Draw an executor that may leave a worker, but not `but`; -1 if there is none."""
    begin = np.random.randint(len(board.movable))
    for i in range(len(board.movable)):
        e = board.movable[(begin + i) % len(board.movable)]
        if place[e] == worker and e != but:
            return int(e)
    return -1


@compiled
def _draw(board: _Board, place: Ints, left: _Left, is_full: bool, trip: _Trip) -> int:
    """Draw a trip: which executors go where; gives how many, perhaps 0."""
    e = board.movable[np.random.randint(len(board.movable))]
    peer = board.peers[np.random.randint(board.first[e], board.first[e + 1])]
    at, to = place[e], place[peer]
    if np.random.random() < STRAY:
        if is_full:  # to where most room is
            to = board.open[np.argmax(left.cpu[board.unit_of[board.open]])]
        else:
            to = np.random.randint(len(board.node_of))
    if to == at or not board.is_open[to]:
        return 0
    if board.within and board.node_of[to] != board.node_of[at]:
        return 0
    trip.who[0] = e
    end = _gather(board, place, trip, 0, to)
    if board.is_open[at] and np.random.random() < BACK:
        # Not the peer: e goes where it is.
        other = _another_on(board, place, to, peer)
        if other >= 0:
            trip.who[end] = other
            end = _gather(board, place, trip, end, at)
    return end


@compiled
def _shift(board: _Board, place: Ints, left: _Left, e: int, to: int) -> float:
    """Move one; gives by how many cores more CPUs and spaces are too full.

    At both ends of what it sends and receives, hops are saved where it comes to, and no longer
    where it was.
    """
    at, came = place[e], board.far[e]
    went = came
    if board.hop.worker > 0.0:
        for k in range(board.first[e], board.first[e + 1]):
            w = place[board.peers[k]]
            node, here = board.node_of[w], int(w == at)
            saved = weigh(board.hop, int(node == board.node_of[at]), here)
            went -= board.hop_tps[k] * saved
            saved = weigh(board.hop, int(node == board.node_of[to]), int(w == to))
            came -= board.hop_tps[k] * saved
    more = shift(left.cpu, board.unit_of[at], board.unit_of[to], came, went)
    for s in range(len(board.held)):
        more += shift(left.space[s], at, to, board.held[s, e], board.held[s, e])
    place[e] = to
    return more


@compiled
def _excess(left: _Left) -> float:
    return float(np.maximum(-left.cpu, 0.0).sum() + np.maximum(-left.space, 0.0).sum())


@compiled
def _anneal(board: _Board, place: Ints, left: _Left, course: _Course) -> Ints:
    np.random.seed(course.seed)
    most = 2 * MOST_IN_GROUP
    trip = _Trip(np.empty(most, np.int64), np.empty(most, np.int64), np.empty(most, np.int64))
    price = course.excess_price
    tries = TRIES * len(board.movable)
    excess = best_excess = _excess(left)
    gained = best_gained = 0.0
    best = place.copy()
    for i in range(course.rounds):
        heat = course.hot * (course.cold / course.hot) ** (i / course.rounds)
        full = 0
        for _ in range(tries):
            is_full = excess > TOLERANCE_CORES
            full += int(is_full)
            end = _draw(board, place, left, is_full, trip)
            gain = more = 0.0
            for j in range(end):
                e = trip.who[j]
                trip.origin[j] = place[e]
                gain += _gain(board, place, e, trip.goal[j])
                more += _shift(board, place, left, e, trip.goal[j])
            worth = gain - price * more
            # A loss is kept by chance, the seldomer the greater it is and the colder it has become.
            if worth < 0 and np.random.random() >= math.exp(worth / heat):
                for j in range(end):
                    _shift(board, place, left, trip.who[j], trip.origin[j])
                continue
            gained += gain
            excess += more
            is_fuller = excess > best_excess + TOLERANCE_CORES
            if is_fuller or (
                excess > best_excess - TOLERANCE_CORES and gained <= best_gained + 1e-9
            ):
                continue
            # `excess` has gathered rounding errors, so the room that is left has the last word.
            excess = _excess(left)
            if excess <= best_excess + ROUNDING_CORES:
                best_excess, best_gained = min(excess, best_excess), gained
                best[:] = place
        if full > OFTEN * tries:
            price = min(price * PRICE_STEP, course.excess_price * PRICE_MOST)
        elif full < SELDOM * tries:
            price = max(price / PRICE_STEP, course.excess_price * PRICE_LEAST)
    return best

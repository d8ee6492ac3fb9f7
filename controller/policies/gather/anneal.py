"""Looks for a cheaper placement by chance: simulated annealing that moves and exchanges groups.

S. Kirkpatrick, C. D. Gelatt, M. P. Vecchi, "Optimization by simulated annealing", Science 220
(1983). Two things make it find what no single move and no partition leads to. Executors that talk
move together, for alone each of them would lose. And on the way workers may be too full, at a price
that follows how often some are: M. Gendreau, A. Hertz, G. Laporte, "A tabu search heuristic for the
vehicle routing problem", Manage. Sci. 40 (1994). Only placements count in which no worker is.
"""

import numpy as np

from controller.core.cluster import Floats, Ints
from controller.core.distance import TrafficWeights, weighed
from controller.core.fit import TOLERANCE_CORES, Fit
from controller.core.loops import annealing
from controller.policies.gather.problem import Problem

# Shares of the trips. Some go to any worker at random, instead of to the worker of a peer. Some are
# of a group, instead of one executor, and some bring others back in exchange.
STRAY, TOGETHER, BACK = 0.1, 0.6, 0.5
# In the mean traffic of a pair: the temperature at the end.
COLD = 0.01
# The price of a core too much, at first: this times the traffic of all executors per core they use.
EXCESS_PRICE = 0.3


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
    held, space_of, space_left = _spaces_as_cores(problem, place)
    loudest = np.zeros(len(place))
    pull = graph.tps if pull is None else pull
    loudest[talks] = np.maximum.reduceat(pull, graph.first[:-1][talks])
    hop_tps, far = _hops(problem, fit)
    board = annealing.Board(
        first=graph.first,
        peers=graph.peers,
        pull=pull,
        hop_tps=hop_tps,
        loudest_pull=loudest,
        start=problem.start,
        far=far,
        held=held,
        space_of=space_of,
        is_movable=is_movable,
        movable=movable,
        is_open=problem.is_open,
        open=np.flatnonzero(problem.is_open),
        node_of=problem.node_of,
        unit_of=problem.fit.cluster.unit_of,
        costs=_each(problem.distance.weights, np.array([-1.0, 0.0, 1.0])),
        saved=_each(fit.hop, np.array([0.0, 1.0])),
        price_tps=problem.price_tps,
        tolerance_cores=TOLERANCE_CORES,
        within=within,
        stray=STRAY,
        together=TOGETHER,
        back=BACK,
    )
    mean_tps = float(pull.mean())
    per_core = float(pull.sum()) / 2 / max(float(problem.fit.demand.sum()), TOLERANCE_CORES)
    return annealing.anneal(
        board,
        place.copy(),
        fit.by_unit(fit.largest(problem.fill))[np.newaxis],
        space_left,
        rounds,
        hot * mean_tps,
        COLD * mean_tps,
        EXCESS_PRICE * per_core,
        seed,
    )


def _each(weights: TrafficWeights, counts: Floats) -> Floats:
    """Weigh each number of tuples between nodes (rows) with each between workers (columns)."""
    return np.array([weighed(weights, node, counts) for node in counts])


def _spaces_as_cores(problem: Problem, place: Ints) -> tuple[Floats, Ints, Floats]:
    """Give what executors keep, (S, E), where each worker keeps it, (S, W), and what is left there.

    All executors together keep as much as they use. So one of mean size is as much too much in a
    full space as on a full CPU. Declared memory is such a space, of a whole node.
    """
    fit, node_of = problem.reserve.fit, problem.node_of
    each = np.arange(len(node_of))
    rows = [(one.held, each, one.left(fit, place)) for one in problem.reserve.spaces]
    if fit.memory is not None:
        most_mb = np.maximum(fit.memory.has_mb, fit.memory.held_mb(fit.place))
        rows.append((fit.memory.each_mb, node_of, most_mb - fit.memory.held_mb(place)))
    places = max([len(left) for _, _, left in rows], default=0)
    held, left = np.zeros((len(rows), len(place))), np.full((len(rows), places), np.inf)
    for s, (kept, _, room) in enumerate(rows):
        if kept.any():
            cores = float(problem.fit.demand.sum()) / float(kept.sum())
            held[s], left[s, : len(room)] = kept * cores, room * cores
    space_of = [at for _, at, _ in rows]
    return held, np.array(space_of, np.int64).reshape(len(rows), len(each)), left


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

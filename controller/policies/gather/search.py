"""Looks for the cheapest placement by annealing: from scratch, then from the best that was found.

Cost is the weighted traffic between places plus the price of every move from today's placement.
Of placements that are as good the one is taken whose moves pause least.
"""

from dataclasses import replace
from itertools import product

import numpy as np

from controller.core.cluster import Ints
from controller.policies.gather.anneal import anneal
from controller.policies.gather.problem import TIE, Problem

# It begins ANNEALINGS times from scratch, then with twice as many rounds each time until that is
# the effort. It ends as soon as the best is found a second time. Then it mends the best. The first
# has ROUNDS_OF_ALL rounds divided by the executors, fewer for few, and at least ROUNDS_LEAST.
ANNEALINGS = 3
HOT, WARM = 3.0, 0.5
ROUNDS_OF_ALL, ROUNDS_LEAST, ROUNDS_PER_EXECUTOR = 40_000, 250, 10


def search(problem: Problem, least_gain_tps: float, others: tuple[Ints, ...] = ()) -> Ints | None:
    """Find a placement that costs less than today's by more than `least_gain_tps`, its moves paid.

    Gives the best found: least excess above `high`, then least cost with the moves. None if nothing
    gains enough or everything that does is fuller than today. `others` are placements to be no
    worse than.
    """
    today = problem.today_tps
    known = min([problem.cost_tps(place) for place in others], default=today)
    best, least = problem.start, (problem.excess_at(problem.start), today - least_gain_tps)

    def look_at(place: Ints) -> bool:
        """Return whether it is as good as the best before."""
        nonlocal best, least
        place = renamed(problem, place)
        if problem.reserve.refuses(place):
            return False
        cost, key = problem.cost_tps(place), _key(problem, place)
        worth = key[1] < today - least_gain_tps and cost <= known + TIE * problem.total_tps
        again = best is not problem.start and abs(key[1] - least[1]) <= TIE * problem.total_tps
        if worth and key <= least:
            best, least = place, key
        return again and key[0] <= least[0]

    executors = len(problem.start)
    rounds = max(min(ROUNDS_OF_ALL // executors, ROUNDS_PER_EXECUTOR * executors), ROUNDS_LEAST)
    times = [1] * (ANNEALINGS - 1) + [2**i for i in range(problem.effort.bit_length())]
    for place in others:
        look_at(place)
    for one, pull in product(_as_emptied_or_full(problem), problem.pulls):
        for seed, longer in enumerate(times):
            if look_at(anneal(one, problem.start, longer * rounds, HOT, seed, *pull)):
                break
        look_at(anneal(one, best, max(longer // 4, 1) * rounds, WARM, len(times), *pull))
    return None if best is problem.start else best


def _as_emptied_or_full(problem: Problem) -> list[Problem]:
    """Let annealing empty what is too full; then, where that cannot be, let it stay so.

    Without room it would make one worker fuller for another to be less full. And each way to empty
    a node may fill a link or a space too much, where another placement is better as a whole.
    """
    if problem.stays_high.any():
        fill = np.where(problem.stays_high, problem.full, problem.fill)
    elif problem.fit.cluster.node_cores is not None and problem.fit.above(problem.fill).any():
        fill = np.maximum(problem.fill, problem.fit.used)
    else:
        return [problem]
    return [problem, replace(problem, fill=fill)]


def _key(problem: Problem, place: Ints) -> tuple[float, float]:
    """Compute the excess above `high`, and the cost with the moves."""
    moves_tps = problem.price_tps * problem.moves(place)
    return problem.excess_at(place), problem.cost_tps(place) + moves_tps


def renamed(problem: Problem, place: Ints) -> Ints:
    """Let nodes, then workers, exchange all that they hold, while that saves moves and costs less.

    Annealing does not care on which of several like workers a group is.
    """
    for unit_of in (problem.node_of, np.arange(len(problem.node_of))):
        while (exchanged := _exchanged(problem, place, unit_of)) is not None:
            place = exchanged
    return place


def _exchanged(problem: Problem, place: Ints, unit_of: Ints) -> Ints | None:
    """Let those two nodes or workers exchange that saves most moves, of all that cost less.

    Where both cost as much, those whose moves weigh less.
    """
    count = int(unit_of.max()) + 1
    key = *_key(problem, place), problem.weight(place)
    held = np.zeros((count, count))
    np.add.at(held, (unit_of[problem.start], unit_of[place]), problem.free * problem.weights)
    stay = held.diagonal()
    saved = np.triu(held + held.T - stay - stay[:, None]).ravel()
    for pair in np.argsort(-saved, kind="stable")[: (saved > 0).sum()]:
        one, other = (np.flatnonzero(unit_of == unit) for unit in divmod(int(pair), count))
        if len(one) == len(other) and problem.is_open[one].all() and problem.is_open[other].all():
            to = np.arange(len(unit_of))
            to[one], to[other] = other, one
            exchanged = np.where(problem.free, to[place], place)
            if problem.fit.overfills_memory(exchanged):
                continue
            if (*_key(problem, exchanged), problem.weight(exchanged)) < key:
                return exchanged
    return None

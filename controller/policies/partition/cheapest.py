"""Looks for the cheapest placement by annealing: from scratch, then from the best that was found.

Cost is the weighted traffic between places plus the price of every move from today's placement.
"""

from controller.core.cluster import Ints
from controller.policies.partition.anneal import anneal
from controller.policies.partition.problem import TIE, Problem

# It begins ANNEALINGS times from scratch and mends the best that was found, each with ROUNDS_OF_ALL
# rounds divided by the executors, times the effort; fewer where executors are few, and never less
# than ROUNDS_LEAST.
ANNEALINGS = 3
HOT, WARM = 3.0, 0.5
ROUNDS_OF_ALL, ROUNDS_LEAST, ROUNDS_PER_EXECUTOR = 40_000, 100, 10


def search(problem: Problem, least_gain_tps: float, others: tuple[Ints, ...] = ()) -> Ints | None:
    """Find a placement that costs less than today's by more than `least_gain_tps`, its moves paid.

    Gives the best found: least excess above `high`, then least cost with the moves; None if nothing
    gains enough or everything that does is fuller than today. `others` are placements to be no
    worse than.
    """
    today = problem.today_tps
    known = min([problem.cost_tps(place) for place in others], default=today)
    best, least = problem.start, (problem.excess_cores(problem.start), today - least_gain_tps)

    def look_at(place: Ints) -> None:
        nonlocal best, least
        cost = problem.cost_tps(place)
        paid = cost + problem.price_tps * problem.moves(place)
        key = round(problem.excess_cores(place), 9), paid
        worth = paid < today - least_gain_tps and cost <= known + TIE * problem.total_tps
        if worth and key <= least:
            best, least = place, key

    executors = len(problem.start)
    most = min(ROUNDS_OF_ALL // executors, ROUNDS_PER_EXECUTOR * executors)
    rounds = max(problem.effort * most, ROUNDS_LEAST)
    for place in others:
        look_at(place)
    for seed in range(ANNEALINGS):
        look_at(anneal(problem, problem.start, rounds, HOT, seed))
    look_at(anneal(problem, best, rounds, WARM, seed=ANNEALINGS))
    return None if best is problem.start else best

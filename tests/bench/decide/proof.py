"""Looks for the best placement of all with CP-SAT, which can prove that there is no better one.

L. Perron, F. Didier, S. Gay, "The CP-SAT-LP solver", CP 2023.
"""

from dataclasses import dataclass

import numpy as np
from ortools.sat.python import cp_model

from controller.core.cluster import Ints
from controller.policies.gather.problem import Problem

# It counts in whole numbers: cores by billionths, traffic by this share of all of it.
CORES, SHARES = 1e9, 1e8


@dataclass(frozen=True, slots=True)
class Proof:
    """The best placement found."""

    place: Ints
    is_best: bool  # there is no better one


def prove(problem: Problem, known: Ints, limit_s: float) -> Proof:
    """Begin at a placement that fits and look for the best, for a time in seconds of the clock.

    Moves have no price, and all are made at once.
    """
    model = cp_model.CpModel()
    at = _places(model, problem, known)
    all_nodes = range(len(problem.fit.cluster.nodes))
    nodes = [
        [sum(row[w] for w in np.flatnonzero(problem.node_of == n)) for n in all_nodes] for row in at
    ]
    graph, apart = problem.graph, []
    for e in range(len(known)):
        for k in range(graph.first[e], graph.first[e + 1]):
            peer = int(graph.peers[k])
            if e >= peer:
                continue
            share = SHARES * graph.tps[k] / problem.total_tps
            for weight, places in zip(problem.distance.weights, (nodes, at), strict=True):
                if worth := round(weight * share):
                    apart.append(worth * (1 - _together(model, places[e], places[peer])))
    model.minimize(sum(apart))
    solver = cp_model.CpSolver()
    solver.parameters.max_time_in_seconds = limit_s
    solver.parameters.num_workers = 1
    solver.parameters.random_seed = 1
    status = solver.solve(model)
    if status not in (cp_model.OPTIMAL, cp_model.FEASIBLE):
        return Proof(known, is_best=False)
    place = np.array([[solver.value(one) for one in row].index(1) for row in at], np.int64)
    return Proof(place, status == cp_model.OPTIMAL)


def _places(model: cp_model.CpModel, problem: Problem, known: Ints) -> list[list[cp_model.IntVar]]:
    """Make a variable for each executor on each worker; one of each executor's is 1."""
    workers = range(len(problem.node_of))
    at = [[model.new_bool_var("") for _ in workers] for _ in known]
    for e, row in enumerate(at):
        model.add_exactly_one(row)
        if not problem.free[e]:
            model.add(row[problem.start[e]] == 1)
        for w in workers:
            model.add_hint(row[w], int(known[e] == w))
    cores = np.rint(problem.fit.demand * CORES).astype(np.int64)
    for w in workers:
        room = int(problem.fit.limit[w] * CORES) + len(cores)
        model.add(sum(int(c) * row[w] for c, row in zip(cores, at, strict=True)) <= room)
    return at


def _together(model: cp_model.CpModel, one: list[cp_model.IntVar], other: list[cp_model.IntVar]):  # type: ignore[no-untyped-def]
    """Make the sum that is 1 where both are at the same place, else 0."""
    both = []
    for a, b in zip(one, other, strict=True):
        both.append(model.new_bool_var(""))
        model.add(both[-1] <= a)
        model.add(both[-1] <= b)
    return sum(both)

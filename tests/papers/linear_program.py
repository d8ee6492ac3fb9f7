"""Solves or bounds a placement problem as an integer linear program, by HiGHS."""

from dataclasses import dataclass
from math import inf
from typing import Any

import numpy as np
from scipy import sparse  # type: ignore[import-untyped]
from scipy.optimize import Bounds, LinearConstraint, milp  # type: ignore[import-untyped]

from controller.core.cluster import Floats, Ints
from tests.papers.problem import PlacementProblem

# What `milp` answers if nothing satisfies the constraints.
INFEASIBLE = 2


@dataclass(frozen=True, slots=True, eq=False)
class Solution:
    """How far the solver came.

    Attributes
    ----------
    place : Ints of shape (E,), or None
        The best placement it found; None if it found none.
    cost_tps : float
        What that costs; infinite if there is none.
    lower_tps : float
        No placement costs less; infinite if none fits.
    """

    place: Ints | None
    cost_tps: float
    lower_tps: float

    @property
    def is_proven(self) -> bool:
        """Whether none can be better, or none fits."""
        return self.cost_tps - self.lower_tps <= 1e-6 * max(1.0, self.lower_tps) or (
            self.lower_tps == inf
        )


def solve(problem: PlacementProblem, time_limit_s: float) -> Solution:
    """Find a cheapest placement, or how cheap one could be.

    Parameters
    ----------
    problem : PlacementProblem
        What to place; `bound.between_nodes` of a large one is much smaller.

    Notes
    -----
    For each executor and place a variable is 1 if it is there. For each pair and place (and node)
    one is 1 if the first is there and the other is not. The bound of the relaxation is weak where
    everybody talks to everybody: use `word_count_ratio` there.
    """
    rows, upper, cost = _program(problem)
    count, places = problem.allowed.shape
    most = np.ones(len(cost))
    most[: count * places] = problem.allowed.ravel()
    lower = np.full(len(upper), -np.inf)
    lower[:count] = 1.0
    result = milp(
        cost,
        integrality=(np.arange(len(cost)) < count * places).astype(np.int64),
        bounds=Bounds(0, most),
        constraints=LinearConstraint(rows, lower, upper),
        options={"time_limit": time_limit_s, "mip_rel_gap": 0.0},
    )
    if result.status == INFEASIBLE:
        return Solution(None, inf, inf)
    lower_tps = max(float(result.mip_dual_bound or 0.0), 0.0)
    if result.x is None:
        return Solution(None, inf, lower_tps)
    place = np.argmax(result.x[: count * places].reshape(count, places), axis=1)
    return Solution(place, problem.cost_tps(place), lower_tps)


def _program(problem: PlacementProblem) -> tuple[Any, Floats, Floats]:
    """Build rows, their upper bounds, and costs: each executor is in one place, in the first E."""
    count, places = problem.allowed.shape
    in_node = (problem.node_of == np.arange(len(problem.node_cores))[:, None]).astype(float)
    used = np.kron(problem.cpu_cores, np.eye(places))
    once = sparse.kron(sparse.eye_array(count), np.ones((1, places)))
    blocks: list[list[Any]] = [[once], [used], [in_node @ used]]
    upper = [np.ones(count), problem.place_cores, problem.node_cores]
    cost = [np.zeros(count * places)]
    pair = np.arange(len(problem.one))
    ends = np.concatenate([problem.one, problem.other])
    sides = sparse.csr_array(
        (np.repeat([1.0, -1.0], len(pair)), (np.tile(pair, 2), ends)), shape=(len(pair), count)
    )
    levels = ((problem.weight_place, np.eye(places)), (problem.weight_node, in_node))
    for weight, level in levels:
        if weight == 0 or not pair.size:
            continue
        apart = sparse.kron(sides, level)
        alone = -sparse.eye_array(apart.shape[0])
        blocks = [[*row, None] for row in blocks]
        blocks.append([apart, *[None] * (len(blocks[0]) - 2), alone])
        upper.append(np.zeros(apart.shape[0]))
        cost.append(np.repeat(weight * problem.tps, len(level)))
    rows = sparse.block_array(blocks, format="csr")
    return rows, np.concatenate(upper), np.concatenate(cost)

"""Bounds how local traffic can be, whatever the placement."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from tests.papers.problem import PlacementProblem


def between_nodes(problem: PlacementProblem) -> PlacementProblem:
    """Count traffic between nodes only, and take each node as one place.

    It is without the workers' own capacities, so no cost of it is above the original's.
    """
    nodes = np.arange(len(problem.node_cores))
    at_node = problem.node_of[:, None] == nodes
    return replace(
        problem,
        node_of=nodes,
        place_cores=problem.node_cores,
        allowed=(problem.allowed[:, :, None] & at_node).any(axis=1),
        weight_node=1.0,
        weight_place=0.0,
    )


def word_count_ratio(node_cores: Sequence[float], load_cores: float) -> float:
    """Compute a share of the traffic that has to cross between nodes.

    Returns
    -------
    float
        A lower bound, 0 if one node holds everything.

    Raises
    ------
    ValueError
        The nodes do not hold the load.

    Notes
    -----
    Every first bolt sends to every second one in proportion to what both handle, and CPU is in
    proportion to tuples. So node n keeps a_n·b_n, with its shares of both bolts. That is at most
    f_n², with its share of the load: 1 − Σ f_n² crosses. The sum is largest if the largest node is
    filled up, then the next.
    """
    left = load_cores
    inside = 0.0
    for cores in sorted(node_cores, reverse=True):
        here = min(cores, left)
        inside += (here / load_cores) ** 2
        left -= here
    if left > 1e-9 * load_cores:
        raise ValueError(f"{load_cores:g} cores of load do not fit {sum(node_cores):g}")
    return 1 - inside

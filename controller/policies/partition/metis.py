"""Cuts a graph into parts of given sizes; the only module that knows the partitioner.

METIS has neither fixed vertices nor hard capacities: what it gives is a start for `refine`.
"""

import numpy as np
import pymetis

from controller.core.cluster import Floats, Ints
from controller.policies.partition.problem import Graph

# METIS counts in whole numbers; so fine that rounding does not matter and sums do not overflow.
WEIGHT_STEPS = 1e6
# The part of a share that may be missing or too much, in thousandths.
IMBALANCE_PERMILLE = 20


def partition(graph: Graph, sizes: Floats, shares: Floats, seed: int) -> Ints:
    """Cut a graph so that little traffic crosses between parts; gives each executor's, 0 to P - 1.

    `sizes` are those of the executors. `shares` are what each part may take, all above 0; only
    their ratio counts. Another seed gives another partition, the same one the same.

    Multilevel k-way partitioning; G. Karypis and V. Kumar, "A fast and high quality multilevel
    scheme for partitioning irregular graphs", SIAM J. Sci. Comput. 20 (1998).
    """
    if len(shares) < 2 or len(sizes) < 2:
        return np.zeros(len(sizes), dtype=np.int64)
    whole = pymetis.zero_copy_dtype()
    _, part = pymetis.part_graph(
        len(shares),
        adjacency=pymetis.CSRAdjacency(graph.first.astype(whole), graph.peers.astype(whole)),
        vweights=_whole(sizes, 0).astype(whole),
        eweights=_whole(graph.tps, 1).astype(whole),
        tpwgts=(shares / shares.sum()).tolist(),
        recursive=len(shares) <= 8,
        options=pymetis.Options(seed=seed, ufactor=IMBALANCE_PERMILLE),
    )
    return np.array(part, dtype=np.int64)


def _whole(values: Floats, least: int) -> Ints:
    biggest = float(values.max(initial=0.0))
    scaled = np.rint(values / biggest * WEIGHT_STEPS) if biggest > 0 else np.ones_like(values)
    return np.maximum(scaled, least).astype(np.int64)

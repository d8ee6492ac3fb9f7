"""How much every executor talks to every place, and what a move would change.

The only module that knows the sparse matrices; scipy has no types, so they stay behind `Affinity`.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse  # type: ignore[import-untyped]

from controller.core.cluster import Cluster, Floats, Ints, LoadSnapshot


@dataclass(frozen=True, slots=True, eq=False)
class Affinity:
    """Traffic, both directions added, between executors and places (nodes or workers).

    Attributes
    ----------
    home : Ints, shape (E,)
        Each executor's own place.
    home_tps : Floats, shape (E,)
        Its traffic with the other executors there.
    """

    home: Ints
    home_tps: Floats
    _matrix: Any

    def gain(self, executors: Ints, places: Ints) -> Floats:
        """Compute ASC: by how much traffic inside places grows when an executor moves.

        Parameters
        ----------
        executors, places : Ints, shape (K,)
            Moves, one a row.

        Returns
        -------
        Floats, shape (K,)
            Tuples per second; 0 for an executor's own place.

        Notes
        -----
        Equation 5 of 004: ASC(e, n0→n) = (AS(e,n) - AS(e,n0)) / 2, which is the traffic with the
        target less the traffic with the source.
        """
        if not executors.size:  # scipy answers an empty index with a matrix
            return np.zeros(0)
        with_target = np.asarray(self._matrix[executors, places], dtype=np.float64).ravel()
        return with_target - self.home_tps[executors]

    def neighbours(self) -> tuple[Ints, Ints]:
        """List the executors and other places that talk to each other.

        Returns
        -------
        executors, places : Ints, shape (K,)
            Every pair with traffic but for an executor's own place; only these can gain.
        """
        pairs = self._matrix.tocoo()
        executors, places = pairs.row.astype(np.int64), pairs.col.astype(np.int64)
        away = places != self.home[executors]
        return executors[away], places[away]


def by_node(cluster: Cluster, snapshot: LoadSnapshot) -> Affinity:
    """Measure each executor's traffic with each node.

    Parameters
    ----------
    cluster : Cluster
        Places.
    snapshot : LoadSnapshot
        Traffic.

    Returns
    -------
    Affinity
        Places are node indices.
    """
    return _affinity(snapshot, cluster.node_of[snapshot.place], len(cluster.nodes))


def by_worker(cluster: Cluster, snapshot: LoadSnapshot) -> Affinity:
    """Measure each executor's traffic with each worker.

    Parameters
    ----------
    cluster : Cluster
        Places.
    snapshot : LoadSnapshot
        Traffic.

    Returns
    -------
    Affinity
        Places are worker indices.
    """
    return _affinity(snapshot, snapshot.place, len(cluster.workers))


def _affinity(snapshot: LoadSnapshot, home: Ints, places: int) -> Affinity:
    count = len(snapshot.executors)
    traffic = snapshot.traffic
    # An executor takes its traffic with itself along, so that never counts.
    other = traffic.source != traffic.target
    source, target, tps = traffic.source[other], traffic.target[other], traffic.tps[other]
    ends = np.concatenate([source, target])
    peers = np.concatenate([target, source])
    matrix = sparse.csr_array(
        (np.concatenate([tps, tps]), (ends, home[peers])), shape=(count, places)
    )
    matrix.sum_duplicates()
    home_tps = np.asarray(matrix[np.arange(count), home], dtype=np.float64).ravel()
    return Affinity(home, home_tps, matrix)

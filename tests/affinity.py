"""How much every executor talks to every place, and what a move would change."""

from dataclasses import dataclass

import numpy as np

from controller.core.cluster import Cluster, Floats, Ints, LoadSnapshot


@dataclass(frozen=True, slots=True, eq=False)
class Affinity:
    """Traffic, both directions added, between executors and places (nodes or workers).

    Attributes
    ----------
    home : Ints, shape (E,)
        Each executor's own place.
    tps : Floats, shape (E, places)
        Traffic of each executor with each place.
    """

    home: Ints
    tps: Floats

    def between(self, executors: Ints, places: Ints) -> Floats:
        """Look up traffic.

        Returns
        -------
        Floats, shape (K,)
            Tuples per second; 0 where they do not talk.
        """
        return self.tps[executors, places]

    def gain(self, executors: Ints, places: Ints) -> Floats:
        """Compute ASC: by how much traffic inside places grows when an executor moves.

        Returns
        -------
        Floats, shape (K,)
            Tuples per second; 0 for an executor's own place.

        Notes
        -----
        Equation 5 of 004: ASC(e, n0→n) = (AS(e,n) - AS(e,n0)) / 2, which is the traffic with the
        target less the traffic with the source.
        """
        return self.between(executors, places) - self.between(executors, self.home[executors])


def by_node(cluster: Cluster, snapshot: LoadSnapshot) -> Affinity:
    """Measure each executor's traffic with each node."""
    return _affinity(snapshot, cluster.node_of[snapshot.place], len(cluster.nodes))


def by_worker(cluster: Cluster, snapshot: LoadSnapshot) -> Affinity:
    """Measure each executor's traffic with each worker."""
    return _affinity(snapshot, snapshot.place, len(cluster.workers))


def _affinity(snapshot: LoadSnapshot, home: Ints, places: int) -> Affinity:
    traffic, tps = snapshot.traffic, np.zeros((len(snapshot.executors), places))
    apart = traffic.source != traffic.target
    source, target, said = traffic.source[apart], traffic.target[apart], traffic.tps[apart]
    np.add.at(tps, (source, home[target]), said)
    np.add.at(tps, (target, home[source]), said)
    return Affinity(home, tps)

"""Lays who talks to whom over a placement, to tell what leaves a worker and what leaves a node."""

from dataclasses import dataclass

import numpy as np

from controller.core.cluster import Ints
from controller.replay.recording import Span


@dataclass(frozen=True, slots=True, eq=False)
class Laid:
    """The pairs of a span in a placement.

    Attributes
    ----------
    place : Ints, shape (E,)
        Worker of each executor.
    hops : Ints, shape (P,)
        How far each pair's tuples go: 0 inside a worker, 1 inside a node, 2 between nodes.
    leaving, crossing : Ints
        Pairs that talk across workers, and across nodes.
    """

    place: Ints
    hops: Ints
    leaving: Ints
    crossing: Ints

    @classmethod
    def of(cls, span: Span, place: Ints) -> "Laid":
        """Look where the ends of each pair are.

        Parameters
        ----------
        span : Span
            Who talks to whom.
        place : Ints, shape (E,)
            Worker of each executor.

        Returns
        -------
        Laid
            With a copy of the placement.
        """
        node, at, to = span.cluster.node_of, place.take(span.source), place.take(span.target)
        leaving = (at != to).nonzero()[0]
        crossing = leaving[node.take(at.take(leaving)) != node.take(to.take(leaving))]
        hops = np.zeros(len(at), dtype=np.int64)
        hops[leaving] = 1
        hops[crossing] = 2
        return cls(place.copy(), hops, leaving, crossing)

    def over(self, span: Span, place: Ints) -> "Laid":
        """Lay the pairs of the same span over another placement.

        Parameters
        ----------
        span : Span
            Who talks to whom.
        place : Ints, shape (E,)
            Worker of each executor.

        Returns
        -------
        Laid
            This one itself if nobody has moved.
        """
        return self if np.array_equal(self.place, place) else Laid.of(span, place)

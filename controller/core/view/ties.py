"""What holds executors where they are, and what draws them away."""

from dataclasses import dataclass
from weakref import WeakKeyDictionary

import numpy as np

from controller.core.cluster import Floats, Ints
from controller.core.view.neighbours import Neighbours
from controller.core.view.pairs import Pairs

# So many rows are added up to so many pairs of executor and node at once; as floats they fit into
# the cache, and into memory that need not be mapped anew each time.
ROWS, CELLS = 1 << 13, 1 << 16


@dataclass(frozen=True, slots=True, eq=False)
class Ties:
    """What holds some executors where they are, and what draws them most.

    Attributes
    ----------
    node_tps, worker_tps : Floats, shape (K,)
        Traffic with the other executors of the own node and of the own worker.
    strongest_tps : Floats, shape (K,)
        Traffic with the node that an executor talks to most, be it its own.
    """

    node_tps: Floats
    worker_tps: Floats
    strongest_tps: Floats

    def updated(self, executors: Ints, to: "Ties") -> "Ties":
        """Change some rows.

        Parameters
        ----------
        executors : Ints, shape (K,)
            Which.
        to : Ties
            Their new rows.

        Returns
        -------
        Ties
            With the others as they were.
        """
        after = Ties(self.node_tps.copy(), self.worker_tps.copy(), self.strongest_tps.copy())
        after.node_tps[executors] = to.node_tps
        after.worker_tps[executors] = to.worker_tps
        after.strongest_tps[executors] = to.strongest_tps
        return after


@dataclass(frozen=True, slots=True, eq=False)
class _Block:
    """Where all that some executors send and receive goes to in a placement.

    Attributes
    ----------
    sent, received : Ints or slice
        Pairs; what is sent comes first in the rows.
    cell : Ints
        Of each row: the position of the executor times the number of nodes, plus the peer's node.
    home : Ints, shape (K,)
        The cell of each executor's own node.
    near, near_which : Ints
        Rows that stay inside the worker, and the positions of their executors.
    nodes : int
        How many nodes there are.
    """

    sent: Ints | slice
    received: Ints
    cell: Ints
    home: Ints
    near: Ints
    near_which: Ints
    nodes: int

    @classmethod
    def of(cls, pairs: Pairs, executors: Ints, place: Ints, node: Ints, nodes: int) -> "_Block":
        which, peer, sent, received = pairs.find(executors)
        near = (place.take(peer) == place.take(executors).take(which)).nonzero()[0]
        return cls(
            sent,
            received,
            cell=which * nodes + node.take(peer),
            home=np.arange(len(executors)) * nodes + node.take(executors),
            near=near,
            near_which=which.take(near),
            nodes=nodes,
        )

    def measure(self, tps: Floats) -> Ties:
        """Add up the traffic of all pairs."""
        tps = np.concatenate([tps[self.sent], tps.take(self.received)])
        count = len(self.home)
        cells = np.bincount(self.cell, tps, count * self.nodes).astype(np.float64, copy=False)
        here = np.bincount(self.near_which, tps.take(self.near), count)
        return Ties(
            cells.take(self.home),
            here.astype(np.float64, copy=False),
            cells.reshape(count, self.nodes).max(axis=1, initial=0.0),
        )


@dataclass(frozen=True, slots=True, eq=False)
class _Laid:
    """The pairs laid over a placement, in blocks that fit into the cache."""

    place: Ints
    node: Ints
    blocks: tuple[_Block, ...]

    def is_of(self, place: Ints, node: Ints, nodes: int) -> bool:
        same = self.blocks[0].nodes == nodes and np.array_equal(self.place, place)
        return same and np.array_equal(self.node, node)


# Placements change seldom, and between two decisions only how much is said.
_LAID: WeakKeyDictionary[Pairs, _Laid] = WeakKeyDictionary()
# A policy may be asked twice, with vetoes and without.
_TIES: WeakKeyDictionary[Neighbours, tuple[_Laid, Ties]] = WeakKeyDictionary()


def ties(neighbours: Neighbours, place: Ints, node: Ints, nodes: int) -> Ties:
    """Measure the ties of all executors.

    Parameters
    ----------
    neighbours : Neighbours
        Traffic.
    place, node : Ints, shape (E,)
        Worker and node of every executor.
    nodes : int
        How many nodes there are.

    Returns
    -------
    Ties
        One row an executor.
    """
    laid = _laid(neighbours.pairs, place, node, nodes)
    known = _TIES.get(neighbours)
    if known is not None and known[0] is laid:
        return known[1]
    parts = [block.measure(neighbours.tps) for block in laid.blocks]
    found = Ties(
        np.concatenate([part.node_tps for part in parts]),
        np.concatenate([part.worker_tps for part in parts]),
        np.concatenate([part.strongest_tps for part in parts]),
    )
    _TIES[neighbours] = laid, found
    return found


def ties_of(neighbours: Neighbours, executors: Ints, place: Ints, node: Ints, nodes: int) -> Ties:
    """Measure the ties of some executors.

    Parameters
    ----------
    neighbours : Neighbours
        Traffic.
    executors : Ints, shape (K,)
        Which; K times the number of nodes should fit into the cache.
    place, node : Ints, shape (E,)
        Worker and node of every executor.
    nodes : int
        How many nodes there are.

    Returns
    -------
    Ties
        One row an executor of these.
    """
    return _Block.of(neighbours.pairs, executors, place, node, nodes).measure(neighbours.tps)


def _laid(pairs: Pairs, place: Ints, node: Ints, nodes: int) -> _Laid:
    known = _LAID.get(pairs)
    if known is not None and known.is_of(place, node, nodes):
        return known
    step = max(min(CELLS // max(nodes, 1), ROWS * len(place) // max(2 * len(pairs.source), 1)), 1)
    starts = range(0, max(len(place), 1), step)
    made = _Laid(
        place.copy(),
        node.copy(),
        tuple(
            _Block.of(pairs, np.arange(at, min(at + step, len(place))), place, node, nodes)
            for at in starts
        ),
    )
    _LAID[pairs] = made
    return made

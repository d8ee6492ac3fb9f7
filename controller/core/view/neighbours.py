"""Traffic by executor, and sums of it by place."""

from dataclasses import dataclass
from weakref import WeakKeyDictionary

import numpy as np

from controller.core.cluster import Floats, Ints, Traffic

# So many pairs of executor and node are added up at once; as floats they fit into the cache, and
# into memory that need not be mapped anew each time.
CELLS = 1 << 17


@dataclass(frozen=True, slots=True, eq=False)
class Neighbours:
    """Who talks to whom, in both directions, sorted by executor.

    Attributes
    ----------
    start : Ints, shape (E + 1,)
        Where each executor's rows begin, and the end.
    peer : Ints, shape (2P,)
        The executor at the other end; one that both sends and receives is there twice.
    tps : Floats, shape (2P,)
        Tuples per second.
    """

    start: Ints
    peer: Ints
    tps: Floats

    @classmethod
    def of(cls, traffic: Traffic, count: int) -> "Neighbours":
        """Index traffic by executor; done once for a traffic, however often it is asked for.

        Parameters
        ----------
        traffic : Traffic
            In any order.
        count : int
            Number of executors.

        Returns
        -------
        Neighbours
            Without what an executor sends itself: that never crosses anything.
        """
        known = _INDEXED.get(traffic)
        if known is None or len(known.start) != count + 1:
            known = _INDEXED[traffic] = cls._build(traffic, count)
        return known

    @classmethod
    def _build(cls, traffic: Traffic, count: int) -> "Neighbours":
        source, target, tps = traffic.source, traffic.target, traffic.tps
        apart = source != target
        if not apart.all():
            source, target, tps = source[apart], target[apart], tps[apart]
        ends = np.concatenate([source, target])
        order = sorted_by(ends)
        start = np.zeros(count + 1, dtype=np.int64)
        np.cumsum(np.bincount(ends, minlength=count), out=start[1:])
        peer = np.concatenate([target, source]).take(order)
        return cls(start, peer, np.concatenate([tps, tps]).take(order))

    def rows(self, executors: Ints) -> tuple[Ints, Ints | slice]:
        """Find all rows of some executors.

        Parameters
        ----------
        executors : Ints, shape (K,)
            Which; rising.

        Returns
        -------
        which : Ints
            Position in `executors` of each row found, rising.
        rows : Ints or slice
            Where they are in `peer` and `tps`.
        """
        begin = self.start.take(executors)
        length = self.start.take(executors + 1) - begin
        which = np.repeat(np.arange(len(executors)), length)
        if executors.size and executors[-1] - executors[0] == len(executors) - 1:
            return which, slice(begin[0], begin[0] + len(which))
        shift = begin - np.cumsum(length) + length
        return which, np.arange(len(which)) + shift.take(which)


# Indexing costs as much as a decision, and traffic outlives many: every step of a walk, and both
# looks of a policy at one cycle.
_INDEXED: WeakKeyDictionary[Traffic, Neighbours] = WeakKeyDictionary()


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
    step = max(CELLS // max(nodes, 1), 1)
    blocks = [
        ties_of(neighbours, np.arange(at, min(at + step, len(place))), place, node, nodes)
        for at in range(0, max(len(place), 1), step)
    ]
    return Ties(
        np.concatenate([block.node_tps for block in blocks]),
        np.concatenate([block.worker_tps for block in blocks]),
        np.concatenate([block.strongest_tps for block in blocks]),
    )


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
    which, rows = neighbours.rows(executors)
    count, peer, tps = len(executors), neighbours.peer[rows], neighbours.tps[rows]
    cells = np.bincount(which * nodes + node.take(peer), tps, count * nodes)
    talk_tps = cells.astype(np.float64, copy=False).reshape(count, nodes)
    same = np.flatnonzero(place.take(peer) == place[executors].take(which))
    here = np.bincount(which.take(same), tps.take(same), count)
    return Ties(
        talk_tps[np.arange(count), node[executors]],
        here.astype(np.float64, copy=False),
        talk_tps.max(axis=1, initial=0.0),
    )


def sums(codes: Ints, values: Floats) -> tuple[Ints, Floats]:
    """Add up the values of equal codes.

    Parameters
    ----------
    codes : Ints, shape (K,)
        Not negative.
    values : Floats, shape (K,)
        One a code.

    Returns
    -------
    codes : Ints
        Each once, rising.
    sums : Floats
        Of each.
    """
    order = sorted_by(codes)
    codes = codes.take(order)
    first = firsts(codes)
    return codes.take(first), run_sums(values.take(order), first)


def found(codes: Ints, values: Floats, wanted: Ints) -> Floats:
    """Look values up.

    Parameters
    ----------
    codes : Ints, shape (K,)
        Each once, rising.
    values : Floats, shape (K,)
        One a code.
    wanted : Ints, shape (Q,)
        Codes asked for.

    Returns
    -------
    Floats, shape (Q,)
        0 where a code is missing.
    """
    if not codes.size:
        return np.zeros(len(wanted))
    at = np.minimum(codes.searchsorted(wanted), len(codes) - 1)
    return np.where(codes[at] == wanted, values[at], 0.0)


def firsts(ordered: Ints) -> Ints:
    """Find where runs of equal values begin.

    Parameters
    ----------
    ordered : Ints, shape (K,)
        Equal values stand together.

    Returns
    -------
    Ints
        Indices, the first one 0.
    """
    change = np.empty(len(ordered), dtype=np.bool_)
    change[:1] = True
    np.not_equal(ordered[1:], ordered[:-1], out=change[1:])
    return np.flatnonzero(change)


def run_sums(values: Floats, first: Ints) -> Floats:
    """Add up runs.

    Parameters
    ----------
    values : Floats, shape (K,)
        To add.
    first : Ints
        Where each run begins.

    Returns
    -------
    Floats
        One a run.
    """
    return np.add.reduceat(values, first) if first.size else np.zeros(0)


def sorted_by(codes: Ints) -> Ints:
    """Tell the order that sorts codes, equal ones as they came.

    Parameters
    ----------
    codes : Ints, shape (K,)
        Not negative.

    Returns
    -------
    Ints, shape (K,)
        Indices.

    Notes
    -----
    Sorting code and index packed into one number takes a third of the time of an argsort. Where
    they do not fit into 63 bits (a million executors on ten thousand workers with a hundred million
    pairs need 62) it is an argsort.
    """
    bits = len(codes).bit_length()
    if codes.size and int(codes.max()).bit_length() + bits > 63:
        return np.argsort(codes, kind="stable")
    packed = codes << bits
    packed |= np.arange(len(codes))
    packed.sort()
    packed &= (1 << bits) - 1
    return packed
